//! [`Deliveries`]: remembers the pages that were counted, of all mappings, so that a repeated page counts once.
//!
//! A page comes again if its task is delivered again because the lease expired (the time limit for a worker), or if the
//! store returns it twice. Thousands of pages may lie between. A later run of a watch, or a refresh, delivers the task
//! again too, but its page is a new check and counts.
//!
//! [`Deliveries`] is only in memory. After a restart, new pages are recognised by their position in the store, and by
//! the few pages that each mapping's state remembers. If the states of mappings are read from the store again, the
//! pages counted since they were last stored are forgotten, because they come again.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::good_page::GoodPage;
use crate::hash;

/// The number of pages that are remembered, of all mappings: some minutes of a fast fleet, about 6 MB.
const PAGES: usize = 50_000;

/// How long after the first fetch a page may be the same task delivered again (a lease lasts some minutes), in
/// milliseconds. A later page is a new check.
const DELIVERED_AGAIN_WITHIN_MS: u64 = 3_600_000;

/// Two hashes, one of the page and one of this fetch of it, and the time of the fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeliveryKeys {
    page: u64,
    fetch: u64,
    at_ms: i64,
}

impl DeliveryKeys {
    pub(crate) fn from_page(mapping: &str, page: &GoodPage<'_>) -> DeliveryKeys {
        let of_page = hash(page.id) ^ hash(mapping).rotate_left(17);
        let fetch = of_page.rotate_left(32) ^ hash(page.at);
        DeliveryKeys {
            page: of_page,
            fetch,
            at_ms: page.at_ms,
        }
    }

    /// Whether this fetch of `page` is the fetch `other`, or a new delivery of the same task.
    pub(crate) fn repeats(&self, other: &DeliveryKeys, page: &GoodPage<'_>) -> bool {
        self.fetch == other.fetch
            || self.page == other.page && is_delivered_again(page, other.at_ms)
    }
}

/// Whether the page may come from a new delivery of the task whose page was fetched at `at_ms`.
fn is_delivered_again(page: &GoodPage<'_>, at_ms: i64) -> bool {
    page.attempts > 1 && page.at_ms.abs_diff(at_ms) < DELIVERED_AGAIN_WITHIN_MS
}

/// How many pages in the ring have a key, and when the last of them was fetched.
#[derive(Debug, Default)]
struct KnownKey {
    count: u32,
    at_ms: i64,
}

/// The pages that were counted last, of all mappings, to recognise repetitions.
#[derive(Debug, Default)]
pub struct Deliveries {
    ring: VecDeque<DeliveryKeys>,
    /// The keys of all pages and fetches in the ring.
    known: HashMap<u64, KnownKey>,
    /// How many pages at the end of the ring were counted since the states were last stored.
    unsaved: usize,
}

impl Deliveries {
    /// Records a page. Returns whether it is new, not a repetition.
    pub fn note_page(&mut self, mapping: &str, page: &GoodPage<'_>) -> bool {
        let keys = DeliveryKeys::from_page(mapping, page);
        let known = self.known.get(&keys.page);
        let is_again = known.is_some_and(|known| is_delivered_again(page, known.at_ms));
        if is_again || self.known.contains_key(&keys.fetch) {
            return false;
        }
        if self.ring.len() >= PAGES
            && let Some(oldest) = self.ring.pop_front()
        {
            self.forget(oldest);
        }
        for key in [keys.page, keys.fetch] {
            let known = self.known.entry(key).or_default();
            known.count += 1;
            known.at_ms = keys.at_ms;
        }
        self.ring.push_back(keys);
        self.unsaved = (self.unsaved + 1).min(self.ring.len());
        true
    }

    /// Marks all recorded pages as saved: the stored states contain them.
    pub fn mark_saved(&mut self) {
        self.unsaved = 0;
    }

    /// Forgets the pages recorded since the states were last stored.
    pub fn discard_unsaved(&mut self) {
        for _ in 0..std::mem::take(&mut self.unsaved) {
            if let Some(last) = self.ring.pop_back() {
                self.forget(last);
            }
        }
    }

    fn forget(&mut self, keys: DeliveryKeys) {
        for key in [keys.page, keys.fetch] {
            if let Some(known) = self.known.get_mut(&key) {
                known.count -= 1;
                if known.count == 0 {
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

    fn note_delivery(deliveries: &mut Deliveries, number: usize, at: &str, attempts: u64) -> bool {
        let id = format!("a/1/{number}");
        deliveries.note_page(
            "shop",
            &GoodPage {
                id: &id,
                url: &id,
                site: "x",
                at,
                at_ms: at.parse::<i64>().unwrap() * 1_000,
                mapping_version: None,
                template: None,
                source: &id,
                content_hash: None,
                attempts,
                fields: &Map::new(),
                rows: &[],
                alternatives: &Map::new(),
                known_values: &[],
            },
        )
    }

    #[test]
    fn a_page_that_comes_again_thousands_of_pages_later_is_recognised() {
        let mut deliveries = Deliveries::default();
        assert!((0..PAGES).all(|number| note_delivery(&mut deliveries, number, "1", 1)));
        assert!(!note_delivery(&mut deliveries, 7, "2", 2), "after a lease");
        assert!(!note_delivery(&mut deliveries, 7, "1", 1), "passed twice");
        assert!(note_delivery(&mut deliveries, 7, "2", 1), "fetched again");
    }

    #[test]
    fn a_delivery_of_a_later_run_is_no_repetition() {
        let mut deliveries = Deliveries::default();
        assert!(note_delivery(&mut deliveries, 7, "0", 1));
        assert!(
            !note_delivery(&mut deliveries, 7, "3599", 2),
            "its task, again"
        );
        assert!(note_delivery(&mut deliveries, 7, "3600", 3), "the next run");
        assert!(
            !note_delivery(&mut deliveries, 7, "3700", 4),
            "its task, again"
        );
    }

    #[test]
    fn memory_is_bounded_and_unsaved_pages_can_be_forgotten() {
        let mut deliveries = Deliveries::default();
        for number in 0..PAGES + 1_000 {
            note_delivery(&mut deliveries, number, "1", 1);
        }
        assert_eq!(deliveries.ring.len(), PAGES);
        assert_eq!(deliveries.known.len(), 2 * PAGES);
        deliveries.mark_saved();
        note_delivery(&mut deliveries, 1, "1", 1);
        deliveries.discard_unsaved();
        assert!(note_delivery(&mut deliveries, 1, "1", 1));
        assert!(!note_delivery(&mut deliveries, 5_000, "1", 1));
        deliveries.discard_unsaved();
        assert_eq!(deliveries.known.len(), 2 * deliveries.ring.len());
    }
}
