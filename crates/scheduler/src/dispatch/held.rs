//! The leases of each supervisor, and how many of them have each priority. The counts decide whether a task may use
//! the supervisor's reserve (see [`super::session`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::frontier::TaskId;

#[derive(Debug, Default)]
pub(super) struct TasksBySupervisor {
    by_supervisor: BTreeMap<String, TasksOfSupervisor>,
}

#[derive(Debug, Default)]
struct TasksOfSupervisor {
    tasks: BTreeSet<TaskId>,
    by_priority: BTreeMap<u8, u64>,
}

impl TasksBySupervisor {
    /// Adds a lease; it must not be there already.
    pub(super) fn add(&mut self, supervisor: &str, task: TaskId, priority: u8) {
        if !self.by_supervisor.contains_key(supervisor) {
            self.by_supervisor
                .insert(supervisor.to_owned(), TasksOfSupervisor::default());
        }
        if let Some(held) = self.by_supervisor.get_mut(supervisor) {
            held.tasks.insert(task);
            *held.by_priority.entry(priority).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, supervisor: &str, task: TaskId, priority: u8) {
        let Some(held) = self.by_supervisor.get_mut(supervisor) else {
            return;
        };
        held.tasks.remove(&task);
        if let Some(n) = held.by_priority.get_mut(&priority) {
            *n -= 1;
            if *n == 0 {
                held.by_priority.remove(&priority);
            }
        }
        if held.tasks.is_empty() {
            self.by_supervisor.remove(supervisor);
        }
    }

    /// The tasks leased to a supervisor. The cost does not depend on the leases of other supervisors.
    pub(super) fn tasks(&self, supervisor: &str) -> impl Iterator<Item = TaskId> {
        let held = self.by_supervisor.get(supervisor);
        held.into_iter().flat_map(|held| held.tasks.iter().copied())
    }

    pub(super) fn count(&self, supervisor: &str) -> usize {
        let held = self.by_supervisor.get(supervisor);
        held.map_or(0, |held| held.tasks.len())
    }

    /// How many leases of this priority or a higher one a supervisor holds.
    pub(super) fn count_at_least(&self, supervisor: &str, priority: u8) -> u64 {
        let held = self.by_supervisor.get(supervisor);
        held.map_or(0, |held| {
            held.by_priority.range(priority..).map(|(_, n)| n).sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_listed_by_supervisor_and_counted_from_a_priority_on() {
        let mut held = TasksBySupervisor::default();
        for (task, priority) in [(4, 50), (2, 50), (3, 70), (1, 90)] {
            held.add("a", task, priority);
        }
        held.add("b", 5, 10);
        held.remove("a", 4, 50);
        assert_eq!(held.tasks("a").collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!((held.count("a"), held.count("b")), (3, 1));
        assert_eq!(
            [1, 50, 51, 90, 91].map(|from| held.count_at_least("a", from)),
            [3, 3, 2, 1, 0]
        );
        for (task, priority) in [(2, 50), (3, 70), (1, 90)] {
            held.remove("a", task, priority);
        }
        assert_eq!(held.count_at_least("a", 1), 0);
        assert_eq!(held.tasks("a").count(), 0);
        held.remove("b", 5, 10);
        assert!(held.by_supervisor.is_empty());
    }
}
