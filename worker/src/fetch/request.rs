//! Descriptions of requests.

use std::time::Duration;

use webfill_urls::Url;

use super::rule::{BodyRule, Files};

const ACCEPTED: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,application/json;q=0.8,text/*;q=0.7";

const ACCEPTED_WITH_FILES: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,\
    application/json;q=0.8,text/*;q=0.7,application/pdf;q=0.7,application/*;q=0.5";

/// A request for a page.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    pub url: &'a Url,
    /// The user agent of the crawl, if the crawl adds a text of its own to it.
    pub user_agent: Option<&'a str>,
    /// Additional headers, with their names in lower case.
    pub headers: &'a [(String, String)],
    /// Whether the page may be a sitemap.
    pub sitemaps: bool,
    /// Whether robots.txt lists the page as a sitemap.
    pub is_named_sitemap: bool,
    /// The delay of the site: the time until its next request may start.
    pub next_after: Duration,
}

impl<'a> PageRequest<'a> {
    /// A request for a page with default settings.
    pub fn from_url(url: &'a Url) -> PageRequest<'a> {
        PageRequest {
            url,
            user_agent: None,
            headers: &[],
            sitemaps: false,
            is_named_sitemap: false,
            next_after: Duration::ZERO,
        }
    }
}

/// The request, and how to read its answer.
pub(super) struct RequestSpec<'a> {
    pub(super) url: &'a Url,
    pub(super) user_agent: Option<&'a str>,
    pub(super) accept: &'a str,
    pub(super) headers: &'a [(String, String)],
    pub(super) rule: BodyRule,
    pub(super) next_after: Duration,
}

impl<'a> RequestSpec<'a> {
    pub(super) fn for_page(asked: PageRequest<'a>) -> RequestSpec<'a> {
        RequestSpec {
            url: asked.url,
            user_agent: asked.user_agent,
            accept: ACCEPTED,
            headers: asked.headers,
            rule: BodyRule::Page(Files::default()),
            next_after: asked.next_after,
        }
    }

    /// Accepts these files, too, as the answer to a request for a page.
    pub(super) fn or_file(mut self, files: Files) -> RequestSpec<'a> {
        self.rule = BodyRule::Page(files);
        if files != Files::default() {
            self.accept = ACCEPTED_WITH_FILES;
        }
        self
    }
}
