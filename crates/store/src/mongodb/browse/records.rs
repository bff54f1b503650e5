//! Lists the records of the database, and its datasets.

use mongodb::Collection;
use mongodb::bson::{Bson, DateTime, Document, RawDocument, RawDocumentBuf, doc};
use serde_json::{Map, Value};

use super::crawls::count;
use crate::browse::{
    Count, DatasetRow, ListOrder, ListPage, ListedRecord, MAX_CRAWLS_OF_RECORD, MAX_FIELDS_OF_ROW,
    Place, RecordCondition, RecordFilter, RecordRow, UnfinishedPage, WholeRecord, includes_app,
};
use crate::crawl::CrawlId;
use crate::dataset_name::split_record_key;
use crate::mongodb::command::{Db, with_timeout};
use crate::mongodb::fault::Fault;
use crate::mongodb::indexes::RECORDS_BY_STATE;
use crate::mongodb::list_query::{ListQuery, condition_before, key, place_at};
use crate::mongodb::members::{short_object_expression, time};
use crate::mongodb::{export, value};
use crate::record::RecordState;
use crate::store::ExportKind;

pub(super) async fn list(
    db: &Db,
    filter: &RecordFilter,
    from: Option<Place>,
    wanted: usize,
) -> Result<ListPage<RecordRow>, Fault> {
    let read = |stored: &RawDocument, order| place_and_row(stored, filter, order);
    read_along_index(db, filter, from, (projection(), wanted), read).await
}

pub(super) async fn list_whole(
    db: &Db,
    filter: &RecordFilter,
    condition: &RecordCondition,
    from: Option<Place>,
    wanted: usize,
) -> Result<ListPage<ListedRecord>, Fault> {
    let read = |stored: &RawDocument, order| {
        let place = place_in(order, key(stored), time(stored, "resolved_at"));
        let taken = parse_if_matching(stored, filter, condition);
        let listed = taken.map(|(id, record)| ListedRecord {
            place: place.clone(),
            id,
            record,
        });
        Ok((place, listed))
    };
    read_along_index(db, filter, from, (Document::new(), wanted), read).await
}

fn parse_if_matching(
    stored: &RawDocument,
    filter: &RecordFilter,
    condition: &RecordCondition,
) -> Option<(String, WholeRecord)> {
    let (dataset, id) = split_record_key(key(stored));
    let is_resolved = time(stored, "resolved_at").is_some();
    if !filter.matches_record(dataset, id, is_resolved) || !is_of_apps(stored, filter) {
        return None;
    }
    let document = export::row(ExportKind::Records, stored);
    let record = condition.matches(&document).then(|| WholeRecord {
        crawls: crawls_of(stored),
        document,
    })?;
    Some((id.to_owned(), record))
}

/// Reads a page of a list of records, along the index that holds the wanted records if there is one, and otherwise
/// along their keys.
async fn read_along_index<T>(
    db: &Db,
    filter: &RecordFilter,
    from: Option<Place>,
    (members, wanted): (Document, usize),
    read: impl Fn(&RawDocument, ListOrder) -> Result<(Place, Option<T>), Fault>,
) -> Result<ListPage<T>, Fault> {
    let listing = |which, order, index| ListQuery {
        collection: "records",
        which,
        order,
        index,
        members: members.clone(),
        wanted,
    };
    let begun = from.as_ref().map(Place::order);
    let followed = match (&filter.dataset, filter.state) {
        (Some(dataset), Some(RecordState::Open)) => {
            let which = open_records_query(dataset, filter, from.as_ref());
            let open = listing(which, doc! {"_id": 1}, RECORDS_BY_STATE);
            Some((open, ListOrder::Key))
        }
        (Some(dataset), Some(RecordState::Resolved))
            if filter.id_prefix.is_none() && begun != Some(ListOrder::Key) =>
        {
            let order = doc! {"resolved_at": -1, "_id": -1};
            let resolved = listing(
                resolved_records_query(dataset, from.as_ref()),
                order,
                RECORDS_BY_STATE,
            );
            Some((resolved, ListOrder::Newest))
        }
        _ => None,
    };
    if let Some((listing, order)) = followed {
        let listed = listing.read_list_page(db, |stored| read(stored, order));
        if let Some(page) = listed.await? {
            return Ok(page);
        }
    }
    let by_key = listing(
        key_condition(filter, from.as_ref()),
        doc! {"_id": 1},
        "_id_",
    );
    let listed = by_key.read_list_page(db, |stored| read(stored, ListOrder::Key));
    Ok(listed.await?.unwrap_or_else(ListPage::end))
}

fn key_condition(filter: &RecordFilter, from: Option<&Place>) -> Document {
    let (first, end) = filter.keys(from);
    doc! {"_id": {"$gte": first, "$lt": end}}
}

fn open_records_query(dataset: &str, filter: &RecordFilter, from: Option<&Place>) -> Document {
    let mut which = key_condition(filter, from);
    which.insert("dataset", dataset);
    which.insert("resolved_at", Bson::Null);
    which
}

fn resolved_records_query(dataset: &str, from: Option<&Place>) -> Document {
    // This matches every date, but neither null nor a missing value.
    let mut which = doc! {"dataset": dataset, "resolved_at": {"$gte": DateTime::MIN}};
    if let Some(place) = from {
        which.extend(condition_before("resolved_at", place));
    }
    which
}

fn projection() -> Document {
    doc! {
        "missing": 1,
        "resolved_at": 1,
        "crawls": 1,
        "fields": short_object_expression("fields", MAX_FIELDS_OF_ROW),
    }
}

/// The place of a document in the list, and the record in it if the filter accepts the record.
fn place_and_row(
    stored: &RawDocument,
    filter: &RecordFilter,
    order: ListOrder,
) -> Result<(Place, Option<RecordRow>), Fault> {
    let record = record_row_from(stored);
    let place = place_in(order, &record.key, record.resolved_at_ms);
    let is_taken = filter.matches(&record) && is_of_apps(stored, filter);
    Ok((place, is_taken.then_some(record)))
}

fn place_in(order: ListOrder, key: &str, resolved_at_ms: Option<i64>) -> Place {
    match order {
        ListOrder::Key => Place::by_key(key),
        ListOrder::Newest => {
            let at = DateTime::from_millis(resolved_at_ms.unwrap_or_default());
            place_at(at, key)
        }
    }
}

fn record_row_from(stored: &RawDocument) -> RecordRow {
    let key = key(stored).to_owned();
    let (dataset, id) = split_record_key(&key);
    let missing = stored.get_array("missing").ok().into_iter().flatten();
    let name = |one| match one {
        Ok(mongodb::bson::RawBsonRef::String(name)) => Some(name.to_owned()),
        _ => None,
    };
    let fields = stored.get_document("fields").ok();
    RecordRow {
        dataset: dataset.to_owned(),
        id: id.to_owned(),
        missing: missing.filter_map(name).collect(),
        resolved_at_ms: time(stored, "resolved_at"),
        fields: fields.map(|fields: &RawDocument| -> Map<String, Value> { value::object(fields) }),
        key,
    }
}

fn is_of_apps(stored: &RawDocument, filter: &RecordFilter) -> bool {
    let apps = filter.apps.as_ref();
    let mut crawls = crawls_of(stored).into_iter();
    apps.is_none() || crawls.any(|crawl| includes_app(apps, &crawl.app_id))
}

fn crawls_of(stored: &RawDocument) -> Vec<CrawlId> {
    let crawls = stored.get_array("crawls").ok().into_iter().flatten();
    let crawl = |one| match one {
        Ok(mongodb::bson::RawBsonRef::Document(crawl)) => Some(CrawlId::new(
            crawl.get_str("app_id").ok()?,
            crawl.get_str("crawl_id").ok()?,
        )),
        _ => None,
    };
    crawls
        .filter_map(crawl)
        .take(MAX_CRAWLS_OF_RECORD)
        .collect()
}

/// A record with everything known about it.
pub(super) async fn whole(db: &Db, key: &str) -> Result<Option<WholeRecord>, Fault> {
    let found = db.find_one("records", key).await?;
    Ok(found.map(|stored| WholeRecord {
        document: export::row(ExportKind::Records, &stored),
        crawls: crawls_of(&stored),
    }))
}

/// Lists datasets. Jumps from one to the next in the index of record keys, so that records are not read.
pub(super) async fn datasets(
    db: &Db,
    count_to: u64,
    from: Option<Place>,
    wanted: usize,
) -> Result<ListPage<DatasetRow>, Fault> {
    let mut page = UnfinishedPage::begin(wanted);
    let mut after = from.map(|place| place.part(0).to_owned());
    while let Some(name) = dataset_after(db, after.as_deref()).await? {
        if page.is_full() {
            return Ok(page.end_at(after.map(Place::by_key)));
        }
        page.add(0, Some(dataset(db, &name, count_to).await?));
        after = Some(name);
    }
    Ok(page.end_at(None))
}

async fn dataset_after(db: &Db, after: Option<&str>) -> Result<Option<String>, Fault> {
    // `0` is the character after `/` in ASCII, so all keys of the dataset `name` sort before `{name}0`.
    let first = after.map_or_else(String::new, |name| format!("{name}0"));
    let records: Collection<RawDocumentBuf> = db.database.collection("records");
    let find = records
        .find_one(doc! {"_id": {"$gte": first}})
        .sort(doc! {"_id": 1})
        .projection(doc! {"_id": 1});
    let found = with_timeout(async { find.await }).await?;
    Ok(found.map(|stored| split_record_key(key(&stored)).0.to_owned()))
}

pub(super) async fn dataset(db: &Db, name: &str, count_to: u64) -> Result<DatasetRow, Fault> {
    let all = doc! {"_id": {"$gte": format!("{name}/"), "$lt": format!("{name}0")}};
    let open = doc! {"dataset": name, "resolved_at": Bson::Null};
    let (total, open) = tokio::try_join!(
        count(db, "records", all, "_id_", count_to),
        count(db, "records", open, RECORDS_BY_STATE, count_to)
    )?;
    Ok(DatasetRow {
        name: name.to_owned(),
        total: total.unwrap_or_else(Count::unknown),
        open: open.unwrap_or_else(Count::unknown),
    })
}
