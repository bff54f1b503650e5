//! [`Judged`]: the state of all mappings, and up to which page it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use webfill_health::{Alarm, Event, GoodPage, MappingHealth, Warning};
use webfill_store::{Cursor, HealthState, Store, StoreError};

use super::{Chunk, known, pinned};
use crate::firehose::Notices;

/// The state that holds the position alone, and what begins the others.
const POSITION: &str = "cursor";
const PREFIX: &str = "mapping/";

/// Pages of a chunk that are compared with their records, at most.
const COMPARED: usize = 128;

/// The state of one mapping.
#[derive(Default)]
struct Mapping {
    health: MappingHealth,
    /// The page before this is in it, and all of its pages that came earlier.
    cursor: Cursor,
    /// As it is stored; 0 if it is not.
    revision: u64,
    is_unsaved: bool,
    /// The alarm of which all pages are kept, by its time.
    pinned: Option<String>,
    /// What is to be told once it is stored.
    events: Vec<(Owner, Event)>,
}

/// Whose page has brought something about.
#[derive(Debug, Clone)]
struct Owner {
    app_id: String,
    crawl_id: String,
}

/// See the module.
#[derive(Default)]
pub(super) struct Judged {
    mappings: BTreeMap<String, Mapping>,
    position: Cursor,
    /// The position that is stored, and its revision.
    stored_position: Cursor,
    position_revision: u64,
    is_loaded: bool,
    unsaved_pages: u64,
    /// Names this process as the writer of a state.
    writer: String,
}

/// What is to be told, and to whom.
pub(super) struct Told {
    owner: Owner,
    what: What,
}

enum What {
    Raised(Alarm),
    Cleared(Box<Alarm>),
    Warned(Warning),
}

impl Judged {
    /// Loads what is stored, if nothing is loaded; whether it did.
    pub(super) async fn load(&mut self, store: &dyn Store) -> Result<bool, StoreError> {
        if self.is_loaded {
            return Ok(false);
        }
        *self = Judged {
            writer: writer(),
            ..Judged::default()
        };
        for stored in store.health().await? {
            let Some(name) = stored.id.strip_prefix(PREFIX) else {
                self.position = stored.cursor.clone();
                self.stored_position = stored.cursor;
                self.position_revision = stored.revision;
                continue;
            };
            let health = serde_json::from_str(&stored.state).unwrap_or_else(|error| {
                tracing::warn!(event = "health_begins_again", mapping = name, %error, "what was known of a mapping's extractions cannot be read");
                MappingHealth::new(name)
            });
            let mapping = Mapping {
                health,
                cursor: stored.cursor,
                revision: stored.revision,
                ..Mapping::default()
            };
            self.mappings.insert(name.to_owned(), mapping);
        }
        self.is_loaded = true;
        Ok(true)
    }

    /// What is in memory is not to be stored.
    pub(super) fn forget(&mut self) {
        self.is_loaded = false;
    }

    pub(super) fn position(&self) -> &Cursor {
        &self.position
    }

    pub(super) fn unsaved_pages(&self) -> u64 {
        self.unsaved_pages
    }

    /// Goes back to the oldest page that is stored; whether that is another position. Each mapping knows which
    /// of its pages it has counted.
    pub(super) fn begin_again(&mut self) -> bool {
        let is_other = self.position != Cursor::start();
        self.position = Cursor::start();
        is_other
    }

    /// Takes pages in.
    pub(super) async fn judge(
        &mut self,
        store: &dyn Store,
        chunk: Chunk,
    ) -> Result<(), StoreError> {
        let known = known_values(store, &chunk.pages).await?;
        let last = chunk.pages.last().map(|(cursor, _)| cursor.clone());
        for ((cursor, page), known) in chunk.pages.iter().zip(known) {
            self.judge_page(store, cursor, page, &known).await?;
        }
        if let Some(position) = chunk.end.or(last) {
            self.position = position;
        }
        Ok(())
    }

    async fn judge_page(
        &mut self,
        store: &dyn Store,
        cursor: &Cursor,
        page: &Value,
        known_values: &[(String, bool)],
    ) -> Result<(), StoreError> {
        let name = text(page, "mapping").unwrap_or_default();
        let mapping = self
            .mappings
            .entry(name.to_owned())
            .or_insert_with(|| Mapping {
                health: MappingHealth::new(name),
                ..Mapping::default()
            });
        if mapping.cursor.covers(cursor) {
            return Ok(());
        }
        mapping.cursor = cursor.clone();
        mapping.is_unsaved = true;
        self.unsaved_pages += 1;
        let nothing = Map::new();
        let good = GoodPage {
            id: text(page, "_id").unwrap_or_default(),
            url: text(page, "url").unwrap_or_default(),
            at: text(page, "started_at").unwrap_or_default(),
            mapping_version: text(page, "mapping_version"),
            template: text(page, "template"),
            source: source(page),
            content_hash: text(page, "content_hash"),
            attempts: page["attempts"].as_u64().unwrap_or(1),
            fields: page["fields"].as_object().unwrap_or(&nothing),
            known_values,
        };
        let mut events = mapping.health.note(&good);
        if events.contains(&Event::LayoutChanged) && is_blocked(store, page).await? {
            mapping.health.withdraw_alarm();
            events.retain(|event| *event != Event::LayoutChanged);
        }
        let owner = || Owner {
            app_id: text(page, "app_id").unwrap_or_default().to_owned(),
            crawl_id: text(page, "crawl_id").unwrap_or_default().to_owned(),
        };
        mapping
            .events
            .extend(events.into_iter().map(|event| (owner(), event)));
        Ok(())
    }

    /// Stores what has changed, the position last. Returns what is to be told then. If another process has
    /// stored something meanwhile, all is loaded anew.
    pub(super) async fn save(&mut self, store: &dyn Store) -> Result<Vec<Told>, StoreError> {
        let changed: Vec<String> = self
            .mappings
            .iter()
            .filter(|(_, mapping)| mapping.is_unsaved)
            .map(|(name, _)| name.clone())
            .collect();
        let states = changed.iter().map(|name| self.state_of(name)).collect();
        let mut told = Vec::new();
        for (name, is_stored) in changed.iter().zip(store.put_health(states).await?) {
            let Some(mapping) = self.mappings.get_mut(name).filter(|_| is_stored) else {
                self.is_loaded = false;
                continue;
            };
            mapping.revision += 1;
            mapping.is_unsaved = false;
            told.extend(mapping.told());
        }
        if self.is_loaded && self.position != self.stored_position {
            let position = HealthState {
                id: POSITION.to_owned(),
                revision: self.position_revision + 1,
                writer: self.writer.clone(),
                cursor: self.position.clone(),
                state: String::from("{}"),
            };
            // If it fails, all is loaded anew; what is stored by now is told nevertheless.
            let put = store.put_health(vec![position]).await;
            self.is_loaded = put.is_ok_and(|put| put == [true]);
            self.position_revision += 1;
            self.stored_position = self.position.clone();
        }
        self.unsaved_pages = 0;
        self.pin(store, &changed).await;
        Ok(told)
    }

    /// A failure delays it to the next page of the mapping.
    async fn pin(&mut self, store: &dyn Store, names: &[String]) {
        for name in names {
            let Some(mapping) = self.mappings.get_mut(name) else {
                continue;
            };
            if let Err(error) = mapping.pin(store).await {
                tracing::warn!(event = "samples_not_kept", mapping = name, %error, "pages that show a changed layout could not be kept yet");
            }
        }
    }

    fn state_of(&self, name: &str) -> HealthState {
        let mapping = &self.mappings[name];
        HealthState {
            id: format!("{PREFIX}{name}"),
            revision: mapping.revision + 1,
            writer: self.writer.clone(),
            cursor: mapping.cursor.clone(),
            state: serde_json::to_string(&mapping.health).expect("its keys are texts"),
        }
    }

    /// The alarms that stand, a row of a table each.
    pub(super) fn standing(&self) -> Vec<Value> {
        let alarms = self.mappings.values().filter_map(|one| one.health.alarm());
        let row = |alarm: &Alarm| {
            json!({
                "mapping": alarm.mapping,
                "layout_changed": alarm.raised_at,
                "fields": alarm.names().join(", "),
            })
        };
        alarms.map(row).collect()
    }
}

impl Mapping {
    /// While an alarm stands, keeps texts of pages that show it, until there are enough.
    async fn pin(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if let Some(alarm) = self.health.alarm()
            && self.pinned.as_deref() != Some(&*alarm.raised_at)
            && pinned::pin(store, alarm).await?
        {
            self.pinned = Some(alarm.raised_at.clone());
        }
        Ok(())
    }

    fn told(&mut self) -> Vec<Told> {
        let health = &self.health;
        let told = self.events.drain(..).filter_map(|(owner, event)| {
            let what = match event {
                // Unless it is cleared by now, which is told as well.
                Event::LayoutChanged => What::Raised(health.alarm()?.clone()),
                Event::Cleared(alarm) => What::Cleared(alarm),
                Event::Warned(warning) => What::Warned(warning),
            };
            Some(Told { owner, what })
        });
        told.collect()
    }
}

impl Told {
    /// Tells the log and the application whose page it was.
    pub(super) fn tell(&self, notices: &Notices) {
        let (action, mut notice) = match &self.what {
            What::Raised(alarm) => {
                let fields = alarm.names().join(", ");
                let message = alarm.text();
                tracing::warn!(
                    event = "layout_changed",
                    mapping = alarm.mapping,
                    fields,
                    "{message}"
                );
                ("layout_changed", alarm.notice())
            }
            What::Cleared(alarm) => {
                let why = alarm.cleared_by.as_deref();
                tracing::info!(
                    event = "layout_alarm_cleared",
                    mapping = alarm.mapping,
                    why,
                    "the alarm of a mapping is cleared"
                );
                ("layout_alarm_cleared", alarm.notice())
            }
            What::Warned(warning) => {
                let Warning {
                    mapping,
                    field,
                    detail,
                    ..
                } = warning;
                tracing::warn!(event = "extraction_suspicious", mapping, field, "{detail}");
                ("extraction_suspicious", json!(warning))
            }
        };
        notice["action"] = action.into();
        notice["appid"] = self.owner.app_id.as_str().into();
        notice["crawlid"] = self.owner.crawl_id.as_str().into();
        notices.publish(&self.owner.app_id, &notice);
    }
}

/// Different for each process and each start.
fn writer() -> String {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since_epoch.map_or(0, |passed| passed.as_nanos());
    format!("{}-{nanos:x}", std::process::id())
}

fn text<'p>(page: &'p Value, name: &str) -> Option<&'p str> {
    page[name].as_str()
}

/// What has led to a page: its record, or the page with the link; a seed stands for itself.
fn source(page: &Value) -> &str {
    let record = page["records"][0].as_str();
    let source = record
        .or_else(|| text(page, "parent"))
        .or_else(|| text(page, "url"));
    source.unwrap_or_default()
}

/// Whether the page's site rests because it blocks: then what it serves may be no page of its own.
async fn is_blocked(store: &dyn Store, page: &Value) -> Result<bool, StoreError> {
    let site = text(page, "site").unwrap_or_default();
    let state = store.site_state(site).await?;
    Ok(state.is_some_and(|state| state.reason == "blocked"))
}

/// For each page the fields that its record knew before, and whether the page says the same; nothing for most
/// pages of a long chunk.
async fn known_values(
    store: &dyn Store,
    pages: &[(Cursor, Value)],
) -> Result<Vec<Vec<(String, bool)>>, StoreError> {
    let with_record: Vec<(usize, &str)> = pages
        .iter()
        .enumerate()
        .filter_map(|(index, (_, page))| Some((index, page["records"][0].as_str()?)))
        .collect();
    let every = with_record.len().div_ceil(COMPARED).max(1);
    let chosen: Vec<(usize, &str)> = with_record.into_iter().step_by(every).collect();
    let mut known = vec![Vec::new(); pages.len()];
    if chosen.is_empty() {
        return Ok(known);
    }
    let keys = chosen.iter().map(|(_, key)| (*key).to_owned()).collect();
    for ((index, _), given) in chosen.iter().zip(store.given_values(keys).await?) {
        if let Some(found) = pages[*index].1["fields"].as_object() {
            known[*index] = known::compare(&given, found);
        }
    }
    Ok(known)
}
