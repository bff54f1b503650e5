//! The claim of this process to its crawl: an entry in the store that exists while the crawl runs. It prevents a second
//! `webfill crawl` from running the same crawl from another state folder.
//!
//! A thread renews the claim and writes the time of its end to a file. After that time, the supervisor starts no
//! request until the claim is renewed. When this process dies, the claim lapses. A new process in the same state folder
//! does not wait for this, because it holds the folder's lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use webfill_service::Fault;
use webfill_service::boot_clock::boot_ms;
use webfill_service::claim_file::ClaimFile;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::state::StateFolder;
use webfill_store::{
    CrawlClaim, CrawlId, HOLDS_FOR, LAPSES_AFTER, RENEW_EVERY, Store, StoreError, iso_time,
};

use crate::feeding::{now_ms, store_fault};

/// How often a claim of another process is checked.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// How long the end of the crawl waits for the store to release the claim.
const RELEASE_WITHIN: Duration = Duration::from_secs(3);

/// The claim of this process. It is released when this value is dropped.
pub struct Claim {
    hold: Arc<Hold>,
    waited: Duration,
    /// Dropped to make the thread release the claim and end.
    going_on: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Claim {
    /// Claims the crawl. If another process has it, waits until that claim lapses, and fails if it is renewed.
    pub fn acquire(
        store: &Arc<dyn Store>,
        crawl: CrawlId,
        state: &StateFolder,
        longest_request: Duration,
        prints: bool,
    ) -> Result<Claim, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot claim the crawl: {error}")))?;
        let claim = new_claim(crawl, state)?;
        let hold = Arc::new(Hold::new(state));
        let mut asked_ms = boot_ms();
        let mut rest = Duration::ZERO;
        if let Some(other) = try_claim(&runtime, &**store, &claim, None)? {
            rest = longest_request;
            asked_ms = wait_until_lapsed(&runtime, &**store, &claim, other, prints)?;
        }
        hold.extend(asked_ms)
            .map_err(|error| Fault::error(format!("cannot claim the crawl: {error}")))?;
        let (going_on, over) = mpsc::channel();
        let renewing = Renewer {
            store: Arc::clone(store),
            claim,
            hold: Arc::clone(&hold),
        };
        let thread = std::thread::Builder::new()
            .name("claim".into())
            .spawn(move || renewing.run(&runtime, &over))
            .map_err(|error| Fault::error(format!("cannot claim the crawl: {error}")))?;
        let claim = Claim {
            hold,
            waited: rest,
            going_on: Some(going_on),
            thread: Some(thread),
        };
        claim.wait_for_former_requests(rest, prints)?;
        Ok(claim)
    }

    /// How long this process waited before its first request, because requests of the previous process could still be
    /// running.
    pub fn wait_time(&self) -> Duration {
        self.waited
    }

    /// Waits until no request of the previous process can be running. Its children have started none since its claim
    /// lapsed, and earlier requests end within `longest`. This process's claim is renewed meanwhile.
    fn wait_for_former_requests(&self, longest: Duration, prints: bool) -> Result<(), Fault> {
        if prints && !longest.is_zero() {
            webfill_service::say!(
                "webfill: took over the crawl; waiting {} seconds, because requests of the former process may be in flight",
                longest.as_secs()
            );
        }
        let over_at = Instant::now() + longest;
        while Instant::now() < over_at {
            self.hold.is_certain()?;
            if signals::received_request() >= SignalRequest::Drain {
                return Err(Fault::interrupted("interrupted before the first request"));
            }
            std::thread::sleep(CHECK_EVERY.min(over_at.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    pub fn hold(&self) -> Arc<Hold> {
        Arc::clone(&self.hold)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.going_on = None;
        if let Some(thread) = self.thread.take() {
            // The thread does not panic, and a panic would leave nothing to clean up.
            let _ = thread.join();
        }
    }
}

/// Until when this process holds the claim, shared by the thread that renews it and the thread that watches the crawl.
pub struct Hold {
    /// When the claim ends, in milliseconds since the machine was started.
    until_ms: AtomicU64,
    /// Why the claim is no longer renewed.
    over: OnceLock<Fault>,
    /// The file with the end of the claim, which the supervisor reads.
    file: ClaimFile,
}

impl Hold {
    fn new(state: &StateFolder) -> Hold {
        Hold {
            until_ms: AtomicU64::new(0),
            over: OnceLock::new(),
            file: ClaimFile::in_folder(state.path()),
        }
    }

    /// Whether it is certain that no other process has taken over the crawl. A claim whose renewal is overdue is
    /// uncertain. An error means that another process has taken over, or that the claim will never be renewed.
    pub fn is_certain(&self) -> Result<bool, Fault> {
        match self.over.get() {
            Some(fault) => Err(fault.clone()),
            None => Ok(boot_ms() < self.until_ms.load(Ordering::Acquire)),
        }
    }

    /// Makes the claim end now, so that no further request starts. If the file cannot be written, the supervisor keeps
    /// the time written before.
    fn end_now(&self, why: Fault) {
        self.until_ms.store(0, Ordering::Release);
        let _ = self.file.write(0);
        let _ = self.over.set(why);
    }

    /// Extends the claim after the store has granted a renewal. `asked_ms` is the time of the renewal request.
    fn extend(&self, asked_ms: u64) -> std::io::Result<()> {
        let until_ms = asked_ms + HOLDS_FOR.as_millis() as u64;
        self.until_ms.store(until_ms, Ordering::Release);
        self.file.write(until_ms)
    }
}

struct Renewer {
    store: Arc<dyn Store>,
    claim: CrawlClaim,
    hold: Arc<Hold>,
}

impl Renewer {
    fn run(mut self, runtime: &Runtime, over: &Receiver<()>) {
        while over.recv_timeout(RENEW_EVERY) == Err(RecvTimeoutError::Timeout) {
            self.claim.beat += 1;
            let asked_ms = boot_ms();
            // If the store is unreachable, retry: other processes that use it cannot take over the crawl either.
            match runtime.block_on(self.store.renew_claim(self.claim.clone())) {
                Ok(true) => self.note_renewal(asked_ms),
                Ok(false) => return self.hold.end_now(takeover_fault()),
                Err(error) if error.is_fatal() && !matches!(error, StoreError::NoSpace { .. }) => {
                    return self.hold.end_now(store_fault(error));
                }
                Err(_) => {}
            }
        }
        let release = self.store.release_claim(self.claim.clone());
        // If the store cannot release the claim, the claim lapses by itself.
        let _ = runtime.block_on(async { tokio::time::timeout(RELEASE_WITHIN, release).await });
    }

    /// Records that the claim was renewed. If the file cannot be written because the disk is full, the next renewal
    /// writes it.
    fn note_renewal(&self, asked_ms: u64) {
        if let Err(error) = self.hold.extend(asked_ms) {
            tracing::warn!(
                event = "claim_not_written",
                error = %error,
                "cannot renew the claim to the crawl; no requests start until it is renewed"
            );
        }
    }
}

fn new_claim(crawl: CrawlId, state: &StateFolder) -> Result<CrawlClaim, Fault> {
    let (now_ms, pid) = (now_ms(), std::process::id());
    let folder = format!("{:016x}", state.instance()?);
    // Without a host name, the folder alone identifies the process.
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

fn try_claim(
    runtime: &Runtime,
    store: &dyn Store,
    claim: &CrawlClaim,
    watched: Option<CrawlClaim>,
) -> Result<Option<CrawlClaim>, Fault> {
    let claiming = store.claim_crawl(claim.clone(), watched);
    runtime.block_on(claiming).map_err(store_fault)
}

/// Waits until the claim of another process has lapsed, then replaces it. Returns the time of the request that replaced
/// it, in milliseconds since the machine was started.
fn wait_until_lapsed(
    runtime: &Runtime,
    store: &dyn Store,
    claim: &CrawlClaim,
    other: CrawlClaim,
    prints: bool,
) -> Result<u64, Fault> {
    if prints {
        webfill_service::say!(
            "webfill: crawl {} was started by {}; if that process is dead, this one continues in {} seconds",
            claim.crawl.crawl_id,
            other.holder,
            LAPSES_AFTER.as_secs()
        );
    }
    let lapses_at = Instant::now() + LAPSES_AFTER;
    loop {
        std::thread::sleep(CHECK_EVERY);
        let has_lapsed = Instant::now() >= lapses_at;
        let watched = has_lapsed.then(|| other.clone());
        let asked_ms = boot_ms();
        let Some(now) = try_claim(runtime, store, claim, watched)? else {
            return Ok(asked_ms);
        };
        if now != other || signals::received_request() >= SignalRequest::Drain {
            return Err(already_running_fault(&now));
        }
    }
}

fn already_running_fault(other: &CrawlClaim) -> Fault {
    let CrawlId { app_id, crawl_id } = &other.crawl;
    Fault::error(format!(
        "crawl {crawl_id} of application {app_id} is run by {}, since {}: wait for it, stop it, or choose another --crawl",
        other.holder,
        iso_time(other.since_ms)
    ))
}

/// The fault that ends this process if another one has taken over its crawl.
fn takeover_fault() -> Fault {
    Fault::error(
        "another webfill crawl has taken over this crawl and continues it, because this process was suspended or without its store for too long",
    )
}
