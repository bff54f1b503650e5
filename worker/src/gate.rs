//! The gate that every request goes through: may it be started now?
//!
//! Our supervisor holds a lease from the dispatcher, and hands down until when: after that moment
//! our sites may be given to others, so nothing more is started. A lease that was lost *recalls*
//! the tasks handed out under it, and so does the dispatcher with tasks that are not to be started
//! (of a stopped crawl, of a site that is to be left alone). Both are looked at right before each request, by a clock that
//! runs while this process is stopped. And because the others wait for our longest request before
//! they begin, a request that is found to take longer, because we were stopped, goes no further.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;

use webfill_startup::boot_clock::boot_ms;
use webfill_urls::Url;
use webfill_wire::{CrawlKey, RecallScope, Task};

use crate::browser::PartRequest;
use crate::fetch::{FetchConfig, Fetched, Fetcher};

/// The longest that one request may take, name resolution included.
pub fn longest_request(config: &FetchConfig) -> Duration {
    Duration::from_secs_f64(config.connect_timeout + config.total_timeout)
}

/// Why there is no answer, and none to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barred {
    /// No request was made.
    Shut,
    /// This process was stopped while the request was under way, for longer than it may take.
    CutShort,
}

/// Leave to make requests for one task, until it is recalled.
#[derive(Debug)]
pub struct Leave {
    given: Rc<Given>,
}

impl Leave {
    pub fn is_recalled(&self) -> bool {
        self.given.recalled.get()
    }

    /// The task's priority.
    pub fn priority(&self) -> u8 {
        self.given.priority
    }
}

/// What a leave was given for.
#[derive(Debug)]
struct Given {
    crawl: CrawlKey,
    site: String,
    priority: u8,
    recalled: Cell<bool>,
    /// A request for it is under way, or its page was asked for.
    begun: Cell<bool>,
}

/// Leaves looked through before those that are over are dropped.
const FEW_LEAVES: usize = 64;

/// The only way to the web.
pub struct Gate {
    fetcher: Fetcher,
    longest_request: Duration,
    lease_until_ms: Cell<u64>,
    given: RefCell<Vec<Weak<Given>>>,
    /// So many leaves in the list make it worth to drop those that are over.
    many: Cell<usize>,
}

impl Gate {
    /// Shut, until there is a lease.
    pub fn new(fetcher: Fetcher, config: &FetchConfig) -> Gate {
        Gate {
            fetcher,
            longest_request: longest_request(config),
            lease_until_ms: Cell::new(0),
            given: RefCell::default(),
            many: Cell::new(FEW_LEAVES),
        }
    }

    /// Requests may be started until then, by the machine's clock since its boot.
    pub fn open_until(&self, boot_ms: u64) {
        self.lease_until_ms
            .set(self.lease_until_ms.get().max(boot_ms));
    }

    /// Takes back the leaves given so far for these tasks.
    pub fn recall(&self, scope: &RecallScope) {
        let given = self.given.borrow();
        for given in given.iter().filter_map(Weak::upgrade) {
            if scope.holds(given.crawl, &given.site, given.priority) {
                given.recalled.set(true);
            }
        }
    }

    /// Whether all of these tasks that were taken up and made no request have been given back.
    pub fn is_settled(&self, scope: &RecallScope) -> bool {
        let given = self.given.borrow();
        let mut held = given.iter().filter_map(Weak::upgrade);
        !held.any(|given| {
            let is_meant = scope.holds(given.crawl, &given.site, given.priority);
            is_meant && given.recalled.get() && !given.begun.get()
        })
    }

    /// For a task that is taken up now.
    pub fn leave(&self, task: &Task) -> Leave {
        let given = Rc::new(Given {
            crawl: task.crawl,
            site: task.site.clone(),
            priority: task.priority,
            recalled: Cell::new(false),
            begun: Cell::new(false),
        });
        let mut all = self.given.borrow_mut();
        if all.len() >= self.many.get() {
            all.retain(|given| given.strong_count() > 0);
            self.many.set(FEW_LEAVES.max(2 * all.len()));
        }
        all.push(Rc::downgrade(&given));
        Leave { given }
    }

    /// Fetches a page.
    pub async fn page(
        &self,
        leave: &Leave,
        url: &Url,
        user_agent: Option<&str>,
    ) -> Result<Fetched, Barred> {
        let fetched = self.pass(leave, self.fetcher.page(url, user_agent)).await;
        leave.given.begun.set(fetched.is_ok());
        fetched
    }

    /// Fetches what a page asks for.
    pub async fn part(
        &self,
        leave: &Leave,
        part: &PartRequest,
        user_agent: Option<&str>,
    ) -> Result<Fetched, Barred> {
        self.pass(leave, self.fetcher.part(part, user_agent)).await
    }

    /// Fetches the beginning of a robots.txt.
    pub async fn robots(&self, leave: &Leave, url: &Url, bytes: usize) -> Result<Fetched, Barred> {
        self.pass(leave, self.fetcher.robots(url, bytes)).await
    }

    async fn pass(
        &self,
        leave: &Leave,
        request: impl Future<Output = Fetched>,
    ) -> Result<Fetched, Barred> {
        let now_ms = boot_ms();
        if leave.is_recalled() || now_ms >= self.lease_until_ms.get() {
            return Err(Barred::Shut);
        }
        let deadline_ms = now_ms + self.longest_request.as_millis() as u64;
        let had_begun = leave.given.begun.replace(true);
        // The request's own time limits end before that, unless nobody looked at them.
        let fetched = until(deadline_ms, request).await;
        leave.given.begun.set(had_begun);
        fetched.ok_or(Barred::CutShort)
    }
}

/// Drives a future for as long as the deadline has not passed. Its own timers are not enough: a
/// process that was stopped goes on with whatever is ready first.
async fn until<T>(deadline_ms: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if boot_ms() > deadline_ms {
            return Poll::Ready(None);
        }
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::politeness::PolitenessConfig;
    use crate::resolve::Resolver;

    fn gate() -> Gate {
        let (fetch, mut politeness) = (FetchConfig::default(), PolitenessConfig::default());
        politeness.allow_private_networks = true;
        let resolver = Resolver::new(&fetch, &politeness).unwrap();
        let clients = crate::client::build(&fetch, &politeness, &resolver).unwrap();
        Gate::new(Fetcher::new(clients, resolver, fetch.clone()), &fetch)
    }

    /// Whether a request to a port where nobody listens is tried at all.
    async fn is_tried(gate: &Gate, leave: &Leave) -> bool {
        let url = Url::parse("http://127.0.0.1:9/").unwrap();
        gate.page(leave, &url, None).await.is_ok()
    }

    fn task(crawl: CrawlKey, site: &str, priority: u8) -> Task {
        Task {
            attrs: None,
            task: 1,
            delivery: 1,
            crawl,
            url: format!("http://{site}/"),
            site: site.into(),
            depth: 0,
            wait_ms: 0,
            last_request_ago_ms: None,
            parent: None,
            records: Vec::new(),
            priority,
            delay_ms: None,
            failed_attempts: Vec::new(),
        }
    }

    fn leave(gate: &Gate) -> Leave {
        gate.leave(&task(1, "a.org", 50))
    }

    #[tokio::test]
    async fn no_request_is_made_without_a_lease() {
        let gate = gate();
        assert!(!is_tried(&gate, &leave(&gate)).await, "none was given yet");
        gate.open_until(boot_ms() + 60_000);
        assert!(is_tried(&gate, &leave(&gate)).await);
        let past = self::gate();
        past.open_until(boot_ms().saturating_sub(1));
        assert!(!is_tried(&past, &leave(&past)).await, "it is over");
    }

    #[tokio::test]
    async fn a_recalled_task_makes_no_request_even_under_a_new_lease() {
        let gate = gate();
        gate.open_until(boot_ms() + 60_000);
        let before = leave(&gate);
        gate.recall(&RecallScope::default());
        gate.open_until(boot_ms() + 90_000);
        assert!(!is_tried(&gate, &before).await);
        assert!(is_tried(&gate, &leave(&gate)).await);
    }

    #[tokio::test]
    async fn a_recall_means_a_crawl_a_site_or_low_priorities() {
        let gate = gate();
        let recalled = |scope: &RecallScope| {
            let leaves = [(1, "a.org", 50), (2, "a.org", 70), (1, "b.org", 70)]
                .map(|(crawl, site, priority)| gate.leave(&task(crawl, site, priority)));
            gate.recall(scope);
            leaves.map(|leave| leave.is_recalled())
        };
        let crawl = RecallScope {
            crawl: Some(1),
            ..RecallScope::default()
        };
        assert_eq!(recalled(&crawl), [true, false, true]);
        let site = RecallScope {
            site: Some("a.org".into()),
            ..RecallScope::default()
        };
        assert_eq!(recalled(&site), [true, true, false]);
        let low = RecallScope {
            below: Some(70),
            ..site
        };
        assert_eq!(recalled(&low), [true, false, false]);
    }

    #[tokio::test]
    async fn a_recall_is_settled_when_what_made_no_request_is_given_back() {
        let gate = gate();
        gate.open_until(boot_ms() + 60_000);
        let (asked, waiting) = (leave(&gate), leave(&gate));
        assert!(is_tried(&gate, &asked).await);
        let all = RecallScope::default();
        gate.recall(&all);
        assert!(!gate.is_settled(&all));
        drop(waiting);
        assert!(gate.is_settled(&all), "what was asked comes to its end");
    }

    #[tokio::test]
    async fn leaves_that_are_over_are_dropped_from_the_list() {
        let gate = gate();
        let kept = leave(&gate);
        for _ in 0..10 * FEW_LEAVES {
            leave(&gate);
        }
        assert!(gate.given.borrow().len() <= FEW_LEAVES);
        gate.recall(&RecallScope::default());
        assert!(kept.is_recalled());
    }

    #[tokio::test]
    async fn what_is_found_to_take_too_long_goes_no_further() {
        let mut steps = 0;
        let over = until(boot_ms().saturating_sub(1), async {
            steps += 1;
        });
        assert_eq!(over.await, None);
        assert_eq!(steps, 0);
        assert_eq!(until(boot_ms() + 60_000, async { 7 }).await, Some(7));
    }
}
