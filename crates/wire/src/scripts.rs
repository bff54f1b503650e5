//! Findings of workers about pages that scripts fill: whether a kind of page has content in a browser that it lacks
//! without one.
//!
//! The findings are sent as the evidence of an outcome `ok`: in [`Evidence::sign`], as words separated by tabs.
//! Receivers that do not know them ignore them.

use serde::{Deserialize, Serialize};

use crate::unmatched::without_unmatched_mark;
use crate::{Evidence, Lane, Outcome, TaskDone};

const MARK: &str = "scripts";
const SHELL: &str = "shell";
const PAGE: &str = "page";

/// A worker's finding about the scripts of a kind of page: pages of one site with the same mapping and layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptsReport {
    pub finding: Finding,
    /// Whether the pages are empty shells. If not, they have text, but their mapping extracts nothing.
    pub is_shell: bool,
    /// The mapping of the pages; empty if none matches them.
    pub mapping: String,
    /// The layout of the pages as the server sends them: a sketch, or the root element of an empty shell.
    pub layout: String,
    /// The observation that led to the finding, in words for users.
    pub seen: String,
}

/// All findings about the scripts of a site's pages, and the site's own rule. The worker that gets the site's tasks
/// receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteScripts {
    pub site: String,
    /// The lane (with or without a browser) of the site's pages in crawls of the lane `http`; `None` if it depends on
    /// the page.
    pub lane: Option<Lane>,
    pub kinds: Vec<KnownKind>,
}

/// A kind of page (with the same mapping and layout). A browser has rendered some of these pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownKind {
    pub mapping: String,
    pub layout: String,
    pub finding: Finding,
    /// How many pages of this kind a browser has rendered without gaining content.
    pub tries: u32,
}

/// What a worker found out about the scripts of a kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Finding {
    /// The page shows nothing without its scripts, and the worker that fetched it has no browser.
    Wanted,
    /// The pages get their content from their scripts.
    Filled,
    /// The pages show nothing in a browser either.
    Empty,
    /// One more page was rendered without gaining content, and more pages are to be tried.
    Tried,
}

impl Finding {
    /// The layout that stands for pages that are always rendered, because of a mapping or a setting.
    pub const SET: &str = "set";

    const ALL: [Finding; 4] = [
        Finding::Wanted,
        Finding::Filled,
        Finding::Empty,
        Finding::Tried,
    ];

    /// The stable name of the finding, as sent in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Finding::Wanted => "wanted",
            Finding::Filled => "filled",
            Finding::Empty => "empty",
            Finding::Tried => "tried",
        }
    }

    pub fn from_name(name: &str) -> Option<Finding> {
        Finding::ALL
            .into_iter()
            .find(|finding| finding.as_str() == name)
    }
}

impl ScriptsReport {
    pub fn into_evidence(self, url: &str, status_code: Option<u16>) -> Evidence {
        let words = [
            MARK,
            self.finding.as_str(),
            if self.is_shell { SHELL } else { PAGE },
            &self.mapping,
            &self.layout,
            &self.seen,
        ];
        let words = words.map(|word| word.replace('\t', " "));
        Evidence {
            url: url.to_owned(),
            status_code,
            sign: words.join("\t"),
            no_route: false,
        }
    }

    /// The report that an outcome carries; `None` if it carries none.
    pub fn from_outcome(done: &TaskDone) -> Option<ScriptsReport> {
        let evidence = done.evidence.as_ref();
        let evidence = evidence.filter(|_| done.outcome == Outcome::Ok)?;
        let sign = without_unmatched_mark(&evidence.sign);
        let mut words = sign.splitn(6, '\t').map(str::to_owned);
        let mark = words.next().filter(|word| word == MARK);
        let (_, finding) = (mark?, Finding::from_name(&words.next()?)?);
        Some(ScriptsReport {
            finding,
            is_shell: words.next()? == SHELL,
            mapping: words.next()?,
            layout: words.next()?,
            seen: words.next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Delivery, SiteClock, is_unmatched, with_unmatched_mark};

    fn task_done(outcome: Outcome, evidence: Option<Evidence>) -> TaskDone {
        TaskDone {
            task: 1,
            delivery: Delivery::new(1, 1),
            outcome,
            status_code: Some(200),
            body_bytes: 0,
            fields: 0,
            rows: 0,
            rows_stored: 0,
            links: Vec::new(),
            redirect: None,
            resolved: Vec::new(),
            clock: SiteClock::default(),
            evidence,
        }
    }

    #[test]
    fn a_report_survives_a_round_trip_and_other_evidence_is_not_a_report() {
        for finding in Finding::ALL {
            let report = ScriptsReport {
                finding,
                is_shell: finding == Finding::Wanted,
                mapping: String::new(),
                layout: "#root".into(),
                seen: "a\tb".into(),
            };
            let evidence = report.clone().into_evidence("http://a.org/", Some(200));
            let expected = ScriptsReport {
                seen: "a b".into(),
                ..report
            };
            let read = ScriptsReport::from_outcome(&task_done(Outcome::Ok, Some(evidence.clone())));
            assert_eq!(read, Some(expected));
            let failed = task_done(Outcome::Timeout, Some(evidence));
            assert_eq!(ScriptsReport::from_outcome(&failed), None);
            assert!(!is_unmatched(&task_done(
                Outcome::Ok,
                failed.evidence.clone()
            )));
            let marked = with_unmatched_mark(failed.evidence);
            let marked = task_done(Outcome::Ok, Some(marked));
            assert_eq!(ScriptsReport::from_outcome(&marked), read);
            assert!(is_unmatched(&marked));
        }
        for sign in [
            "",
            "scripts",
            "scripts\tnew\ta\tb\tc\td",
            "the page answered 429",
        ] {
            let evidence = Evidence {
                url: String::new(),
                status_code: None,
                sign: sign.into(),
                no_route: false,
            };
            assert_eq!(
                ScriptsReport::from_outcome(&task_done(Outcome::Ok, Some(evidence))),
                None
            );
        }
    }
}
