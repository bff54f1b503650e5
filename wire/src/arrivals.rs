//! Which of a sender's numbered messages have arrived. A connection that breaks may take messages
//! with it without a word to either side; a number that stays behind tells.

use std::collections::BTreeSet;

/// Messages are numbered from 1 on; they may come late, twice, or in another order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    complete: u64,
    ahead: BTreeSet<u64>,
}

/// Numbers noted beyond a gap: a peer that counts wrongly must not fill the memory.
const MOST_AHEAD: usize = 100_000;

impl Arrivals {
    /// Returns whether this number is new.
    pub fn note(&mut self, number: u64) -> bool {
        if number <= self.complete || self.ahead.contains(&number) {
            return false;
        }
        if self.ahead.len() < MOST_AHEAD {
            self.ahead.insert(number);
        }
        while self.ahead.remove(&(self.complete + 1)) {
            self.complete += 1;
        }
        true
    }

    /// Up to this number all have arrived.
    pub fn complete(&self) -> u64 {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_seen_until_it_is_filled() {
        let mut arrivals = Arrivals::default();
        assert!(arrivals.note(1));
        assert!(arrivals.note(3));
        assert_eq!(arrivals.complete(), 1);
        assert!(!arrivals.note(3), "twice");
        assert!(arrivals.note(2));
        assert_eq!(arrivals.complete(), 3);
        assert!(!arrivals.note(2), "late");
    }
}
