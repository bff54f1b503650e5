//! Sums the counts of all workers. When a worker process dies, its counts are added to the sum of all dead processes,
//! before the counts of its successor replace them. So no sum decreases while the supervisor runs.

use std::collections::{BTreeMap, BTreeSet};

use webfill_wire::counts::{
    FieldTotals, MOST_MAPPINGS, OTHER_MAPPINGS, WorkerCounts, WorkerTotals,
};

/// The latest counts of each worker, and the sum of the counts of dead processes.
#[derive(Debug, Default)]
pub(crate) struct WorkerSums {
    /// The sum of the counts of all processes that have died.
    dead: WorkerTotals,
    latest: BTreeMap<u16, WorkerCounts>,
    /// The names of the mappings that are counted separately: the first ones seen. All others are counted together.
    mappings: BTreeSet<String>,
}

impl WorkerSums {
    /// Records a worker's counts since its start. Counts of a process that arrive after those of its successor are
    /// ignored.
    pub(crate) fn record(&mut self, counts: WorkerCounts) {
        for name in counts.totals.fields.keys() {
            if self.mappings.len() < MOST_MAPPINGS && name != OTHER_MAPPINGS {
                self.mappings.insert(name.clone());
            }
        }
        let Some(before) = self.latest.get(&counts.worker_index) else {
            self.latest.insert(counts.worker_index, counts);
            return;
        };
        if before.incarnation > counts.incarnation {
            return;
        }
        if before.incarnation < counts.incarnation {
            let before = before.totals.clone();
            self.add_to_dead(&before);
        }
        self.latest.insert(counts.worker_index, counts);
    }

    fn add_to_dead(&mut self, totals: &WorkerTotals) {
        let mut dead = std::mem::take(&mut self.dead);
        self.add_to(&mut dead, totals);
        self.dead = dead;
    }

    /// The sum over all worker processes, including dead ones.
    pub(crate) fn totals(&self) -> WorkerTotals {
        let mut sum = self.dead.clone();
        for counts in self.latest.values() {
            self.add_to(&mut sum, &counts.totals);
        }
        sum
    }

    /// Whether the store of any worker is unreachable.
    pub(crate) fn is_store_away(&self) -> bool {
        self.latest.values().any(|counts| counts.is_store_away)
    }

    fn counter_name<'m>(&self, mapping: &'m str) -> &'m str {
        match self.mappings.contains(mapping) {
            true => mapping,
            false => OTHER_MAPPINGS,
        }
    }

    fn add_to(&self, sum: &mut WorkerTotals, more: &WorkerTotals) {
        add_counts(&mut sum.pages, &more.pages);
        add_counts(&mut sum.answers, &more.answers);
        sum.fetched_bytes = sum.fetched_bytes.saturating_add(more.fetched_bytes);
        sum.robots = sum.robots.saturating_add(more.robots);
        sum.unmatched = sum.unmatched.saturating_add(more.unmatched);
        sum.fetch.add(&more.fetch);
        sum.queue.add(&more.queue);
        sum.save.add(&more.save);
        for (mapping, fields) in &more.fields {
            let name = self.counter_name(mapping).to_owned();
            let FieldTotals { filled, empty } = sum.fields.entry(name).or_default();
            *filled = filled.saturating_add(fields.filled);
            *empty = empty.saturating_add(fields.empty);
        }
        for (mapping, rows) in &more.rows {
            let name = self.counter_name(mapping).to_owned();
            sum.rows.entry(name).or_default().add(rows);
        }
    }
}

fn add_counts<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        let so_far = sum.entry(*key).or_default();
        *so_far = so_far.saturating_add(*count);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use webfill_wire::Outcome;

    use super::*;

    fn counts(worker_index: u16, incarnation: u32, pages: u64) -> WorkerCounts {
        let mut totals = WorkerTotals::default();
        totals.pages.insert(Outcome::Ok, pages);
        for _ in 0..pages {
            totals.fetch.observe(Duration::from_millis(1));
        }
        WorkerCounts {
            worker_index,
            incarnation,
            totals,
            is_store_away: false,
        }
    }

    fn pages(sums: &WorkerSums) -> u64 {
        let totals = sums.totals();
        assert_eq!(totals.fetch.count(), totals.pages[&Outcome::Ok]);
        totals.pages[&Outcome::Ok]
    }

    #[test]
    fn deaths_and_lost_or_late_messages_never_decrease_a_sum() {
        let mut sums = WorkerSums::default();
        sums.record(counts(0, 1, 5));
        sums.record(counts(1, 1, 2));
        assert_eq!(pages(&sums), 7);
        // The worker's counts grow by two steps, as if a message was lost.
        sums.record(counts(0, 1, 9));
        assert_eq!(pages(&sums), 11);
        sums.record(counts(0, 2, 1));
        assert_eq!(pages(&sums), 12, "what the dead one had stays");
        sums.record(counts(0, 1, 10));
        assert_eq!(pages(&sums), 12, "it came too late");
        sums.record(counts(0, 3, 0));
        assert_eq!(pages(&sums), 12);
    }

    #[test]
    fn the_number_of_separately_counted_mappings_is_bounded() {
        let mut sums = WorkerSums::default();
        let mut last = 0;
        for worker in 0..40 {
            let mut reported = counts(worker, 1, 1);
            for number in 0..MOST_MAPPINGS {
                let name = format!("m{}", 1_000_000 - usize::from(worker) * 100 - number);
                reported.totals.fields.entry(name).or_default().filled = 1;
            }
            sums.record(reported);
            let fields = sums.totals().fields;
            assert!(fields.len() <= MOST_MAPPINGS + 1);
            assert_eq!(fields["m1000000"].filled, 1, "it came first");
            let all: u64 = fields.values().map(|fields| fields.filled).sum();
            assert_eq!(all, last + MOST_MAPPINGS as u64);
            last = all;
        }
    }
}
