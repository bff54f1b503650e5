//! Records which of a sender's numbered messages have arrived, so that lost messages are noticed. A broken connection
//! may lose messages without an error on either side. Then the highest number without a gap before it stays below the
//! sender's count.

use std::collections::BTreeSet;

/// The numbers that have arrived from one sender. Messages are numbered from 1. They may arrive late, twice, or in
/// another order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// All numbers up to and including this one have arrived.
    complete: u64,
    /// Numbers that have arrived although a smaller one is missing.
    ahead: BTreeSet<u64>,
}

/// The most numbers that are kept beyond a missing one, so that a faulty peer cannot fill the memory.
const MAX_AHEAD: usize = 100_000;

impl Arrivals {
    /// Records a number. Returns false if it has arrived before.
    pub fn record(&mut self, number: u64) -> bool {
        if number <= self.complete || self.ahead.contains(&number) {
            return false;
        }
        if self.ahead.len() < MAX_AHEAD {
            self.ahead.insert(number);
        }
        while self.ahead.remove(&(self.complete + 1)) {
            self.complete += 1;
        }
        true
    }

    /// All messages up to this number have arrived.
    pub fn complete(&self) -> u64 {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_number_is_noticed_until_it_arrives() {
        let mut arrivals = Arrivals::default();
        assert!(arrivals.record(1));
        assert!(arrivals.record(3));
        assert_eq!(arrivals.complete(), 1);
        assert!(!arrivals.record(3), "twice");
        assert!(arrivals.record(2));
        assert_eq!(arrivals.complete(), 3);
        assert!(!arrivals.record(2), "late");
    }
}
