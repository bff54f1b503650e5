//! The rows of a table as a grid, page by page, and the same rows as a file.

use serde_json::{Value, json};

use super::grid_parts::{self, ROWS, link_from_beginning, number_in_query, position_in_query};
use super::tables::{find_project, run_blocking};
use crate::answer::{Problem, Shown};
use crate::grid::building::build_preview;
use crate::grid::download::{Download, Format};
use crate::grid::files::Files;
use crate::grid::jobs::IndexOutcome;
use crate::grid::listing::{Filter, Order, Page, Row};
use crate::grid::state::State;
use crate::grid::{Grid, Kind};
use crate::tables::{Project, Review};
use crate::templates::percent_encode;
use crate::visit::Visit;

/// How many sites the filter offers. Others can be named in the address of the page.
const SITES: usize = 200;

/// What a request wants to see of a table.
struct GridQuery {
    filter: Filter,
    order: Order,
    after: Option<i64>,
    /// The line of the file, from 1, where the list begins.
    from: Option<u64>,
    /// The position of the first column that is shown.
    first: usize,
}

impl GridQuery {
    fn from_visit(visit: &Visit) -> Result<GridQuery, Problem> {
        let state = visit.query_value("state").map(grid_parts::parse_state);
        let after = number_in_query(visit, "after")?;
        Ok(GridQuery {
            filter: Filter {
                state: state.transpose()?,
                column: position_in_query(visit, "column")?,
                site: visit.query_value("site").map(str::to_owned),
            },
            order: Order {
                column: position_in_query(visit, "sort")?,
                is_descending: visit.query_value("order") == Some("desc"),
            },
            after: after.map(|after| i64::try_from(after).unwrap_or(i64::MAX)),
            from: number_in_query(visit, "from")?,
            first: position_in_query(visit, "first")?.unwrap_or(0),
        })
    }

    /// Whether just the first rows of the table are requested, without a filter or an order.
    fn is_of_first_rows(&self) -> bool {
        self.filter == Filter::default()
            && self.order.column.is_none()
            && self.after.is_none()
            && self.from.is_none()
    }

    /// Checks that the table has the columns named in the query.
    fn check_columns(&self, columns: usize) -> Result<(), Problem> {
        let named = [self.filter.column, self.order.column];
        match named.into_iter().flatten().all(|column| column < columns) {
            true => Ok(()),
            false => Err(Problem::not_found("the table has no such column")),
        }
    }
}

/// The data that one page of the grid shows.
struct GridPage {
    grid: Grid,
    page: Page,
    counts: Vec<(State, u64)>,
    sites: Vec<(String, u64)>,
    review: Review,
    /// How many rows are indexed so far, while the index is being made. In the meantime, only the first rows of the
    /// table are shown.
    preparing: Option<u64>,
}

pub(crate) async fn show(visit: &Visit, name: &str) -> Shown {
    let project = find_project(visit, name)?;
    let asked = GridQuery::from_visit(visit)?;
    let first = asked.first;
    let files = find_table_files(&project)?;
    let made = open_index(visit, &files, asked.order.column).await?;
    let grid = match made {
        IndexOutcome::Ready(grid) => *grid,
        IndexOutcome::Preparing(rows) if asked.is_of_first_rows() && files.can_be_previewed() => {
            let read = run_blocking(move || read_first_rows(&files, &project, rows)).await;
            return match read {
                Ok(listed) => show_page(visit, name, first, &listed),
                Err(_) => show_preparing(visit, name, rows),
            };
        }
        IndexOutcome::Preparing(rows) => return show_preparing(visit, name, rows),
    };
    asked.check_columns(grid.meta.columns.len())?;
    let listed = run_blocking(move || {
        let after = match asked.from {
            Some(line) => Some(grid.row_before_line(line)?),
            None => asked.after,
        };
        Ok(GridPage {
            page: grid.page(&asked.filter, asked.order, after, ROWS)?,
            counts: grid.counts(asked.filter.column)?,
            sites: grid.sites(SITES).map_err(|error| error.to_string())?,
            review: project.read_review()?,
            preparing: None,
            grid,
        })
    })
    .await?;
    show_page(visit, name, first, &listed)
}

fn show_page(visit: &Visit, name: &str, first: usize, listed: &GridPage) -> Shown {
    let mut content = grid_content(visit, name, first, listed);
    if let Some(rows) = listed.preparing {
        content["preparing"] = rows.into();
        content["again"] = visit.link_with(&[]).into();
    }
    visit.render_page("grid.html", &format!("Rows of {name}"), content)
}

/// Reads the first rows from the table itself, without its index.
fn read_first_rows(files: &Files, project: &Project, preparing: u64) -> Result<GridPage, String> {
    let grid = build_preview(files, ROWS)?;
    let mut page = grid.page(&Filter::default(), Order::default(), None, ROWS)?;
    page.next = None;
    Ok(GridPage {
        page,
        counts: Vec::new(),
        sites: Vec::new(),
        review: project.read_review()?,
        preparing: Some(preparing),
        grid,
    })
}

pub(super) fn find_table_files(project: &Project) -> Result<Files, Problem> {
    Files::from_project_folder(project.folder()).map_err(Problem::internal_error)
}

/// Opens the index of a table. If it must be made first, waits for it for a short time.
pub(super) async fn open_index(
    visit: &Visit,
    files: &Files,
    sorted_by: Option<usize>,
) -> Result<IndexOutcome, Problem> {
    let (dashboard, files) = (visit.dashboard.clone(), files.clone());
    run_blocking(move || {
        let jobs = &dashboard.table_jobs;
        let made = jobs.open_or_build(&files)?;
        match (&made, sorted_by) {
            (IndexOutcome::Ready(grid), Some(column)) if column < grid.meta.columns.len() => {
                drop(made);
                jobs.open_or_sort(&files, column)
            }
            _ => Ok(made),
        }
    })
    .await
}

fn show_preparing(visit: &Visit, name: &str, rows: u64) -> Shown {
    let content = json!({
        "trail": table_breadcrumb(name), "preparing": rows, "again": visit.link_with(&[]),
        "window": {}, "list": {"is_beginning": true},
    });
    visit.render_page("grid.html", &format!("Rows of {name}"), content)
}

fn table_breadcrumb(name: &str) -> Value {
    json!({"link": format!("/dashboard/table/{}", percent_encode(name)), "label": name})
}

fn grid_content(visit: &Visit, name: &str, first: usize, listed: &GridPage) -> Value {
    let (grid, page) = (&listed.grid, &listed.page);
    let columns = &grid.meta.columns;
    let (first, end, window) = grid_parts::column_window(visit, first, columns.len());
    let path = format!("/dashboard/table/{}", percent_encode(name));
    let is_preview = listed.preparing.is_some();
    let heads: Vec<Value> = (first..end)
        .map(|at| column_head(visit, grid, at, !is_preview))
        .collect();
    let rows = page.rows.iter().map(|row| {
        let mut shown = row_json(row, grid, (first, end), &listed.review, &path);
        if is_preview {
            unlink_cells(&mut shown);
        }
        shown
    });
    let rows: Vec<Value> = rows.collect();
    let next = page.next.map(|next| next.to_string());
    let next = next.map(|next| link_from_beginning(visit, &[("after", &next)]));
    let asked = visit.query_value("state").and_then(State::from_name);
    let states: Vec<Value> = State::all()
        .map(|state| {
            let count = listed.counts.iter().find(|(counted, _)| *counted == state);
            grid_parts::legend_entry(visit, state, asked, count.map(|(_, count)| *count))
        })
        .filter(|state| state["count"].as_u64() > Some(0) || state["is_on"] == true)
        .collect();
    let fields = columns.iter().enumerate();
    let fields = fields.filter(|(_, column)| column.is_field);
    let is_filtered = ["state", "site"]
        .iter()
        .any(|key| visit.query_value(key).is_some());
    json!({
        "trail": table_breadcrumb(name),
        "name": name,
        "columns": heads,
        "rows": rows,
        "row_head": "Row",
        "row_count": (!is_preview).then_some(grid.meta.rows),
        "column_count": columns.len(),
        "unit": "rows",
        "window": window,
        "states": states,
        "fields": fields.map(|(at, column)| json!({"key": at.to_string(), "name": column.name})).collect::<Vec<_>>(),
        "sites": listed.sites.iter().map(|(name, rows)| json!({"name": name, "rows": rows})).collect::<Vec<_>>(),
        "from": {"label": "From row", "value": visit.query_value("from"), "is_number": true},
        "asked": {
            "state": visit.query_value("state"), "site": visit.query_value("site"), "column": visit.query_value("column"),
        },
        "hidden": {"sort": visit.query_value("sort"), "order": visit.query_value("order")},
        "is_filtered": is_filtered,
        "has_states": grid.meta.has_evidence,
        "files": grid_parts::download_links(visit, &format!("{path}/rows")),
        "all": path.clone() + "/rows",
        "list": {
            "next": next,
            "is_beginning": visit.query_value("after").is_none() && visit.query_value("from").is_none(),
            "beginning": link_from_beginning(visit, &[]),
            "examined": page.examined,
        },
    })
}

fn column_head(visit: &Visit, grid: &Grid, at: usize, can_sort: bool) -> Value {
    let column = &grid.meta.columns[at];
    let mut head = grid_parts::column_header(visit, at, &column.name, &at.to_string(), can_sort);
    head["is_number"] = (column.kind != Kind::Text).into();
    head
}

/// Removes the links from the cells of a row. While the index is incomplete, the evidence of a cell cannot be shown.
fn unlink_cells(row: &mut Value) {
    let cells = row["cells"].as_array_mut().into_iter().flatten();
    for cell in cells {
        cell["link"] = Value::Null;
    }
}

fn row_json(
    row: &Row,
    grid: &Grid,
    (first, end): (usize, usize),
    review: &Review,
    path: &str,
) -> Value {
    let cells = (first..end).map(|at| {
        let column = &grid.meta.columns[at];
        let state = State::from_byte(row.states.get(at).copied().unwrap_or(b'-'));
        let mut shown = state.to_json();
        shown["at"] = at.into();
        shown["text"] = json!(row.cells.get(at));
        shown["is_number"] = (column.kind != Kind::Text).into();
        if column.is_field {
            shown["link"] = format!("{path}/cell?row={}&column={at}", row.n).into();
            let answer = review.answer_of_cell(row.number, &column.name);
            shown["answer"] =
                json!(
                    answer.map(|answer| match (answer.is_accepted, &answer.value) {
                        (true, Some(_)) => "edited",
                        (true, None) => "accepted",
                        (false, _) => "rejected",
                    })
                );
            if let Some(value) = answer.and_then(|answer| answer.value.as_ref()) {
                let was = row.cells.get(at).cloned().flatten();
                shown["was"] = was.unwrap_or_default().into();
                shown["text"] = value.as_str().into();
            }
        }
        shown
    });
    let cells: Vec<Value> = cells.collect();
    json!({"n": row.n, "index": row.n + 1, "number": row.number, "title": row.name, "cells": cells})
}

/// Sends the rows that match the filter as a file.
pub(crate) async fn download(visit: &Visit, name: &str, ending: &str) -> Shown {
    let format = Format::from_name(ending).ok_or_else(|| Problem::not_found("page not found"))?;
    let project = find_project(visit, name)?;
    let asked = GridQuery::from_visit(visit)?;
    let permit = grid_parts::acquire_download_permit(visit)?;
    let files = find_table_files(&project)?;
    let IndexOutcome::Ready(grid) = open_index(visit, &files, None).await? else {
        return Err(Problem::unavailable(
            "the table is being prepared: try again in a moment",
        ));
    };
    asked.check_columns(grid.meta.columns.len())?;
    let filter = asked.filter;
    let opened = run_blocking(move || Download::open(&files, *grid, &filter, format)).await;
    let download = opened.map_err(|problem| Problem::unavailable(problem.text))?;
    grid_parts::send_file((name, ending), format, permit, |pieces| {
        download.send(pieces)
    })
}
