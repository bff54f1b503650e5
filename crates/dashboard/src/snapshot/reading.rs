//! Reads the parts that are due, for the next snapshot.

use super::*;
use crate::service::Dashboard;

impl Dashboard {
    /// The current snapshot. Concurrent requests get the same one.
    pub(crate) async fn snapshot(self: &Arc<Self>) -> Arc<Snapshot> {
        let mut last = self.snapshots.last.lock().await;
        let mut is_new = last.number == 0;
        let began = Instant::now();
        let reading = self.store.is_named().then(|| self.begin_store()).flatten();
        if self.fleet.is_some() {
            is_new |= self.read_status(&mut last).await;
            is_new |= self.read_lists(&mut last).await;
        }
        if let Some(reading) = reading {
            let left = STORE_WITHIN.saturating_sub(began.elapsed());
            let _ = tokio::time::timeout(left, reading).await;
        }
        let store = self.snapshots.store();
        if is_new || last.store_number != store.number {
            last.number += 1;
            last.at_ms = now_ms();
            last.store_number = store.number;
            last.shown = Arc::new(last.snapshot(store.answer.get()));
        }
        Arc::clone(&last.shown)
    }

    /// An action was done: the next snapshot must be newer.
    pub(crate) async fn renew(&self) {
        let mut last = self.snapshots.last.lock().await;
        last.status.expire();
        last.sites.expire();
        last.watches.expire();
    }

    async fn read_status(&self, last: &mut Last) -> bool {
        let began = Instant::now();
        if !last.status.is_due(began) {
            return false;
        }
        let answer = self.ask_for_all(json!({"action": "status"})).await;
        if let Ok(status) = &answer {
            last.known_status = status.clone();
        }
        let is_fault = answer.is_err();
        last.status.put(answer, began, Instant::now());
        if is_fault {
            // The fleet may be available in a moment.
            last.status.expire();
        }
        true
    }

    /// Reads the lists. If a fleet does not answer, for example while it opens its frontier, they are requested again
    /// immediately.
    async fn read_lists(&self, last: &mut Last) -> bool {
        let began = Instant::now();
        let is_due = last.sites.is_due(began);
        if is_due {
            let answer = self
                .ask_for_all(json!({"action": "sites", "backing_off": true}))
                .await;
            let is_fault = answer.is_err();
            let sites = answer.ok().map(|answer| sites_in_trouble(&answer));
            last.sites.put(sites, began, Instant::now());
            if is_fault {
                last.sites.expire();
            }
        }
        let began = Instant::now();
        if last.watches.is_due(began) {
            let answer = self.ask_for_all(json!({"action": "watch_list"})).await;
            let is_fault = answer.is_err();
            let watches = answer
                .ok()
                .and_then(|answer| answer["watches"].as_array().cloned());
            last.watches
                .put(watches.unwrap_or_default(), began, Instant::now());
            if is_fault {
                last.watches.expire();
            }
        }
        is_due
    }

    async fn ask_for_all(&self, action: Value) -> Result<Value, String> {
        let Some(fleet) = &self.fleet else {
            return Err("no dispatcher connected".into());
        };
        let answer = fleet.ask(&Visitor::dashboard(), action).await;
        answer.map_err(|refusal| refusal.message)
    }

    /// Starts reading the store in parallel to the fleet, if a reading is due.
    fn begin_store(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        let mut counted = self.snapshots.store().begin()?;
        let dashboard = Arc::clone(self);
        Some(tokio::spawn(async move {
            let began = Instant::now();
            let answer = dashboard.stored(&mut counted).await;
            let mut store = dashboard.snapshots.store();
            let answer = answer.map_err(|problem| problem.text);
            let is_fault = answer.is_err();
            store.answer.put(answer, began, Instant::now());
            if is_fault {
                store.answer.retry_within(FAULT_FOR);
            }
            store.counted = counted;
            store.is_under_way = false;
            store.number += 1;
        }))
    }

    async fn stored(&self, counted: &mut Counted) -> Result<Stored, Problem> {
        let opened = self.store.get().await?;
        let states = opened.store.health().await.map_err(Problem::away)?;
        let mappings = mappings(&states);
        let all = CrawlFilter::default();
        let crawls = opened.browse.crawls(&all, None, MOST_CRAWLS).await;
        let crawls = crawls.map_err(Problem::away)?.rows;
        let records = count_records(&*opened.store, &crawls, counted).await;
        let records = records.map_err(Problem::away)?;
        Ok(Stored { mappings, records })
    }
}

/// Mappings with an alert first.
fn mappings(states: &[HealthState]) -> Vec<Mapping> {
    let healths = states.iter().filter_map(|state| {
        let of_mapping = state.id.starts_with("mapping/");
        of_mapping.then(|| serde_json::from_str(&state.state).ok())?
    });
    let mut mappings: Vec<Mapping> = healths.map(|health| mapping(&health)).collect();
    mappings.sort_by_key(|mapping| (mapping.alert.is_none(), mapping.name.clone()));
    mappings
}

/// Counts of ended crawls are reused.
async fn count_records(
    store: &dyn Store,
    crawls: &[Crawl],
    counted: &mut Counted,
) -> Result<Records, StoreError> {
    let mut records = Records::default();
    let known = std::mem::take(counted);
    for crawl in crawls {
        let is_over = is_over(crawl.state);
        let key = format!("{} {}", crawl.id, crawl.state.as_str());
        let (resolved, open) = match known.get(&key).filter(|_| is_over) {
            Some(known) => *known,
            None => {
                let counts = store.record_counts(&crawl.id).await?;
                let open = counts.total.saturating_sub(counts.resolved);
                (counts.resolved, open)
            }
        };
        counted.insert(key, (resolved, open));
        records.resolved += resolved;
        match is_over {
            true => records.exhausted += open,
            false => records.open += open,
        }
    }
    Ok(records)
}

/// Whether a crawl has no URLs left to try.
fn is_over(state: CrawlState) -> bool {
    match state {
        CrawlState::Running | CrawlState::Paused | CrawlState::Interrupted => false,
        CrawlState::LimitReached
        | CrawlState::Stopped
        | CrawlState::Expired
        | CrawlState::Finished => true,
    }
}
