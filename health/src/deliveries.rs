//! [`Deliveries`]: pages that were taken in, of all mappings, so that one that comes again counts once.
//!
//! A task is delivered again when its lease has ended, thousands of pages later; and a store may pass one page
//! twice. This is in memory only: after a restart the position in the store decides, and the few pages that
//! each mapping's state remembers. What is not stored when the states are read again is taken back first,
//! because its pages come again.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::hash;
use crate::mapping_health::GoodPage;

/// Pages that are remembered, of all mappings: some minutes of a fast fleet. They take about 4 MB.
const PAGES: usize = 50_000;

/// A page, and one fetch of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keys {
    page: u64,
    fetch: u64,
}

impl Keys {
    pub(crate) fn of(mapping: &str, page: &GoodPage<'_>) -> Keys {
        let of_page = hash(page.id) ^ hash(mapping).rotate_left(17);
        let fetch = of_page.rotate_left(32) ^ hash(page.at);
        Keys {
            page: of_page,
            fetch,
        }
    }

    /// Whether a page with these keys is the other one again.
    pub(crate) fn repeats(&self, other: &Keys, page: &GoodPage<'_>) -> bool {
        self.fetch == other.fetch || page.attempts > 1 && self.page == other.page
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Deliveries {
    ring: VecDeque<Keys>,
    /// How often each key, of a page or a fetch, is in the ring.
    known: HashMap<u64, u32>,
    /// So many of the ring's last are not stored.
    unsaved: usize,
}

impl Deliveries {
    /// Notes a page; whether it is a new one.
    pub fn note(&mut self, mapping: &str, page: &GoodPage<'_>) -> bool {
        let keys = Keys::of(mapping, page);
        let is_known = |key: u64| self.known.contains_key(&key);
        if is_known(keys.fetch) || page.attempts > 1 && is_known(keys.page) {
            return false;
        }
        if self.ring.len() >= PAGES
            && let Some(oldest) = self.ring.pop_front()
        {
            self.forget(oldest);
        }
        for key in [keys.page, keys.fetch] {
            *self.known.entry(key).or_default() += 1;
        }
        self.ring.push_back(keys);
        self.unsaved = (self.unsaved + 1).min(self.ring.len());
        true
    }

    /// All that was noted is stored.
    pub fn confirm(&mut self) {
        self.unsaved = 0;
    }

    /// Forgets what is not stored.
    pub fn take_back(&mut self) {
        for _ in 0..std::mem::take(&mut self.unsaved) {
            if let Some(last) = self.ring.pop_back() {
                self.forget(last);
            }
        }
    }

    fn forget(&mut self, keys: Keys) {
        for key in [keys.page, keys.fetch] {
            if let Some(count) = self.known.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.known.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    fn note(deliveries: &mut Deliveries, number: usize, at: &str, attempts: u64) -> bool {
        let id = format!("a/1/{number}");
        deliveries.note(
            "shop",
            &GoodPage {
                id: &id,
                url: &id,
                site: "x",
                at,
                mapping_version: None,
                template: None,
                source: &id,
                content_hash: None,
                attempts,
                fields: &Map::new(),
                alternatives: &Map::new(),
                known_values: &[],
            },
        )
    }

    #[test]
    fn a_page_that_comes_again_thousands_of_pages_later_is_known() {
        let mut deliveries = Deliveries::default();
        assert!((0..PAGES).all(|number| note(&mut deliveries, number, "1", 1)));
        assert!(!note(&mut deliveries, 7, "2", 2), "after a lease");
        assert!(!note(&mut deliveries, 7, "1", 1), "passed twice");
        assert!(note(&mut deliveries, 7, "2", 1), "fetched again");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_not_stored_is_taken_back() {
        let mut deliveries = Deliveries::default();
        for number in 0..PAGES + 1_000 {
            note(&mut deliveries, number, "1", 1);
        }
        assert_eq!(deliveries.ring.len(), PAGES);
        assert_eq!(deliveries.known.len(), 2 * PAGES);
        deliveries.confirm();
        note(&mut deliveries, 1, "1", 1);
        deliveries.take_back();
        assert!(note(&mut deliveries, 1, "1", 1));
        assert!(!note(&mut deliveries, 5_000, "1", 1));
        deliveries.take_back();
        assert_eq!(deliveries.known.len(), 2 * deliveries.ring.len());
    }
}
