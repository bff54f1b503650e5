//! The kinds of URLs found on a page. Most are links. In crawls with sitemaps
//! ([`Feature::Sitemaps`](crate::Feature::Sitemaps)) there are two more kinds. A link from a row of a page carries the
//! key of the row's record ([`format_row_link`]).
//!
//! [`TaskDone::links`](crate::TaskDone::links) holds all of them as texts. The kind comes before the URL, separated by
//! a space. A resolved link of a page has no space, so no page can forge a link of another kind.

use crate::TaskDone;

/// The most bytes of links in one message. It is a fraction of the largest message that a socket takes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// The total length of the links of these outcomes, in bytes.
pub fn total_link_bytes(done: &[TaskDone]) -> usize {
    let links = done.iter().flat_map(|done| &done.links);
    links.map(String::len).sum()
}

/// Splits outcomes, in order, into parts that fit into a message. A single outcome is not divided, because workers
/// limit its links.
pub fn split_for_messages(done: Vec<TaskDone>) -> Vec<Vec<TaskDone>> {
    let mut parts: Vec<Vec<TaskDone>> = Vec::new();
    let mut room = 0;
    for done in done {
        let links = total_link_bytes(std::slice::from_ref(&done));
        match parts.last_mut() {
            Some(part) if links <= room => {
                room -= links;
                part.push(done);
            }
            _ => {
                room = MAX_MESSAGE_BYTES.saturating_sub(links);
                parts.push(vec![done]);
            }
        }
    }
    parts
}

/// How the dispatcher judges whether a found URL becomes a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// A link on a page. It is one level deeper than the page.
    Link,
    /// A page listed in a sitemap. It has the depth of the sitemap, and belongs to no record.
    Listed,
    /// A sitemap. It is judged like a listed page, but without the crawl's patterns and extensions, which are for
    /// pages.
    Sitemap,
}

const LISTED: &str = "listed ";
const SITEMAP: &str = "sitemap ";
const ROW: &str = "row ";

/// The text in place of a record's key if a link belongs to no record.
pub const NO_RECORD: &str = "";

/// The text of a link from a row, for [`TaskDone::links`](crate::TaskDone::links). The link belongs to the row's
/// record, with the key `record`, not to the records of the page.
pub fn format_row_link(record: &str, url: &str) -> String {
    let escaped = record.replace('%', "%25").replace(' ', "%20");
    format!("{ROW}{escaped} {url}")
}

/// Splits the text of a link from a row into the record's key and the URL; `None` for other texts.
pub fn parse_row_link(text: &str) -> Option<(String, &str)> {
    let (escaped, url) = text.strip_prefix(ROW)?.split_once(' ')?;
    Some((escaped.replace("%20", " ").replace("%25", "%"), url))
}

impl LinkKind {
    /// The text of a URL of this kind, for [`TaskDone::links`](crate::TaskDone::links).
    pub fn mark_url(self, url: &str) -> String {
        match self {
            LinkKind::Link => url.to_owned(),
            LinkKind::Listed => format!("{LISTED}{url}"),
            LinkKind::Sitemap => format!("{SITEMAP}{url}"),
        }
    }

    /// Splits a text of [`TaskDone::links`](crate::TaskDone::links) into the kind and the URL.
    pub fn parse(text: &str) -> (LinkKind, &str) {
        if let Some(url) = text.strip_prefix(LISTED) {
            return (LinkKind::Listed, url);
        }
        match text.strip_prefix(SITEMAP) {
            Some(url) => (LinkKind::Sitemap, url),
            None => (LinkKind::Link, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_and_its_kind_survive_a_round_trip() {
        let url = "https://a.example/sitemap x";
        for kind in [LinkKind::Link, LinkKind::Listed, LinkKind::Sitemap] {
            assert_eq!(LinkKind::parse(&kind.mark_url(url)), (kind, url));
        }
    }

    #[test]
    fn a_link_of_a_row_keeps_its_record_whatever_the_key() {
        for record in [
            "ratings/u1/a b",
            "r/100%25 20%20",
            "r/row x",
            "r/\u{a0}%",
            "",
        ] {
            let text = format_row_link(record, "https://a.example/1");
            let url = "https://a.example/1";
            assert_eq!(parse_row_link(&text), Some((record.to_owned(), url)));
        }
        assert_eq!(parse_row_link("https://a.example/row%20x"), None);
    }

    #[test]
    fn long_lists_of_links_are_split_into_several_messages() {
        let outcome = |task: u64, bytes: usize| TaskDone {
            task,
            delivery: crate::Delivery::new(1, 1),
            outcome: crate::Outcome::Ok,
            status_code: Some(200),
            body_bytes: 0,
            fields: 0,
            rows: 0,
            rows_stored: 0,
            links: vec!["x".repeat(bytes)],
            redirect: None,
            resolved: Vec::new(),
            clock: crate::SiteClock::default(),
            evidence: None,
        };
        let (large, small) = (MAX_MESSAGE_BYTES / 2 + 1, 10);
        let done = [(1, large), (2, small), (3, large), (4, small)];
        let parts = split_for_messages(done.map(|(task, bytes)| outcome(task, bytes)).into());
        let tasks: Vec<Vec<u64>> = parts
            .iter()
            .map(|part| part.iter().map(|done| done.task).collect())
            .collect();
        assert_eq!(tasks, [[1, 2], [3, 4]]);
        assert!(split_for_messages(Vec::new()).is_empty());
    }
}
