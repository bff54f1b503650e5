//! Decides whether a site's changed pages are fetched a second time to find parts that change at every fetch.

use std::collections::HashMap;

/// Counts second fetches in a row that found no difference, by site. Without a limit on these fetches, a headline that
/// changes on all pages of a site would double the requests to the site.
#[derive(Debug, Default)]
pub struct Rechecks(HashMap<String, u32>);

impl Rechecks {
    /// After this many second fetches in a row without a difference, only one page in [`ONE_OF`] is fetched again.
    const MOST_FRUITLESS: u32 = 5;
    const ONE_OF: u32 = 5;
    const MOST_SITES: usize = 4_096;

    pub(super) fn allow_recheck(&mut self, site: &str) -> bool {
        let Some(fruitless) = self.0.get_mut(site) else {
            return true;
        };
        if *fruitless < Self::MOST_FRUITLESS {
            return true;
        }
        *fruitless = fruitless.wrapping_add(1).max(Self::MOST_FRUITLESS);
        fruitless.is_multiple_of(Self::ONE_OF)
    }

    pub(super) fn note_result(&mut self, site: &str, has_shown_something: bool) {
        if has_shown_something {
            self.0.remove(site);
            return;
        }
        if self.0.len() >= Self::MOST_SITES && !self.0.contains_key(site) {
            self.0.clear();
        }
        let fruitless = self.0.entry(site.to_owned()).or_default();
        *fruitless = fruitless.saturating_add(1);
    }
}
