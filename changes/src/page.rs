//! [`PageVersions`]: the last versions of a page, and what a look at it has shown.
//!
//! States: *unknown* (no version), *there*, *missing* (not found at the last look), *gone* (not found at two
//! looks in a row). A look is known by its delivery and time, so that a page that is passed twice is judged once.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::blocks::Block;
use crate::compare::{Side, Unsteady, compare};
use crate::look::Verdict;
use crate::seen::{self, Broken, Seen};
use crate::site::SiteBlocks;
use crate::{difference, fields};

/// Versions that are kept.
const MOST_VERSIONS: usize = 5;

/// Looks without the page after which it is gone.
const MISSES: u32 = 2;

/// Which look it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookKey {
    pub epoch: u64,
    pub task: u64,
    pub number: u64,
    /// Start of the fetch, milliseconds since the epoch.
    pub at_ms: i64,
}

/// How a look was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Page,
    /// The server said that the page is as it was (304).
    NotModified,
    /// The server said that there is no such page (404, 410).
    Missing,
}

/// What a look has brought.
#[derive(Debug, Clone)]
pub struct LookAt<'a> {
    pub key: LookKey,
    pub answer: Answer,
    pub content_hash: Option<&'a str>,
    /// The mapping that has read it, and its version.
    pub mapping: Option<&'a str>,
    pub mapping_version: Option<&'a str>,
    pub fields: &'a Map<String, Value>,
    pub seen: Seen,
}

/// What a look has shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    /// What has changed, as it was and as it is, and both for people.
    pub old: Option<Value>,
    pub new: Option<Value>,
    pub difference: String,
}

impl Judged {
    fn only(verdict: Verdict) -> Judged {
        Judged {
            verdict,
            old: None,
            new: None,
            difference: String::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
}

impl Version {
    fn of(look: &LookAt<'_>) -> Version {
        let is_mapped = look.mapping.is_some();
        Version {
            at_ms: look.key.at_ms,
            hash: look.content_hash.map(str::to_owned),
            mapping: look.mapping.map(str::to_owned),
            mapping_version: look.mapping_version.map(str::to_owned),
            fields: match is_mapped {
                true => fields::kept(look.fields),
                false => Map::new(),
            },
            blocks: match is_mapped {
                true => Vec::new(),
                false => look.seen.blocks.clone(),
            },
        }
    }

    fn side(&self) -> Side<'_> {
        Side {
            blocks: &self.blocks,
            at_ms: self.at_ms,
        }
    }

    fn is_read_as(&self, other: &Version) -> bool {
        (&self.mapping, &self.mapping_version) == (&other.mapping, &other.mapping_version)
    }

    fn has_hash_of(&self, other: &Version) -> bool {
        self.hash.is_some() && self.hash == other.hash
    }
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PageVersions {
    /// The one that was seen last first.
    versions: VecDeque<Version>,
    #[serde(default)]
    unsteady: Unsteady,
    /// Looks in a row at which it was not found.
    #[serde(default)]
    misses: u32,
    last: LookKey,
}

impl PageVersions {
    /// Takes a look in. `None` if it shows nothing (yet), or was taken in before.
    pub fn judge(&mut self, look: &LookAt<'_>, site: &mut SiteBlocks) -> Option<Judged> {
        if self.last == look.key {
            return None;
        }
        self.last = look.key;
        if look.answer == Answer::Missing {
            self.misses = self.misses.saturating_add(1);
            let is_gone = self.misses == MISSES && !self.versions.is_empty();
            return is_gone.then(|| Judged::only(Verdict::Gone));
        }
        let is_empty = match (look.answer, look.mapping) {
            (Answer::NotModified, _) => self.versions.is_empty(),
            (_, Some(_)) => fields::are_empty(look.fields),
            (_, None) => look.seen.is_empty(),
        };
        if is_empty {
            return None;
        }
        let was_gone = std::mem::take(&mut self.misses) >= MISSES;
        let judged = match look.answer {
            Answer::NotModified => Judged::only(Verdict::Unchanged),
            _ => self.judge_found(look, site),
        };
        match was_gone && judged.verdict != Verdict::New {
            true => Some(Judged {
                verdict: Verdict::Back,
                ..judged
            }),
            false => Some(judged),
        }
    }

    fn judge_found(&mut self, look: &LookAt<'_>, site: &mut SiteBlocks) -> Judged {
        if let Some(unsteady) = &look.seen.unsteady {
            self.unsteady = unsteady.clone();
        }
        let new = Version::of(look);
        let Some(current) = self.versions.front() else {
            let fields = (!new.fields.is_empty()).then(|| new.fields.clone().into());
            self.versions.push_front(new);
            return Judged {
                new: fields,
                ..Judged::only(Verdict::New)
            };
        };
        if !current.is_read_as(&new) {
            // What differs may be the mapping's doing: it begins anew.
            self.versions.clear();
            self.versions.push_front(new);
            return Judged::only(Verdict::Unchanged);
        }
        match new.mapping.is_some() {
            true => self.judge_fields(new),
            false => self.judge_blocks(new, site),
        }
    }

    /// Fields are compared with the last version: who has named them wants to know that a price is back.
    fn judge_fields(&mut self, new: Version) -> Judged {
        let current = &self.versions[0];
        let (old_fields, new_fields) = fields::differing(&current.fields, &new.fields);
        if old_fields.is_empty() && new_fields.is_empty() {
            return self.seen_again(0, new);
        }
        let judged = Judged {
            verdict: Verdict::Changed,
            difference: difference::of_fields(&old_fields, &new_fields),
            old: Some(old_fields.into()),
            new: Some(new_fields.into()),
        };
        self.add(new);
        judged
    }

    /// Text is compared with all versions: of a page that has two forms in turn, each is told once.
    fn judge_blocks(&mut self, new: Version, site: &mut SiteBlocks) -> Judged {
        let is_same = |version: &Version| {
            version.has_hash_of(&new)
                || compare(version.side(), new.side(), &self.unsteady).is_empty()
        };
        let same = self.versions.iter().position(is_same);
        let current = &self.versions[0];
        let mut differing = compare(current.side(), new.side(), &self.unsteady);
        site.judge(&current.blocks, &new.blocks, &mut differing);
        if let Some(same) = same {
            return self.seen_again(same, new);
        }
        if differing.is_empty() {
            return self.seen_again(0, new);
        }
        fn texts<'b>(blocks: &[&'b Block]) -> Vec<&'b str> {
            blocks.iter().map(|block| &*block.text).collect()
        }
        let (gone, come) = (texts(&differing.gone), texts(&differing.come));
        let judged = Judged {
            verdict: Verdict::Changed,
            old: Some(difference::told(&gone)),
            new: Some(difference::told(&come)),
            difference: difference::of_texts(&gone, &come),
        };
        self.add(new);
        judged
    }

    /// A version was met again. Its newest form is kept: ages become dates after a while.
    fn seen_again(&mut self, version: usize, new: Version) -> Judged {
        self.versions.remove(version);
        self.versions.push_front(new);
        Judged::only(Verdict::Unchanged)
    }

    fn add(&mut self, new: Version) {
        self.versions.push_front(new);
        self.versions.truncate(MOST_VERSIONS);
    }

    /// Whether nothing but a missing page was seen: that is not worth keeping.
    pub fn is_unknown(&self) -> bool {
        self.versions.is_empty()
    }

    /// Compressed, for the store. If it takes more bytes, the oldest versions are left out.
    pub fn packed(&mut self, most_bytes: usize) -> Vec<u8> {
        loop {
            let packed = seen::packed(self);
            if packed.len() <= most_bytes || self.versions.len() <= 1 {
                return packed;
            }
            self.versions.pop_back();
        }
    }

    pub fn unpacked(bytes: &[u8]) -> Result<PageVersions, Broken> {
        seen::unpacked(bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Web {
        page: PageVersions,
        site: SiteBlocks,
        nights: u64,
    }

    impl Web {
        fn new() -> Web {
            Web {
                page: PageVersions::default(),
                site: SiteBlocks::default(),
                nights: 0,
            }
        }

        fn look(&mut self, change: impl FnOnce(&mut LookAt<'_>)) -> Option<Judged> {
            self.nights += 1;
            let nothing = Map::new();
            let mut look = LookAt {
                key: LookKey {
                    number: self.nights,
                    at_ms: self.nights as i64 * 86_400_000,
                    ..LookKey::default()
                },
                answer: Answer::Page,
                content_hash: None,
                mapping: None,
                mapping_version: None,
                fields: &nothing,
                seen: Seen::nothing(),
            };
            change(&mut look);
            let judged = self.page.judge(&look, &mut self.site);
            let packed = self.page.packed(1 << 20);
            assert_eq!(PageVersions::unpacked(&packed).unwrap(), self.page);
            judged
        }

        fn text(&mut self, text: &str) -> Verdict {
            self.look(|look| look.seen = Seen::of_text(text, look.key.at_ms))
                .unwrap()
                .verdict
        }

        fn missing(&mut self) -> Option<Verdict> {
            self.look(|look| look.answer = Answer::Missing)
                .map(|judged| judged.verdict)
        }

        fn fields(&mut self, fields: Value, version: &str) -> Option<Judged> {
            let fields = fields.as_object().cloned().unwrap();
            self.nights += 1;
            let look = LookAt {
                key: LookKey {
                    number: self.nights,
                    ..LookKey::default()
                },
                answer: Answer::Page,
                content_hash: None,
                mapping: Some("shop"),
                mapping_version: Some(version),
                fields: &fields,
                seen: Seen::nothing(),
            };
            self.page.judge(&look, &mut self.site)
        }
    }

    #[test]
    fn a_page_is_new_then_unchanged_then_changed() {
        let mut web = Web::new();
        assert_eq!(web.text("one word"), Verdict::New);
        assert_eq!(web.text("one word"), Verdict::Unchanged);
        assert_eq!(web.text("one other word"), Verdict::Changed);
    }

    #[test]
    fn two_forms_in_turn_are_told_once() {
        let mut web = Web::new();
        web.text("form A");
        assert_eq!(web.text("form B"), Verdict::Changed);
        for form in ["form A", "form B", "form B", "form A"] {
            assert_eq!(web.text(form), Verdict::Unchanged);
        }
        for number in 0..5 {
            assert_eq!(web.text(&format!("other {number}")), Verdict::Changed);
        }
        assert_eq!(web.text("form A"), Verdict::Changed, "it was forgotten");
    }

    #[test]
    fn a_page_is_gone_at_the_second_look_and_back_with_what_has_changed() {
        let mut web = Web::new();
        web.text("text");
        assert_eq!(web.missing(), None);
        assert_eq!(web.text("text"), Verdict::Unchanged, "it was missing once");
        assert_eq!(web.missing(), None);
        assert_eq!(web.missing(), Some(Verdict::Gone));
        assert_eq!(web.missing(), None, "told once");
        let back = web
            .look(|look| look.seen = Seen::of_text("another text", 0))
            .unwrap();
        assert_eq!(back.verdict, Verdict::Back);
        assert!(!back.difference.is_empty());
        assert_eq!(web.missing(), None);
        assert_eq!(web.missing(), Some(Verdict::Gone));
        assert_eq!(web.text("another text"), Verdict::Back);
    }

    #[test]
    fn a_page_that_never_was_is_not_gone() {
        let mut web = Web::new();
        assert_eq!((web.missing(), web.missing()), (None, None));
        assert!(web.page.is_unknown());
        assert_eq!(web.text("text"), Verdict::New);
    }

    #[test]
    fn a_look_is_judged_once() {
        let mut web = Web::new();
        web.text("text");
        let again = web.look(|look| {
            look.key = LookKey {
                number: 1,
                at_ms: 86_400_000,
                ..LookKey::default()
            };
            look.seen = Seen::of_text("other", 0);
        });
        assert_eq!(again, None);
    }

    #[test]
    fn a_page_that_is_as_it_was_is_there() {
        let mut web = Web::new();
        let not_modified = |web: &mut Web| {
            let judged = web.look(|look| look.answer = Answer::NotModified);
            judged.map(|judged| judged.verdict)
        };
        assert_eq!(not_modified(&mut web), None);
        web.text("text");
        assert_eq!(web.missing(), None);
        assert_eq!(not_modified(&mut web), Some(Verdict::Unchanged));
        assert_eq!(web.missing(), None, "it was there in between");
    }

    #[test]
    fn an_empty_page_shows_nothing() {
        let mut web = Web::new();
        web.text("text");
        assert_eq!(web.look(|_| {}), None);
        assert_eq!(web.text("text"), Verdict::Unchanged);
    }

    #[test]
    fn fields_are_compared_by_value_and_another_mapping_begins_anew() {
        let mut web = Web::new();
        web.fields(json!({"price": 10, "name": "Lamp"}), "v1");
        let judged = web
            .fields(json!({"price": 12, "name": "Lamp"}), "v1")
            .unwrap();
        assert_eq!(judged.old, Some(json!({"price": 10})));
        assert_eq!(judged.new, Some(json!({"price": 12})));
        let back = web
            .fields(json!({"price": 10, "name": "Lamp"}), "v1")
            .unwrap();
        assert_eq!(
            back.verdict,
            Verdict::Changed,
            "a price that is back is told"
        );
        let other = web.fields(json!({"cost": 10}), "v2").unwrap();
        assert_eq!(other.verdict, Verdict::Unchanged);
        assert_eq!(web.fields(json!({"cost": null}), "v2"), None);
    }

    #[test]
    fn what_comes_to_all_pages_is_told_of_the_first_ones_only() {
        let mut site = SiteBlocks::default();
        let mut pages = vec![PageVersions::default(); 20];
        let mut told = Vec::new();
        for night in 1..=3 {
            for (number, page) in pages.iter_mut().enumerate() {
                let own = if night == 3 && number == 15 {
                    "sold out"
                } else {
                    "in stock"
                };
                let text = format!("Thing {number}\n\n{own}\n\nHeadline of night {night}");
                let nothing = Map::new();
                let look = LookAt {
                    key: LookKey {
                        number: night,
                        ..LookKey::default()
                    },
                    answer: Answer::Page,
                    content_hash: None,
                    mapping: None,
                    mapping_version: None,
                    fields: &nothing,
                    seen: Seen::of_text(&text, 0),
                };
                let judged = page.judge(&look, &mut site).unwrap();
                if judged.verdict == Verdict::Changed {
                    told.push((night, number, judged.difference));
                }
            }
        }
        let pages: Vec<(u64, usize)> = told
            .iter()
            .map(|(night, number, _)| (*night, *number))
            .collect();
        assert_eq!(pages, [(2, 0), (2, 1), (3, 0), (3, 1), (3, 15)]);
        assert_eq!(told[4].2, "- in stock\n+ sold out");
    }
}
