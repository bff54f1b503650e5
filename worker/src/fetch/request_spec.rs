//! What a request asks for.

use webfill_urls::Url;

use super::rule::{BodyRule, Files};

const ACCEPTED: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,application/json;q=0.8,text/*;q=0.7";

const ACCEPTED_WITH_FILES: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,\
    application/json;q=0.8,text/*;q=0.7,application/pdf;q=0.7,application/*;q=0.5";

/// What to ask for, and how its answer is read.
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
            rule: BodyRule::Page(Files::default()),
        }
    }

    /// The same for what may be one of these files as well.
    pub(super) fn or_file(mut self, files: Files) -> RequestSpec<'a> {
        self.rule = BodyRule::Page(files);
        if files != Files::default() {
            self.accept = ACCEPTED_WITH_FILES;
        }
        self
    }
}
