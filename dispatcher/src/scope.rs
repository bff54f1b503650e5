//! Which URLs belong to a crawl, compiled once from its [`CrawlSpec`]. A deny wins over an allow.

use std::collections::HashSet;

use regex::{Regex, RegexSet};
use webfill_urls::Url;
use webfill_wire::Reason;

use crate::crawl_spec::CrawlSpec;

/// Path extensions that are not fetched unless a crawl names its own: what holds no text that
/// a mapping could read.
pub const DENIED_EXTENSIONS: &[&str] = &[
    // images
    "jpg", "jpeg", "png", "gif", "webp", "avif", "bmp", "ico", "svg", "tif", "tiff", "heic", "psd",
    "ai", "eps", "mng", "pct", "pst", "psp", "drw", "dxf", "cdr", // audio and video
    "mp3", "wav", "ogg", "oga", "opus", "flac", "aac", "m4a", "wma", "mid", "aiff", "ra", "mp4",
    "m4v", "webm", "ogv", "avi", "mov", "qt", "mkv", "mpg", "mpeg", "wmv", "flv", "swf", "3gp",
    "asf", "asx", "rm", "m3u8", "ts", // office
    "pdf", "ps", "doc", "docx", "dot", "dotx", "xls", "xlsx", "xlsm", "xltm", "xltx", "ppt",
    "pptx", "pps", "ppsx", "potm", "potx", "odt", "ods", "odp", "odg", "rtf", "pages", "numbers",
    "key", "epub", "mobi", "djvu", // archives and packages
    "zip", "7z", "7zip", "rar", "tar", "tar.gz", "tgz", "bz2", "xz", "zst", "lz4", "cab", "iso",
    "img", "dmg", "deb", "rpm", "apk", "ipa", "jar", "war", "msi", "msp", "pkg", "crx", "xpi",
    // programs, fonts and what belongs to a page's looks
    "exe", "bin", "dll", "so", "com", "bat", "cmd", "cpl", "hta", "scr", "class", "pyc", "wasm",
    "woff", "woff2", "ttf", "otf", "eot", "css", "js", "mjs", "map", "torrent",
];

/// A fault in what a crawl asks for.
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

/// The compiled scope of one crawl.
#[derive(Debug)]
pub struct Scope {
    max_depth: u16,
    allowed_domains: HashSet<String>,
    allow: RegexSet,
    deny: RegexSet,
    denied_extensions: HashSet<String>,
}

impl Scope {
    /// Compiles what a crawl asks for, or says which pattern or domain is at fault and why.
    pub fn compile(spec: &CrawlSpec) -> Result<Scope, ScopeError> {
        let extensions = match &spec.deny_extensions {
            Some(own) => own.iter().map(|ext| normalised_extension(ext)).collect(),
            None => DENIED_EXTENSIONS
                .iter()
                .map(|ext| ext.to_string())
                .collect(),
        };
        let domains = spec.allowed_domains.iter().enumerate();
        Ok(Scope {
            max_depth: spec.max_depth,
            allowed_domains: domains.map(allowed_domain).collect::<Result<_, _>>()?,
            allow: compile_patterns("allow_regex", &spec.allow_regex)?,
            deny: compile_patterns("deny_regex", &spec.deny_regex)?,
            denied_extensions: extensions,
        })
    }

    /// Whether links at this depth are wanted at all.
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
        let denied = !self.deny.is_empty() && self.deny.is_match(url.as_str());
        let allowed = self.allow.is_empty() || self.allow.is_match(url.as_str());
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
                self.denied_extensions.contains(&rest.to_ascii_lowercase())
            } else {
                self.denied_extensions.contains(rest)
            };
            if denied {
                return true;
            }
        }
        false
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

/// The beginning of what should have been a domain, fit for a terminal.
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

/// Compiles each pattern by itself first, because a set's error does not say which one it is.
fn compile_patterns(list: &'static str, patterns: &[String]) -> Result<RegexSet, ScopeError> {
    let fault = |index: usize, error: regex::Error| ScopeError::Pattern {
        list,
        index,
        pattern: patterns.get(index).cloned().unwrap_or_default(),
        reason: one_line(&error),
    };
    for (index, pattern) in patterns.iter().enumerate() {
        Regex::new(pattern).map_err(|error| fault(index, error))?;
    }
    RegexSet::new(patterns).map_err(|error| fault(0, error))
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
