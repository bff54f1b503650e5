//! Pages as this backend stores them.

use mongodb::bson::raw::cstr;
use mongodb::bson::{RawArrayBuf, RawBson, RawDocument, RawDocumentBuf, rawdoc};
use serde_json::{Map, Value};
use webfill_wire::FailedAttempt;

use crate::list::PageOfList;
use crate::mongodb::fault::Fault;
use crate::mongodb::members::date;
use crate::mongodb::value::{self, binary, bson, document, or_null, text_array};
use crate::page::Page;
use crate::record::{FillRules, Leads, PageValues};
use crate::row_counts::{RowCounts, rows_of};
use crate::site_clock::clamp_to_i64;
use crate::validators::Validators;

/// The condition that the stored page is not of a later delivery than this one, and, for the same delivery, was not
/// fetched later. Arrays are compared member by member.
pub(super) fn not_earlier_condition(page: &Page) -> RawDocumentBuf {
    rawdoc! {"$gte": [
        [
            {"$literal": clamp_to_i64(page.delivery.epoch)},
            {"$literal": clamp_to_i64(page.task)},
            {"$literal": i64::from(page.delivery.number)},
            {"$literal": date(page.started_at_ms)},
        ],
        ["$epoch", "$task", "$attempts", "$started_at"],
    ]}
}

pub(super) fn page_document(
    page: &Page,
    records: &[String],
    list: Option<&PageOfList>,
) -> Result<RawDocumentBuf, Fault> {
    let mut stored = rawdoc! {
        "_id": page.id(),
        "app_id": page.app_id.as_str(),
        "crawl_id": page.crawl_id.as_str(),
        "url": page.url.as_str(),
        "final_url": or_null(page.final_url.as_deref()),
        "site": page.site.as_str(),
        "depth": i32::from(page.depth),
        "parent": or_null(page.parent.as_deref()),
        "outcome": page.outcome.as_str(),
        "status_code": or_null(page.status_code.map(i32::from)),
        "mapping": or_null(page.mapping.as_deref()),
        "mapping_version": or_null(page.mapping_version.as_deref()),
        "template": or_null(page.template.as_deref()),
    };
    stored.append(cstr!("records"), text_array(records));
    stored.append(cstr!("fields"), document(&page.fields)?);
    stored.append(
        cstr!("alternatives"),
        alternatives_bson(&page.alternatives)?,
    );
    if let Some(list) = list {
        let list = serde_json::to_value(list);
        let list = list.map_err(|error| Fault::InvalidEntry(error.to_string()))?;
        stored.append(cstr!("list"), bson(&list)?);
    }
    stored.append(cstr!("rows"), or_null(rows_of(&page.row_counts)));
    stored.append(cstr!("row_counts"), row_counts_bson(&page.row_counts)?);
    stored.append(cstr!("links"), text_array(&page.links));
    stored.append(cstr!("content_type"), or_null(page.content_type.as_deref()));
    stored.append(cstr!("bytes"), clamp_to_i64(page.bytes));
    stored.append(cstr!("content_hash"), or_null(page.content_hash.as_deref()));
    stored.append(cstr!("started_at"), date(page.started_at_ms));
    stored.append(cstr!("elapsed_ms"), clamp_to_i64(page.elapsed_ms));
    stored.append(cstr!("attempts"), i64::from(page.delivery.number));
    stored.append(cstr!("worker"), page.worker.as_str());
    let attrs = page.attrs.as_ref().map(bson).transpose()?;
    stored.append(cstr!("attrs"), or_null(attrs));
    stored.append(cstr!("tries"), failed_attempts_bson(&page.failed_attempts));
    let headers = page.headers.as_ref().map(document).transpose()?;
    stored.append(cstr!("headers"), or_null(headers));
    let of_document = page.document.as_ref().map(document).transpose()?;
    stored.append(cstr!("document"), or_null(of_document));
    stored.append(cstr!("body"), or_null(page.body.as_deref()));
    let validators = page.validators.as_ref().map(validators_bson).transpose()?;
    stored.append(cstr!("validators"), or_null(validators));
    if let Some(snapshot) = &page.snapshot {
        stored.append(cstr!("snapshot"), binary(snapshot));
    }
    stored.append(cstr!("epoch"), clamp_to_i64(page.delivery.epoch));
    stored.append(cstr!("task"), clamp_to_i64(page.task));
    Ok(stored)
}

/// The numbers of the alternative rules that found values, in stored form; null if there are none.
pub(in crate::mongodb) fn alternatives_bson(of: &Map<String, Value>) -> Result<RawBson, Fault> {
    let some = (!of.is_empty()).then(|| document(of)).transpose()?;
    Ok(or_null(some))
}

/// The counts of rows in stored form; null if the page's mapping has no rows.
pub(in crate::mongodb) fn row_counts_bson(of: &[RowCounts]) -> Result<RawBson, Fault> {
    if of.is_empty() {
        return Ok(RawBson::Null);
    }
    let value = serde_json::to_value(of);
    bson(&value.map_err(|error| Fault::InvalidEntry(error.to_string()))?)
}

fn validators_bson(validators: &Validators) -> Result<RawBson, Fault> {
    let value = serde_json::to_value(validators);
    bson(&value.map_err(|error| Fault::InvalidEntry(error.to_string()))?)
}

fn failed_attempts_bson(failed_attempts: &[FailedAttempt]) -> RawArrayBuf {
    let one = |one: &FailedAttempt| {
        rawdoc! {
            "ended_at": date(one.ended_at_ms),
            "outcome": one.outcome.as_str(),
            "status_code": or_null(one.status_code.map(i32::from)),
        }
    };
    failed_attempts.iter().map(one).collect()
}

/// The members of a stored page that are needed to fill records.
pub(super) struct StoredPage {
    pub(super) url: String,
    mapping: Option<String>,
    started_at_ms: i64,
    elapsed_ms: i64,
    fields: Map<String, Value>,
    pub(super) links: Vec<String>,
    depth: Option<u16>,
    leads: Leads,
    /// The keys of the first records that the page was fetched for.
    pub(super) records: Vec<String>,
    /// Whether one of `records` names the page's URL.
    pub(super) is_own: bool,
}

impl StoredPage {
    pub(super) fn from_stored(
        stored: &RawDocument,
        rules: &FillRules,
    ) -> Result<StoredPage, Fault> {
        let mut members = value::object(stored);
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        let started_at = stored.get_datetime("started_at").map_err(|_| {
            Fault::InvalidEntry(format!("page {:?} started at no time", members.get("_id")))
        })?;
        let links: Vec<String> = match members.get("links") {
            Some(Value::Array(links)) => links.iter().cloned().filter_map(into_text).collect(),
            _ => Vec::new(),
        };
        let (url, mapping) = (text("url").unwrap_or_default(), text("mapping"));
        Ok(StoredPage {
            depth: members
                .get("depth")
                .and_then(Value::as_u64)
                .map(|depth| depth as u16),
            leads: rules.find_leads(&url, mapping.as_deref(), &links),
            links,
            records: match members.get("records") {
                Some(Value::Array(all)) => all.iter().cloned().filter_map(into_text).collect(),
                _ => Vec::new(),
            },
            is_own: false,
            url,
            mapping,
            started_at_ms: started_at.timestamp_millis(),
            elapsed_ms: members
                .get("elapsed_ms")
                .and_then(Value::as_i64)
                .unwrap_or(0),
            fields: match members.remove("fields") {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            },
        })
    }

    pub(super) fn values(&self) -> PageValues<'_> {
        PageValues {
            fields: &self.fields,
            url: &self.url,
            mapping: self.mapping.as_deref(),
            started_at_ms: self.started_at_ms,
            ended_at_ms: self.started_at_ms.saturating_add(self.elapsed_ms),
            depth: self.depth,
            leads: &self.leads,
            is_of_other: self.is_own,
            is_reread: false,
        }
    }
}

fn into_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}
