//! [`SiteBlocks`]: text that comes or goes on all pages of a site together, such as the headline of the day.
//!
//! Such text is counted night by night. For each block that is new on a page, the pages checked from then on are
//! counted in two groups: those where the block is also new, and those where it is not. Blocks that are gone are
//! counted in the same way. A block that appears or disappears on nearly all pages belongs to the site, not to the
//! page. The first pages that show such a block are reported as changed, because it cannot be distinguished from their
//! own text yet. On a site with few pages, all pages are reported. A place whose blocks moved together on several
//! nights is not compared any more.
//!
//! Counters, and times that move with the clock ([`times`](crate::times)), are ignored on all pages of the site once
//! several pages have shown them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::blocks::Block;
use crate::compare::Difference;
use crate::hash;
use crate::seen::{self, UnpackError};
use crate::times::TimedText;
use crate::unsteady::Unsteady;

/// How long checks belong to the same night after its first check, in milliseconds.
const NIGHT_MS: i64 = 20 * 3_600_000;

/// The fewest pages that a site must have before text may belong to the site. On a smaller site, each page is judged
/// alone.
const FEWEST_PAGES: u32 = 10;

/// The fewest pages where a block must be new or gone to belong to the site.
const FEWEST: u32 = 5;

/// Like [`FEWEST`], but for a place where blocks have changed on all pages before.
const FEWEST_AGAIN: u32 = 2;

/// For each page where a block has not moved (appeared or disappeared), there must be this many pages where it has.
const ONE_OF: u32 = 10;

/// A block is forgotten after this many pages where it has not moved.
const FORGOTTEN_AFTER: u32 = 12;

/// The most blocks that are counted of one page.
const MOST_OF_PAGE: usize = 100;

/// A place is not compared any more after this many nights when its blocks moved (appeared or disappeared) on all
/// pages.
const MOVING_NIGHTS: u32 = 2;

/// The times of a text are not compared any more after they have moved with the clock this many times.
const STEPS: u32 = 3;

/// On how many pages two fetches must differ in the same part before it is ignored on all pages of the site.
const SHOWN_BY: u32 = 2;

/// The most entries of each kind that are counted.
const MOST_COUNTED: usize = 1_000;

/// The number of pages where a block has moved (appeared or disappeared), and the number where it has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Tally(u32, u32);

impl Tally {
    fn is_everywhere(self, fewest: u32) -> bool {
        self.0 >= fewest && self.1 * ONE_OF <= self.0
    }

    fn is_of_single_pages(self) -> bool {
        self.1 >= FORGOTTEN_AFTER && !self.is_everywhere(FEWEST)
    }
}

/// The state of a site: which blocks appear or disappear on all its pages together, and which parts are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteBlocks {
    /// When the current night began.
    began_ms: i64,
    /// How many pages were checked in the current night, and in the night before.
    checked: u32,
    checked_before: u32,
    #[serde(default)]
    come: BTreeMap<u64, Tally>,
    #[serde(default)]
    gone: BTreeMap<u64, Tally>,
    /// The places where blocks have moved on all pages in the current night; `moving` has the number of such earlier
    /// nights for each place.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    moved: BTreeSet<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    moving: BTreeMap<u32, u32>,
    /// The parts that are ignored on all pages. `steps` and `shown` count the evidence for further parts.
    #[serde(default)]
    unsteady: Unsteady,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<(TimedText, u32)>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    shown: BTreeMap<u64, u32>,
}

impl SiteBlocks {
    /// Records a check of a page with text.
    pub(crate) fn note_check(&mut self, at_ms: i64) {
        if self.checked == 0 || at_ms - self.began_ms >= NIGHT_MS {
            let was = std::mem::take(self);
            *self = SiteBlocks {
                began_ms: at_ms,
                checked_before: was.checked,
                moving: was.moving,
                unsteady: was.unsteady,
                steps: was.steps,
                shown: was.shown,
                ..SiteBlocks::default()
            };
            for place in was.moved {
                if self.moving.len() < MOST_COUNTED {
                    *self.moving.entry(place).or_default() += 1;
                }
            }
        }
        self.checked = self.checked.saturating_add(1);
    }

    /// The parts that are ignored on all pages of the site.
    pub(crate) fn unsteady_parts(&self) -> &Unsteady {
        &self.unsteady
    }

    /// Counts the parts of a page that differed between two fetches (`shown`), without those in `known`.
    pub(crate) fn note_unsteady(&mut self, known: &Unsteady, shown: &Unsteady) {
        for (place, template) in shown.templates() {
            let is_new = !known.templates().contains(&(*place, template.clone()));
            if is_new && self.count_page_showing(&format!("{place} {template:?}")) {
                self.unsteady.add_template(*place, template.clone());
            }
        }
        for (place, text) in shown.timed_hashes() {
            let is_new = !known.timed_hashes().contains(&(*place, *text));
            if is_new && self.count_page_showing(&format!("{place} at {text}")) {
                self.unsteady.add_timed_hash(*place, *text);
            }
        }
        for (place, text) in shown.forms() {
            let is_new = !known.forms().contains(&(*place, *text));
            if is_new && self.count_page_showing(&format!("{place} {text}")) {
                self.unsteady.add_form(*place, *text);
            }
        }
    }

    /// Counts a page whose two fetches have shown `what`. Returns whether [`SHOWN_BY`] pages have shown it now.
    fn count_page_showing(&mut self, what: &str) -> bool {
        let key = hash(what);
        if self.shown.len() >= MOST_COUNTED && !self.shown.contains_key(&key) {
            return false;
        }
        let pages = self.shown.entry(key).or_default();
        *pages = pages.saturating_add(1);
        *pages >= SHOWN_BY
    }

    /// Counts times that have moved with the clock. Returns whether any of them are ignored from now on.
    pub(crate) fn count_clock_steps(&mut self, moved: Vec<TimedText>) -> bool {
        let mut has_learned = false;
        for timed in moved {
            let known = self.steps.iter().position(|(one, _)| *one == timed);
            let index = known.unwrap_or(self.steps.len());
            if known.is_none() {
                if index >= MOST_COUNTED {
                    continue;
                }
                self.steps.push((timed, 0));
            }
            let steps = &mut self.steps[index].1;
            *steps = steps.saturating_add(1);
            if *steps >= STEPS {
                self.unsteady.add_timed_hash(timed.0, timed.1);
                has_learned = true;
            }
        }
        has_learned
    }

    /// Counts the blocks that have moved on a page, and removes blocks that belong to the site from the page's
    /// difference. `blocks` are all blocks of the page.
    pub(crate) fn remove_site_blocks(&mut self, differing: &mut Difference<'_>, blocks: &[Block]) {
        count_moved(&mut self.come, &differing.come);
        count_moved(&mut self.gone, &differing.gone);
        if self.checked.max(self.checked_before) < FEWEST_PAGES {
            return;
        }
        let (moved, moving) = (&mut self.moved, &self.moving);
        // A place that also has the page's own texts is not recorded as moving, so that these texts are still compared.
        let is_of_site_only = |place: u32, come: &[&Block]| {
            let count =
                |blocks: &mut dyn Iterator<Item = u32>| blocks.filter(|at| *at == place).count();
            count(&mut blocks.iter().map(|block| block.place))
                == count(&mut come.iter().map(|block| block.place))
        };
        let come = differing.come.clone();
        let mut is_of_page = |tallies: &BTreeMap<u64, Tally>, block: &Block| {
            let tally = tallies.get(&hash(&block.text));
            let has_moved = moved.contains(&block.place) || moving.contains_key(&block.place);
            let fewest = if has_moved { FEWEST_AGAIN } else { FEWEST };
            if tally.is_some_and(|tally| tally.is_everywhere(fewest)) {
                if is_of_site_only(block.place, &come) {
                    moved.insert(block.place);
                }
                return false;
            }
            moving
                .get(&block.place)
                .is_none_or(|nights| *nights < MOVING_NIGHTS)
        };
        differing.come.retain(|block| is_of_page(&self.come, block));
        differing.gone.retain(|block| is_of_page(&self.gone, block));
    }

    /// Whether nothing was ever counted. Then the state need not be stored.
    pub fn is_empty(&self) -> bool {
        self.checked == 0
    }

    pub fn pack(&self) -> Vec<u8> {
        seen::pack(self)
    }

    pub fn unpack(bytes: &[u8]) -> Result<SiteBlocks, UnpackError> {
        seen::unpack(bytes)
    }
}

/// Adds a page to the tally of each known block: the first number if the block has moved on the page, or else the
/// second.
fn count_moved(tallies: &mut BTreeMap<u64, Tally>, blocks: &[&Block]) {
    let mut moved: Vec<u64> = blocks.iter().map(|block| hash(&block.text)).collect();
    moved.sort_unstable();
    moved.dedup();
    for (hash, tally) in tallies.iter_mut() {
        match moved.binary_search(hash) {
            Ok(_) => tally.0 = tally.0.saturating_add(1),
            Err(_) => tally.1 = tally.1.saturating_add(1),
        }
    }
    // Blocks that moved only on single pages are forgotten after [`FORGOTTEN_AFTER`] pages, to limit the number of
    // tallies.
    tallies.retain(|_, tally| !tally.is_of_single_pages());
    for hash in moved.into_iter().take(MOST_OF_PAGE) {
        tallies.entry(hash).or_insert(Tally(1, 0));
    }
}
