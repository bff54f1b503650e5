//! Datasets, and the records of a dataset by state.

use serde_json::{Value, json};
use webfill_store::{Count, DatasetRow, RecordFilter, RecordRow, RecordState};

use super::reading::{List, ROWS, place, store, within};
use crate::answer::{Problem, Shown, see_other};
use crate::templates::encoded;
use crate::visit::Visit;

/// The records of a dataset are counted up to this number.
const COUNT_TO: u64 = 100_000;

/// The values of a record shown in a list.
const VALUES_IN_LIST: usize = 4;

pub(crate) async fn show(visit: &Visit) -> Shown {
    match visit.asked("dataset") {
        None => datasets(visit).await,
        Some(dataset) => records(visit, dataset).await,
    }
}

async fn datasets(visit: &Visit) -> Shown {
    visit.needs_whole_fleet()?;
    let (store, from) = (store(visit).await?, place(visit)?);
    let slice = within(store.browse.datasets(COUNT_TO, from.as_ref(), ROWS)).await?;
    let content = json!({"list": List::of(visit, &slice, dataset_row)});
    visit.page("datasets.html", "Records", content)
}

fn dataset_row(dataset: &DatasetRow) -> Value {
    let shown = |count: Count| json!({"counted": count.counted, "is_more": count.is_more});
    let (total, open) = (dataset.total, dataset.open);
    let is_known = !total.is_more && !open.is_more;
    json!({
        "name": dataset.name,
        "total": shown(total),
        "open": shown(open),
        "resolved": is_known.then(|| total.counted.saturating_sub(open.counted)),
    })
}

async fn records(visit: &Visit, dataset: &str) -> Shown {
    if let Some(id) = visit
        .asked("id")
        .filter(|_| visit.asked("how") == Some("exact"))
    {
        let path = format!("/dashboard/record/{}/{}", encoded(dataset), encoded(id));
        return Ok(see_other(&path));
    }
    let state = match visit.asked("state") {
        None => None,
        Some("open") => Some(RecordState::Open),
        Some("resolved") => Some(RecordState::Resolved),
        Some(_) => return Err(Problem::faulty("state: expected open or resolved")),
    };
    let filter = RecordFilter {
        dataset: Some(dataset.to_owned()),
        state,
        id_prefix: visit.asked("id").map(str::to_owned),
        apps: visit.apps(),
    };
    let (store, from) = (store(visit).await?, place(visit)?);
    let slice = within(store.browse.records(&filter, from.as_ref(), ROWS)).await?;
    let content = json!({
        "dataset": dataset,
        "state": visit.asked("state"),
        "id": visit.asked("id"),
        "is_bound": visit.visitor.rights.is_bound(),
        "list": List::of(visit, &slice, record_row),
    });
    visit.page("records.html", &format!("Records of {dataset}"), content)
}

fn record_row(record: &RecordRow) -> Value {
    let fields = record.fields.iter().flatten();
    let fields = fields.filter(|(_, value)| webfill_store::has_value(value));
    let values: Vec<Value> = fields
        .take(VALUES_IN_LIST)
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    json!({
        "dataset": record.dataset,
        "id": record.id,
        "missing": record.missing,
        "resolved_at_ms": record.resolved_at_ms,
        "values": values,
        "is_large": record.fields.is_none(),
    })
}
