//! The simulated store: the saved pages, the complete records, and the copy of the states of sites in trouble. A page
//! either completes all records that list it or none of them.

use std::collections::{BTreeMap, BTreeSet};

use webfill_scheduler::effects::{BackfillWrite, SiteStatesWrite};
use webfill_store::{SitePhase, SiteState};

use crate::dice::Dice;

#[derive(Debug, Default)]
pub(crate) struct Store {
    /// The saved pages by crawl and URL, and whether each page was fetched in full.
    pages: BTreeMap<(String, String), bool>,
    resolved: BTreeSet<String>,
}

impl Store {
    /// Saves a page. Returns which of `records` are complete now.
    pub(crate) fn save(
        &mut self,
        crawl: &str,
        url: &str,
        is_ok: bool,
        completes: bool,
        records: &[String],
    ) -> Vec<String> {
        self.pages.insert((crawl.to_owned(), url.to_owned()), is_ok);
        if is_ok && completes {
            self.resolved.extend(records.iter().cloned());
        }
        let complete = records.iter().filter(|record| self.is_resolved(record));
        complete.cloned().collect()
    }

    /// Applies a saved page to another record that lists it. Returns whether the record is complete now, and whether
    /// the links of the page are followed for it.
    pub(crate) fn apply_backfill(
        &mut self,
        application: &BackfillWrite,
        completes: bool,
    ) -> (bool, bool) {
        let page = &application.page;
        let is_ok = self.has_page(&application.crawl_id, &page.url);
        if is_ok && completes {
            self.resolved.insert(page.record.clone());
        }
        (self.is_resolved(&page.record), is_ok)
    }

    /// Whether the page is saved and was fetched in full.
    pub(crate) fn has_page(&self, crawl: &str, url: &str) -> bool {
        let key = (crawl.to_owned(), url.to_owned());
        self.pages.get(&key).copied().unwrap_or(false)
    }

    pub(crate) fn is_resolved(&self, record: &str) -> bool {
        self.resolved.contains(record)
    }
}

/// When a site's backoff ends, by the dispatcher's clock in milliseconds.
pub(crate) type BackoffEnd = i64;

pub(crate) const UNREACHABLE: BackoffEnd = -1;
pub(crate) const UNTIL_WOKEN: BackoffEnd = i64::MAX;

#[derive(Debug)]
pub(crate) struct SiteStates {
    pub(crate) dice: Dice,
    /// The longest time that the store takes to write a batch of states, in milliseconds.
    pub(crate) takes_ms: u64,
    pub(crate) in_trouble: BTreeMap<String, BackoffEnd>,
}

impl SiteStates {
    pub(crate) fn new(seed: u64) -> SiteStates {
        let mut dice = Dice::new(seed ^ 0x57A7);
        SiteStates {
            takes_ms: dice.one_of(&[20, 200, 60_000]),
            dice,
            in_trouble: BTreeMap::new(),
        }
    }

    /// Draws the time that the store takes to write the next batch.
    pub(crate) fn draw_delay_ms(&mut self) -> u64 {
        self.dice.log_uniform(1, self.takes_ms)
    }

    pub(crate) fn apply(&mut self, write: SiteStatesWrite) {
        for state in write.in_trouble {
            let rest = backoff_of(&state);
            self.in_trouble.insert(state.site, rest);
        }
        for site in write.open {
            self.in_trouble.remove(&site);
        }
    }
}

fn backoff_of(state: &SiteState) -> BackoffEnd {
    match state.phase {
        SitePhase::Unreachable => UNREACHABLE,
        SitePhase::BackingOff => state.until_ms.unwrap_or(UNTIL_WOKEN),
    }
}
