//! `webfill dispatcher --hand-over`: asks the serving dispatcher to hand over to one that stands by.

use std::time::{Duration, Instant};

use webfill_service::Fault;
use webfill_store::MongoUri;
use webfill_store::journal::{JournalStore, Lease, SeenDispatcher, Survey};

use crate::journal::{GROUP, store_fault};

/// A dispatcher counts as standing by if it has reported within this many milliseconds.
const STANDS_BY_MS: u64 = 10_000;

/// How long to wait until the next dispatcher serves.
const WITHIN: Duration = Duration::from_secs(60);

const CHECK_EVERY: Duration = Duration::from_millis(200);

/// Hands over. Returns the name of the dispatcher that serves now.
pub fn hand_over(uri: &MongoUri) -> Result<String, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::error(format!("cannot reach the journal: {error}")))?;
    runtime.block_on(async {
        let store = JournalStore::connect(uri, GROUP).await.map_err(store_fault)?;
        let lease = store.lease().await.map_err(store_fault)?;
        let survey = store.survey(None).await.map_err(store_fault)?;
        check_standby(&survey, lease)?;
        if !store.ask_hand_over(lease.epoch).await.map_err(store_fault)? {
            return Err(Fault::error(
                "another dispatcher has just taken over: check `webfill status`, and run the same command again",
            ));
        }
        await_successor(&store, lease.epoch).await
    })
}

/// Checks that a dispatcher serves, and that another one stands by and can take over.
fn check_standby(survey: &Survey, lease: Lease) -> Result<(), Fault> {
    if lease.epoch == 0 || lease.is_free {
        return Err(Fault::error(
            "no dispatcher with a journal in this store serves: nothing to hand over",
        ));
    }
    let first = survey.extent.map_or(1, |extent| extent.first);
    let can_continue = |one: &&SeenDispatcher| {
        let report = &one.report;
        let stands_by = report.instance != lease.holder && one.seen_ago_ms < STANDS_BY_MS;
        stands_by && report.record + 1 >= first
    };
    match survey.dispatchers.iter().find(can_continue) {
        Some(_) => Ok(()),
        None => Err(Fault::error(
            "no other dispatcher stands by: start one with `webfill dispatcher --standby`, or stop this one with SIGTERM",
        )),
    }
}

/// Waits until a later dispatcher serves. Each has a number (epoch) greater than the one before. Returns its name.
async fn await_successor(store: &JournalStore, former: u64) -> Result<String, Fault> {
    let until = Instant::now() + WITHIN;
    while Instant::now() < until {
        let lease = store.lease().await.map_err(store_fault)?;
        let survey = store.survey(None).await.map_err(store_fault)?;
        let epoch = survey.extent.map_or(0, |extent| extent.epoch);
        if epoch > former && epoch == lease.epoch {
            let mut dispatchers = survey.dispatchers.into_iter();
            let next = dispatchers.find(|one| one.report.instance == lease.holder);
            return Ok(next.map_or_else(|| String::from("?"), |next| next.report.name));
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
    Err(Fault::error(format!(
        "no other dispatcher has begun to serve within {} s: check `webfill status`",
        WITHIN.as_secs()
    )))
}
