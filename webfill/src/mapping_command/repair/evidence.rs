//! The evidence for a repair: pages from after a change, pages from before it, and the values known before.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use webfill_health::{Alert, split_rows_name};
use webfill_service::Fault;
use webfill_store::{CrawlId, ExportFilter, ExportKind, Store, iso_time, open_existing};
use webfill_urls::canonical_url;

use crate::cli::MappingRepairOptions;
use crate::feeding::now_ms;
use crate::mapping_command::learn::archive::Archive;
use crate::mapping_command::learn::folder::Folder;
use crate::mapping_command::learn::gathered::{GatheredPage, PageGatherer};
use crate::mapping_command::learn::records::{KnownRecords, known_values};
use crate::mapping_command::learn::stored::{StoredCrawl, load_pages};
use crate::settings::Settings;

/// The longest text of a kept page, in bytes.
const MOST_TEXT: usize = 2 << 20;

/// Alerts shorten values to this number of characters. A value of at least this length may be incomplete, so it is not
/// used.
const SHORTENED_CHARS: usize = 200;

/// Known values by field.
pub type Values = BTreeMap<String, Vec<String>>;

#[derive(Default)]
pub struct Evidence {
    /// The fields that the alert names.
    pub fallen: BTreeSet<String>,
    /// The names of rules for rows in the alert. Such rules are not repaired.
    pub rows: Vec<String>,
    /// Kept pages from before the site's change.
    pub before: Vec<GatheredPage>,
    /// Current pages. Some of them may not have changed.
    pub now: Vec<GatheredPage>,
    /// The values known before the change, by URL.
    pub known: BTreeMap<String, Values>,
    /// The URLs and fields whose values come from the user's own records. For these, every other value is wrong.
    of_user: BTreeSet<(String, String)>,
    /// The URLs of the pages that the mapping read before the change.
    read_before: BTreeSet<String>,
    /// For each record, by its key: the URLs of the pages that were fetched for it.
    records: HashMap<String, Vec<String>>,
    /// The keys of the pages that the alert has kept.
    keys: Vec<String>,
    /// When the change was first seen, in ISO 8601. Values read since then may be wrong.
    changed_at: Option<String>,
}

impl Evidence {
    pub fn gather(
        options: &MappingRepairOptions,
        mapping: &str,
        runtime: &Runtime,
    ) -> Result<Evidence, Fault> {
        let mut settings = Settings::load(options.config.as_deref())?;
        if let Some(store) = &options.store {
            settings.store.clone_from(store);
        }
        let uri = settings.store_uri()?;
        let mut evidence = Evidence::default();
        let is_of_files = options.pages.is_some() || options.warc.is_some();
        if is_of_files {
            evidence.add_pages_of_files(options, settings.fetch.max_body_bytes)?;
            // With pages from files, everything in the store counts as read before the change.
            evidence.note_change(&iso_time(now_ms()));
            if options.store.is_none() {
                evidence.add_values_of_user(options, runtime)?;
                return Ok(evidence);
            }
        }
        runtime.block_on(async {
            let store = open_existing(&uri).await.map_err(Fault::error)?;
            evidence.add_pages_of_alert(&*store, mapping).await?;
            if let Some(crawl) = &options.crawl {
                let id = CrawlId::new(&options.app, crawl);
                let mut crawl = StoredCrawl::open(&uri, id.clone()).await?;
                if let Some(known) = store.get_crawl(&id).await.map_err(Fault::error)? {
                    evidence.note_change(&iso_time(known.started_at_ms));
                }
                evidence.add_pages_of_crawl(&mut crawl, mapping).await?;
            }
            if evidence.now.is_empty() {
                return Ok(());
            }
            let changed_at = evidence
                .changed_at
                .clone()
                .ok_or_else(|| unknown_change_time(mapping))?;
            evidence.note_records(&*store).await?;
            evidence.add_values_of_records(&*store, &changed_at).await?;
            evidence
                .add_values_of_pages(&*store, mapping, &changed_at)
                .await
        })?;
        evidence.add_values_of_user(options, runtime)?;
        Ok(evidence)
    }

    /// Adds pages from the user's files.
    fn add_pages_of_files(
        &mut self,
        options: &MappingRepairOptions,
        max_body_bytes: usize,
    ) -> Result<(), Fault> {
        let mut gathering = PageGatherer::new(&|_| true);
        if let Some(folder) = &options.pages {
            Folder::open(folder)?.gather(&mut gathering)?;
        }
        if let Some(path) = &options.warc {
            let mut archive = Archive::open(path, max_body_bytes)?;
            archive.for_each_url(&mut |_| ())?;
            archive.gather(&mut gathering)?;
        }
        self.now = gathering.pages;
        Ok(())
    }

    /// Adds the pages that the mapping's current alert keeps.
    async fn add_pages_of_alert(&mut self, store: &dyn Store, mapping: &str) -> Result<(), Fault> {
        let health = crate::health::load_health(store)
            .await
            .map_err(Fault::error)?;
        let alerts = health.iter().filter(|health| health.mapping() == mapping);
        let Some(alert) = alerts.filter_map(|health| health.alert()).next() else {
            return Ok(());
        };
        self.fallen = alert
            .page_field_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        self.rows = alert
            .row_field_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        if let Some(first) = alert.after.iter().map(|page| &page.at).min() {
            self.note_change(first);
        }
        self.note_values_before_change(alert);
        let samples = store.samples(mapping).await.map_err(Fault::error)?;
        let of_alert = samples
            .into_iter()
            .filter(|sample| sample.alert.as_deref() == Some(&*alert.raised_at));
        let ids = of_alert.map(|sample| sample.id).collect();
        let mut texts = store.samples_with_texts(ids).await.map_err(Fault::error)?;
        texts.sort_by(|one, other| one.id.cmp(&other.id));
        for sample in texts {
            let when = sample.id.rsplit('/').nth(1).unwrap_or_default().to_owned();
            let text = zstd::bulk::decompress(&sample.text, MOST_TEXT).map_err(|error| {
                Fault::error(format!("{}: its text is damaged: {error}", sample.url))
            })?;
            let Ok(url) = canonical_url(&sample.url, None) else {
                continue;
            };
            // The text was already decoded when it was stored, so it is UTF-8.
            let Some(page) = GatheredPage::decode(url, Some("text/html; charset=utf-8"), &text)
            else {
                continue;
            };
            match when.as_str() {
                "before" => self.before.push(page),
                _ => {
                    self.keys.push(sample.page);
                    self.now.push(page);
                }
            }
        }
        Ok(())
    }

    fn note_values_before_change(&mut self, alert: &Alert) {
        for page in &alert.before {
            let mut values = known_values(&page.fields);
            let is_whole =
                |text: &String| text.chars().count() < SHORTENED_CHARS && text != "\u{2026}";
            values.retain(|name, values| {
                split_rows_name(name).is_none() && values.iter().all(is_whole)
            });
            self.add_known(&page.url, values);
        }
    }

    /// Notes a possible time of the change. Of several times, the earliest one counts.
    fn note_change(&mut self, at: &str) {
        if self.changed_at.as_deref().is_none_or(|known| at < known) {
            self.changed_at = Some(at.to_owned());
        }
    }

    /// Adds the kept pages of a crawl that this mapping has read.
    async fn add_pages_of_crawl(
        &mut self,
        crawl: &mut StoredCrawl,
        mapping: &str,
    ) -> Result<(), Fault> {
        crawl.for_each_url(&mut |_| ()).await?;
        let mut gathering = PageGatherer::new(&|_| true);
        let records = &mut self.records;
        let take = |page: &Map<String, Value>, gathered: &GatheredPage| {
            let is_of_mapping = page.get("mapping").and_then(Value::as_str) == Some(mapping);
            if is_of_mapping {
                collect_records(page, gathered.url.as_str(), records);
            }
            is_of_mapping
        };
        crawl.gather(&mut gathering, take).await?;
        for page in gathering.pages {
            let is_new = self.now.iter().all(|kept| kept.url != page.url);
            if is_new {
                self.now.push(page);
            }
        }
        Ok(())
    }

    /// Notes the records of the pages that the alert has kept.
    async fn note_records(&mut self, store: &dyn Store) -> Result<(), Fault> {
        let keys = std::mem::take(&mut self.keys);
        let pages = load_pages(store, keys).await?;
        for page in pages.values() {
            let url = page.get("url").and_then(Value::as_str).unwrap_or_default();
            collect_records(page, url, &mut self.records);
        }
        Ok(())
    }

    /// Adds the values that the records of these pages had before the change. They may come from users or from pages.
    async fn add_values_of_records(
        &mut self,
        store: &dyn Store,
        changed_at: &str,
    ) -> Result<(), Fault> {
        if self.records.is_empty() {
            return Ok(());
        }
        let mut found: Vec<(String, Values)> = Vec::new();
        let records = &self.records;
        let mut each = |record: Value| {
            let urls = record["_id"].as_str().and_then(|key| records.get(key));
            if let Some(urls) = urls {
                let values = known_values(&fields_before(&record, changed_at));
                found.extend(urls.iter().map(|url| (url.clone(), values.clone())));
            }
            Ok(())
        };
        let filter = ExportFilter::default();
        let read = store.export(ExportKind::Records, &filter, &mut each).await;
        read.map_err(Fault::error)?;
        for (url, values) in found {
            self.add_known(&url, values);
        }
        Ok(())
    }

    /// Adds the values that the mapping last read from the same pages before the change.
    async fn add_values_of_pages(
        &mut self,
        store: &dyn Store,
        mapping: &str,
        changed_at: &str,
    ) -> Result<(), Fault> {
        let wanted: BTreeSet<&str> = self.now.iter().flat_map(GatheredPage::urls).collect();
        let mut found: Vec<(String, String, Values)> = Vec::new();
        let mut each = |page: Value| {
            let text = |name: &str| page[name].as_str().unwrap_or_default().to_owned();
            let started_at = text("started_at");
            let is_before = !started_at.is_empty() && *started_at < *changed_at;
            let is_wanted = text("mapping") == mapping && wanted.contains(text("url").as_str());
            if let Some(fields) = page["fields"]
                .as_object()
                .filter(|_| is_wanted && is_before)
            {
                found.push((started_at, text("url"), known_values(fields)));
            }
            Ok(())
        };
        let filter = ExportFilter::default();
        let read = store.export(ExportKind::Pages, &filter, &mut each).await;
        read.map_err(Fault::error)?;
        found.sort_by(|(one, ..), (other, ..)| other.cmp(one));
        for (_, url, values) in found {
            self.add_known(&url, values);
            self.read_before.insert(url);
        }
        Ok(())
    }

    /// Adds the values of the user's own records. They replace other values.
    fn add_values_of_user(
        &mut self,
        options: &MappingRepairOptions,
        runtime: &Runtime,
    ) -> Result<(), Fault> {
        let wanted: BTreeSet<String> = self
            .now
            .iter()
            .flat_map(GatheredPage::urls)
            .map(str::to_owned)
            .collect();
        let is_wanted = |record: &crate::mapping_command::learn::records::KnownRecord| {
            record.links.iter().any(|link| wanted.contains(link))
        };
        let records = KnownRecords::read(&options.records, runtime, &is_wanted, &|_| false)?;
        for record in records.records {
            for link in record.links {
                let fields = record.known.keys();
                self.of_user
                    .extend(fields.map(|field| (link.clone(), field.clone())));
                let known = self.known.entry(link).or_default();
                known.extend(record.known.clone());
            }
        }
        Ok(())
    }

    /// Adds values of a page. Fields that already have a known value keep it.
    fn add_known(&mut self, url: &str, values: Values) {
        let known = self.known.entry(url.to_owned()).or_default();
        for (field, values) in values {
            known.entry(field).or_insert(values);
        }
    }

    /// The values of this page that were known before the change.
    pub fn known_values_of(&self, page: &GatheredPage) -> Values {
        let mut all = Values::new();
        for values in page.urls().filter_map(|name| self.known.get(name)) {
            for (field, values) in values {
                all.entry(field.clone()).or_insert_with(|| values.clone());
            }
        }
        all
    }

    /// Whether the mapping read nothing for a field on this page before the change, but did on other pages.
    pub fn was_empty(&self, page: &GatheredPage, field: &str) -> bool {
        /// At least this many other pages must have a value.
        const OTHERS: usize = 2;
        let has_value = |url: &&String| {
            let known = self.known.get(*url);
            known.is_some_and(|known| known.contains_key(field))
                && !self.of_user.contains(&((*url).clone(), field.to_owned()))
        };
        let mut names = page.urls();
        names.any(|name| self.read_before.contains(name))
            && !self.known_values_of(page).contains_key(field)
            && self
                .read_before
                .iter()
                .filter(has_value)
                .nth(OTHERS - 1)
                .is_some()
    }

    /// Whether values other than `known` are certainly wrong, because `known` comes from the user or is on the page.
    pub fn are_other_values_wrong(
        &self,
        page: &GatheredPage,
        field: &str,
        known: &[String],
    ) -> bool {
        let mut names = page.urls();
        names.any(|name| self.of_user.contains(&(name.to_owned(), field.to_owned())))
            || known.iter().all(|value| page.text.contains(value.as_str()))
    }

    /// The known values of the field on each current page; `None` for a page where they are unknown.
    pub fn known_values_of_current_pages(
        &self,
        field: &str,
    ) -> impl Iterator<Item = Option<Vec<String>>> {
        let pages = self.now.iter();
        pages.map(move |page| self.known_values_of(page).remove(field))
    }
}

fn collect_records(
    page: &Map<String, Value>,
    url: &str,
    records: &mut HashMap<String, Vec<String>>,
) {
    let keys = page.get("records").and_then(Value::as_array);
    for key in keys.into_iter().flatten().filter_map(Value::as_str) {
        records
            .entry(key.to_owned())
            .or_default()
            .push(url.to_owned());
    }
}

fn unknown_change_time(mapping: &str) -> Fault {
    Fault::usage(format!(
        "unknown time of the change: the alert of mapping {mapping} names no page from after it; name the first crawl after the change with --crawl (run with --keep-bodies)"
    ))
}

/// The fields of a record as they were before `time`. Values that pages have given since then are replaced by the last
/// value from before; without one, the field is left out.
fn fields_before(record: &Value, time: &str) -> Map<String, Value> {
    let is_before = |at: &Value| at.as_str().is_none_or(|at| at < time);
    let mut fields = Map::new();
    for (name, value) in record["fields"].as_object().into_iter().flatten() {
        // A value without a source comes from a user, so it counts as older.
        if is_before(&record["sources"][name]["at"]) {
            fields.insert(name.clone(), value.clone());
            continue;
        }
        let former = record["history"][name].as_array();
        let former = former.and_then(|all| all.iter().rfind(|one| is_before(&one["at"])));
        if let Some(former) = former {
            fields.insert(name.clone(), former["value"].clone());
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_from_after_the_change_are_not_used() {
        let (before, after) = ("2026-01-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z");
        let record = json!({
            "fields": {"given": "a", "old": "b", "new": "c", "replaced": "d"},
            "sources": {"old": {"at": before}, "new": {"at": after}, "replaced": {"at": after}},
            "history": {"replaced": [
                {"value": "e", "at": before, "until": before},
                {"value": "f", "at": before, "until": after},
                {"value": "g", "at": after, "until": after},
            ]},
        });
        let known = fields_before(&record, "2026-02-01T00:00:00.000Z");
        assert_eq!(
            Value::Object(known),
            json!({"given": "a", "old": "b", "replaced": "f"})
        );
    }
}
