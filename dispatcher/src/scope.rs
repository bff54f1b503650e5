//! The scope of a crawl: which URLs belong to it, compiled once from its [`CrawlSpec`]. A deny pattern
//! wins over an allow pattern.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use webfill_urls::Url;
use webfill_wire::Reason;

use crate::crawl_spec::CrawlSpec;

/// Path extensions that are not fetched unless a crawl has its own list: files without text that a
/// mapping could read.
pub const DENIED_EXTENSIONS: &[&str] = &[
    // images
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
    // programs, fonts and what belongs to a page's looks
    "exe", "bin", "dll", "so", "com", "bat", "cmd", "cpl", "hta", "scr", "class", "py", "pyc", "rb",
    "sh", "wasm", "woff", "woff2", "ttf", "otf", "eot", "css", "js", "mjs", "map", "torrent",
];

/// An invalid pattern or domain in a crawl's spec.
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
    /// The invalid entry of its list: `deny_regex[1]`.
    pub(crate) fn place(&self) -> String {
        match self {
            ScopeError::Pattern { list, index, .. } => format!("{list}[{index}]"),
            ScopeError::Domain { index, .. } => format!("allowed_domains[{index}]"),
        }
    }

    /// What is wrong with it.
    pub(crate) fn fault(&self) -> String {
        let whole = self.to_string();
        let fault = whole.strip_prefix(&format!("{}: ", self.place()));
        fault.unwrap_or(&whole).to_owned()
    }
}

/// The compiled scope of one crawl.
#[derive(Debug)]
pub struct Scope {
    max_depth: u16,
    allowed_domains: HashSet<String>,
    /// `None`: everything.
    allow: Option<RegexSet>,
    deny: Option<RegexSet>,
    /// `None`: [`DENIED_EXTENSIONS`], which all crawls share.
    denied_extensions: Option<HashSet<String>>,
}

static USUALLY_DENIED: LazyLock<HashSet<&str>> =
    LazyLock::new(|| DENIED_EXTENSIONS.iter().copied().collect());

impl Scope {
    /// Compiles a crawl's scope; the error names the invalid pattern or domain.
    pub fn compile(spec: &CrawlSpec) -> Result<Scope, ScopeError> {
        let extensions = spec.deny_extensions.as_ref();
        let normalised =
            |own: &Vec<String>| own.iter().map(|ext| normalised_extension(ext)).collect();
        let domains = spec.allowed_domains.iter().enumerate();
        Ok(Scope {
            max_depth: spec.max_depth,
            allowed_domains: domains.map(allowed_domain).collect::<Result<_, _>>()?,
            allow: compile_patterns("allow_regex", &spec.allow_regex)?,
            deny: compile_patterns("deny_regex", &spec.deny_regex)?,
            denied_extensions: extensions.map(normalised),
        })
    }

    /// Whether links at this depth are in scope.
    pub fn reaches(&self, depth: u16) -> bool {
        depth <= self.max_depth
    }

    /// Judges a canonical URL, whatever its depth.
    pub fn judge(&self, url: &Url) -> Result<(), Reason> {
        if !self.allows_host(url.host_str().unwrap_or_default()) {
            return Err(Reason::OutOfDomain);
        }
        if self.denies_extension(url.path()) {
            return Err(Reason::DeniedExtension);
        }
        let matches = |patterns: &RegexSet| patterns.is_match(url.as_str());
        let denied = self.deny.as_ref().is_some_and(matches);
        let allowed = self.allow.as_ref().is_none_or(matches);
        if denied || !allowed {
            return Err(Reason::DeniedPattern);
        }
        Ok(())
    }

    fn allows_host(&self, host: &str) -> bool {
        self.allowed_domains.is_empty()
            || and_parents(host).any(|domain| self.allowed_domains.contains(domain))
    }

    fn denies_extension(&self, path: &str) -> bool {
        let file = &path[path.rfind('/').map_or(0, |slash| slash + 1)..];
        // From the longest extension on, so that both `tar.gz` and `gz` can be named.
        let mut rest = file;
        while let Some(dot) = rest.find('.') {
            rest = &rest[dot + 1..];
            let denied = if rest.bytes().any(|byte| byte.is_ascii_uppercase()) {
                self.names_extension(&rest.to_ascii_lowercase())
            } else {
                self.names_extension(rest)
            };
            if denied {
                return true;
            }
        }
        false
    }

    fn names_extension(&self, extension: &str) -> bool {
        match &self.denied_extensions {
            Some(own) => own.contains(extension),
            None => USUALLY_DENIED.contains(extension),
        }
    }
}

/// The host and every domain above it: `a.b.c`, `b.c`, `c`.
fn and_parents(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |domain| Some(domain.split_once('.')?.1))
}

fn normalised_extension(extension: &str) -> String {
    extension
        .trim()
        .trim_start_matches('.')
        .to_ascii_lowercase()
}

fn allowed_domain((index, domain): (usize, &String)) -> Result<String, ScopeError> {
    canonical_domain(domain).ok_or_else(|| ScopeError::Domain {
        index,
        domain: shown(domain),
    })
}

/// The first 100 characters of an invalid domain, escaped for a terminal.
pub(crate) fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(100).collect();
    beginning.escape_debug().to_string()
}

/// A domain as it stands in canonical URLs: lower case, punycode, no dot at its ends.
pub(crate) fn canonical_domain(domain: &str) -> Option<String> {
    let domain = domain.trim().trim_start_matches('.');
    if domain.is_empty() || domain.contains(['/', '?', '#', '@', ':', '*']) {
        return None;
    }
    let url = webfill_urls::canonical(&format!("http://{domain}/"), None).ok()?;
    url.host_str().map(str::to_owned)
}

/// The size limit of the compiled patterns of one list in a request, in bytes; enough for some dozens
/// of ordinary patterns. Any client may send patterns, and each crawl in memory holds its own.
const MAX_ASKED_BYTES: usize = 1 << 20;

/// Whether a list of patterns from a request can be compiled, within limits.
pub(crate) fn check_patterns(list: &'static str, patterns: &[String]) -> Result<(), ScopeError> {
    compile_within(list, patterns, MAX_ASKED_BYTES).map(drop)
}

/// Whether each of a list is a domain.
pub(crate) fn check_domains(domains: &[String]) -> Result<(), ScopeError> {
    let mut domains = domains.iter().enumerate();
    domains.try_for_each(|domain| allowed_domain(domain).map(drop))
}

/// The size limit of compiled patterns elsewhere: the regex crate's default.
const MAX_PATTERN_BYTES: usize = 10 << 20;

fn compile_patterns(
    list: &'static str,
    patterns: &[String],
) -> Result<Option<RegexSet>, ScopeError> {
    match patterns {
        [] => Ok(None),
        _ => compile_within(list, patterns, MAX_PATTERN_BYTES).map(Some),
    }
}

/// Compiles patterns as a set. The set's error does not say which pattern is invalid, so on an error
/// they are compiled one by one.
fn compile_within(
    list: &'static str,
    patterns: &[String],
    bytes: usize,
) -> Result<RegexSet, ScopeError> {
    let whole = match RegexSetBuilder::new(patterns).size_limit(bytes).build() {
        Ok(set) => return Ok(set),
        Err(error) => error,
    };
    let compile = |pattern: &String| RegexBuilder::new(pattern).size_limit(bytes).build();
    let faults = patterns.iter().enumerate();
    let mut faults = faults.filter_map(|(index, pattern)| Some((index, compile(pattern).err()?)));
    let (index, error) = faults.next().unwrap_or((0, whole));
    Err(ScopeError::Pattern {
        list,
        index,
        pattern: patterns.get(index).cloned().unwrap_or_default(),
        reason: one_line(&error),
    })
}

/// The regex crate draws the pattern with a marker under it; its last line says what is wrong.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(change: impl FnOnce(&mut CrawlSpec)) -> Scope {
        let mut spec = CrawlSpec::new("app", "crawl");
        change(&mut spec);
        Scope::compile(&spec).unwrap()
    }

    fn judge(scope: &Scope, url: &str) -> Result<(), Reason> {
        scope.judge(&Url::parse(url).unwrap())
    }

    #[test]
    fn allowed_domains_hold_for_subdomains_but_not_for_lookalikes() {
        let scope = scope(|spec| spec.allowed_domains = vec!["Example.com".into()]);
        assert_eq!(judge(&scope, "http://example.com/"), Ok(()));
        assert_eq!(judge(&scope, "http://a.b.example.com/"), Ok(()));
        assert_eq!(
            judge(&scope, "http://notexample.com/"),
            Err(Reason::OutOfDomain)
        );
        assert_eq!(
            judge(&scope, "http://example.com.evil.org/"),
            Err(Reason::OutOfDomain)
        );
    }

    #[test]
    fn a_deny_wins_over_an_allow() {
        let scope = scope(|spec| {
            spec.allow_regex = vec!["/shop/".into()];
            spec.deny_regex = vec!["sort=".into()];
        });
        assert_eq!(judge(&scope, "http://a.org/shop/1"), Ok(()));
        assert_eq!(
            judge(&scope, "http://a.org/blog/1"),
            Err(Reason::DeniedPattern)
        );
        assert_eq!(
            judge(&scope, "http://a.org/shop/?sort=up"),
            Err(Reason::DeniedPattern)
        );
    }

    #[test]
    fn extensions_are_read_from_the_last_path_segment_only() {
        let scope = scope(|_| ());
        for denied in ["/a.jpg", "/a.JPEG", "/x/y.tar.gz", "/a.min.js"] {
            let url = format!("http://a.org{denied}");
            assert_eq!(
                judge(&scope, &url),
                Err(Reason::DeniedExtension),
                "{denied}"
            );
        }
        for kept in [
            "/a.html",
            "/v1.zip/notes",
            "/?f=a.jpg",
            "/jpg",
            "/a.xml",
            "/v2.0",
        ] {
            assert_eq!(
                judge(&scope, &format!("http://a.org{kept}")),
                Ok(()),
                "{kept}"
            );
        }
    }

    #[test]
    fn a_crawl_may_name_its_own_extensions() {
        let scope = scope(|spec| spec.deny_extensions = Some(vec![".XML".into()]));
        assert_eq!(
            judge(&scope, "http://a.org/a.xml"),
            Err(Reason::DeniedExtension)
        );
        assert_eq!(judge(&scope, "http://a.org/a.jpg"), Ok(()));
    }

    #[test]
    fn a_faulty_pattern_is_named_with_its_place_and_reason() {
        let mut spec = CrawlSpec::new("app", "crawl");
        spec.deny_regex = vec!["fine".into(), "(open".into()];
        let error = Scope::compile(&spec).unwrap_err().to_string();
        assert_eq!(
            error,
            "deny_regex[1]: invalid pattern `(open`: unclosed group"
        );
    }

    #[test]
    fn a_url_is_not_taken_for_an_allowed_domain() {
        let mut spec = CrawlSpec::new("app", "crawl");
        spec.allowed_domains = vec!["https://example.com/".into()];
        let error = Scope::compile(&spec).unwrap_err().to_string();
        assert!(
            error.starts_with("allowed_domains[0]: `https://example.com/`"),
            "{error}"
        );
    }
}
