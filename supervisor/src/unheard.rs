//! Outcomes that were sent and that the dispatcher has not confirmed. A connection that breaks, or a
//! dispatcher that dies, may take them along; they are sent again then, so that no page is fetched
//! twice for it. Bounded by the credit: without the dispatcher's word there are no new tasks.

use std::collections::VecDeque;
use std::sync::Arc;

use webfill_wire::SupervisorOutcomes;

#[derive(Debug, Default)]
pub(crate) struct Unheard {
    sent: VecDeque<Arc<SupervisorOutcomes>>,
}

impl Unheard {
    pub(crate) fn note(&mut self, outcomes: &Arc<SupervisorOutcomes>) {
        self.sent.push_back(Arc::clone(outcomes));
    }

    /// Those up to this number of the current session are durable.
    pub(crate) fn heard(&mut self, number: u64) {
        while self.sent.front().is_some_and(|sent| sent.number <= number) {
            self.sent.pop_front();
        }
    }

    /// The leases that they end.
    pub(crate) fn leases(&self) -> impl Iterator<Item = (u64, u32)> {
        self.sent.iter().flat_map(|sent| leases_of(sent))
    }

    /// All of them, to be sent again.
    pub(crate) fn take(&mut self) -> Vec<SupervisorOutcomes> {
        let sent = std::mem::take(&mut self.sent);
        sent.into_iter().map(Arc::unwrap_or_clone).collect()
    }
}

/// The leases that outcomes end.
pub(crate) fn leases_of(outcomes: &SupervisorOutcomes) -> impl Iterator<Item = (u64, u32)> {
    let done = outcomes.done.iter().map(|done| (done.task, done.delivery));
    let returned = outcomes.returned.iter();
    done.chain(returned.map(|returned| (returned.task, returned.delivery)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use webfill_wire::{ReturnCause, TaskReturned};

    fn sent(number: u64, task: u64) -> Arc<SupervisorOutcomes> {
        let returned = TaskReturned {
            task,
            delivery: 1,
            cause: ReturnCause::Unstarted,
            clock: None,
        };
        Arc::new(SupervisorOutcomes {
            supervisor: "a".into(),
            session: 1,
            number,
            done: Vec::new(),
            returned: vec![returned],
            recalled: Vec::new(),
        })
    }

    #[test]
    fn what_was_not_heard_is_kept_and_sent_again() {
        let mut unheard = Unheard::default();
        for number in 1..=3 {
            unheard.note(&sent(number, 10 * number));
        }
        unheard.heard(1);
        assert_eq!(unheard.leases().collect::<Vec<_>>(), [(20, 1), (30, 1)]);
        unheard.heard(0);
        assert_eq!(unheard.take().len(), 2);
        assert_eq!(unheard.leases().count(), 0);
    }
}
