//! Reads those parts of the overview's data that are due, for the next snapshot.

use super::*;
use crate::crawl_claims::ClaimState;
use crate::service::Dashboard;

impl Dashboard {
    /// The present snapshot, read again if it is due. Requests at the same time get the same one.
    pub(crate) async fn snapshot(self: &Arc<Self>) -> Arc<Snapshot> {
        let mut last = self.snapshots.last.lock().await;
        let mut is_new = last.number == 0;
        let began = Instant::now();
        let reading = self
            .store
            .is_configured()
            .then(|| self.start_reading_store())
            .flatten();
        if self.fleet.is_some() {
            is_new |= self.read_status(&mut last).await;
            is_new |= self.read_lists(&mut last).await;
        }
        is_new |= self.read_doubts(&mut last).await;
        if let Some(reading) = reading {
            let left = STORE_WITHIN.saturating_sub(began.elapsed());
            let _ = tokio::time::timeout(left, reading).await;
        }
        let store = self.snapshots.lock_store_reading();
        if is_new || last.store_number != store.number {
            last.number += 1;
            last.at_ms = now_ms();
            last.store_number = store.number;
            last.shown = Arc::new(last.build_snapshot(store.answer.get()));
        }
        Arc::clone(&last.shown)
    }

    /// Makes the status and the lists due, so that the next snapshot shows the effect of a visitor's action.
    pub(crate) async fn expire_snapshot(&self) {
        let mut last = self.snapshots.last.lock().await;
        last.status.expire();
        last.sites.expire();
        last.watches.expire();
    }

    async fn read_status(&self, last: &mut LastReadings) -> bool {
        let began = Instant::now();
        if !last.status.is_due(began) {
            return false;
        }
        let answer = self.ask_fleet(json!({"action": "status"})).await;
        if let Ok(status) = &answer {
            last.known_status = status.clone();
        }
        let is_fault = answer.is_err();
        last.status.store_reading(answer, began, Instant::now());
        if is_fault {
            // The next snapshot requests the status again, because the fleet may answer then.
            last.status.expire();
        }
        true
    }

    /// Reads the lists of sites and watches. If the fleet does not answer, for example while it opens its frontier, the
    /// next snapshot requests them again.
    async fn read_lists(self: &Arc<Self>, last: &mut LastReadings) -> bool {
        let began = Instant::now();
        let is_due = last.sites.is_due(began);
        if is_due {
            let answer = self
                .ask_fleet(json!({"action": "sites", "backing_off": true}))
                .await;
            let is_fault = answer.is_err();
            let sites = match answer {
                Ok(mut answer) => {
                    let is_more = !answer["next"].is_null();
                    let listed = match answer["sites"].take() {
                        Value::Array(listed) => listed,
                        _ => Vec::new(),
                    };
                    Some(self.summarize_and_record_sites(listed, is_more).await)
                }
                Err(_) => None,
            };
            last.sites.store_reading(sites, began, Instant::now());
            if is_fault {
                last.sites.expire();
            }
        }
        let began = Instant::now();
        if last.watches.is_due(began) {
            let answer = self.ask_fleet(json!({"action": "watch_list"})).await;
            let is_fault = answer.is_err();
            let watches = answer
                .ok()
                .and_then(|answer| answer["watches"].as_array().cloned());
            last.watches
                .store_reading(watches.unwrap_or_default(), began, Instant::now());
            if is_fault {
                last.watches.expire();
            }
        }
        is_due
    }

    /// Summarises the sites in trouble, and records which of them have changed their state.
    async fn summarize_and_record_sites(
        self: &Arc<Self>,
        listed: Vec<Value>,
        is_more: bool,
    ) -> Sites {
        let sites = sites_in_trouble(&listed, is_more);
        let dashboard = Arc::clone(self);
        // Writing may block, so another thread does it. If it fails, the change is known only until the process ends.
        let _ = tokio::task::spawn_blocking(move || {
            let writing = dashboard
                .site_log()
                .record_sites(&listed, !is_more, now_ms());
            writing.write();
        })
        .await;
        sites
    }

    /// Records the fill rates of mappings' fields in the health log.
    async fn record_health(self: &Arc<Self>, states: Vec<HealthState>) {
        let dashboard = Arc::clone(self);
        let _ = tokio::task::spawn_blocking(move || {
            let healths = states
                .iter()
                .filter(|state| state.id.starts_with("mapping/"));
            let healths = healths.filter_map(|state| serde_json::from_str(&state.state).ok());
            let reports: Vec<Value> = healths.map(|one: MappingHealth| one.report()).collect();
            let writing = dashboard.health_log().record_reports(&reports, now_ms());
            writing.write();
        })
        .await;
    }

    /// Reads how many doubts of each table are open, if that is due.
    async fn read_doubts(&self, last: &mut LastReadings) -> bool {
        let began = Instant::now();
        if self.tables.is_empty() || !last.doubts.is_due(began) {
            return false;
        }
        let tables = self.tables.all();
        let reading = tokio::task::spawn_blocking(move || {
            let open = tables.iter().filter_map(|table| {
                let open = table.read_review().ok()?.count_open();
                (open > 0).then(|| (table.name.clone(), open))
            });
            open.collect::<Vec<_>>()
        });
        let doubts = reading.await.unwrap_or_default();
        last.doubts.store_reading(doubts, began, Instant::now());
        true
    }

    async fn ask_fleet(&self, action: Value) -> Result<Value, String> {
        let Some(fleet) = &self.fleet else {
            return Err("no dispatcher connected".into());
        };
        let answer = fleet.run_action(&Visitor::dashboard(), action).await;
        answer.map_err(|refusal| refusal.message)
    }

    /// Starts to read the store while the fleet is read, if a reading is due.
    fn start_reading_store(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        let mut known = self.snapshots.lock_store_reading().begin_if_due()?;
        let dashboard = Arc::clone(self);
        Some(tokio::spawn(async move {
            let began = Instant::now();
            let answer = dashboard.read_store(&mut known).await;
            let mut store = dashboard.snapshots.lock_store_reading();
            let answer = answer.map_err(|problem| problem.text);
            let sooner = match &answer {
                Err(_) => Some(FAULT_FOR),
                Ok(lists) if lists.crawls.has_unknown_process => Some(CLAIM_JUDGED_AFTER),
                Ok(_) => None,
            };
            store.answer.store_reading(answer, began, Instant::now());
            if let Some(sooner) = sooner {
                store.answer.retry_within(sooner);
            }
            store.known = known;
            store.is_under_way = false;
            store.number += 1;
        }))
    }

    async fn read_store(self: &Arc<Self>, known: &mut KnownCrawls) -> Result<StoreLists, Problem> {
        let opened = self.store.get().await?;
        let states = opened.store.health().await.map_err(Problem::unavailable)?;
        let mappings = mappings_from_states(&states);
        self.record_health(states).await;
        let all = CrawlFilter::default();
        let crawls = opened.browse.crawls(&all, None, MOST_CRAWLS).await;
        let mut rows = crawls.map_err(Problem::unavailable)?.rows;
        let processes =
            mark_interrupted_crawls(&*opened.browse, &mut rows, &mut known.claims).await;
        let (silent, has_unknown_process) = processes.map_err(Problem::unavailable)?;
        let records = count_records(&*opened.store, &rows, &mut known.counted).await;
        let records = records.map_err(Problem::unavailable)?;
        let sites = match self.fleet.is_some() {
            true => None,
            false => {
                let list_page = opened.browse.site_states(None, MOST_SITES_READ).await;
                let list_page = list_page.map_err(Problem::unavailable)?;
                let listed: Vec<Value> = list_page.rows.iter().map(site_row).collect();
                Some(
                    self.summarize_and_record_sites(listed, list_page.next.is_some())
                        .await,
                )
            }
        };
        Ok(StoreLists {
            mappings,
            records,
            crawls: summarize_crawls(&rows, &known.counted, silent, has_unknown_process),
            sites,
        })
    }
}

const MOST_SITES_READ: u32 = 1_000;

/// How long to wait until a claim that was read for the first time can be judged.
const CLAIM_JUDGED_AFTER: Duration = LAPSES_AFTER.saturating_add(Duration::from_secs(1));

/// Marks crawls as interrupted whose processes have died. Also returns whether there is a running crawl where that is
/// not known yet.
async fn mark_interrupted_crawls(
    browse: &dyn Browse,
    crawls: &mut [Crawl],
    claims: &mut CrawlClaims,
) -> Result<(Vec<SilentCrawl>, bool), StoreError> {
    let (mut silent, mut has_unknown) = (Vec::new(), false);
    let mut kept = Vec::new();
    let running = crawls
        .iter_mut()
        .filter(|crawl| matches!(crawl.state, CrawlState::Running | CrawlState::Paused));
    for crawl in running {
        let Some(claim) = browse.crawl_claim(&crawl.id).await? else {
            continue;
        };
        kept.push(crawl.id.to_string());
        match claims.observe_claim(&claim, Instant::now(), now_ms()) {
            ClaimState::Renewed => {}
            ClaimState::NotKnown => has_unknown = true,
            ClaimState::Lapsed(renewed_ms) => {
                crawl.state = CrawlState::Interrupted;
                silent.push(SilentCrawl {
                    app: crawl.id.app_id.clone(),
                    crawl: crawl.id.crawl_id.clone(),
                    since_ms: renewed_ms.unwrap_or(crawl.updated_at_ms),
                });
            }
        }
    }
    claims.retain_crawls(|crawl| kept.iter().any(|one| one == crawl));
    Ok((silent, has_unknown))
}

/// The stored state of a site, as the fleet lists sites.
fn site_row(site: &SiteState) -> Value {
    let seconds = |ms: i64| ms as f64 / 1_000.0;
    json!({
        "site": site.site,
        "state": site.phase.as_str(),
        "reason": site.reason,
        "since": seconds(site.since_ms),
        "until": site.until_ms.map(seconds),
        "evidence": {"url": site.url, "status_code": site.status_code, "sign": site.sign},
    })
}

fn summarize_crawls(
    rows: &[Crawl],
    counted: &CountsByCrawl,
    silent: Vec<SilentCrawl>,
    has_unknown_process: bool,
) -> Crawls {
    let mut crawls = Crawls {
        read_at_ms: now_ms(),
        silent,
        has_unknown_process,
        ..Crawls::default()
    };
    for crawl in rows {
        let of = |name: &str| crawl.counts.get(name).and_then(Value::as_u64).unwrap_or(0);
        let ended = crawl.counts.get("outcomes").and_then(Value::as_object);
        let ended: BTreeMap<String, u64> = ended
            .into_iter()
            .flatten()
            .filter_map(|(outcome, count)| Some((outcome.clone(), count.as_u64()?)))
            .collect();
        crawls.queued += of("queued");
        crawls.leased += of("leased");
        crawls.pages += of("pages");
        crawls.bytes += of("bytes");
        for (outcome, count) in &ended {
            *crawls.ended.entry(outcome.clone()).or_default() += count;
        }
        let records = counted.get(&key_of(crawl)).copied().unwrap_or_default();
        if !is_over(crawl.state) {
            let since_ms = crawls.running_since_ms.unwrap_or(i64::MAX);
            crawls.running_since_ms = Some(since_ms.min(crawl.started_at_ms));
            if crawls.runs.len() < MOST_RUNS {
                let run = CrawlCounters {
                    at_s: crawl.updated_at_ms.div_euclid(1_000),
                    began_s: crawl.started_at_ms.div_euclid(1_000),
                    ended,
                    resolved: records.0,
                    queued: of("queued"),
                };
                crawls.runs.insert(crawl.id.to_string(), run);
            }
        }
        if crawls.latest.len() < MOST_LATEST {
            let silent_since_ms = crawls.silent_since(&crawl.id);
            crawls
                .latest
                .push(crawl_row(crawl, records, silent_since_ms));
        }
    }
    crawls
}

fn crawl_row(crawl: &Crawl, (resolved, open): (u64, u64), silent_since_ms: Option<i64>) -> Value {
    let counts = &crawl.counts;
    json!({
        "appid": crawl.id.app_id,
        "crawlid": crawl.id.crawl_id,
        "state": crawl.state.as_str(),
        "started_at_ms": crawl.started_at_ms,
        "updated_at_ms": crawl.updated_at_ms,
        "finished_at_ms": crawl.finished_at_ms,
        "silent_since_ms": silent_since_ms,
        "pending": counts.get("queued"),
        "leased": counts.get("leased"),
        "done": counts.get("done"),
        "records": records_at_end(crawl).unwrap_or_else(|| json!({"total": resolved + open, "resolved": resolved})),
    })
}

/// The record counts that a crawl stored when it ended, and that later crawls do not change. `None` if it is running.
pub(crate) fn records_at_end(crawl: &Crawl) -> Option<Value> {
    crawl.finished_at_ms?;
    crawl.counts.get("records").cloned()
}

fn key_of(crawl: &Crawl) -> String {
    format!("{} {}", crawl.id, crawl.state.as_str())
}

/// The health of all mappings. Mappings with an alert come first.
fn mappings_from_states(states: &[HealthState]) -> Vec<Mapping> {
    let healths = states.iter().filter_map(|state| {
        let of_mapping = state.id.starts_with("mapping/");
        of_mapping.then(|| serde_json::from_str(&state.state).ok())?
    });
    let mut mappings: Vec<Mapping> = healths.map(|health| mapping_from_health(&health)).collect();
    mappings.sort_by_key(|mapping| (mapping.alert.is_none(), mapping.name.clone()));
    mappings
}

/// Counts the records of these crawls. For ended crawls, the counts of the previous reading are used again.
async fn count_records(
    store: &dyn Store,
    crawls: &[Crawl],
    counted: &mut CountsByCrawl,
) -> Result<Records, StoreError> {
    let mut records = Records::default();
    let known = std::mem::take(counted);
    for crawl in crawls {
        let is_over = is_over(crawl.state);
        let key = key_of(crawl);
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

/// Whether a crawl in this state has ended.
fn is_over(state: CrawlState) -> bool {
    match state {
        CrawlState::Running | CrawlState::Paused | CrawlState::Interrupted => false,
        CrawlState::LimitReached
        | CrawlState::Stopped
        | CrawlState::Expired
        | CrawlState::Finished => true,
    }
}
