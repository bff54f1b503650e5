//! Judges a chunk of checks, by comparing them with earlier versions.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};
use webfill_changes::{
    Answer, CheckKey, CheckOutcome, CheckedPage, PageCheck, PageContent, PageVersions, SiteBlocks,
    Verdict,
};
use webfill_store::{
    Change, ChangeKind, CrawlId, Cursor, KnownVersions, MAX_JUDGEMENT_BYTES, MAX_SNAPSHOT_BYTES,
    Store, StoreError, parse_iso_time, site_versions_id,
};

/// The results of judging a chunk of checks.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) versions: Vec<KnownVersions>,
    pub(super) changes: Vec<Change>,
    pub(super) checks: Vec<PageCheck>,
    /// How many checks were judged; fewer than there are if the judgement would be too large to store.
    pub(super) judged: usize,
    /// The position after the last judged check.
    pub(super) cursor: Option<Cursor>,
}

/// The versions that the checks of a chunk are compared with.
#[derive(Default)]
pub(super) struct CheckComparer {
    pages: BTreeMap<String, PageVersions>,
    sites: BTreeMap<String, SiteBlocks>,
    /// The last run of each crawl that belongs to a watch.
    runs: BTreeMap<(String, String), Run>,
}

/// A run of a watch, as far as the comparison needs it.
#[derive(Clone, Copy)]
struct Run {
    began_ms: i64,
    /// Whether this is the watch's first run. Then the watch finds all of its pages for the first time, and they are
    /// not reported as new.
    is_first: bool,
}

fn text_field<'p>(page: &'p Value, name: &str) -> &'p str {
    page[name].as_str().unwrap_or_default()
}

/// The key of the state about a site's noise (parts that come and go); each crawl has its own.
fn site_versions_key(page: &Value) -> String {
    let of = |name| text_field(page, name);
    site_versions_id(of("app_id"), of("crawl_id"), of("site"))
}

impl CheckComparer {
    pub(super) async fn load(
        store: &dyn Store,
        checks: &[(Cursor, Value)],
    ) -> Result<CheckComparer, StoreError> {
        let mut judging = CheckComparer::default();
        let mut ids = BTreeSet::new();
        let mut crawls = BTreeSet::new();
        for (_, page) in checks {
            ids.extend([text_field(page, "_id").to_owned(), site_versions_key(page)]);
            crawls.insert((
                text_field(page, "app_id").to_owned(),
                text_field(page, "crawl_id").to_owned(),
            ));
        }
        if ids.is_empty() {
            return Ok(judging);
        }
        for stored in store.versions(ids.into_iter().collect()).await? {
            judging.add_versions(stored);
        }
        for (app_id, crawl_id) in crawls {
            if let Some(run) = load_run(store, &app_id, &crawl_id).await? {
                judging.runs.insert((app_id, crawl_id), run);
            }
        }
        Ok(judging)
    }

    /// Takes over stored versions. Unreadable ones start over.
    fn add_versions(&mut self, stored: KnownVersions) {
        // Keys of pages have three parts; keys of sites have a fourth.
        let read = match stored.id.splitn(4, '/').count() == 4 {
            true => SiteBlocks::unpack(&stored.state).map(|site| {
                self.sites.insert(stored.id.clone(), site);
            }),
            false => PageVersions::unpack(&stored.state).map(|page| {
                self.pages.insert(stored.id.clone(), page);
            }),
        };
        if let Err(error) = read {
            tracing::warn!(event = "versions_begin_again", page = stored.id, %error, "the versions of a page start anew");
        }
    }

    pub(super) fn compare_all(mut self, checks: &[(Cursor, Value)]) -> Batch {
        let mut batch = Batch::default();
        let mut touched: BTreeMap<String, KnownVersions> = BTreeMap::new();
        let mut bytes = 0;
        for (cursor, page) in checks {
            if bytes > MAX_JUDGEMENT_BYTES / 2 {
                break;
            }
            let changes = batch.changes.len();
            if let Some(versions) = self.compare_check(page, &mut batch) {
                bytes += versions.state.len();
                touched.insert(versions.id.clone(), versions);
            }
            let added = batch.changes[changes..].iter();
            bytes += added.map(approximate_bytes).sum::<usize>();
            batch.judged += 1;
            batch.cursor = Some(cursor.clone());
        }
        for (_, page) in &checks[..batch.judged] {
            let id = site_versions_key(page);
            if let Some(site) = self.sites.get(&id).filter(|site| !site.is_empty()) {
                let checked_at_ms = started_at_ms(page);
                let state = site.pack();
                touched.insert(
                    id.clone(),
                    KnownVersions {
                        id,
                        checked_at_ms,
                        state,
                    },
                );
            }
        }
        batch.versions = touched.into_values().collect();
        batch
    }

    /// Judges one check. Returns the versions to store for its page.
    fn compare_check(&mut self, page: &Value, batch: &mut Batch) -> Option<KnownVersions> {
        let id = text_field(page, "_id").to_owned();
        let nothing = Map::new();
        let run = self.run_of_page(page);
        let check = parse_check(page, &nothing, run.map(|run| run.began_ms));
        let check = match check {
            Ok(check) => check,
            Err(error) => {
                tracing::warn!(event = "check_skipped", url = text_field(page, "url"), %error, "a check of a page was not judged");
                return None;
            }
        };
        let versions = self.pages.entry(id.clone()).or_default();
        let site = self.sites.entry(site_versions_key(page)).or_default();
        let judged = versions.compare_check(&check, site);
        let at_ms = check.key.at_ms;
        let stored = (!versions.is_unknown()).then(|| KnownVersions {
            id,
            checked_at_ms: at_ms,
            state: versions.pack(MAX_SNAPSHOT_BYTES),
        });
        if let Some(judged) = judged {
            batch.checks.push(PageCheck {
                app_id: text_field(page, "app_id").to_owned(),
                crawl_id: text_field(page, "crawl_id").to_owned(),
                url: text_field(page, "url").to_owned(),
                at_ms,
                verdict: judged.verdict,
            });
            let change = self.reported_change(page, at_ms, judged);
            batch.changes.extend(change);
        }
        stored
    }

    fn run_of_page(&self, page: &Value) -> Option<Run> {
        let of = |name: &str| text_field(page, name).to_owned();
        self.runs.get(&(of("app_id"), of("crawl_id"))).copied()
    }

    /// The change that a check reports, if there is one.
    fn reported_change(&self, page: &Value, at_ms: i64, judged: CheckOutcome) -> Option<Change> {
        let of = |name: &str| text_field(page, name).to_owned();
        let kind = match judged.verdict {
            Verdict::Unchanged => return None,
            Verdict::New => {
                // A crawl without a watch has only one run, so nothing is new.
                let run = self.run_of_page(page).filter(|run| !run.is_first)?;
                // A check of the first run may be judged only during a later run.
                (at_ms >= run.began_ms).then_some(ChangeKind::New)?
            }
            Verdict::Changed => ChangeKind::Changed,
            Verdict::Gone => ChangeKind::Gone,
            Verdict::Back => ChangeKind::Back,
        };
        Some(Change {
            // The number is assigned when the change is stored.
            number: 0,
            app_id: of("app_id"),
            crawl_id: of("crawl_id"),
            url: of("url"),
            page_id: of("_id"),
            site: of("site"),
            kind,
            at_ms,
            mapping: page["mapping"].as_str().map(str::to_owned),
            old: judged.old,
            new: judged.new,
            difference: judged.difference,
        })
    }
}

async fn load_run(
    store: &dyn Store,
    app_id: &str,
    crawl_id: &str,
) -> Result<Option<Run>, StoreError> {
    let crawl = store.get_crawl(&CrawlId::new(app_id, crawl_id)).await?;
    Ok(crawl.and_then(|crawl| {
        let began_ms = crawl.request["run_began_ms"].as_i64()?;
        let is_first = began_ms <= crawl.started_at_ms;
        Some(Run { began_ms, is_first })
    }))
}

fn started_at_ms(page: &Value) -> i64 {
    parse_iso_time(text_field(page, "started_at")).unwrap_or_default()
}

fn parse_check<'p>(
    page: &'p Value,
    nothing: &'p Map<String, Value>,
    run_began_ms: Option<i64>,
) -> Result<CheckedPage<'p>, String> {
    let number = |name: &str| page[name].as_u64().unwrap_or_default();
    let answer = match text_field(page, "outcome") {
        "ok" => Answer::Page,
        "not_modified" => Answer::NotModified,
        _ => Answer::Missing,
    };
    let packed = BASE64_STANDARD.decode(text_field(page, "snapshot"));
    let packed = packed.map_err(|error| error.to_string())?;
    Ok(CheckedPage {
        key: CheckKey {
            epoch: number("epoch"),
            task: number("task"),
            number: number("attempts"),
            at_ms: started_at_ms(page),
        },
        run_began_ms,
        answer,
        content_hash: page["content_hash"].as_str(),
        mapping: page["mapping"].as_str(),
        mapping_version: page["mapping_version"].as_str(),
        fields: page["fields"].as_object().unwrap_or(nothing),
        seen: PageContent::unpack(&packed).map_err(|error| error.to_string())?,
    })
}

/// The approximate size of a change in the store, in bytes.
fn approximate_bytes(change: &Change) -> usize {
    let value = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.to_string().len());
    500 + value(&change.old) + value(&change.new) + change.difference.len()
}
