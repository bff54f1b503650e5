//! The claim of this process to its crawl, held in the store while the crawl runs, so that no second
//! `webfill crawl` runs the same crawl of the same store from another state folder.
//!
//! A thread renews it. When this process dies, the claim lapses; the next process in the same state
//! folder, whose lock it must have taken, need not wait for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use webfill_startup::Fault;
use webfill_startup::signals::{self, Asked};
use webfill_startup::state::StateFolder;
use webfill_store::{CrawlClaim, CrawlId, LAPSES_AFTER, RENEW_EVERY, Store, iso_time};

use crate::feeding::{now_ms, store_fault};

/// How often a claim of another process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long the end of the crawl waits for the store to take the claim back.
const RELEASE_WITHIN: Duration = Duration::from_secs(3);

/// The claim, given up when this is dropped.
pub struct Claim {
    lost: Arc<AtomicBool>,
    /// Dropped at the end.
    going_on: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Claim {
    /// Claims the crawl. If another process has it, watches whether that one is alive.
    pub fn take(
        store: &Arc<dyn Store>,
        crawl: CrawlId,
        state: &StateFolder,
        tells: bool,
    ) -> Result<Claim, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot claim the crawl: {error}")))?;
        let claim = new_claim(crawl, state)?;
        if let Some(other) = ask(&runtime, &**store, &claim, None)? {
            wait_until_lapsed(&runtime, &**store, &claim, other, tells)?;
        }
        let lost = Arc::new(AtomicBool::new(false));
        let (going_on, over) = mpsc::channel();
        let renewing = Renewing {
            store: Arc::clone(store),
            claim,
            lost: Arc::clone(&lost),
        };
        let thread = std::thread::Builder::new()
            .name("claim".into())
            .spawn(move || renewing.run(&runtime, &over))
            .map_err(|error| Fault::error(format!("cannot claim the crawl: {error}")))?;
        Ok(Claim {
            lost,
            going_on: Some(going_on),
            thread: Some(thread),
        })
    }

    /// Set when another process has taken the crawl over.
    pub fn lost(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lost)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.going_on = None;
        if let Some(thread) = self.thread.take() {
            // It does not panic, and there is nothing left to do if it has.
            let _ = thread.join();
        }
    }
}

struct Renewing {
    store: Arc<dyn Store>,
    claim: CrawlClaim,
    lost: Arc<AtomicBool>,
}

impl Renewing {
    fn run(mut self, runtime: &Runtime, over: &Receiver<()>) {
        while over.recv_timeout(RENEW_EVERY) == Err(RecvTimeoutError::Timeout) {
            self.claim.beat += 1;
            let renewing = self.store.claim_crawl(self.claim.clone(), None);
            // A store that is away is asked again; nobody can take the crawl over there either.
            if let Ok(Some(_)) = runtime.block_on(renewing) {
                self.lost.store(true, Ordering::Relaxed);
                return;
            }
        }
        let release = self.store.release_crawl(self.claim.clone());
        // A claim that is left behind lapses.
        let _ = runtime.block_on(async { tokio::time::timeout(RELEASE_WITHIN, release).await });
    }
}

fn new_claim(crawl: CrawlId, state: &StateFolder) -> Result<CrawlClaim, Fault> {
    let (now_ms, pid) = (now_ms(), std::process::id());
    let folder = format!("{:016x}", state.instance()?);
    // Without a name, the folder still tells.
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Ok(CrawlClaim {
        crawl,
        owner: format!("{folder}-{pid}-{now_ms}"),
        holder: format!(
            "process {pid} on {} with the state folder {}",
            machine.trim(),
            state.path().display()
        ),
        folder,
        since_ms: now_ms,
        beat: 0,
    })
}

fn ask(
    runtime: &Runtime,
    store: &dyn Store,
    claim: &CrawlClaim,
    watched: Option<CrawlClaim>,
) -> Result<Option<CrawlClaim>, Fault> {
    let asking = store.claim_crawl(claim.clone(), watched);
    runtime.block_on(asking).map_err(store_fault)
}

/// Watches a claim of another process until it has lapsed, and takes its place.
fn wait_until_lapsed(
    runtime: &Runtime,
    store: &dyn Store,
    claim: &CrawlClaim,
    other: CrawlClaim,
    tells: bool,
) -> Result<(), Fault> {
    if tells {
        eprintln!(
            "webfill: crawl {} was begun by {}; if that is dead, this goes on in {} seconds",
            claim.crawl.crawl_id,
            other.holder,
            LAPSES_AFTER.as_secs()
        );
    }
    let lapses_at = Instant::now() + LAPSES_AFTER;
    loop {
        std::thread::sleep(LOOK_EVERY);
        let has_lapsed = Instant::now() >= lapses_at;
        let watched = has_lapsed.then(|| other.clone());
        let Some(now) = ask(runtime, store, claim, watched)? else {
            return Ok(());
        };
        if now != other || signals::asked() >= Asked::Drain {
            return Err(refusal(&now));
        }
    }
}

fn refusal(other: &CrawlClaim) -> Fault {
    let CrawlId { app_id, crawl_id } = &other.crawl;
    Fault::error(format!(
        "crawl {crawl_id} of application {app_id} is being run by {}, since {}: wait for it, stop it, or choose another --crawl",
        other.holder,
        iso_time(other.since_ms)
    ))
}

/// Why a process ends whose crawl was taken over.
pub fn taken_over() -> Fault {
    Fault::error(
        "another webfill crawl has taken this crawl over, because this process stood still for too long: that one goes on with it",
    )
}
