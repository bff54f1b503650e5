//! Which URLs belong to a crawl: the compiled form of the scope in its [`CrawlSpec`]. A deny takes precedence over an
//! allow. [`webfill_api::scope`] checks domains, patterns and extensions and brings them into canonical form.

mod patterns;

use std::collections::HashSet;
use std::sync::LazyLock;

use webfill_api::CrawlSpec;
use webfill_api::scope::{DENIED_EXTENSIONS, ScopeError, canonical_domains, canonical_extension};
use webfill_urls::Url;
use webfill_wire::{Lane, Reason};

use self::patterns::Patterns;

/// The compiled scope of one crawl.
#[derive(Debug)]
pub struct Scope {
    max_depth: u16,
    lane: Lane,
    allowed_domains: HashSet<String>,
    /// If there are no patterns, every URL is allowed.
    allow: Patterns,
    deny: Patterns,
    /// Path extensions that are not fetched; `None` for the default, [`DENIED_EXTENSIONS`].
    denied_extensions: Option<HashSet<String>>,
}

static DENIED_BY_DEFAULT: LazyLock<HashSet<&str>> =
    LazyLock::new(|| DENIED_EXTENSIONS.iter().copied().collect());

impl Scope {
    /// Compiles the scope of a crawl. The error names the faulty pattern or domain.
    pub fn compile(spec: &CrawlSpec) -> Result<Scope, ScopeError> {
        let allow = Patterns::compile("allow_regex", &spec.allow_regex)?;
        let deny = Patterns::compile("deny_regex", &spec.deny_regex)?;
        Scope::with_patterns(spec, allow, deny)
    }

    /// Creates the scope of settings that were compiled before. Its patterns are compiled only when they judge a URL.
    pub(crate) fn from_checked(spec: &CrawlSpec) -> Result<Scope, ScopeError> {
        let allow = Patterns::from_checked("allow_regex", &spec.allow_regex);
        let deny = Patterns::from_checked("deny_regex", &spec.deny_regex);
        Scope::with_patterns(spec, allow, deny)
    }

    fn with_patterns(
        spec: &CrawlSpec,
        allow: Patterns,
        deny: Patterns,
    ) -> Result<Scope, ScopeError> {
        let extensions = spec.deny_extensions.as_ref();
        let canonical =
            |own: &Vec<String>| own.iter().map(|ext| canonical_extension(ext)).collect();
        Ok(Scope {
            max_depth: spec.max_depth,
            lane: spec.lane,
            allowed_domains: canonical_domains(&spec.allowed_domains)?,
            allow,
            deny,
            denied_extensions: extensions.map(canonical),
        })
    }

    /// Whether a URL at this depth is within the crawl's `max_depth`.
    pub fn allows_depth(&self, depth: u16) -> bool {
        depth <= self.max_depth
    }

    /// Whether fragments that are routes (`#/x`) count as pages of their own.
    pub fn allows_fragment_routes(&self) -> bool {
        self.lane == Lane::Browser
    }

    /// Judges the canonical URL of a sitemap, by its host alone: patterns and extensions say only which pages are
    /// wanted.
    pub fn check_sitemap(&self, url: &Url) -> Result<(), Reason> {
        match self.allows_host(url.host_str().unwrap_or_default()) {
            true => Ok(()),
            false => Err(Reason::OutOfDomain),
        }
    }

    /// Judges a canonical URL by everything but its depth.
    pub fn check_page(&self, url: &Url) -> Result<(), Reason> {
        if !self.allows_host(url.host_str().unwrap_or_default()) {
            return Err(Reason::OutOfDomain);
        }
        if self.denies_extension(url.path()) {
            return Err(Reason::DeniedExtension);
        }
        let denied = self.deny.matches_any(url.as_str()) == Some(true);
        if denied || self.allow.matches_any(url.as_str()) == Some(false) {
            return Err(Reason::DeniedPattern);
        }
        Ok(())
    }

    /// Frees the memory of compiled patterns. They are compiled again when they are next used.
    pub(crate) fn forget_compiled(&mut self) {
        self.allow.forget_compiled();
        self.deny.forget_compiled();
    }

    /// The memory of each list of patterns that is compiled at present, in bytes.
    pub(crate) fn pattern_memory_bytes(&self) -> impl Iterator<Item = usize> {
        let lists = [&self.allow, &self.deny];
        lists.into_iter().filter_map(Patterns::memory_bytes)
    }

    fn allows_host(&self, host: &str) -> bool {
        self.allowed_domains.is_empty()
            || host_and_parents(host).any(|domain| self.allowed_domains.contains(domain))
    }

    fn denies_extension(&self, path: &str) -> bool {
        let file = &path[path.rfind('/').map_or(0, |slash| slash + 1)..];
        // Tries the longest extension first, so that both `tar.gz` and `gz` can be named.
        let mut rest = file;
        while let Some(dot) = rest.find('.') {
            rest = &rest[dot + 1..];
            let denied = if rest.bytes().any(|byte| byte.is_ascii_uppercase()) {
                self.is_denied_extension(&rest.to_ascii_lowercase())
            } else {
                self.is_denied_extension(rest)
            };
            if denied {
                return true;
            }
        }
        false
    }

    fn is_denied_extension(&self, extension: &str) -> bool {
        match &self.denied_extensions {
            Some(own) => own.contains(extension),
            None => DENIED_BY_DEFAULT.contains(extension),
        }
    }
}

/// The host and every domain above it, such as `a.b.c`, `b.c`, `c`.
fn host_and_parents(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |domain| Some(domain.split_once('.')?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(change: impl FnOnce(&mut CrawlSpec)) -> Scope {
        let mut spec = CrawlSpec::new("app", "crawl");
        change(&mut spec);
        Scope::compile(&spec).unwrap()
    }

    fn check_page_url(scope: &Scope, url: &str) -> Result<(), Reason> {
        scope.check_page(&Url::parse(url).unwrap())
    }

    #[test]
    fn allowed_domains_hold_for_subdomains_but_not_for_lookalikes() {
        let scope = scope(|spec| spec.allowed_domains = vec!["Example.com".into()]);
        assert_eq!(check_page_url(&scope, "http://example.com/"), Ok(()));
        assert_eq!(check_page_url(&scope, "http://a.b.example.com/"), Ok(()));
        assert_eq!(
            check_page_url(&scope, "http://notexample.com/"),
            Err(Reason::OutOfDomain)
        );
        assert_eq!(
            check_page_url(&scope, "http://example.com.evil.org/"),
            Err(Reason::OutOfDomain)
        );
    }

    #[test]
    fn a_deny_wins_over_an_allow() {
        let scope = scope(|spec| {
            spec.allow_regex = vec!["/shop/".into()];
            spec.deny_regex = vec!["sort=".into()];
        });
        assert_eq!(check_page_url(&scope, "http://a.org/shop/1"), Ok(()));
        assert_eq!(
            check_page_url(&scope, "http://a.org/blog/1"),
            Err(Reason::DeniedPattern)
        );
        assert_eq!(
            check_page_url(&scope, "http://a.org/shop/?sort=up"),
            Err(Reason::DeniedPattern)
        );
    }

    #[test]
    fn extensions_are_read_from_the_last_path_segment_only() {
        let scope = scope(|_| ());
        for denied in ["/a.jpg", "/a.JPEG", "/x/y.tar.gz", "/a.min.js"] {
            let url = format!("http://a.org{denied}");
            assert_eq!(
                check_page_url(&scope, &url),
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
                check_page_url(&scope, &format!("http://a.org{kept}")),
                Ok(()),
                "{kept}"
            );
        }
    }

    #[test]
    fn a_crawl_may_name_its_own_extensions() {
        let scope = scope(|spec| spec.deny_extensions = Some(vec![".XML".into()]));
        assert_eq!(
            check_page_url(&scope, "http://a.org/a.xml"),
            Err(Reason::DeniedExtension)
        );
        assert_eq!(check_page_url(&scope, "http://a.org/a.jpg"), Ok(()));
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
