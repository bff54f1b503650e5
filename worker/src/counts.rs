//! This worker's counts since its start. Its supervisor serves the sums of its workers to Prometheus. A heartbeat
//! carries the counts at the start, after each change, and every [`REPORT_AGAIN`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use webfill_mapping::MappingSet;
use webfill_store::RowCounts;
use webfill_wire::Outcome;
use webfill_wire::counts::{MOST_MAPPINGS, OTHER_MAPPINGS, RowTotals, WorkerTotals};

use crate::task_result::TaskResult;

/// Unchanged counts are reported again after this time, because a message with them may have been lost.
const REPORT_AGAIN: Duration = Duration::from_secs(30);

/// The counts, shared by the parts of a worker on its main thread.
#[derive(Debug, Clone, Default)]
pub struct Counts(Rc<RefCell<CountsState>>);

#[derive(Debug, Default)]
struct CountsState {
    totals: WorkerTotals,
    is_store_away: bool,
    has_changed: bool,
    /// The time of the last report. It is `None` until the first report; until then, the supervisor has the counts of
    /// the process that ran before this one.
    reported_at: Option<Instant>,
    /// The time of arrival of each task whose page was not requested yet. The granted credit bounds their number.
    arrivals: HashMap<u64, Instant>,
    /// The number of fields of each mapping in use.
    fields_of: HashMap<String, usize>,
}

impl Counts {
    fn update(&self, count: impl FnOnce(&mut CountsState)) {
        let mut counted = self.0.borrow_mut();
        counted.has_changed = true;
        count(&mut counted);
    }

    /// The counts to report, and whether the store is unreachable. `None` if they are unchanged and were reported
    /// recently.
    pub fn take_report(&self) -> Option<(WorkerTotals, bool)> {
        let mut counted = self.0.borrow_mut();
        let has_changed = std::mem::take(&mut counted.has_changed);
        let was_reported_lately = counted
            .reported_at
            .is_some_and(|at| at.elapsed() < REPORT_AGAIN);
        (has_changed || !was_reported_lately).then(|| {
            counted.reported_at = Some(Instant::now());
            (counted.totals.clone(), counted.is_store_away)
        })
    }

    /// Notes the mappings that are now in use, with their numbers of fields.
    pub fn use_mappings(&self, set: &MappingSet) {
        let fields = set.fields_by_mapping().into_iter();
        let fields = fields.map(|(name, fields)| (name.to_owned(), fields.len()));
        self.0.borrow_mut().fields_of = fields.collect();
    }

    /// Notes that a task has arrived and waits for its turn.
    pub fn note_task_arrived(&self, task: u64) {
        self.0.borrow_mut().arrivals.insert(task, Instant::now());
    }

    /// Notes that a task has ended or is given back.
    pub fn note_task_left(&self, task: u64) {
        self.0.borrow_mut().arrivals.remove(&task);
    }

    /// Notes that a page was requested.
    pub fn note_page_fetched(&self, result: &TaskResult, started: Instant) {
        // For these outcomes no request was sent: the address was refused, or the host has no address.
        if matches!(result.outcome, Outcome::UnsafeAddress | Outcome::DnsError) {
            return;
        }
        self.update(|counted| {
            if let Some(arrived) = counted.arrivals.remove(&result.task.task) {
                let waited = started.saturating_duration_since(arrived);
                counted.totals.queue.observe(waited);
            }
            let totals = &mut counted.totals;
            totals.fetch.observe(result.elapsed);
            totals.fetched_bytes = totals.fetched_bytes.saturating_add(result.body_bytes);
            if let Some(status) = result.status_code {
                *totals.answers.entry((status / 100) as u8).or_default() += 1;
            }
        });
    }

    /// Notes that a robots.txt was requested.
    pub fn note_robots_fetched(&self) {
        self.update(|counted| counted.totals.robots += 1);
    }

    /// Notes that the store accepted writes after `took`, or that it is unreachable (`is_away`).
    pub fn note_store_answered(&self, took: Duration, is_away: bool) {
        self.update(|counted| {
            counted.totals.save.observe(took);
            counted.is_store_away = is_away;
        });
    }

    /// Notes that a page is stored.
    pub fn note_page_saved(&self, result: &TaskResult) {
        self.update(|counted| {
            *counted.totals.pages.entry(result.outcome).or_default() += 1;
            // Counted in the same way as in the summary of a crawl.
            counted.totals.unmatched += u64::from(result.is_unmatched());
            if let (Outcome::Ok, Some(mapping)) = (result.outcome, &result.mapping) {
                let name = counted.count_fields(mapping, result.fields.len());
                if !result.row_counts.is_empty() {
                    let rows = counted.totals.rows.entry(name).or_default();
                    rows.add(&sum_rows(&result.row_counts));
                }
            }
        });
    }
}

impl CountsState {
    /// Counts the filled and the empty fields of a page. Returns the name that its mapping is counted under.
    fn count_fields(&mut self, mapping: &str, filled: usize) -> String {
        let wanted = self.fields_of.get(mapping).copied().unwrap_or(filled);
        let filled = filled.min(wanted);
        let fields = &mut self.totals.fields;
        let name = match fields.contains_key(mapping) || fields.len() < MOST_MAPPINGS {
            true => mapping,
            false => OTHER_MAPPINGS,
        };
        let totals = fields.entry(name.to_owned()).or_default();
        totals.filled += filled as u64;
        totals.empty += (wanted - filled) as u64;
        name.to_owned()
    }
}

fn sum_rows(counts: &[RowCounts]) -> RowTotals {
    let sum = |of: fn(&RowCounts) -> u64| counts.iter().map(of).sum();
    RowTotals {
        stored: sum(RowCounts::stored),
        without_key: sum(|counts| counts.without_key),
        same_key: sum(|counts| counts.same_key),
        cut_pages: counts.iter().any(|counts| counts.cut).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_beyond_the_bound_are_counted_together() {
        let mut counted = CountsState::default();
        for number in 0..1_000 {
            let name = format!("mapping{number}");
            counted.fields_of.insert(name.clone(), 3);
            counted.count_fields(&name, 2);
        }
        let fields = &counted.totals.fields;
        assert_eq!(fields.len(), MOST_MAPPINGS + 1);
        let other = fields[OTHER_MAPPINGS];
        assert_eq!((other.filled, other.empty), (2 * 950, 950));
        assert_eq!(
            (fields["mapping7"].filled, fields["mapping7"].empty),
            (2, 1)
        );
    }

    #[test]
    fn unchanged_counts_are_not_reported_again() {
        let counts = Counts::default();
        assert!(
            counts.take_report().is_some(),
            "it reports once that it is new"
        );
        assert_eq!(counts.take_report(), None);
        counts.note_robots_fetched();
        counts.note_store_answered(Duration::from_secs(1), true);
        let (totals, is_store_away) = counts.take_report().unwrap();
        assert_eq!((totals.robots, is_store_away), (1, true));
        assert_eq!(counts.take_report(), None);
    }
}
