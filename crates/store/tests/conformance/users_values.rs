//! Values that the user typed are never lost, whatever happens and in whatever order.

use serde_json::json;
use webfill_store::{CrawlId, DatasetRecord, FilledField, SourceDocument, has_value};

use super::*;

const COLLECTION: &str = "db.people";
const FIELD: &str = "city";

/// There are few values, so the user often types one that a page has, had, or will have.
const CITIES: [&str; 4] = ["Bath", "Leeds", "York", "Hull"];
const PAGES: [&str; 2] = ["https://example.com/a", "https://example.com/b"];

const HISTORIES: u64 = 24;
const STEPS: u64 = 40;

/// Seeds of random histories that have shown a fault. Every run tests them.
const FOUND: [u64; 3] = [76, 126, 245];

/// How many random histories are tested. `WEBFILL_HISTORIES` sets another number.
fn history_count() -> u64 {
    let asked = std::env::var("WEBFILL_HISTORIES");
    asked.map_or(HISTORIES, |asked| asked.parse().unwrap())
}

/// A generator of pseudo-random numbers, which are the same in each run.
struct Drawn(u64);

impl Drawn {
    fn number_below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn city(&mut self) -> Value {
        json!(CITIES[self.number_below(CITIES.len())])
    }
}

/// The user's document, and what the test knows about its field.
struct Dataset {
    id: String,
    value: Value,
    /// The value that the user has typed and not withdrawn.
    users: Option<Value>,
    /// Whether the user typed the value over one from a page that webfill had certainly written. If a crash leaves open
    /// whether webfill wrote the value, a refresh may look for another one.
    corrects: bool,
    /// The last value that webfill has certainly written to the dataset.
    written: Value,
    /// The values that webfill was about to write when it was killed. They may count as written.
    intended: Vec<Value>,
    crawls: u64,
}

impl Dataset {
    fn input(&self) -> DatasetRecord {
        DatasetRecord {
            source: Some(SourceDocument {
                collection: COLLECTION.to_owned(),
                id: format!("\"{}\"", self.id),
                fields: vec![FIELD.to_owned()],
                is_target: true,
            }),
            ..DatasetRecord::from(record(&self.id, json!({FIELD: self.value})))
        }
    }

    /// Writes a value like the server does. If the user has typed the same value, and nobody has read it yet, it counts
    /// as webfill's from then on.
    fn write(&mut self, field: &FilledField) {
        if self.users.as_ref() == Some(&field.value) {
            self.users = None;
        }
        let may = !has_value(&self.value)
            || (!field.is_asked_again && field.others.contains(&self.value));
        if may {
            self.value = field.value.clone();
            self.written = field.value.clone();
        }
    }

    /// The user types a value. It does not count as the user's own if it repeats the value that is there, was about to
    /// be written there, or was found and is not written yet.
    fn type_in(&mut self, value: Value, found: &Value, is_filled: bool) {
        let is_own = has_value(&value) && value == *found;
        if is_own || value == self.value || value == self.written || self.intended.contains(&value)
        {
            return;
        }
        let is_correction = is_filled && self.value == self.written && self.intended.is_empty();
        self.corrects =
            has_value(&value) && (is_correction || (self.corrects && self.users.is_some()));
        self.users = has_value(&value).then(|| value.clone());
        self.value = value;
    }

    fn assert_users_value_kept(&self, stored: Option<&Value>, history: &str) {
        if let Some(users) = &self.users {
            assert_eq!(
                &self.value, users,
                "the dataset lost what was typed: {history}"
            );
            if let Some(stored) = stored {
                assert_eq!(&stored["fields"][FIELD], users, "{history}: {stored}");
            }
        }
    }
}

async fn put_crawl_of(store: &dyn Store, dataset: &Dataset) -> CrawlId {
    let id = CrawlId::new("app", format!("{}-{}", dataset.id, dataset.crawls));
    store.put_crawl(crawl(id.clone())).await.unwrap();
    id
}

/// Reads the document, in some cases in another crawl, in some to refresh values from pages.
async fn read_document(store: &dyn Store, dataset: &mut Dataset, drawn: &mut Drawn, now_ms: i64) {
    let mut input = dataset.input();
    match drawn.number_below(3) {
        0 => {
            dataset.crawls += 1;
            if drawn.number_below(2) == 0 && (dataset.users.is_none() || dataset.corrects) {
                input.refresh.on_entry = vec![FIELD.to_owned()];
            }
        }
        1 => input.refresh.after_ms = Some(0),
        _ => {}
    }
    let id = put_crawl_of(store, dataset).await;
    let put = store.put_dataset(&id, vec![input], now_ms).await;
    for put in put {
        put.unwrap();
    }
}

/// Writes values back. In some cases, webfill crashes before or after the server has executed the write.
async fn write_back(store: &dyn Store, dataset: &mut Dataset, drawn: &mut Drawn) {
    let id = CrawlId::new("app", format!("{}-{}", dataset.id, dataset.crawls));
    let mut unwritten = store.unwritten(&id, COLLECTION, 10).await.unwrap();
    if unwritten.is_empty() {
        return;
    }
    store.begin_writing(&mut unwritten).await.unwrap();
    let fields: Vec<FilledField> = unwritten
        .iter()
        .flat_map(|one| one.fields.clone())
        .collect();
    dataset
        .intended
        .extend(fields.iter().map(|field| field.value.clone()));
    if drawn.number_below(4) == 0 {
        return;
    }
    fields.iter().for_each(|field| dataset.write(field));
    if drawn.number_below(4) > 0 {
        store.confirm_written(&id, unwritten).await.unwrap();
        // A value that the server has not written because of the user's value counts as written until the document is
        // read again.
        let stands = dataset.value.clone();
        let written = fields.iter().map(|field| field.value.clone());
        dataset.intended = written.filter(|value| *value != stands).collect();
    }
}

pub(crate) async fn what_the_user_typed_is_never_lost(clients: &Clients) {
    let beyond = FOUND
        .into_iter()
        .filter(|number| *number >= history_count());
    for number in (0..history_count()).chain(beyond) {
        let mut drawn = Drawn(number);
        let mut dataset = Dataset {
            id: format!("r{number}"),
            value: Value::Null,
            users: None,
            corrects: false,
            written: Value::Null,
            intended: Vec::new(),
            crawls: 0,
        };
        let mut history = format!("history {number}:");
        read_document(&*clients.first.store, &mut dataset, &mut drawn, NOON_MS).await;
        for step in 0..STEPS {
            let store = match drawn.number_below(2) {
                0 => &*clients.first.store,
                _ => &*clients.second.store,
            };
            let now_ms = NOON_MS + step as i64 * 60_000;
            match drawn.number_below(4) {
                0 => {
                    let value = match drawn.number_below(5) {
                        0 => Value::Null,
                        _ => drawn.city(),
                    };
                    history += &format!(" type {value}");
                    let stored = stored_record(store, &dataset.id).await;
                    let is_filled = stored["sources"].get(FIELD).is_some();
                    dataset.type_in(value, &stored["fields"][FIELD], is_filled);
                }
                1 => {
                    history += " read";
                    read_document(store, &mut dataset, &mut drawn, now_ms).await;
                    let stored = stored_record(store, &dataset.id).await;
                    dataset.assert_users_value_kept(Some(&stored), &history);
                }
                2 => {
                    let mut page =
                        page_with(PAGES[drawn.number_below(2)], json!({FIELD: drawn.city()}));
                    page.started_at_ms = now_ms;
                    page.delivery.number = 1 + step as u32;
                    history += &format!(" page {}", page.fields[FIELD]);
                    save(store, page, &[&dataset.id]).await.unwrap();
                }
                _ => {
                    history += " write";
                    write_back(store, &mut dataset, &mut drawn).await;
                }
            }
            dataset.assert_users_value_kept(None, &history);
        }
    }
}
