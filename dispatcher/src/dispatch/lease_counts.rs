//! Counts the leases that each supervisor holds, by priority. The counts decide whether a task may
//! use the supervisor's reserve (see [`super::session`]).

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct LeaseCounts {
    by_supervisor: BTreeMap<String, BTreeMap<u8, u64>>,
}

impl LeaseCounts {
    pub(super) fn add(&mut self, supervisor: &str, priority: u8) {
        if !self.by_supervisor.contains_key(supervisor) {
            self.by_supervisor
                .insert(supervisor.to_owned(), BTreeMap::new());
        }
        if let Some(out) = self.by_supervisor.get_mut(supervisor) {
            *out.entry(priority).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, supervisor: &str, priority: u8) {
        let Some(out) = self.by_supervisor.get_mut(supervisor) else {
            return;
        };
        if let Some(n) = out.get_mut(&priority) {
            *n -= 1;
            if *n == 0 {
                out.remove(&priority);
            }
        }
        if out.is_empty() {
            self.by_supervisor.remove(supervisor);
        }
    }

    /// How many leases of this priority or a higher one a supervisor holds.
    pub(super) fn at_least(&self, supervisor: &str, priority: u8) -> u64 {
        let out = self.by_supervisor.get(supervisor);
        out.map_or(0, |out| out.range(priority..).map(|(_, n)| n).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_counted_from_a_priority_on() {
        let mut out = LeaseCounts::default();
        for priority in [50, 50, 70, 90] {
            out.add("a", priority);
        }
        out.remove("a", 50);
        assert_eq!(
            [1, 50, 51, 90, 91].map(|from| out.at_least("a", from)),
            [3, 3, 2, 1, 0]
        );
        assert_eq!(out.at_least("b", 1), 0);
        for priority in [50, 70, 90] {
            out.remove("a", priority);
        }
        assert!(out.by_supervisor.is_empty());
    }
}
