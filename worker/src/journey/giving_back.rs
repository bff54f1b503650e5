//! Gives tasks back to the dispatcher without an outcome.

use std::net::IpAddr;
use std::time::Duration;

use webfill_wire::{ReturnCause, SiteClock, Task, TaskReturned};

use super::state::Journey;
use crate::now::Now;

/// A task that must be given back: it was recalled, the worker drains, or this machine could not read or render its
/// page.
pub(super) struct GivenBack(pub Box<Task>);

impl Journey {
    /// Gives back a task whose page was not requested. `delay` is the delay between requests to the site, if known.
    pub(super) fn return_task(&self, site: &str, task: &Task, delay: Option<Duration>) {
        let sites = self.sites.borrow();
        let clock = delay.map(|delay| sites.clock(site, delay, Now::read()));
        drop(sites);
        self.return_with_cause(ReturnCause::Unstarted, task, clock);
    }

    /// Gives back a task before any request, because its requests must count for this address. The dispatcher then
    /// hands it out again under the limits of the address.
    pub(super) fn return_counted_elsewhere(&self, task: &Task, address: IpAddr) {
        let returned = task_returned(ReturnCause::Unstarted, task, None);
        (self.give_back)(vec![TaskReturned {
            address: Some(address),
            ..returned
        }]);
    }

    /// Gives back a task after a request: the request was aborted, or this machine could not read or render the page.
    /// In all of these cases, the page is not the cause.
    pub(super) fn return_cut_short(&self, site: &str, task: &Task, delay: Duration) {
        let clock = self.turns.note_cut_short(site, delay);
        self.return_with_cause(ReturnCause::CutShort, task, Some(clock));
    }

    fn return_with_cause(&self, cause: ReturnCause, task: &Task, clock: Option<SiteClock>) {
        (self.give_back)(vec![task_returned(cause, task, clock)]);
    }
}

fn task_returned(cause: ReturnCause, task: &Task, clock: Option<SiteClock>) -> TaskReturned {
    TaskReturned {
        task: task.task,
        delivery: task.delivery,
        cause,
        clock,
        address: None,
    }
}
