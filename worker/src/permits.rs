//! Issues permits, which decide whether a task may start a request now.
//!
//! Two conditions are checked right before each request. First, the supervisor's lease must not have ended: the lease
//! is the dispatcher's permission to start fetches, and after its end other workers may get the same sites. Second, the
//! task must not have been *recalled* since it started. A task is recalled when the lease is lost, and when the
//! dispatcher stops its crawl or excludes its site.
//!
//! The caller passes in the time, which counts from the machine's boot. This clock keeps running while the process is
//! stopped.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use webfill_wire::{CrawlKey, Delivery, RecallScope, Task};

/// Why a request was denied. There is no answer then, and will be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The request was not made.
    NotStarted,
    /// The request was aborted: this process was stopped for longer than a request may take, or no memory for the body
    /// became free in time.
    CutShort,
}

/// The permission to make requests for one task, until the task is recalled.
#[derive(Debug)]
pub struct Permit {
    task: Rc<PermittedTask>,
}

impl Permit {
    pub fn is_recalled(&self) -> bool {
        self.task.recalled.get()
    }

    /// The task's id and delivery.
    pub fn task(&self) -> (u64, Delivery) {
        self.task.id
    }

    /// The task's priority.
    pub fn priority(&self) -> u8 {
        self.task.priority
    }

    /// Notes whether a request is under way. Returns the value noted before.
    pub fn note_request(&self, is_under_way: bool) -> bool {
        self.task.has_requested.replace(is_under_way)
    }
}

/// The task that a permit was issued for.
#[derive(Debug)]
struct PermittedTask {
    /// The task's id, with its delivery.
    id: (u64, Delivery),
    crawl: CrawlKey,
    site: String,
    priority: u8,
    recalled: Cell<bool>,
    /// Whether a request for the task is under way, or its page was already requested.
    has_requested: Cell<bool>,
}

impl PermittedTask {
    fn is_in(&self, scope: &RecallScope) -> bool {
        scope.contains_task(self.crawl, &self.site, self.priority)
    }
}

/// Lists shorter than this are not searched for dropped permits.
const SHORT_LIST: usize = 64;

/// The permits that a worker has issued, and the end of its lease.
#[derive(Debug)]
pub struct Permits {
    lease_until_ms: Cell<u64>,
    tasks: RefCell<Vec<Weak<PermittedTask>>>,
    /// Dropped permits are removed from the list when it is this long.
    remove_dropped_at: Cell<usize>,
}

impl Default for Permits {
    /// Creates a list without permits. No request may start until there is a lease.
    fn default() -> Permits {
        Permits {
            lease_until_ms: Cell::new(0),
            tasks: RefCell::default(),
            remove_dropped_at: Cell::new(SHORT_LIST),
        }
    }
}

impl Permits {
    /// Allows requests to start until `boot_ms`, on the clock since the machine's boot.
    pub fn extend_lease(&self, boot_ms: u64) {
        self.lease_until_ms
            .set(self.lease_until_ms.get().max(boot_ms));
    }

    /// Revokes the permits that were given so far to tasks in the scope: a crawl, a site or low priorities.
    pub fn recall(&self, scope: &RecallScope) {
        let tasks = self.tasks.borrow();
        for task in tasks.iter().filter_map(Weak::upgrade) {
            if task.is_in(scope) {
                task.recalled.set(true);
            }
        }
    }

    /// Whether each recalled task in the scope has either made a request or been given back.
    pub fn is_settled(&self, scope: &RecallScope) -> bool {
        let tasks = self.tasks.borrow();
        let mut held = tasks.iter().filter_map(Weak::upgrade);
        !held.any(|task| task.is_in(scope) && task.recalled.get() && !task.has_requested.get())
    }

    /// Issues a permit to a task that starts now; its requests need it.
    pub fn issue_permit(&self, task: &Task) -> Permit {
        let task = Rc::new(PermittedTask {
            id: (task.task, task.delivery),
            crawl: task.crawl,
            site: task.site.clone(),
            priority: task.priority,
            recalled: Cell::new(false),
            has_requested: Cell::new(false),
        });
        let mut tasks = self.tasks.borrow_mut();
        if tasks.len() >= self.remove_dropped_at.get() {
            tasks.retain(|task| task.strong_count() > 0);
            self.remove_dropped_at.set(SHORT_LIST.max(2 * tasks.len()));
        }
        tasks.push(Rc::downgrade(&task));
        Permit { task }
    }

    /// Checks whether a request may start at this moment.
    pub fn check(&self, permit: &Permit, boot_ms: u64) -> Result<(), Denied> {
        if permit.is_recalled() || boot_ms >= self.lease_until_ms.get() {
            return Err(Denied::NotStarted);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_of_tasks_that_are_over_are_removed_from_the_list() {
        let permits = Permits::default();
        let task = Task {
            attrs: None,
            task: 1,
            delivery: Delivery::new(0, 1),
            crawl: 1,
            url: String::from("http://a.org/"),
            site: String::from("a.org"),
            depth: 0,
            wait_ms: 0,
            last_request_ago_ms: None,
            parent: None,
            records: Vec::new(),
            priority: 50,
            delay_ms: None,
            failed_attempts: Vec::new(),
            unreachable: None,
            address_bounds: webfill_wire::AddressBounds::None,
        };
        let kept = permits.issue_permit(&task);
        for _ in 0..10 * SHORT_LIST {
            permits.issue_permit(&task);
        }
        assert!(permits.tasks.borrow().len() <= SHORT_LIST);
        permits.recall(&RecallScope::default());
        assert!(kept.is_recalled());
    }
}
