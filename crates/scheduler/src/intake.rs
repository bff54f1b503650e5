//! Step 1 of a URL's journey: its canonical form, then its scope, then the excluded sites. Each refusal has one
//! reason. The frontier decides afterwards whether the URL was seen before and whether its site's budget is used up.

use webfill_urls::{Url, UrlRefusal, canonical_url_with_route, fragment_route};
use webfill_wire::Reason;

use crate::excluded_sites::ExcludedSites;
use crate::scope::Scope;

/// The maximum number of consecutive redirects. Further ones are refused.
pub const MAX_REDIRECTS: u8 = 5;

/// Why a URL is not queued.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    Url(UrlRefusal),
    Scope(Reason),
}

impl Refusal {
    pub fn reason(&self) -> Reason {
        match self {
            Refusal::Url(UrlRefusal::UnsupportedScheme { .. }) => Reason::UnsupportedScheme,
            Refusal::Url(UrlRefusal::Invalid { .. }) => Reason::InvalidUrl,
            Refusal::Scope(reason) => *reason,
        }
    }

    /// The reason as a clause, for people.
    pub fn explain(&self) -> String {
        match self {
            Refusal::Url(refusal) => refusal.to_string(),
            Refusal::Scope(reason) => explain_reason(*reason).to_owned(),
        }
    }
}

/// Explains to people why a URL was not queued.
pub fn explain_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Duplicate => "seen before in this crawl",
        Reason::TooDeep => "deeper than the crawl's depth, or too many redirects in a row",
        Reason::OutOfDomain => "outside the allowed domains",
        Reason::DeniedPattern => "matches a deny pattern, or no allow pattern",
        Reason::DeniedExtension => "its extension is not fetched",
        Reason::ExcludedSite => "its site is on the list of excluded sites",
        Reason::InvalidUrl => "not a URL",
        Reason::UnsupportedScheme => "neither http nor https",
        Reason::Budget => "the crawl's budget for this site is spent",
        Reason::RepeatedPage => "found on a page that only repeats others of its site",
        Reason::FragmentRoute => {
            "the part after `#` names a page that only scripts show: it needs the lane `browser`"
        }
    }
}

/// Judges a link or seed, and returns its canonical form. Has no side effects, and takes about a microsecond.
pub fn admit_url(
    text: &str,
    base: Option<&Url>,
    scope: &Scope,
    excluded: &ExcludedSites,
) -> Result<Url, Refusal> {
    let mut url = admit_if(text, base, excluded, |url| scope.check_page(url))?;
    if fragment_route(text).is_none() {
        return Ok(url);
    }
    if !scope.allows_fragment_routes() {
        return Err(Refusal::Scope(Reason::FragmentRoute));
    }
    url = canonical_url_with_route(text, base).map_err(Refusal::Url)?;
    Ok(url)
}

/// Judges the URL of a sitemap, and returns its canonical form.
pub fn admit_sitemap(
    text: &str,
    base: Option<&Url>,
    scope: &Scope,
    excluded: &ExcludedSites,
) -> Result<Url, Refusal> {
    admit_if(text, base, excluded, |url| scope.check_sitemap(url))
}

fn admit_if(
    text: &str,
    base: Option<&Url>,
    excluded: &ExcludedSites,
    in_scope: impl FnOnce(&Url) -> Result<(), Reason>,
) -> Result<Url, Refusal> {
    let url = webfill_urls::canonical_url(text, base).map_err(Refusal::Url)?;
    in_scope(&url).map_err(Refusal::Scope)?;
    if !excluded.is_empty() && excluded.excludes(&url, &webfill_urls::site(&url)) {
        return Err(Refusal::Scope(Reason::ExcludedSite));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use webfill_api::CrawlSpec;
    use webfill_wire::Lane;

    fn refusal_reason(text: &str) -> Reason {
        let mut spec = CrawlSpec::new("app", "crawl");
        spec.allowed_domains = vec!["example.com".into()];
        let scope = Scope::compile(&spec).unwrap();
        admit_url(text, None, &scope, &ExcludedSites::default())
            .unwrap_err()
            .reason()
    }

    #[test]
    fn each_refusal_has_its_reason() {
        assert_eq!(
            refusal_reason("mailto:a@example.com"),
            Reason::UnsupportedScheme
        );
        assert_eq!(refusal_reason("http://[broken/"), Reason::InvalidUrl);
        assert_eq!(refusal_reason("/relative"), Reason::InvalidUrl);
        assert_eq!(refusal_reason("http://other.com/"), Reason::OutOfDomain);
        assert_eq!(
            refusal_reason("http://example.com/a.jpg"),
            Reason::DeniedExtension
        );
    }

    #[test]
    fn a_fragment_that_is_a_route_is_a_page_of_its_own_where_scripts_run() {
        let judged = |lane, text: &str| {
            let mut spec = CrawlSpec::new("app", "crawl");
            spec.lane = lane;
            let scope = Scope::compile(&spec).unwrap();
            let judged = admit_url(text, None, &scope, &ExcludedSites::default());
            judged.map(String::from).map_err(|refusal| refusal.reason())
        };
        let route = "http://example.com/#/user/1";
        assert_eq!(judged(Lane::Browser, route), Ok(route.into()));
        assert_eq!(judged(Lane::Http, route), Err(Reason::FragmentRoute));
        for lane in [Lane::Browser, Lane::Http] {
            let landing = Ok("http://example.com/".into());
            assert_eq!(judged(lane, "http://example.com/#top"), landing);
            assert_eq!(judged(lane, "http://example.com/#!"), landing);
        }
    }

    #[test]
    fn a_link_is_read_relative_to_its_page() {
        let scope = Scope::compile(&CrawlSpec::new("app", "crawl")).unwrap();
        let page = Url::parse("http://example.com/a/b").unwrap();
        let judged = admit_url("../c#top", Some(&page), &scope, &ExcludedSites::default());
        assert_eq!(judged.unwrap().as_str(), "http://example.com/c");
    }
}
