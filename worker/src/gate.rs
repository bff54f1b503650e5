//! The gate that every request goes through: may it be started now?
//!
//! Our supervisor holds a lease from the dispatcher, and hands down until when: after that moment
//! our sites may be given to others, so nothing more is started. A lease that was lost *recalls*
//! the tasks handed out under it. Both are looked at right before each request, by a clock that
//! runs while this process is stopped. And because the others wait for our longest request before
//! they begin, a request that is found to take longer, because we were stopped, goes no further.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use webfill_startup::boot_clock::boot_ms;
use webfill_urls::Url;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leave {
    recalls: u64,
}

/// The only way to the web.
pub struct Gate {
    fetcher: Fetcher,
    longest_request: Duration,
    lease_until_ms: Cell<u64>,
    recalls: Cell<u64>,
}

impl Gate {
    /// Shut, until there is a lease.
    pub fn new(fetcher: Fetcher, config: &FetchConfig) -> Gate {
        Gate {
            fetcher,
            longest_request: longest_request(config),
            lease_until_ms: Cell::new(0),
            recalls: Cell::new(0),
        }
    }

    /// Requests may be started until then, by the machine's clock since its boot.
    pub fn open_until(&self, boot_ms: u64) {
        self.lease_until_ms
            .set(self.lease_until_ms.get().max(boot_ms));
    }

    /// Takes back all leaves given so far.
    pub fn recall(&self) {
        self.recalls.set(self.recalls.get() + 1);
    }

    /// For a task that is taken up now.
    pub fn leave(&self) -> Leave {
        Leave {
            recalls: self.recalls.get(),
        }
    }

    pub fn is_recalled(&self, leave: Leave) -> bool {
        self.recalls.get() != leave.recalls
    }

    /// Fetches a page.
    pub async fn page(
        &self,
        leave: Leave,
        url: &Url,
        user_agent: Option<&str>,
    ) -> Result<Fetched, Barred> {
        self.pass(leave, self.fetcher.page(url, user_agent)).await
    }

    /// Fetches the beginning of a robots.txt.
    pub async fn robots(&self, leave: Leave, url: &Url, bytes: usize) -> Result<Fetched, Barred> {
        self.pass(leave, self.fetcher.robots(url, bytes)).await
    }

    async fn pass(
        &self,
        leave: Leave,
        request: impl Future<Output = Fetched>,
    ) -> Result<Fetched, Barred> {
        let now_ms = boot_ms();
        if self.is_recalled(leave) || now_ms >= self.lease_until_ms.get() {
            return Err(Barred::Shut);
        }
        let deadline_ms = now_ms + self.longest_request.as_millis() as u64;
        // The request's own time limits end before that, unless nobody looked at them.
        until(deadline_ms, request).await.ok_or(Barred::CutShort)
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
    async fn is_tried(gate: &Gate, leave: Leave) -> bool {
        let url = Url::parse("http://127.0.0.1:9/").unwrap();
        gate.page(leave, &url, None).await.is_ok()
    }

    #[tokio::test]
    async fn no_request_is_made_without_a_lease() {
        let gate = gate();
        assert!(!is_tried(&gate, gate.leave()).await, "none was given yet");
        gate.open_until(boot_ms() + 60_000);
        assert!(is_tried(&gate, gate.leave()).await);
        let past = self::gate();
        past.open_until(boot_ms().saturating_sub(1));
        assert!(!is_tried(&past, past.leave()).await, "it is over");
    }

    #[tokio::test]
    async fn a_recalled_task_makes_no_request_even_under_a_new_lease() {
        let gate = gate();
        gate.open_until(boot_ms() + 60_000);
        let (before, recalled) = (gate.leave(), gate.recall());
        assert_eq!(recalled, ());
        gate.open_until(boot_ms() + 90_000);
        assert!(!is_tried(&gate, before).await);
        assert!(is_tried(&gate, gate.leave()).await);
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
