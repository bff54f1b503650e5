//! The size of the journal, and when a snapshot is due. Records are removed only if a snapshot has applied them, so a
//! dispatcher that has missed them can begin with the snapshot.

use std::collections::VecDeque;

use super::Survey;

/// The kept journal is removed in this many parts.
const PARTS: u64 = 8;

/// A snapshot is due when the records behind the last one exceed the size of the file divided by this. A byte of
/// records takes some twenty times as long to apply as a byte of a snapshot to receive, so a new dispatcher spends
/// most of its time on them.
const SHARE_OF_FILE: u64 = 8;

/// No snapshot is due while the records behind the last one are few: fewer bytes than [`LEAST_BYTES`], and than the
/// size of the kept journal divided by this number.
const SHARE_OF_KEPT: u64 = 4;
const LEAST_BYTES: u64 = 32 << 20;

/// A dispatcher that serves waits for this many times as many records, so that mostly a standby makes the snapshot.
const PATIENCE_OF_SERVING: u64 = 2;

/// A dispatcher's knowledge of the journal's size: the bytes of the records that it has read or added.
#[derive(Debug)]
pub struct JournalBounds {
    kept_bytes: u64,
    /// The numbers where parts of the journal end, and the sizes of these parts.
    parts: VecDeque<(u64, u64)>,
    /// The bytes of the records after the last part.
    open_bytes: u64,
    /// The first number that was read or added.
    first_added: Option<u64>,
    /// The records that were in the journal before: their last number, and their total size.
    earlier: Option<(u64, u64)>,
    /// The first number in the journal, as of the last survey.
    first: Option<u64>,
    /// The last record that the newest snapshot has applied; 0: there is none.
    snapshot: u64,
    is_surveyed: bool,
}

impl JournalBounds {
    pub fn new(kept_bytes: u64) -> JournalBounds {
        JournalBounds {
            kept_bytes,
            parts: VecDeque::new(),
            open_bytes: 0,
            first_added: None,
            earlier: None,
            first: None,
            snapshot: 0,
            is_surveyed: false,
        }
    }

    /// Notes records that were read or added, up to this number.
    pub fn add(&mut self, bytes: u64, number: u64) {
        self.first_added.get_or_insert(number);
        self.open_bytes += bytes;
        if self.open_bytes >= self.kept_bytes / PARTS {
            self.parts.push_back((number, self.open_bytes));
            self.open_bytes = 0;
        }
    }

    /// Notes which records and which snapshot the store has.
    pub fn note_survey(&mut self, survey: &Survey) {
        self.first = survey.extent.map(|extent| extent.first);
        let snapshot = survey.snapshot.map_or(0, |snapshot| snapshot.number);
        self.snapshot = self.snapshot.max(snapshot);
        if !self.is_surveyed {
            self.is_surveyed = true;
            let bytes = survey.journal_bytes.saturating_sub(self.own_bytes());
            let last = survey.extent.map_or(0, |extent| extent.last);
            let last = self
                .first_added
                .map_or(last, |first| first.saturating_sub(1));
            self.earlier = (bytes > 0).then_some((last, bytes));
        }
    }

    fn own_bytes(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|(_, bytes)| bytes).sum();
        parts + self.open_bytes
    }

    fn bytes(&self) -> u64 {
        self.earlier.map_or(0, |(_, bytes)| bytes) + self.own_bytes()
    }

    /// The bytes of the records behind the newest snapshot, or a few more.
    fn bytes_behind_snapshot(&self) -> u64 {
        let is_behind = |(number, _): &&(u64, u64)| *number > self.snapshot;
        let parts = self.parts.iter().filter(is_behind);
        let parts: u64 = parts.map(|(_, bytes)| bytes).sum();
        let earlier = self.earlier.as_ref().filter(is_behind);
        parts + self.open_bytes + earlier.map_or(0, |(_, bytes)| *bytes)
    }

    /// Whether this dispatcher is to make a snapshot of its file, which has this size.
    pub fn is_snapshot_due(&self, file_bytes: u64, serves: bool) -> bool {
        let is_cut = self.snapshot == 0 && self.first.is_some_and(|first| first > 1);
        let least = LEAST_BYTES.min(self.kept_bytes / SHARE_OF_KEPT);
        let limit = least.max(file_bytes / SHARE_OF_FILE);
        match serves {
            // Perhaps only this dispatcher has the changes of the removed beginning of the journal.
            true => is_cut || self.bytes_behind_snapshot() > limit * PATIENCE_OF_SERVING,
            false => self.is_surveyed && self.bytes_behind_snapshot() > limit,
        }
    }

    /// Records before the returned number are removed now. `None` unless the journal is too large and a snapshot has
    /// applied these records.
    pub fn take_cut_position(&mut self) -> Option<u64> {
        let mut cut = None;
        while self.bytes() > self.kept_bytes {
            let oldest = self.earlier.or_else(|| self.parts.front().copied());
            match oldest {
                Some((number, _)) if number <= self.snapshot => {
                    if self.earlier.take().is_none() {
                        self.parts.pop_front();
                    }
                    cut = Some(number);
                }
                _ => break,
            }
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::super::Snapshot;
    use super::*;
    use webfill_store::journal::JournalExtent;

    fn survey(extent: Option<(u64, u64)>, journal_bytes: u64, snapshot: u64) -> Survey {
        let snapshot = Snapshot {
            number: snapshot,
            epoch: 1,
            maker: 1,
            parts: 1,
            bytes: 1,
        };
        let extent = extent.map(|(first, last)| JournalExtent {
            first,
            last,
            epoch: 1,
        });
        Survey {
            extent,
            journal_bytes,
            snapshot: (snapshot.number > 0).then_some(snapshot),
            hand_over_asked: 0,
            dispatchers: Vec::new(),
        }
    }

    #[test]
    fn records_are_removed_only_behind_a_snapshot_and_only_if_there_are_too_many() {
        let mut bounds = JournalBounds::new(800);
        for number in 1..=20 {
            bounds.add(50, number);
        }
        assert_eq!(bounds.take_cut_position(), None);
        bounds.note_survey(&survey(Some((1, 20)), 0, 3));
        assert_eq!(bounds.take_cut_position(), Some(2));
        bounds.note_survey(&survey(Some((2, 20)), 0, 20));
        assert_eq!(bounds.take_cut_position(), Some(4));
        assert_eq!(bounds.take_cut_position(), None);
        bounds.add(50, 21);
        assert_eq!(bounds.take_cut_position(), Some(6));
    }

    #[test]
    fn what_was_there_before_counts_until_a_snapshot_has_applied_it() {
        let mut bounds = JournalBounds::new(800);
        bounds.note_survey(&survey(Some((1, 100)), 900, 0));
        assert_eq!(bounds.take_cut_position(), None);
        assert!(bounds.is_snapshot_due(899 * SHARE_OF_FILE, false));
        assert!(!bounds.is_snapshot_due(900 * SHARE_OF_FILE, false));
        assert!(bounds.is_snapshot_due(449 * SHARE_OF_FILE, true));
        assert!(!bounds.is_snapshot_due(450 * SHARE_OF_FILE, true));
        bounds.note_survey(&survey(Some((1, 100)), 900, 100));
        assert!(!bounds.is_snapshot_due(1, false));
        assert_eq!(bounds.take_cut_position(), Some(100));
    }

    #[test]
    fn a_journal_without_its_beginning_needs_a_snapshot_at_once() {
        let mut bounds = JournalBounds::new(800);
        assert!(!bounds.is_snapshot_due(1, true));
        bounds.note_survey(&survey(Some((2, 2)), 1, 0));
        assert!(bounds.is_snapshot_due(1_000, true));
        assert!(!bounds.is_snapshot_due(1_000, false));
        bounds.note_survey(&survey(Some((2, 2)), 1, 2));
        assert!(!bounds.is_snapshot_due(1_000, true));
    }
}
