//! [`SiteBlocks`]: what comes or goes on all pages of a site at once, such as the headline of the day.
//!
//! Of each block that has newly come to a page it is counted on how many pages looked at since it came and on
//! how many it is not there; of each that went, on how many it went and on how many it stayed. What comes to
//! nearly all is the site's and not the page's. The first pages that show it are told as changed, because nothing
//! tells it from their own text yet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blocks::Block;
use crate::compare::Difference;
use crate::hash;
use crate::seen::{self, Broken};

/// Blocks that are counted at once.
const MOST_COUNTED: usize = 1_000;

/// It must have come to, or gone from, so many pages.
const FEWEST: u32 = 3;

/// Of so many pages one may have stayed as it was.
const ONE_OF: u32 = 4;

/// After so many pages that show nothing of it, a block is forgotten.
const FORGOTTEN_AFTER: u32 = 12;

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
    #[serde(default)]
    come: BTreeMap<u64, Tally>,
    #[serde(default)]
    gone: BTreeMap<u64, Tally>,
}

impl SiteBlocks {
    /// Counts a look at a page, and leaves out of its difference what is the site's.
    pub(crate) fn judge(&mut self, old: &[Block], new: &[Block], differing: &mut Difference<'_>) {
        let hashes = |blocks: &[&Block]| -> Vec<u64> {
            let mut hashes: Vec<u64> = blocks.iter().map(|block| hash(&block.text)).collect();
            hashes.sort_unstable();
            hashes.dedup();
            hashes
        };
        let all = |blocks: &[Block]| hashes(&blocks.iter().collect::<Vec<_>>());
        let (old, new) = (all(old), all(new));
        let (gone, come) = (hashes(&differing.gone), hashes(&differing.come));
        count(&mut self.come, &come, |hash| {
            new.binary_search(&hash).is_err()
        });
        count(&mut self.gone, &gone, |hash| {
            old.binary_search(&hash).is_ok() && new.binary_search(&hash).is_ok()
        });
        let is_of_site = |tallies: &BTreeMap<u64, Tally>, block: &Block| {
            let tally = tallies.get(&hash(&block.text));
            tally.is_some_and(|tally| tally.is_everywhere())
        };
        differing
            .come
            .retain(|block| !is_of_site(&self.come, block));
        differing
            .gone
            .retain(|block| !is_of_site(&self.gone, block));
    }

    /// Whether nothing has moved on the site: that is not worth keeping.
    pub fn is_empty(&self) -> bool {
        self.come.is_empty() && self.gone.is_empty()
    }

    pub fn packed(&self) -> Vec<u8> {
        seen::packed(self)
    }

    pub fn unpacked(bytes: &[u8]) -> Result<SiteBlocks, Broken> {
        seen::unpacked(bytes)
    }
}

/// Counts the page for those that have moved on it, and against those that could have.
fn count(tallies: &mut BTreeMap<u64, Tally>, moved: &[u64], has_not: impl Fn(u64) -> bool) {
    for (hash, tally) in tallies.iter_mut() {
        if moved.binary_search(hash).is_ok() {
            tally.0 = tally.0.saturating_add(1);
        } else if has_not(*hash) {
            tally.1 = tally.1.saturating_add(1);
        }
    }
    for hash in moved {
        tallies.entry(*hash).or_insert(Tally(1, 0));
    }
    tallies.retain(|_, tally| !tally.is_of_single_pages());
    while tallies.len() > MOST_COUNTED {
        // Those of which least is known.
        let least = tallies.iter().min_by_key(|(_, tally)| tally.0 + tally.1);
        let Some(least) = least.map(|(hash, _)| *hash) else {
            return;
        };
        tallies.remove(&least);
    }
}
