//! Remembers the last pages of a mapping, so that a repeated page counts only once. So does content that many URLs
//! return.
//!
//! The list is short, because it is stored with the mapping's state. [`Deliveries`](crate::Deliveries) recognises pages
//! that come again much later, after their lease (the time limit of a worker) has expired.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::deliveries::DeliveryKeys;
use crate::good_page::GoodPage;
use crate::hash;

/// The number of pages that are remembered. Most repeated pages come again within so many pages.
const PAGES: usize = 256;

/// The number of page contents that are remembered. Different URLs with the same content usually follow one another.
const CONTENTS: usize = 64;

/// Content is reported when more than this many URLs of a site return it.
const COPIES: usize = 20;

/// Whether a page is new evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Novelty {
    New,
    /// The page was counted before, or another URL returned the same content.
    Old,
    /// Like [`Novelty::Old`]; in addition, many URLs of one site return this content: `urls` of the last `of` URLs.
    OneContent {
        urls: usize,
        of: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct RecentPages {
    pages: VecDeque<DeliveryKeys>,
    /// Hashes of the content, the URL and the site of each of the last pages.
    contents: VecDeque<(u64, u64, u64)>,
    /// The hashes of contents that were reported and are still in `contents`.
    reported: Vec<u64>,
}

impl RecentPages {
    /// Records a page. Returns whether it is new evidence.
    pub(crate) fn note_page(&mut self, page: &GoodPage<'_>) -> Novelty {
        let keys = DeliveryKeys::from_page("", page);
        if self.pages.iter().any(|one| keys.repeats(one, page)) {
            return Novelty::Old;
        }
        push_bounded(&mut self.pages, keys, PAGES);
        let Some(content) = page.content_hash.map(hash) else {
            return Novelty::New;
        };
        let (url, site) = (hash(page.url), hash(page.site));
        let mut others = self.contents.iter();
        let is_copy = others.any(|(other, of, _)| *other == content && *of != url);
        push_bounded(&mut self.contents, (content, url, site), CONTENTS);
        match is_copy {
            true => self.note_copy(content, site),
            false => Novelty::New,
        }
    }

    /// Returns [`Novelty::OneContent`] if more than [`COPIES`] URLs of a site return this content, but only once.
    fn note_copy(&mut self, content: u64, site: u64) -> Novelty {
        let RecentPages {
            contents, reported, ..
        } = self;
        reported.retain(|one| contents.iter().any(|(other, ..)| other == one));
        let is_same = |(other, _, of): &&(u64, u64, u64)| *other == content && *of == site;
        let same = contents.iter().filter(is_same);
        let urls: BTreeSet<u64> = same.map(|(_, url, _)| *url).collect();
        if urls.len() <= COPIES || reported.contains(&content) {
            return Novelty::Old;
        }
        reported.push(content);
        let began = contents.iter().position(|(other, ..)| *other == content);
        let since: BTreeSet<u64> = contents
            .iter()
            .skip(began.unwrap_or_default())
            .map(|(_, url, _)| *url)
            .collect();
        Novelty::OneContent {
            urls: urls.len(),
            of: since.len(),
        }
    }
}

pub(crate) fn push_bounded<T>(ring: &mut VecDeque<T>, one: T, most: usize) {
    if ring.len() >= most {
        ring.pop_front();
    }
    ring.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    fn note_fetch(
        recent: &mut RecentPages,
        id: &str,
        at: &str,
        content: Option<&str>,
        tries: u64,
    ) -> Novelty {
        recent.note_page(&GoodPage {
            id,
            url: id,
            site: "x",
            at,
            at_ms: 0,
            mapping_version: None,
            template: None,
            source: id,
            content_hash: content,
            attempts: tries,
            fields: &Map::new(),
            rows: &[],
            alternatives: &Map::new(),
            known_values: &[],
        })
    }

    #[test]
    fn a_page_that_comes_again_is_no_new_evidence() {
        let mut recent = RecentPages::default();
        assert_eq!(
            note_fetch(&mut recent, "x", "1", Some("c1"), 1),
            Novelty::New
        );
        assert_eq!(
            note_fetch(&mut recent, "x", "2", Some("c2"), 2),
            Novelty::Old,
            "it was delivered again"
        );
        assert_eq!(
            note_fetch(&mut recent, "x", "1", Some("c1"), 1),
            Novelty::Old,
            "the store passes it twice"
        );
        assert_eq!(
            note_fetch(&mut recent, "x", "3", Some("c1"), 1),
            Novelty::New,
            "it was fetched again"
        );
    }

    #[test]
    fn a_page_of_a_later_run_is_new_although_its_task_is_the_same() {
        let mut recent = RecentPages::default();
        let mut check = |at: &str, at_ms, attempts| {
            let fields = Map::new();
            recent.note_page(&GoodPage {
                id: "x",
                url: "x",
                site: "x",
                at,
                at_ms,
                mapping_version: None,
                template: None,
                source: "x",
                content_hash: Some("c"),
                attempts,
                fields: &fields,
                rows: &[],
                alternatives: &fields,
                known_values: &[],
            })
        };
        let day_ms = 86_400_000;
        assert_eq!(check("1", 0, 1), Novelty::New);
        assert_eq!(check("2", day_ms, 2), Novelty::New);
        assert_eq!(check("3", day_ms + 1, 3), Novelty::Old);
    }

    #[test]
    fn one_content_for_many_urls_counts_once_and_is_reported_once() {
        let mut recent = RecentPages::default();
        let mut reported = Vec::new();
        for number in 0..100 {
            match note_fetch(&mut recent, &number.to_string(), "1", Some("same"), 1) {
                Novelty::New => assert_eq!(number, 0),
                Novelty::Old => {}
                Novelty::OneContent { urls, of } => reported.push((number, urls, of)),
            }
        }
        assert_eq!(reported, [(20, 21, 21)]);
        assert_eq!(
            note_fetch(&mut recent, "n", "1", Some("other"), 1),
            Novelty::New
        );
        assert_eq!(note_fetch(&mut recent, "m", "1", None, 1), Novelty::New);
    }

    #[test]
    fn one_content_of_many_sites_is_not_reported() {
        let mut recent = RecentPages::default();
        for number in 0..100 {
            let url = number.to_string();
            let novelty = recent.note_page(&GoodPage {
                id: &url,
                url: &url,
                site: &url,
                at: "1",
                at_ms: 0,
                mapping_version: None,
                template: None,
                source: &url,
                content_hash: Some("same"),
                attempts: 1,
                fields: &Map::new(),
                rows: &[],
                alternatives: &Map::new(),
                known_values: &[],
            });
            let expected = match number {
                0 => Novelty::New,
                _ => Novelty::Old,
            };
            assert_eq!(novelty, expected);
        }
    }
}
