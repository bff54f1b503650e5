//! Holds the leased tasks of this supervisor: which worker has each task, and how much credit (room for further tasks)
//! is left.
//!
//! Credit-based flow control bounds the queue. The supervisor grants the dispatcher credit in tasks and in bytes of
//! URLs, as running totals since its hello, and raises the totals when leases end. Nothing is kept on disk; the leases
//! of a dead supervisor expire at the dispatcher.
//!
//! A task that waits for a name server needs only memory. Up to a limit, such tasks do not count, so that unanswered
//! lookups do not use up the credit.

use std::collections::{BTreeMap, BTreeSet};

use webfill_wire::{CrawlKey, Credit, Delivery, ReturnCause, Task, TaskReturned};

/// A task that is leased to this supervisor, and the worker that has it.
#[derive(Debug, Clone)]
struct HeldLease {
    crawl: CrawlKey,
    site: String,
    delivery: Delivery,
    worker_index: u16,
    url_bytes: u64,
    /// Whether the task was sent to the worker. Otherwise it waits until the worker is ready.
    sent: bool,
    /// Whether the task waits for a name server, and so does not count against the limit on tasks.
    is_uncounted: bool,
}

/// All leases that this supervisor holds. The dispatcher sends no more tasks than it was granted credit for, so the
/// counted tasks stay within `limit`.
#[derive(Debug)]
pub struct Queue {
    held: BTreeMap<u64, HeldLease>,
    granted: Credit,
    limit: Credit,
    /// The number of tasks that do not count against the limit.
    uncounted: u64,
    most_uncounted: u64,
}

impl Queue {
    pub fn new(limit: Credit, most_uncounted: u64) -> Queue {
        Queue {
            held: BTreeMap::new(),
            granted: limit,
            limit,
            uncounted: 0,
            most_uncounted,
        }
    }

    /// Sets the credit to the free room when a new session begins with a hello. Returns the credit.
    pub fn reset_credit(&mut self) -> Credit {
        let counted = self.held.values().filter(|held| !held.is_uncounted);
        let held_bytes: u64 = counted.map(|held| held.url_bytes).sum();
        let counted = self.held.len() as u64 - self.uncounted;
        self.granted = Credit {
            tasks: self.limit.tasks.saturating_sub(counted),
            url_bytes: self.limit.url_bytes.saturating_sub(held_bytes),
        };
        self.granted
    }

    /// The credit granted since the hello, as a running total.
    pub fn credit(&self) -> Credit {
        self.granted
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// The held leases, as listed in a hello.
    pub fn leases(&self) -> Vec<(u64, Delivery)> {
        let leases = self.held.iter();
        leases.map(|(task, held)| (*task, held.delivery)).collect()
    }

    pub fn add_lease(&mut self, task: &Task, worker_index: u16, sent: bool) {
        let held = HeldLease {
            crawl: task.crawl,
            site: task.site.clone(),
            delivery: task.delivery,
            worker_index,
            url_bytes: (task.url.len() + task.attrs.as_ref().map_or(0, String::len)) as u64,
            sent,
            is_uncounted: false,
        };
        self.held.insert(task.task, held);
    }

    pub fn mark_sent(&mut self, task: u64) {
        if let Some(held) = self.held.get_mut(&task) {
            held.sent = true;
        }
    }

    /// Notes that a task waits for a name server. It then no longer counts against the limit, unless too many tasks
    /// wait for name servers.
    pub fn uncount_while_waiting(&mut self, task: u64, delivery: Delivery) {
        let Some(held) = self.held.get_mut(&task) else {
            return;
        };
        let is_counted = held.delivery == delivery && !held.is_uncounted;
        if is_counted && self.uncounted < self.most_uncounted {
            held.is_uncounted = true;
            self.uncounted += 1;
            self.granted.tasks += 1;
            self.granted.url_bytes += held.url_bytes;
        }
    }

    /// Ends a lease. Returns false if this supervisor does not hold the lease; its end must not be reported twice.
    pub fn release(&mut self, task: u64, delivery: Delivery) -> bool {
        match self.held.get(&task) {
            Some(held) if held.delivery == delivery => {
                match held.is_uncounted {
                    true => self.uncounted -= 1,
                    false => {
                        self.granted.tasks += 1;
                        self.granted.url_bytes += held.url_bytes;
                    }
                }
                self.held.remove(&task);
                true
            }
            _ => false,
        }
    }

    /// Ends the leases of a dead worker process. `blamed` is the task that its crash marker names.
    pub fn end_leases_of_worker(&mut self, worker_index: u16, blamed: Option<u64>) -> LostTasks {
        let mut lost = LostTasks::default();
        for (task, held) in &self.held {
            if held.worker_index != worker_index || !held.sent {
                continue;
            }
            lost.sites.insert(held.site.clone());
            let is_blamed = blamed == Some(*task);
            if is_blamed {
                lost.blamed_crawl = Some(held.crawl);
            }
            lost.returned.push(TaskReturned {
                task: *task,
                delivery: held.delivery,
                cause: match is_blamed {
                    true => ReturnCause::KilledWorker,
                    false => ReturnCause::WorkerDied,
                },
                clock: None,
                address: None,
            });
        }
        for returned in &lost.returned {
            self.release(returned.task, returned.delivery);
        }
        lost
    }
}

/// The tasks of a worker process that has died.
#[derive(Debug, Default)]
pub struct LostTasks {
    pub returned: Vec<TaskReturned>,
    /// The tasks' sites. The worker may have sent requests to any of them until it died.
    pub sites: BTreeSet<String>,
    /// The crawl of the task that the crash marker names, if the worker held that task.
    pub blamed_crawl: Option<CrawlKey>,
}

/// The worker that gets the tasks of a site. The choice stays the same after a restart of the supervisor.
pub fn worker_index_for(site: &str, workers: u16) -> u16 {
    // FNV-1a, 64 bits. The high bits choose the worker, because the low ones are weaker.
    let hash = site.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((u128::from(hash) * u128::from(workers)) >> 64) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u64) -> Task {
        Task {
            attrs: None,
            task: id,
            delivery: Delivery::new(0, 1),
            crawl: 1,
            url: "https://example.com/".into(),
            site: "example.com".into(),
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
        }
    }

    const LIMIT: Credit = Credit {
        tasks: 10,
        url_bytes: 1_000,
    };

    #[test]
    fn credit_grows_with_each_lease_that_ends() {
        let mut queue = Queue::new(LIMIT, 0);
        queue.add_lease(&task(1), 0, true);
        queue.add_lease(&task(2), 0, true);
        assert_eq!(queue.credit(), LIMIT);
        assert!(queue.release(1, Delivery::new(0, 1)));
        assert!(!queue.release(1, Delivery::new(0, 1)), "a lease ends once");
        assert!(
            !queue.release(2, Delivery::new(0, 9)),
            "another delivery is another lease"
        );
        assert_eq!(queue.credit().tasks, 11);
        assert_eq!(queue.reset_credit().tasks, 9);
        assert_eq!(queue.credit().url_bytes, 1_000 - 20);
    }

    #[test]
    fn tasks_that_wait_for_a_name_server_give_their_credit_back_up_to_a_number() {
        let mut queue = Queue::new(LIMIT, 2);
        for id in 1..=3 {
            queue.add_lease(&task(id), 0, true);
        }
        for (id, delivery) in [(1, 1), (1, 1), (2, 9), (2, 1), (3, 1), (4, 1)] {
            queue.uncount_while_waiting(id, Delivery::new(0, delivery));
        }
        assert_eq!(queue.credit().tasks, 12);
        assert!(queue.release(1, Delivery::new(0, 1)));
        assert_eq!(queue.credit().tasks, 12, "it was given back before");
        queue.uncount_while_waiting(3, Delivery::new(0, 1));
        assert_eq!(queue.credit().tasks, 13);
        assert!(queue.release(2, Delivery::new(0, 1)) && queue.release(3, Delivery::new(0, 1)));
        assert_eq!(queue.credit().tasks, 13);
        assert_eq!(queue.reset_credit(), LIMIT, "nothing is held");
    }

    #[test]
    fn exactly_the_tasks_of_a_dead_worker_are_given_back() {
        let mut queue = Queue::new(LIMIT, 0);
        queue.add_lease(&task(1), 0, true);
        queue.add_lease(&task(2), 0, true);
        queue.add_lease(&task(3), 0, false);
        queue.add_lease(&task(4), 1, true);
        let lost = queue.end_leases_of_worker(0, Some(2));
        assert_eq!(lost.sites.len(), 1);
        let back = lost.returned;
        assert_eq!(back.len(), 2);
        assert_eq!(back[0].cause, ReturnCause::WorkerDied);
        assert_eq!(back[1].cause, ReturnCause::KilledWorker);
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn sites_spread_over_the_workers_and_stay() {
        let mut counts = [0; 8];
        for n in 0..8_000 {
            let site = format!("site-{n}.example");
            assert_eq!(worker_index_for(&site, 8), worker_index_for(&site, 8));
            counts[worker_index_for(&site, 8) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
    }
}
