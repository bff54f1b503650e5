//! What is asked for, and how.

use webfill_urls::Url;

use super::BodyRule;

const ACCEPTED: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,application/json;q=0.8,text/*;q=0.7";

pub(super) const ACCEPTED_WITH_DOCUMENTS: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,\
    application/json;q=0.8,text/*;q=0.7,application/pdf;q=0.7,application/*;q=0.5";

/// What a page is asked for with: its URL, the crawl's user agent if it has one, and the headers that make
/// the request conditional.
pub type PageRequest<'a> = (&'a Url, Option<&'a str>, &'a [(String, String)]);

pub(super) struct RequestSpec<'a> {
    pub(super) url: &'a Url,
    pub(super) user_agent: Option<&'a str>,
    pub(super) accept: &'a str,
    pub(super) headers: &'a [(String, String)],
    pub(super) rule: BodyRule,
}

impl<'a> RequestSpec<'a> {
    pub(super) fn page(url: &'a Url, user_agent: Option<&'a str>) -> RequestSpec<'a> {
        RequestSpec {
            url,
            user_agent,
            accept: ACCEPTED,
            headers: &[],
            rule: BodyRule::Page,
        }
    }
}
