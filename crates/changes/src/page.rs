//! [`PageVersions`]: the last versions of a page, and the judgement of a check.
//!
//! States: *unknown* (no version), *there*, *missing* (not found at the last check), *gone* (not found at two
//! consecutive checks). A check is identified by its delivery and time, so that a check that is reported twice is
//! judged only once.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::blocks::Block;
use crate::compare::{Side, compare};
use crate::page_check::Verdict;
use crate::seen::{self, PageContent, UnpackError};
use crate::site::SiteBlocks;
use crate::unsteady::Unsteady;
use crate::{difference, fields, rows, times};

/// The most versions that are kept.
const MOST_VERSIONS: usize = 5;

/// How many consecutive checks must not find the page before it counts as gone.
const MISSES: u32 = 2;

/// Identifies a check, to recognise repetitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckKey {
    pub epoch: u64,
    pub task: u64,
    /// The number of the delivery of the page's task, counted from 1 over all runs.
    pub number: u64,
    /// When the fetch started, in milliseconds since the epoch.
    pub at_ms: i64,
}

/// The server's response to a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Page,
    /// The server answered that the page has not changed (304).
    NotModified,
    /// The server answered that the page does not exist (404, 410).
    Missing,
}

/// The result of a check, to be judged.
#[derive(Debug, Clone)]
pub struct CheckedPage<'a> {
    pub key: CheckKey,
    /// When the run of the watch began, if the check may belong to a run. A run checks a page only once, so a
    /// repetition after a crash is the same check.
    pub run_began_ms: Option<i64>,
    pub answer: Answer,
    pub content_hash: Option<&'a str>,
    /// The mapping that has extracted the fields, and its version.
    pub mapping: Option<&'a str>,
    pub mapping_version: Option<&'a str>,
    pub fields: &'a Map<String, Value>,
    pub seen: PageContent,
}

/// The judgement of a check: whether the page has changed, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckOutcome {
    pub verdict: Verdict,
    /// The old and the new state, and a readable difference.
    pub old: Option<Value>,
    pub new: Option<Value>,
    pub difference: String,
}

impl CheckOutcome {
    fn with_verdict(verdict: Verdict) -> CheckOutcome {
        CheckOutcome {
            verdict,
            old: None,
            new: None,
            difference: String::new(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Version {
    at_ms: i64,
    #[serde(default)]
    hash: Option<String>,
    #[serde(default)]
    mapping: Option<String>,
    #[serde(default)]
    mapping_version: Option<String>,
    #[serde(default)]
    fields: Map<String, Value>,
    #[serde(default)]
    blocks: Vec<Block>,
    /// Whether the version is a document that could not be read. Such a version is dropped when another one is added.
    #[serde(default, rename = "unread", skip_serializing_if = "seen::is_false")]
    is_unread: bool,
}

impl Version {
    fn from_unread(check: &CheckedPage<'_>) -> Version {
        Version {
            at_ms: check.key.at_ms,
            hash: check.content_hash.map(str::to_owned),
            is_unread: true,
            ..Version::default()
        }
    }

    fn from_check(check: &CheckedPage<'_>) -> Version {
        let is_mapped = check.mapping.is_some();
        Version {
            at_ms: check.key.at_ms,
            hash: check.content_hash.map(str::to_owned),
            mapping: check.mapping.map(str::to_owned),
            mapping_version: check.mapping_version.map(str::to_owned),
            fields: match is_mapped {
                true => {
                    let mut kept = fields::bounded_fields(check.fields);
                    kept.extend(check.seen.rows.clone());
                    kept
                }
                false => Map::new(),
            },
            blocks: match is_mapped {
                true => Vec::new(),
                false => check.seen.blocks.clone(),
            },
            is_unread: false,
        }
    }

    fn side(&self) -> Side<'_> {
        Side {
            blocks: &self.blocks,
            at_ms: self.at_ms,
        }
    }

    fn has_mapping_of(&self, other: &Version) -> bool {
        (&self.mapping, &self.mapping_version) == (&other.mapping, &other.mapping_version)
    }

    fn has_hash_of(&self, other: &Version) -> bool {
        self.hash.is_some() && self.hash == other.hash
    }
}

/// Whether no block differs, and the same blocks form rows.
fn has_same_content(old: Side<'_>, new: Side<'_>, masks: &[&Unsteady]) -> bool {
    compare(old, new, masks).is_empty()
        && rows::find_moved_rows(old.blocks, new.blocks, masks)
            .gone
            .is_empty()
}

/// The last versions of a page; see the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PageVersions {
    /// The versions, the most recently seen one first.
    versions: VecDeque<Version>,
    #[serde(default)]
    unsteady: Unsteady,
    /// How many consecutive checks have not found the page.
    #[serde(default)]
    misses: u32,
    /// When the last run that missed the page began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missed_in: Option<i64>,
    last: CheckKey,
}

impl PageVersions {
    /// Judges a check. `None` if it was judged before, or if it is no evidence yet, such as a first check that does not
    /// find the page.
    pub fn compare_check(
        &mut self,
        check: &CheckedPage<'_>,
        site: &mut SiteBlocks,
    ) -> Option<CheckOutcome> {
        if self.last == check.key {
            return None;
        }
        self.last = check.key;
        if check.answer == Answer::Missing {
            let missed_in = std::mem::replace(&mut self.missed_in, check.run_began_ms);
            // A repeated check is recognised by the start of its run, not by its own time, because the clocks of
            // workers may differ.
            let is_repeat = check.run_began_ms.is_some() && missed_in == check.run_began_ms;
            if is_repeat && self.misses > 0 {
                return None;
            }
            self.misses = self.misses.saturating_add(1);
            let is_gone = self.misses == MISSES && !self.versions.is_empty();
            return is_gone.then(|| CheckOutcome::with_verdict(Verdict::Gone));
        }
        let is_empty = match (check.answer, check.mapping) {
            (Answer::NotModified, _) => self.versions.is_empty(),
            _ if check.seen.is_unread => false,
            (_, Some(_)) => fields::are_empty(check.fields) && check.seen.rows.is_empty(),
            (_, None) => check.seen.is_empty(),
        };
        if is_empty {
            return None;
        }
        let was_gone = std::mem::take(&mut self.misses) >= MISSES;
        let judged = match check.answer {
            Answer::NotModified => Some(CheckOutcome::with_verdict(Verdict::Unchanged)),
            _ if check.seen.is_unread => self.compare_unread(check),
            _ => self.compare_found(check, site),
        };
        let is_new = judged
            .as_ref()
            .is_some_and(|judged| judged.verdict == Verdict::New);
        if was_gone && !is_new {
            return Some(CheckOutcome {
                verdict: Verdict::Back,
                ..judged.unwrap_or(CheckOutcome::with_verdict(Verdict::Back))
            });
        }
        judged
    }

    /// Judges a document that could not be read. It never counts as changed, because the file may be damaged only
    /// temporarily.
    fn compare_unread(&mut self, check: &CheckedPage<'_>) -> Option<CheckOutcome> {
        if self.versions.is_empty() {
            self.add(Version::from_unread(check));
            return Some(CheckOutcome::with_verdict(Verdict::New));
        }
        let is_same =
            |version: &Version| version.is_unread && version.hash.as_deref() == check.content_hash;
        let is_known = self.versions.iter().any(is_same);
        is_known.then_some(CheckOutcome::with_verdict(Verdict::Unchanged))
    }

    /// Judges a page that was found. `None` if no version was read by the same mapping: differences may come from the
    /// mapping.
    fn compare_found(
        &mut self,
        check: &CheckedPage<'_>,
        site: &mut SiteBlocks,
    ) -> Option<CheckOutcome> {
        if let Some(unsteady) = &check.seen.unsteady {
            site.note_unsteady(&self.unsteady, unsteady);
            self.unsteady.merge(unsteady);
        }
        let new = Version::from_check(check);
        if new.mapping.is_none() {
            site.note_check(new.at_ms);
        }
        if self.versions.is_empty() {
            let fields = (!new.fields.is_empty()).then(|| new.fields.clone().into());
            self.add(new);
            return Some(CheckOutcome {
                new: fields,
                ..CheckOutcome::with_verdict(Verdict::New)
            });
        }
        let is_compared = |one: &Version| one.is_unread || one.has_mapping_of(&new);
        let Some(last) = self.versions.iter().position(is_compared) else {
            self.add(new);
            return None;
        };
        Some(match new.mapping.is_some() {
            true => self.compare_fields(last, new),
            false => self.compare_blocks(last, new, site),
        })
    }

    /// Compares the fields only with the last version, so that a price that returns to an earlier value is also
    /// reported.
    fn compare_fields(&mut self, last: usize, new: Version) -> CheckOutcome {
        let (old_fields, new_fields) =
            fields::differing_fields(&self.versions[last].fields, &new.fields);
        if old_fields.is_empty() && new_fields.is_empty() {
            return self.note_unchanged(last, new);
        }
        let judged = CheckOutcome {
            verdict: Verdict::Changed,
            difference: difference::diff_fields(&old_fields, &new_fields),
            old: Some(old_fields.into()),
            new: Some(new_fields.into()),
        };
        self.add(new);
        judged
    }

    /// Compares the text with all versions, so that a page that alternates between two forms is reported only once for
    /// each.
    fn compare_blocks(&mut self, last: usize, new: Version, site: &mut SiteBlocks) -> CheckOutcome {
        let masks = [&self.unsteady, site.unsteady_parts()];
        let is_met = |version: &Version| {
            version.has_mapping_of(&new)
                && (version.has_hash_of(&new)
                    || has_same_content(version.side(), new.side(), &masks))
        };
        let same = self.versions.iter().position(is_met);
        let old = self.versions[last].side();
        let mut differing = compare(old, new.side(), &masks);
        if site.count_clock_steps(times::find_moved_times(&differing, old.at_ms, new.at_ms)) {
            let masks = [&self.unsteady, site.unsteady_parts()];
            differing = compare(old, new.side(), &masks);
        }
        site.remove_site_blocks(&mut differing, &new.blocks);
        if let Some(same) = same {
            return self.note_unchanged(same, new);
        }
        fn texts<'b>(blocks: &[&'b Block]) -> Vec<&'b str> {
            blocks.iter().map(|block| &*block.text).collect()
        }
        let (mut gone, mut come) = (texts(&differing.gone), texts(&differing.come));
        let moved = match differing.is_empty() {
            true => rows::find_moved_rows(old.blocks, &new.blocks, &[&self.unsteady]),
            false => rows::MovedRows::default(),
        };
        gone.extend(moved.gone.iter().map(String::as_str));
        come.extend(moved.come.iter().map(String::as_str));
        if gone.is_empty() && come.is_empty() {
            return self.note_unchanged(last, new);
        }
        let judged = CheckOutcome {
            verdict: Verdict::Changed,
            old: Some(difference::limit_texts(&gone)),
            new: Some(difference::limit_texts(&come)),
            difference: difference::diff_texts(&gone, &come),
        };
        self.add(new);
        judged
    }

    /// Records that a known version was seen again. Its newest form is kept, because relative times become dates after
    /// a while.
    fn note_unchanged(&mut self, version: usize, new: Version) -> CheckOutcome {
        self.versions.remove(version);
        self.versions.push_front(new);
        CheckOutcome::with_verdict(Verdict::Unchanged)
    }

    fn add(&mut self, new: Version) {
        self.versions.retain(|version| !version.is_unread);
        self.versions.push_front(new);
        self.versions.truncate(MOST_VERSIONS);
    }

    /// Whether a check differs from everything that is known about the page. If so, a second fetch should show which
    /// parts differ at each fetch.
    pub fn has_news(&self, seen: &PageContent, at_ms: i64, site: &SiteBlocks) -> bool {
        let masks = [&self.unsteady, site.unsteady_parts()];
        let new = Side {
            blocks: &seen.blocks,
            at_ms,
        };
        let is_met = |version: &Version| {
            version.mapping.is_none() && has_same_content(version.side(), new, &masks)
        };
        !self.versions.iter().any(is_met)
    }

    /// Whether the page was never found. Then its state need not be stored.
    pub fn is_unknown(&self) -> bool {
        self.versions.is_empty()
    }

    /// The state in compressed form, for the store. If it has more bytes than `most_bytes`, the oldest versions are
    /// dropped.
    pub fn pack(&mut self, most_bytes: usize) -> Vec<u8> {
        while self.versions.len() > 1 {
            if let Some(packed) = seen::pack_within(self, most_bytes) {
                return packed;
            }
            self.versions.pop_back();
        }
        seen::pack(self)
    }

    pub fn unpack(bytes: &[u8]) -> Result<PageVersions, UnpackError> {
        seen::unpack(bytes)
    }
}

#[cfg(test)]
mod tests;
