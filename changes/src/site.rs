//! [`SiteBlocks`]: what comes or goes on all pages of a site at once, such as the headline of the day.
//!
//! It is counted night by night. Of each block that has newly come to a page it is counted to how many of the
//! pages looked at since it came, and to how many not; of each that went, as well. What moves on nearly all of
//! them is the site's and not the page's. The first pages that show it are told as changed, because nothing
//! tells it from their own text yet; and of a site with few pages, all are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blocks::Block;
use crate::compare::Difference;
use crate::hash;
use crate::seen::{self, Broken};

/// A night is over after this time, in milliseconds.
const NIGHT_MS: i64 = 20 * 3_600_000;

/// Of a site with fewer pages, each page counts for itself.
const FEWEST_PAGES: u32 = 10;

/// It must have come to, or gone from, so many pages.
const FEWEST: u32 = 5;

/// Of so many pages one may have stayed as it was.
const ONE_OF: u32 = 10;

/// After so many pages that show nothing of it, a block is forgotten.
const FORGOTTEN_AFTER: u32 = 12;

/// Of one page, no more blocks are counted.
const MOST_OF_PAGE: usize = 100;

/// Pages with and without a movement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Tally(u32, u32);

impl Tally {
    fn is_everywhere(self) -> bool {
        self.0 >= FEWEST && self.1 * ONE_OF <= self.0
    }

    fn is_of_single_pages(self) -> bool {
        self.1 >= FORGOTTEN_AFTER && !self.is_everywhere()
    }
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteBlocks {
    /// When the night began.
    began_ms: i64,
    /// Pages looked at in this night, and in the one before.
    looked_at: u32,
    looked_at_before: u32,
    #[serde(default)]
    come: BTreeMap<u64, Tally>,
    #[serde(default)]
    gone: BTreeMap<u64, Tally>,
}

impl SiteBlocks {
    /// Counts a look at a page that has text.
    pub(crate) fn note(&mut self, at_ms: i64) {
        if self.looked_at == 0 || at_ms - self.began_ms >= NIGHT_MS {
            *self = SiteBlocks {
                began_ms: at_ms,
                looked_at_before: self.looked_at,
                ..SiteBlocks::default()
            };
        }
        self.looked_at = self.looked_at.saturating_add(1);
    }

    /// Counts what has moved on a page, and leaves out of its difference what is the site's.
    pub(crate) fn judge(&mut self, differing: &mut Difference<'_>) {
        count(&mut self.come, &differing.come);
        count(&mut self.gone, &differing.gone);
        if self.looked_at.max(self.looked_at_before) < FEWEST_PAGES {
            return;
        }
        let is_of_page = |tallies: &BTreeMap<u64, Tally>, block: &Block| {
            let tally = tallies.get(&hash(&block.text));
            !tally.is_some_and(|tally| tally.is_everywhere())
        };
        differing.come.retain(|block| is_of_page(&self.come, block));
        differing.gone.retain(|block| is_of_page(&self.gone, block));
    }

    /// Whether it was never counted: that is not worth keeping.
    pub fn is_empty(&self) -> bool {
        self.looked_at == 0
    }

    pub fn packed(&self) -> Vec<u8> {
        seen::packed(self)
    }

    pub fn unpacked(bytes: &[u8]) -> Result<SiteBlocks, Broken> {
        seen::unpacked(bytes)
    }
}

/// Counts the page for the blocks that have moved on it, and against the others.
fn count(tallies: &mut BTreeMap<u64, Tally>, blocks: &[&Block]) {
    let mut moved: Vec<u64> = blocks.iter().map(|block| hash(&block.text)).collect();
    moved.sort_unstable();
    moved.dedup();
    for (hash, tally) in tallies.iter_mut() {
        match moved.binary_search(hash) {
            Ok(_) => tally.0 = tally.0.saturating_add(1),
            Err(_) => tally.1 = tally.1.saturating_add(1),
        }
    }
    // So there are never more than those of as many pages as it takes to be forgotten.
    tallies.retain(|_, tally| !tally.is_of_single_pages());
    for hash in moved.into_iter().take(MOST_OF_PAGE) {
        tallies.entry(hash).or_insert(Tally(1, 0));
    }
}
