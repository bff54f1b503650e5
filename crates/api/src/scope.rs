//! The scope of an application: domains, patterns, extensions. This module checks and compiles them; the dispatcher
//! judges URLs by them (`crates/scheduler/src/scope.rs`).
//!
//! An entry that cannot be used is a [`ScopeError`], which names the list and the index.

mod patterns;

use std::collections::HashSet;
use std::sync::Arc;

pub use self::patterns::PatternSet;

/// Path extensions that are not fetched unless a crawl has its own list: files without text that a mapping could
/// read.
pub const DENIED_EXTENSIONS: &[&str] = &[
    // Extensions of images.
    "jpg", "jpeg", "png", "gif", "webp", "avif", "bmp", "ico", "svg", "tif", "tiff", "heic", "psd",
    "ai", "eps", "mng", "pct", "pst", "psp", "drw", "dxf", "cdr", // audio and video
    "mp3", "au", "wav", "ogg", "oga", "opus", "flac", "aac", "m4a", "wma", "mid", "aiff", "ra",
    "mp4", "m4v", "webm", "ogv", "avi", "mov", "qt", "mkv", "mpg", "mpeg", "wmv", "flv", "swf",
    "3gp", "asf", "asx", "rm", "m3u8", "ts", // office
    "pdf", "ps", "doc", "docb", "docm", "docx", "dot", "dotm", "dotx", "xls", "xlsx", "xlsm",
    "xltm", "xltx", "ppt", "pptm", "pptx", "pps", "ppsx", "potm", "potx", "odt", "ods", "odp",
    "odg", "rtf", "pages", "numbers", "key", "epub", "mobi", "djvu", // archives and packages
    "zip", "7z", "7zip", "rar", "tar", "tar.gz", "tgz", "bz2", "xz", "zst", "lz4", "cab", "iso",
    "img", "dmg", "deb", "rpm", "apk", "ipa", "jar", "war", "msi", "msp", "pkg", "crx", "xpi",
    // programs, fonts and parts of a page's appearance
    "exe", "bin", "dll", "so", "com", "bat", "cmd", "cpl", "hta", "scr", "class", "py", "pyc", "rb",
    "sh", "wasm", "woff", "woff2", "ttf", "otf", "eot", "css", "js", "mjs", "map", "torrent",
];

/// The extensions of documents, which a crawl with documents fetches.
const DOCUMENT_EXTENSIONS: [&str; 9] = [
    "pdf", "docx", "docm", "xlsx", "xlsm", "xls", "odt", "ods", "rtf",
];

/// [`DENIED_EXTENSIONS`] without the extensions of documents, for a crawl with documents.
pub fn denied_extensions_except_documents() -> Vec<String> {
    let others = DENIED_EXTENSIONS
        .iter()
        .filter(|extension| !DOCUMENT_EXTENSIONS.contains(extension));
    others.map(|extension| (*extension).to_owned()).collect()
}

/// An entry of a crawl's scope that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    #[error("{list}[{index}]: invalid pattern `{pattern}`: {reason}")]
    Pattern {
        list: &'static str,
        index: usize,
        pattern: String,
        reason: String,
    },
    #[error(
        "allowed_domains[{index}]: `{domain}` is not a domain; write it like `example.com`, which \
         includes its subdomains"
    )]
    Domain { index: usize, domain: String },
}

impl ScopeError {
    /// The faulty entry, as a JSON path within the request: `deny_regex[1]`.
    pub(crate) fn path(&self) -> String {
        match self {
            ScopeError::Pattern { list, index, .. } => format!("{list}[{index}]"),
            ScopeError::Domain { index, .. } => format!("allowed_domains[{index}]"),
        }
    }

    /// The fault of the entry, without its path.
    pub(crate) fn fault(&self) -> String {
        let whole = self.to_string();
        let fault = whole.strip_prefix(&format!("{}: ", self.path()));
        fault.unwrap_or(&whole).to_owned()
    }
}

/// The size limit of a compiled list of patterns in a request, in bytes: enough for some dozens of ordinary patterns.
/// There is a limit because any client may send patterns, compiling takes time, and the dispatcher keeps the patterns
/// of every crawl in memory.
const MAX_REQUESTED_BYTES: usize = 1 << 20;

/// The size limit of a list from the command line: the default of the regex crate.
const MAX_COMPILED_BYTES: usize = 10 << 20;

/// Checks a list of patterns from a request: each compiles, and all together stay within the size
/// limit of requests. Returns them compiled.
pub(crate) fn compile_requested_patterns(
    list: &'static str,
    patterns: &[String],
) -> Result<Arc<PatternSet>, ScopeError> {
    patterns::compile_within(list, patterns, MAX_REQUESTED_BYTES)
}

/// Checks that each entry is a domain.
pub(crate) fn check_domains(domains: &[String]) -> Result<(), ScopeError> {
    canonical_domains(domains).map(drop)
}

/// Compiles a list of patterns, unless an equal one is in use; `None` for an empty list, which excludes no URL.
pub fn compile_patterns(
    list: &'static str,
    patterns: &[String],
) -> Result<Option<Arc<PatternSet>>, ScopeError> {
    match patterns {
        [] => Ok(None),
        _ => patterns::compile_within(list, patterns, MAX_COMPILED_BYTES).map(Some),
    }
}

/// The domains of `allowed_domains` as they occur in canonical URLs.
pub fn canonical_domains(domains: &[String]) -> Result<HashSet<String>, ScopeError> {
    let canonical = |(index, domain): (usize, &String)| {
        canonical_domain(domain).ok_or_else(|| ScopeError::Domain {
            index,
            domain: printable_beginning(domain),
        })
    };
    domains.iter().enumerate().map(canonical).collect()
}

/// An extension in the form used for comparisons: lower case, without the leading dot.
pub fn canonical_extension(extension: &str) -> String {
    extension
        .trim()
        .trim_start_matches('.')
        .to_ascii_lowercase()
}

/// A domain as it occurs in canonical URLs: lower case, punycode, no dot at either end. `None` if the text is not a
/// domain, for example because it is a URL.
pub fn canonical_domain(domain: &str) -> Option<String> {
    let domain = domain.trim().trim_start_matches('.');
    if domain.is_empty() || domain.contains(['/', '?', '#', '@', ':', '*']) {
        return None;
    }
    let url = webfill_urls::canonical_url(&format!("http://{domain}/"), None).ok()?;
    url.host_str().map(str::to_owned)
}

/// The first 100 characters of a text, with unprintable ones escaped.
pub fn printable_beginning(text: &str) -> String {
    let beginning: String = text.chars().take(100).collect();
    beginning.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_faulty_pattern_is_named_with_its_index_and_reason() {
        let error = compile_patterns("deny_regex", &texts(&["fine", "(open"])).unwrap_err();
        assert_eq!(error.path(), "deny_regex[1]");
        assert_eq!(error.fault(), "invalid pattern `(open`: unclosed group");
        assert_eq!(
            error.to_string(),
            "deny_regex[1]: invalid pattern `(open`: unclosed group"
        );
    }

    #[test]
    fn patterns_of_a_request_have_a_lower_size_limit() {
        let large = texts(&["\\w{100}"]);
        assert!(compile_requested_patterns("allow_regex", &large).is_err());
        assert!(compile_patterns("allow_regex", &large).is_ok());
    }

    #[test]
    fn domains_are_compared_in_canonical_form() {
        let domains = canonical_domains(&texts(&["Example.COM.", ".bücher.de"])).unwrap();
        let expected = texts(&["example.com", "xn--bcher-kva.de"]);
        assert_eq!(domains, expected.into_iter().collect());
        let error = canonical_domains(&texts(&["a.org", "https://example.com/"])).unwrap_err();
        assert_eq!(error.path(), "allowed_domains[1]");
    }
}
