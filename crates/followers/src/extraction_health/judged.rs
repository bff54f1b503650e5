//! [`HealthStates`]: the states of all mappings, and the position of the last page in them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use webfill_health::{Alert, Deliveries, GoodPage, MappingHealth, RowsOfPage};
use webfill_notifications::Standing;
use webfill_store::{Cursor, HealthState, RowCounts, Store, StoreError, parse_iso_time};

use super::judged_mapping::JudgedMapping;
use super::known;
use super::report::{Owner, Report};
use crate::follow::Chunk;

/// The id of the state that holds only the position, and the prefix of the ids of mappings.
const POSITION: &str = "cursor";
const PREFIX: &str = "mapping/";

/// The maximum size of a stored state: a document of MongoDB has at most 16 MiB.
const MOST_STATE_BYTES: usize = 15 << 20;

/// The states of all mappings and the position.
#[derive(Default)]
pub(super) struct HealthStates {
    mappings: BTreeMap<String, JudgedMapping>,
    position: Cursor,
    /// The stored position and its revision.
    stored_position: Cursor,
    position_revision: u64,
    is_loaded: bool,
    unsaved_pages: u64,
    /// Names this process as the writer of states.
    writer: String,
    deliveries: Deliveries,
    /// Mappings whose states cannot be stored, with their versions. They are no longer judged.
    set_aside: BTreeMap<String, Option<String>>,
}

/// The reports about stored states, and the error that kept the remaining states from being stored.
pub(super) struct SaveResult {
    pub(super) reports: Vec<Report>,
    pub(super) error: Option<StoreError>,
}

impl HealthStates {
    /// Loads the stored states, unless they are loaded. Returns whether it did.
    pub(super) async fn load(&mut self, store: &dyn Store) -> Result<bool, StoreError> {
        if self.is_loaded {
            return Ok(false);
        }
        *self = HealthStates {
            writer: new_writer_name(),
            deliveries: std::mem::take(&mut self.deliveries),
            set_aside: std::mem::take(&mut self.set_aside),
            ..HealthStates::default()
        };
        self.deliveries.discard_unsaved();
        for stored in store.health().await? {
            let Some(name) = stored.id.strip_prefix(PREFIX) else {
                self.position = stored.cursor.clone();
                self.stored_position = stored.cursor;
                self.position_revision = stored.revision;
                continue;
            };
            let health = serde_json::from_str(&stored.state).unwrap_or_else(|error| {
                tracing::warn!(event = "health_begins_again", mapping = name, %error, "cannot read the health of a mapping");
                MappingHealth::new(name)
            });
            let mapping = JudgedMapping::from_stored(health, stored.cursor, stored.revision);
            self.mappings.insert(name.to_owned(), mapping);
        }
        self.is_loaded = true;
        Ok(true)
    }

    /// Discards the state in memory: it must not be stored, and is loaded again.
    pub(super) fn forget(&mut self) {
        self.is_loaded = false;
    }

    pub(super) fn position(&self) -> &Cursor {
        &self.position
    }

    pub(super) fn unsaved_pages(&self) -> u64 {
        self.unsaved_pages
    }

    /// Starts again at the oldest stored page. Returns whether the position has changed. Each mapping knows which of
    /// its pages it has counted.
    pub(super) fn rewind(&mut self) -> bool {
        let is_other = self.position != Cursor::start();
        self.position = Cursor::start();
        is_other
    }

    /// Judges the pages of a chunk.
    pub(super) async fn add_chunk(
        &mut self,
        store: &dyn Store,
        chunk: Chunk,
    ) -> Result<(), StoreError> {
        let known = known::compare_values(store, &chunk.saves).await?;
        let last = chunk.saves.last().map(|(cursor, _)| cursor.clone());
        for ((cursor, page), known) in chunk.saves.iter().zip(known) {
            self.add_page(cursor, page, &known);
        }
        if let Some(position) = chunk.end.or(last) {
            self.position = position;
        }
        Ok(())
    }

    fn add_page(&mut self, cursor: &Cursor, page: &Value, known_values: &[(String, bool)]) {
        let name = text_field(page, "mapping").unwrap_or_default();
        if self.refresh_set_aside(name, text_field(page, "mapping_version")) {
            return;
        }
        let mapping = self
            .mappings
            .entry(name.to_owned())
            .or_insert_with(|| JudgedMapping::new(name));
        if mapping.cursor.covers(cursor) {
            return;
        }
        mapping.cursor = cursor.clone();
        mapping.is_unsaved = true;
        self.unsaved_pages += 1;
        let nothing = Map::new();
        // An alternative of 0 means that none was used, because the value can be read in two ways.
        let mut alternatives = page["alternatives"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        alternatives.retain(|_, number| *number != 0);
        let good = GoodPage {
            id: text_field(page, "_id").unwrap_or_default(),
            url: text_field(page, "url").unwrap_or_default(),
            site: text_field(page, "site").unwrap_or_default(),
            at: text_field(page, "started_at").unwrap_or_default(),
            at_ms: text_field(page, "started_at")
                .and_then(parse_iso_time)
                .unwrap_or_default(),
            mapping_version: text_field(page, "mapping_version"),
            template: text_field(page, "template"),
            source: source_of_page(page),
            content_hash: text_field(page, "content_hash"),
            attempts: page["attempts"].as_u64().unwrap_or(1),
            fields: page["fields"].as_object().unwrap_or(&nothing),
            rows: &rows_by_dataset(page),
            alternatives: &alternatives,
            known_values,
        };
        if !self.deliveries.note_page(name, &good) {
            return;
        }
        let events = mapping.health.note_page(&good);
        let owner = Owner {
            app_id: text_field(page, "app_id").unwrap_or_default().to_owned(),
            crawl_id: text_field(page, "crawl_id").unwrap_or_default().to_owned(),
        };
        mapping.add_events(events, &owner);
    }

    /// Whether a mapping is set aside and not judged. Another version of it starts over.
    fn refresh_set_aside(&mut self, name: &str, version: Option<&str>) -> bool {
        match self.set_aside.get(name) {
            Some(of) if of.as_deref() == version => true,
            Some(_) => {
                self.set_aside.remove(name);
                false
            }
            None => false,
        }
    }

    /// Withdraws alerts about pages of blocked sites, and reports all other alerts.
    pub(super) async fn settle_alerts(
        &mut self,
        store: &dyn Store,
        is_last: bool,
    ) -> Result<(), StoreError> {
        for mapping in self.mappings.values_mut() {
            mapping.settle_alert(store, is_last).await?;
        }
        Ok(())
    }

    /// Stores the changed states one mapping at a time, then the position. Stored states are reported even if another
    /// one fails. If another process has written meanwhile, everything is loaded again.
    pub(super) async fn save(&mut self, store: &dyn Store) -> SaveResult {
        let unsaved = self.mappings.iter().filter(|(_, one)| one.is_unsaved);
        let changed: Vec<String> = unsaved.map(|(name, _)| name.clone()).collect();
        let mut saved = SaveResult {
            reports: Vec::new(),
            error: None,
        };
        for name in &changed {
            match self.save_mapping(store, name).await {
                Ok(reports) => saved.reports.extend(reports),
                Err(StoreError::Entry { reason, .. }) => self.set_aside(name, &reason),
                Err(error) => {
                    saved.error = Some(error);
                    return saved;
                }
            }
        }
        if self.is_loaded {
            self.save_position(store).await;
        }
        if self.is_loaded {
            self.deliveries.mark_saved();
        }
        self.unsaved_pages = 0;
        self.pin_pages(store, &changed).await;
        saved
    }

    /// Stores the state of a mapping. Returns the reports to send, if it was stored.
    async fn save_mapping(
        &mut self,
        store: &dyn Store,
        name: &str,
    ) -> Result<Vec<Report>, StoreError> {
        let state = self.to_health_state(name);
        if state.state.len() > MOST_STATE_BYTES {
            let reason = format!("{} bytes", state.state.len());
            self.set_aside(name, &reason);
            return Ok(Vec::new());
        }
        let is_stored = store.replace_health_if_current(vec![state]).await? == [true];
        let Some(mapping) = self.mappings.get_mut(name).filter(|_| is_stored) else {
            self.is_loaded = false;
            return Ok(Vec::new());
        };
        mapping.revision += 1;
        mapping.is_unsaved = false;
        Ok(mapping.take_due_reports())
    }

    async fn save_position(&mut self, store: &dyn Store) {
        if self.position == self.stored_position {
            return;
        }
        let position = HealthState {
            id: POSITION.to_owned(),
            revision: self.position_revision + 1,
            writer: self.writer.clone(),
            cursor: self.position.clone(),
            state: String::from("{}"),
        };
        // If this fails, everything is loaded again.
        let put = store.replace_health_if_current(vec![position]).await;
        self.is_loaded = put.is_ok_and(|put| put == [true]);
        self.position_revision += 1;
        self.stored_position = self.position.clone();
    }

    /// Stops judging a mapping whose state cannot be stored, so that the states of other mappings can be.
    fn set_aside(&mut self, name: &str, reason: &str) {
        let Some(mapping) = self.mappings.remove(name) else {
            return;
        };
        let version = mapping.health.version().map(str::to_owned);
        self.set_aside.insert(name.to_owned(), version);
        tracing::warn!(
            event = "health_set_aside",
            mapping = name,
            reason,
            "cannot store the health of a mapping: it is not judged until its version changes or the dispatcher restarts"
        );
    }

    /// Keeps texts of pages for these mappings. A failure delays it until the next page of the mapping.
    async fn pin_pages(&mut self, store: &dyn Store, names: &[String]) {
        for name in names {
            let Some(mapping) = self.mappings.get_mut(name) else {
                continue;
            };
            if let Err(error) = mapping.pin_pages(store).await {
                tracing::warn!(event = "samples_not_kept", mapping = name, %error, "pages that show a changed layout could not be kept yet");
            }
        }
    }

    fn to_health_state(&self, name: &str) -> HealthState {
        let mapping = &self.mappings[name];
        HealthState {
            id: format!("{PREFIX}{name}"),
            revision: mapping.revision + 1,
            writer: self.writer.clone(),
            cursor: mapping.cursor.clone(),
            state: serde_json::to_string(&mapping.health).expect("its keys are texts"),
        }
    }

    /// The standing alerts and warnings, each with the crawls whose pages show it.
    pub(super) fn standing_judgements(&self) -> Standing {
        let healths = || self.mappings.values().map(|one| &one.health);
        let alerts = healths().filter_map(MappingHealth::alert);
        let alerts = alerts.map(|alert| with_crawls(alert.row(), crawls_of(alert)));
        let warnings = healths().flat_map(|health| {
            let warnings = health.alternative_warnings().into_iter();
            warnings.map(|warning| {
                let crawls = health
                    .crawls_served_by_alternative(&warning.field)
                    .collect();
                with_crawls(warning.row(), crawls)
            })
        });
        Standing {
            alerts: alerts.collect(),
            warnings: warnings.collect(),
        }
    }
}

fn with_crawls(mut row: Value, crawls: BTreeSet<&str>) -> Value {
    row["crawls"] = json!(crawls);
    row
}

/// The crawls whose pages show an alert, as `APPID/CRAWLID`.
fn crawls_of(alert: &Alert) -> BTreeSet<&str> {
    let ids = alert.after.iter().map(|page| page.id.as_str());
    ids.filter_map(|id| Some(id.rsplit_once('/')?.0)).collect()
}

/// A name that differs for each process and each start.
fn new_writer_name() -> String {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since_epoch.map_or(0, |passed| passed.as_nanos());
    format!("{}-{nanos:x}", std::process::id())
}

fn text_field<'p>(page: &'p Value, name: &str) -> Option<&'p str> {
    page[name].as_str()
}

/// The rows of a page, by dataset.
fn rows_by_dataset(page: &Value) -> Vec<RowsOfPage> {
    let counts: Vec<RowCounts> =
        serde_json::from_value(page["row_counts"].clone()).unwrap_or_default();
    let mut rows: BTreeMap<String, RowsOfPage> = BTreeMap::new();
    for counts in counts {
        let of_dataset = rows
            .entry(counts.dataset.clone())
            .or_insert_with(|| RowsOfPage {
                dataset: counts.dataset,
                ..RowsOfPage::default()
            });
        of_dataset.rows += counts.rows;
        for (field, filled) in counts.filled {
            let (sum, of) = of_dataset.filled.entry(field).or_default();
            *sum += filled;
            *of += counts.rows;
        }
    }
    rows.into_values().collect()
}

/// The source of a page: its record, or the page with the link; a seed is its own source.
fn source_of_page(page: &Value) -> &str {
    let record = page["records"][0].as_str();
    let source = record
        .or_else(|| text_field(page, "parent"))
        .or_else(|| text_field(page, "url"));
    source.unwrap_or_default()
}
