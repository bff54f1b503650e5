//! [`Sources`]: counts the pages that each source (a record, a seed or a linking page) has led to.

use serde::{Deserialize, Serialize};

/// The most sources that are remembered. For a further one, the source that led to no page for the longest time is
/// forgotten.
const SOURCES: usize = 64;

/// The number of pages that each of the last sources has led to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sources {
    /// The sources in the order they were last seen, each with its number of pages.
    recent: Vec<(u64, u32)>,
}

impl Sources {
    /// Records a page. Returns its number among the pages of its source, from 1.
    pub fn note_page(&mut self, source: u64) -> u32 {
        let known = self.recent.iter().position(|(one, _)| *one == source);
        let before = known.map_or(0, |at| self.recent.remove(at).1);
        if self.recent.len() >= SOURCES {
            self.recent.remove(0);
        }
        let nth = before.saturating_add(1);
        self.recent.push((source, nth));
        nth
    }
}
