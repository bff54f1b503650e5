//! The gate checks, right before each request, whether the request is still allowed.
//!
//! A request is allowed as long as the supervisor has a valid lease (the dispatcher's permission to start fetches) and
//! its task was not recalled (see [`permits`](crate::permits)). A site whose lease has ended goes to another supervisor
//! only after the longest time that a request of this process may take. So a request that takes longer, because this
//! process was stopped meanwhile, is aborted. A request whose body got no memory in time is also aborted.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use webfill_service::boot_clock::boot_ms;
use webfill_urls::Url;
use webfill_wire::{RecallScope, Task};

use crate::browser::SubresourceRequest;
use crate::fetch::{FetchConfig, Fetched, Fetcher, PageRequest};
use crate::memory::MemoryPermit;
use crate::permits::{Denied, Permit, Permits};

/// The longest time that one request may take, not counting its name lookup.
pub fn longest_request(config: &FetchConfig) -> Duration {
    Duration::from_secs_f64(config.connect_timeout + config.total_timeout)
}

/// Sends all requests of a worker to the web, if they are still allowed.
pub struct Gate {
    fetcher: Fetcher,
    longest_request: Duration,
    permits: Permits,
}

impl Gate {
    /// Creates a gate that is closed until there is a lease.
    pub fn new(fetcher: Fetcher, config: &FetchConfig) -> Gate {
        Gate {
            fetcher,
            longest_request: longest_request(config),
            permits: Permits::default(),
        }
    }

    /// Allows requests to start until `boot_ms`, on the clock since the machine's boot.
    pub fn open_until(&self, boot_ms: u64) {
        self.permits.extend_lease(boot_ms);
    }

    /// Revokes the permits that were given so far to tasks in the scope: a crawl, a site or low priorities.
    pub fn recall(&self, scope: &RecallScope) {
        self.permits.recall(scope);
    }

    /// Whether each recalled task in the scope has either made a request or been given back.
    pub fn is_settled(&self, scope: &RecallScope) -> bool {
        self.permits.is_settled(scope)
    }

    /// Issues a permit to a task that starts now; its requests need it.
    pub fn issue_permit(&self, task: &Task) -> Permit {
        self.permits.issue_permit(task)
    }

    /// Fetches a page, or a sitemap if the request accepts sitemaps.
    pub async fn fetch_page(
        &self,
        permit: &Permit,
        asked: PageRequest<'_>,
        memory: &mut MemoryPermit,
    ) -> Result<Fetched, Denied> {
        let request = self.fetcher.fetch_page(asked, memory);
        let fetched = self.run_if_permitted(permit, request).await;
        permit.note_request(fetched.is_ok());
        fetched
    }

    /// Fetches a subresource of a page.
    pub async fn fetch_subresource(
        &self,
        permit: &Permit,
        request: &SubresourceRequest,
        user_agent: Option<&str>,
        memory: &mut MemoryPermit,
    ) -> Result<Fetched, Denied> {
        let request = self.fetcher.fetch_subresource(request, user_agent, memory);
        self.run_if_permitted(permit, request).await
    }

    /// Fetches the beginning of a robots.txt.
    pub async fn fetch_robots(
        &self,
        permit: &Permit,
        url: &Url,
        bytes: usize,
        memory: &mut MemoryPermit,
    ) -> Result<Fetched, Denied> {
        let request = self.fetcher.fetch_robots(url, bytes, memory);
        self.run_if_permitted(permit, request).await
    }

    async fn run_if_permitted(
        &self,
        permit: &Permit,
        request: impl Future<Output = Result<Fetched, Denied>>,
    ) -> Result<Fetched, Denied> {
        let now_ms = boot_ms();
        self.permits.check(permit, now_ms)?;
        let deadline_ms = now_ms + self.longest_request.as_millis() as u64;
        let had_requested = permit.note_request(true);
        // The request's own time limits end before the deadline, unless this process was stopped for a while.
        let fetched = run_until(deadline_ms, request).await;
        permit.note_request(had_requested);
        fetched.unwrap_or(Err(Denied::CutShort))
    }
}

/// Runs a future until the deadline. The future's own timers are not enough: after a process was stopped, the future
/// may continue before its timers are checked.
async fn run_until<T>(deadline_ms: u64, future: impl Future<Output = T>) -> Option<T> {
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
    use webfill_wire::{CrawlKey, Delivery};

    use super::*;
    use crate::memory::Memory;
    use crate::politeness::PolitenessConfig;
    use crate::resolve::Resolver;

    fn gate() -> Gate {
        let (fetch, mut politeness) = (FetchConfig::default(), PolitenessConfig::default());
        politeness.allow_private_networks = true;
        let resolver = Resolver::new(&fetch, &politeness).unwrap();
        let clients = crate::client::build(&fetch, &politeness, &resolver).unwrap();
        Gate::new(Fetcher::new(clients, resolver, fetch.clone()), &fetch)
    }

    /// Whether a request passes the gate. It goes to a port where nothing listens.
    async fn is_tried(gate: &Gate, permit: &Permit) -> bool {
        let url = Url::parse("http://127.0.0.1:9/").unwrap();
        let mut memory = Memory::new(1 << 20).take(1).await;
        gate.fetch_page(permit, PageRequest::from_url(&url), &mut memory)
            .await
            .is_ok()
    }

    fn task(crawl: CrawlKey, site: &str, priority: u8) -> Task {
        Task {
            attrs: None,
            task: 1,
            delivery: Delivery::new(0, 1),
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
            unreachable: None,
            address_bounds: webfill_wire::AddressBounds::None,
        }
    }

    fn permit(gate: &Gate) -> Permit {
        gate.issue_permit(&task(1, "a.org", 50))
    }

    #[tokio::test]
    async fn no_request_is_made_without_a_lease() {
        let gate = gate();
        assert!(
            !is_tried(&gate, &permit(&gate)).await,
            "there was no lease yet"
        );
        gate.open_until(boot_ms() + 60_000);
        assert!(is_tried(&gate, &permit(&gate)).await);
        let past = self::gate();
        past.open_until(boot_ms().saturating_sub(1));
        assert!(!is_tried(&past, &permit(&past)).await, "it is over");
    }

    #[tokio::test]
    async fn a_recalled_task_makes_no_request_even_under_a_new_lease() {
        let gate = gate();
        gate.open_until(boot_ms() + 60_000);
        let before = permit(&gate);
        gate.recall(&RecallScope::default());
        gate.open_until(boot_ms() + 90_000);
        assert!(!is_tried(&gate, &before).await);
        assert!(is_tried(&gate, &permit(&gate)).await);
    }

    #[tokio::test]
    async fn a_recall_is_limited_to_a_crawl_a_site_or_low_priorities() {
        let gate = gate();
        let recalled = |scope: &RecallScope| {
            let permits = [(1, "a.org", 50), (2, "a.org", 70), (1, "b.org", 70)]
                .map(|(crawl, site, priority)| gate.issue_permit(&task(crawl, site, priority)));
            gate.recall(scope);
            permits.map(|permit| permit.is_recalled())
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
    async fn a_recall_is_settled_when_tasks_without_a_request_are_given_back() {
        let gate = gate();
        gate.open_until(boot_ms() + 60_000);
        let (asked, waiting) = (permit(&gate), permit(&gate));
        assert!(is_tried(&gate, &asked).await);
        let all = RecallScope::default();
        gate.recall(&all);
        assert!(!gate.is_settled(&all));
        drop(waiting);
        assert!(
            gate.is_settled(&all),
            "a task whose page was requested comes to its end"
        );
    }

    #[tokio::test]
    async fn a_request_that_takes_too_long_is_aborted() {
        let mut steps = 0;
        let over = run_until(boot_ms().saturating_sub(1), async {
            steps += 1;
        });
        assert_eq!(over.await, None);
        assert_eq!(steps, 0);
        assert_eq!(run_until(boot_ms() + 60_000, async { 7 }).await, Some(7));
    }
}
