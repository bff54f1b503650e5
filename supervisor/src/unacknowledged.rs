//! Outcome messages that were sent to the dispatcher but not acknowledged yet.
//!
//! A broken connection or a killed dispatcher may lose messages, and pages with lost outcomes would be fetched twice.
//! So each message with outcomes stays here until a heartbeat of the dispatcher says that it is on disk. At the start
//! of a new session, the messages that are left are sent again. Memory is limited, because the supervisor requests no
//! new tasks while the unacknowledged messages are too long. Nothing is kept on disk: if the supervisor dies, the
//! dispatcher leases its tasks again.

use std::collections::VecDeque;
use std::sync::Arc;

use webfill_wire::{Delivery, SupervisorOutcomes, links};

/// While the links of unacknowledged outcomes exceed this many bytes, the supervisor requests no more tasks. The
/// outcomes of ordinary pages have far fewer; those of sitemaps may have 16 MiB each.
const MOST_LINK_BYTES: usize = 64 << 20;

#[derive(Debug, Default)]
pub(crate) struct UnacknowledgedOutcomes {
    sent: VecDeque<Arc<SupervisorOutcomes>>,
    link_bytes: usize,
}

impl UnacknowledgedOutcomes {
    pub(crate) fn add(&mut self, outcomes: &Arc<SupervisorOutcomes>) {
        self.link_bytes += links::total_link_bytes(&outcomes.done);
        self.sent.push_back(Arc::clone(outcomes));
    }

    /// Whether no more tasks may be requested until the dispatcher acknowledges some outcomes.
    pub(crate) fn is_full(&self) -> bool {
        self.link_bytes > MOST_LINK_BYTES
    }

    /// Drops the messages of this session up to and including `number`, which the dispatcher has written to disk.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        while let Some(sent) = self.sent.pop_front_if(|sent| sent.number <= number) {
            self.link_bytes -= links::total_link_bytes(&sent.done);
        }
    }

    /// The leases that end with the unacknowledged messages.
    pub(crate) fn leases(&self) -> impl Iterator<Item = (u64, Delivery)> {
        self.sent.iter().flat_map(|sent| leases_of(sent))
    }

    /// The number of pages whose outcomes are in the unacknowledged messages.
    pub(crate) fn pages(&self) -> usize {
        self.sent.iter().map(|sent| sent.done.len()).sum()
    }

    /// Removes all messages, to be sent again in a new session.
    pub(crate) fn take_all(&mut self) -> Vec<SupervisorOutcomes> {
        self.link_bytes = 0;
        let sent = std::mem::take(&mut self.sent);
        sent.into_iter().map(Arc::unwrap_or_clone).collect()
    }
}

/// The leases that end with these outcomes.
pub(crate) fn leases_of(outcomes: &SupervisorOutcomes) -> impl Iterator<Item = (u64, Delivery)> {
    let done = outcomes.done.iter().map(|done| (done.task, done.delivery));
    let returned = outcomes.returned.iter();
    done.chain(returned.map(|returned| (returned.task, returned.delivery)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use webfill_wire::{ReturnCause, TaskReturned};

    fn numbered_outcomes(number: u64, task: u64) -> Arc<SupervisorOutcomes> {
        let returned = TaskReturned {
            task,
            delivery: Delivery::new(0, 1),
            cause: ReturnCause::Unstarted,
            clock: None,
            address: None,
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
    fn unacknowledged_messages_are_kept_and_sent_again() {
        let mut unacknowledged = UnacknowledgedOutcomes::default();
        for number in 1..=3 {
            unacknowledged.add(&numbered_outcomes(number, 10 * number));
        }
        unacknowledged.acknowledge(1);
        assert_eq!(
            unacknowledged.leases().collect::<Vec<_>>(),
            [(20, Delivery::new(0, 1)), (30, Delivery::new(0, 1))]
        );
        unacknowledged.acknowledge(0);
        assert_eq!(unacknowledged.take_all().len(), 2);
        assert_eq!(unacknowledged.leases().count(), 0);
    }
}
