//! Datasets, and the records of a dataset as a grid.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use webfill_store::{Browse, Count, DatasetRow, Place, RecordFilter, RecordState};

use super::grid_parts::{self, BEGINNING, ROWS, link_from_beginning};
use super::reading::{self, List, open_store, with_time_limit};
use crate::answer::{Problem, Shown, see_other};
use crate::grid::download::{Format, RecordDownload};
use crate::grid::record_cells;
use crate::grid::records::{self, Filter, MOST_SORTED, Page, Row};
use crate::grid::state::State;
use crate::templates::percent_encode;
use crate::visit::Visit;

/// The records of a dataset are counted up to this number, so that counting does not take long.
const COUNT_TO: u64 = 100_000;

/// How many records are read in addition to those of the page, to find the columns.
const SAMPLE: u32 = 100;

/// How many columns one page may have.
const MOST_COLUMNS: usize = 1_000;

pub(crate) async fn show(visit: &Visit) -> Shown {
    match visit.query_value("dataset") {
        None => show_datasets(visit).await,
        Some(dataset) => show_records(visit, dataset).await,
    }
}

async fn show_datasets(visit: &Visit) -> Shown {
    visit.require_whole_fleet()?;
    let (store, from) = (open_store(visit).await?, reading::parse_cursor(visit)?);
    let listed = store
        .browse
        .datasets(COUNT_TO, from.as_ref(), reading::ROWS);
    let list_page = with_time_limit(listed).await?;
    let content = json!({"list": List::from_store(visit, &list_page, dataset_row)});
    visit.render_page("datasets.html", "Records", content)
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

/// What a request wants to see of a dataset.
struct Asked {
    filter: Filter,
    after: Option<String>,
    /// The column that records are sorted by, and whether the order is descending.
    sort: Option<(String, bool)>,
    /// The position of the first column that is shown.
    first: usize,
}

impl Asked {
    fn from_visit(visit: &Visit, dataset: &str) -> Result<Asked, Problem> {
        let text = |key: &str| visit.query_value(key).map(str::to_owned);
        let state = record_state(visit)?;
        let of_cells = visit
            .query_value("state")
            .filter(|name| record_state_from_name(name).is_none());
        let from_id = text("from");
        if from_id.is_some() && state == Some(RecordState::Resolved) {
            return Err(Problem::bad_request(
                "from: resolved records are in the order of their times, so they do not begin at an id",
            ));
        }
        let is_descending = visit.query_value("order") == Some("desc");
        Ok(Asked {
            filter: Filter {
                records: RecordFilter {
                    dataset: Some(dataset.to_owned()),
                    state,
                    id_prefix: text("id"),
                    from_id,
                    apps: visit.apps(),
                },
                state: of_cells.map(grid_parts::parse_state).transpose()?,
                column: text("column"),
                site: text("site"),
            },
            after: text("after"),
            sort: text("sort").map(|column| (column, is_descending)),
            first: grid_parts::position_in_query(visit, "first")?.unwrap_or(0),
        })
    }

    fn is_filtered(&self) -> bool {
        let filter = &self.filter;
        let records = &filter.records;
        filter.state.is_some()
            || filter.site.is_some()
            || records.state.is_some()
            || records.id_prefix.is_some()
    }
}

/// The state of the records to list, from the parameter `records`. Some links give it in the parameter `state`, which
/// otherwise means the state of cells.
fn record_state(visit: &Visit) -> Result<Option<RecordState>, Problem> {
    match visit.query_value("records") {
        Some(name) => match record_state_from_name(name) {
            Some(state) => Ok(Some(state)),
            None => Err(Problem::bad_request("records: expected open or resolved")),
        },
        None => Ok(visit.query_value("state").and_then(record_state_from_name)),
    }
}

fn record_state_from_name(name: &str) -> Option<RecordState> {
    match name {
        "open" => Some(RecordState::Open),
        "resolved" => Some(RecordState::Resolved),
        _ => None,
    }
}

/// The data that one page of records shows.
struct Listed {
    page: Page,
    names: Vec<String>,
    total: Count,
}

impl Listed {
    /// Whether records can be sorted by a column. Sorting reads all records, so the dataset must be small.
    fn can_sort(&self) -> bool {
        !self.total.is_more
    }
}

async fn show_records(visit: &Visit, dataset: &str) -> Shown {
    if let Some(id) = visit
        .query_value("id")
        .filter(|_| visit.query_value("how") == Some("exact"))
    {
        let path = format!(
            "/dashboard/record/{}/{}",
            percent_encode(dataset),
            percent_encode(id)
        );
        return Ok(see_other(&path));
    }
    let asked = Asked::from_visit(visit, dataset)?;
    let store = open_store(visit).await?;
    let browse = store.browse.as_ref();
    let total = with_time_limit(browse.dataset(dataset, MOST_SORTED))
        .await?
        .total;
    let page = match &asked.sort {
        Some(sort) if !total.is_more => read_sorted_page(browse, &asked, sort).await?,
        _ => {
            let after = asked.after.as_deref().map(str::parse::<Place>);
            let after = after.transpose().map_err(Problem::bad_request)?;
            with_time_limit(records::load_page(browse, &asked.filter, after, ROWS, true)).await?
        }
    };
    let sample = RecordFilter {
        dataset: Some(dataset.to_owned()),
        apps: visit.apps(),
        ..RecordFilter::default()
    };
    let sample = with_time_limit(browse.records(&sample, None, SAMPLE)).await?;
    let of_sample = sample.rows.iter().flat_map(|row| {
        let fields = row.fields.iter().flat_map(|fields| fields.keys());
        fields.chain(&row.missing).map(String::as_str)
    });
    let of_page = page.rows.iter();
    let of_page = of_page.flat_map(|row| record_cells::field_names(&row.record.record.document));
    let named = [asked.filter.column.as_deref(), visit.query_value("sort")];
    let names = distinct_names(of_sample.chain(of_page).chain(named.into_iter().flatten()));
    let listed = Listed { names, total, page };
    let content = records_content(visit, dataset, &asked, &listed);
    visit.render_page("grid.html", &format!("Records of {dataset}"), content)
}

async fn read_sorted_page(
    browse: &dyn Browse,
    asked: &Asked,
    (column, is_descending): &(String, bool),
) -> Result<Page, Problem> {
    let after = asked.after.as_deref();
    let order = (column.as_str(), *is_descending);
    let read = records::sorted_page(browse, &asked.filter, order, after, ROWS);
    let page = with_time_limit(read).await?;
    page.ok_or_else(|| {
        Problem::not_found("the list has changed meanwhile: begin at its first page")
    })
}

fn distinct_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let new = names.filter(|name| seen.insert(*name));
    new.take(MOST_COLUMNS).map(str::to_owned).collect()
}

fn records_content(visit: &Visit, dataset: &str, asked: &Asked, listed: &Listed) -> Value {
    let names = &listed.names;
    let (first, end, window) = grid_parts::column_window(visit, asked.first, names.len());
    let shown = &names[first..end];
    let rows = listed.page.rows.iter().zip(1_usize..);
    let rows: Vec<Value> = rows
        .map(|(row, n)| row_json(row, n, (first, shown), dataset))
        .collect();
    let heads = shown.iter().enumerate();
    let heads: Vec<Value> = heads
        .map(|(at, name)| {
            grid_parts::column_header(visit, first + at, name, name, listed.can_sort())
        })
        .collect();
    let filter = &asked.filter;
    let states: Vec<Value> = State::all()
        .filter(|state| !matches!(state, State::BelowPrecision | State::Kept))
        .map(|state| legend_entry(visit, state, filter.state))
        .collect();
    let next = listed.page.next.as_deref();
    let is_bound = visit.visitor.rights.is_limited_to_apps();
    let path = format!("/dashboard/records?dataset={}", percent_encode(dataset));
    let is_resolved = filter.records.state == Some(RecordState::Resolved);
    let count = (!is_bound).then_some(listed.total.counted);
    json!({
        "trail": match is_bound {
            true => json!({"link": path, "label": dataset}),
            false => json!({"link": "/dashboard/records", "label": "All datasets"}),
        },
        "name": dataset,
        "columns": heads,
        "rows": rows,
        "row_head": "Id",
        "row_count": count.filter(|_| !listed.total.is_more),
        "least_count": count.filter(|_| listed.total.is_more),
        "column_count": names.len(),
        "unit": "records",
        "window": window,
        "states": states,
        "fields": names.iter().map(|name| json!({"key": name, "name": name})).collect::<Vec<_>>(),
        "sites": [],
        "types_site": true,
        "selects": [{"name": "records", "label": "Records", "asked": filter.records.state.map(record_state_name), "options": ["open", "resolved"]}],
        "prefix": {"label": "Id begins with", "value": visit.query_value("id")},
        "from": (!is_resolved).then(|| json!({"label": "From id", "value": visit.query_value("from")})),
        "asked": {
            "state": filter.state.map(State::name), "site": filter.site, "column": filter.column,
        },
        "hidden": {"dataset": dataset, "sort": visit.query_value("sort"), "order": visit.query_value("order")},
        "is_filtered": asked.is_filtered(),
        "has_states": true,
        "notes": list_notes(asked, listed),
        "files": grid_parts::download_links(visit, "/dashboard/records"),
        "all": "/dashboard/records",
        "list": {
            "next": next.map(|next| visit.link_with(&[("after", next)])),
            "is_beginning": asked.after.is_none() && visit.query_value("from").is_none(),
            "beginning": link_from_beginning(visit, &[]),
            "examined": listed.page.examined,
        },
    })
}

/// Notes to the visitor about what this list cannot do, and why.
fn list_notes(asked: &Asked, listed: &Listed) -> Vec<String> {
    let mut notes = Vec::new();
    if !listed.can_sort() {
        notes.push(format!(
            "Columns cannot be sorted: the store has no index of values, and more than {MOST_SORTED} records are too many to sort for a page."
        ));
    }
    if asked.filter.state.is_some() || asked.filter.site.is_some() {
        notes.push(String::from(
            "The store has no index of cells and sites. Each page searches a limited number of records; a file searches all of them.",
        ));
    }
    notes
}

fn record_state_name(state: RecordState) -> &'static str {
    match state {
        RecordState::Open => "open",
        RecordState::Resolved => "resolved",
    }
}

/// An entry of the legend: a state, and a link to the records with a cell in this state. The link keeps the filter by
/// the state of records.
fn legend_entry(visit: &Visit, state: State, asked: Option<State>) -> Value {
    let mut shown = grid_parts::legend_entry(visit, state, asked, None);
    shown["meaning"] = record_cells::meaning(state).into();
    if let Some(records) = visit
        .query_value("state")
        .filter(|name| record_state_from_name(name).is_some())
    {
        let values = [("records", records), ("state", state.name())];
        shown["link"] = visit.link_with(&[&BEGINNING[..], &values].concat()).into();
    }
    shown
}

fn row_json(row: &Row, n: usize, (first, names): (usize, &[String]), dataset: &str) -> Value {
    let (record, document) = (&row.record, &row.record.record.document);
    let path = record_path(dataset, &record.id);
    let cells = names.iter().zip(first..).map(|(name, at)| {
        let state = record_cells::cell_state(document, name, &row.pages);
        let value = &document["fields"][name];
        let mut shown = state.to_json();
        shown["at"] = at.into();
        shown["text"] = json!(record_cells::shortened_text(value));
        shown["is_number"] = value.is_number().into();
        if state != State::Kept {
            shown["link"] = format!("{path}/cell?field={}", percent_encode(name)).into();
            shown["answer"] = json!(record_cells::current_answer(document, name));
        }
        shown
    });
    let cells: Vec<Value> = cells.collect();
    json!({
        "n": n, "title": record.id, "label": record.id, "link": path,
        "is_open": document["resolved_at"].is_null(),
        "cells": cells,
    })
}

pub(super) fn record_path(dataset: &str, id: &str) -> String {
    format!(
        "/dashboard/record/{}/{}",
        percent_encode(dataset),
        percent_encode(id)
    )
}

/// Sends the records that match the filter as a file.
pub(crate) async fn download(visit: &Visit, ending: &str) -> Shown {
    let format = Format::from_name(ending).ok_or_else(|| Problem::not_found("page not found"))?;
    let dataset = visit.query_value("dataset");
    let dataset = dataset.ok_or_else(|| Problem::bad_request("dataset: expected a name"))?;
    let asked = Asked::from_visit(visit, dataset)?;
    let permit = grid_parts::acquire_download_permit(visit)?;
    let download = RecordDownload {
        browse: Arc::clone(&open_store(visit).await?.browse),
        filter: asked.filter,
        format,
        handle: Handle::current(),
    };
    grid_parts::send_file((dataset, ending), format, permit, |pieces| {
        download.send(pieces)
    })
}
