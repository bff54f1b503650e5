//! The rows of a table as a grid, page by page, and the same rows as a file.

use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::tables::{project, reading};
use crate::answer::{Problem, Shown, streamed};
use crate::grid::Grid;
use crate::grid::download::{Download, Format};
use crate::grid::files::Files;
use crate::grid::jobs::Made;
use crate::grid::listing::{Filter, Order, Page, Row};
use crate::grid::state::State;
use crate::tables::{Project, Review};
use crate::templates::encoded;
use crate::visit::Visit;

/// The rows of a page, and the columns that it shows at a time.
const ROWS: usize = 50;
pub(super) const COLUMNS: usize = 40;

/// The sites that are offered in the filter; any can be named in the address.
const SITES: usize = 200;

/// Pieces of a file that wait for a slow receiver.
const PIECES: usize = 4;

/// The request of a page.
struct Asked {
    filter: Filter,
    order: Order,
    after: Option<i64>,
    /// The line of a person's count from which rows are shown.
    from: Option<u64>,
    /// The first column that is shown.
    first: usize,
}

impl Asked {
    fn of(visit: &Visit) -> Result<Asked, Problem> {
        let number = |key: &str| -> Result<Option<u64>, Problem> {
            let text = visit.asked(key).map(str::trim);
            let read = text.map(|text| {
                let read = text.parse();
                read.map_err(|_| Problem::faulty(format!("{key}: expected a number")))
            });
            read.transpose()
        };
        let state = visit.asked("state").map(|name| {
            let found = State::of_name(name);
            found.ok_or_else(|| Problem::faulty(format!("no cell is `{name}`")))
        });
        let place = |key: &str| -> Result<Option<usize>, Problem> {
            Ok(number(key)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
        };
        let after = number("after")?;
        Ok(Asked {
            filter: Filter {
                state: state.transpose()?,
                column: place("column")?,
                site: visit.asked("site").map(str::to_owned),
            },
            order: Order {
                column: place("sort")?,
                is_descending: visit.asked("order") == Some("desc"),
            },
            after: after.map(|after| i64::try_from(after).unwrap_or(i64::MAX)),
            from: number("from")?,
            first: place("first")?.unwrap_or(0),
        })
    }

    /// Names of columns in the address are those of the table.
    fn check(&self, columns: usize) -> Result<(), Problem> {
        let named = [self.filter.column, self.order.column];
        match named.into_iter().flatten().all(|column| column < columns) {
            true => Ok(()),
            false => Err(Problem::missing("the table has no such column")),
        }
    }
}

/// The page that was read.
struct Listed {
    grid: Grid,
    page: Page,
    counts: Vec<(State, u64)>,
    sites: Vec<(String, u64)>,
    review: Review,
}

pub(crate) async fn show(visit: &Visit, name: &str) -> Shown {
    let project = project(visit, name)?;
    let asked = Asked::of(visit)?;
    let first = asked.first;
    let files = files(&project)?;
    let made = made(visit, &files, asked.order.column).await?;
    let grid = match made {
        Made::Ready(grid) => *grid,
        Made::Preparing(rows) => return preparing(visit, name, rows),
    };
    asked.check(grid.meta.columns.len())?;
    let listed = reading(move || {
        let after = match asked.from {
            Some(line) => Some(grid.before_line(line)?),
            None => asked.after,
        };
        Ok(Listed {
            page: grid.page(&asked.filter, asked.order, after, ROWS)?,
            counts: grid.counts(asked.filter.column)?,
            sites: grid.sites(SITES).map_err(|error| error.to_string())?,
            review: project.review()?,
            grid,
        })
    })
    .await?;
    let content = content(visit, name, first, &listed);
    visit.page("grid.html", &format!("Rows of {name}"), content)
}

pub(super) fn files(project: &Project) -> Result<Files, Problem> {
    Files::of(project.folder()).map_err(Problem::broken)
}

/// The index of a table. Whoever opens it first waits for a moment while it is made.
pub(super) async fn made(
    visit: &Visit,
    files: &Files,
    sorted_by: Option<usize>,
) -> Result<Made, Problem> {
    let (dashboard, files) = (visit.dashboard.clone(), files.clone());
    reading(move || {
        let jobs = &dashboard.table_jobs;
        let made = jobs.grid(&files)?;
        match (&made, sorted_by) {
            (Made::Ready(grid), Some(column)) if column < grid.meta.columns.len() => {
                drop(made);
                jobs.sorted(&files, column)
            }
            _ => Ok(made),
        }
    })
    .await
}

fn preparing(visit: &Visit, name: &str, rows: u64) -> Shown {
    let content = json!({"name": name, "preparing": rows, "again": visit.link(&[])});
    visit.page("grid.html", &format!("Rows of {name}"), content)
}

fn content(visit: &Visit, name: &str, first: usize, listed: &Listed) -> Value {
    let (grid, page) = (&listed.grid, &listed.page);
    let columns = &grid.meta.columns;
    let first = match first < columns.len() {
        true => first,
        false => 0,
    };
    let end = columns.len().min(first + COLUMNS);
    let path = format!("/dashboard/table/{}", encoded(name));
    let heads: Vec<Value> = (first..end).map(|at| head(visit, grid, at)).collect();
    let rows: Vec<Value> = page
        .rows
        .iter()
        .map(|row| shown_row(row, grid, (first, end), &listed.review, &path))
        .collect();
    let next = page.next.map(|next| next.to_string());
    let next = next.map(|next| visit.link(&[("after", &next), ("from", "")]));
    let window = |first: usize| visit.link(&[("first", &first.to_string())]);
    let states: Vec<Value> = State::all()
        .map(|state| {
            let mut shown = state.shown();
            let count = listed.counts.iter().find(|(counted, _)| *counted == state);
            shown["count"] = json!(count.map(|(_, count)| count));
            let is_on = visit.asked("state") == Some(state.name());
            let wanted = if is_on { "" } else { state.name() };
            shown["is_on"] = is_on.into();
            shown["link"] = visit
                .link(&[("state", wanted), ("after", ""), ("from", "")])
                .into();
            shown
        })
        .collect();
    let query = visit.link(&[
        ("after", ""),
        ("from", ""),
        ("sort", ""),
        ("order", ""),
        ("first", ""),
    ]);
    let query = query.split_once('?').map_or("", |(_, query)| query);
    let files = ["csv", "json", "parquet"].map(|ending| {
        let mark = if query.is_empty() { "" } else { "?" };
        json!({"name": ending, "link": format!("{path}/rows.{ending}{mark}{query}")})
    });
    let fields = columns.iter().enumerate();
    let fields = fields.filter(|(_, column)| column.is_field);
    let is_filtered = ["state", "site"]
        .iter()
        .any(|key| visit.asked(key).is_some());
    json!({
        "name": name,
        "path": path,
        "columns": heads,
        "rows": rows,
        "row_count": grid.meta.rows,
        "column_count": columns.len(),
        "first": first,
        "window": {
            "first": first + 1,
            "last": end,
            "previous": (first > 0).then(|| window(first.saturating_sub(COLUMNS))),
            "next": (end < columns.len()).then(|| window(end)),
        },
        "states": states,
        "fields": fields.map(|(at, column)| json!({"at": at, "name": column.name})).collect::<Vec<_>>(),
        "sites": listed.sites.iter().map(|(name, rows)| json!({"name": name, "rows": rows})).collect::<Vec<_>>(),
        "asked": {
            "state": visit.asked("state"), "site": visit.asked("site"), "from": visit.asked("from"),
            "column": visit.asked("column").and_then(|at| at.parse::<usize>().ok()),
            "sort": visit.asked("sort"), "order": visit.asked("order"),
        },
        "is_filtered": is_filtered,
        "has_evidence": grid.meta.has_evidence,
        "files": files,
        "all": path.clone() + "/rows",
        "list": {
            "next": next,
            "is_beginning": visit.asked("after").is_none() && visit.asked("from").is_none(),
            "beginning": visit.link(&[("after", ""), ("from", "")]),
            "examined": page.examined,
        },
    })
}

/// A column, with the link that sorts by it: up, then down, then in the order of the table.
fn head(visit: &Visit, grid: &Grid, at: usize) -> Value {
    let column = &grid.meta.columns[at];
    let own = at.to_string();
    let is_sorted = visit.asked("sort") == Some(&own);
    let is_descending = visit.asked("order") == Some("desc");
    let (sort, order) = match (is_sorted, is_descending) {
        (false, _) => (own.as_str(), ""),
        (true, false) => (own.as_str(), "desc"),
        (true, true) => ("", ""),
    };
    let sorted = match (is_sorted, is_descending) {
        (false, _) => "none",
        (true, false) => "ascending",
        (true, true) => "descending",
    };
    json!({
        "at": at,
        "name": column.name,
        "is_number": column.kind != crate::grid::Kind::Text,
        "sorted": sorted,
        "link": visit.link(&[("sort", sort), ("order", order), ("after", ""), ("from", "")]),
    })
}

fn shown_row(
    row: &Row,
    grid: &Grid,
    (first, end): (usize, usize),
    review: &Review,
    path: &str,
) -> Value {
    let cells = (first..end).map(|at| {
        let column = &grid.meta.columns[at];
        let state = State::of_byte(row.states.get(at).copied().unwrap_or(b'-'));
        let mut shown = state.shown();
        shown["at"] = at.into();
        shown["text"] = json!(row.cells.get(at));
        shown["is_number"] = (column.kind != crate::grid::Kind::Text).into();
        if column.is_field {
            shown["link"] = format!("{path}/cell?row={}&column={at}", row.n).into();
            let answer = review.of_cell(row.number, &column.name);
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
    json!({"n": row.n, "number": row.number, "name": row.name, "cells": cells})
}

/// The filtered rows as a file.
pub(crate) async fn download(visit: &Visit, name: &str, ending: &str) -> Shown {
    let format = Format::of_name(ending).ok_or_else(|| Problem::missing("page not found"))?;
    let project = project(visit, name)?;
    let asked = Asked::of(visit)?;
    let permits = std::sync::Arc::clone(&visit.dashboard.downloads);
    let permit = permits.try_acquire_owned().map_err(|_| {
        Problem::away("too many files are being downloaded: try again when one is complete")
    })?;
    let files = files(&project)?;
    let Made::Ready(grid) = made(visit, &files, None).await? else {
        return Err(Problem::away(
            "the table is being prepared: try again in a moment",
        ));
    };
    asked.check(grid.meta.columns.len())?;
    let filter = asked.filter;
    let opened = reading(move || Download::open(&files, *grid, &filter, format)).await;
    let download = opened.map_err(|problem| Problem::away(problem.text))?;
    let (pieces, body) = mpsc::channel(PIECES);
    // A thread of its own: a slow receiver holds it for long.
    std::thread::spawn(move || {
        download.send(pieces);
        drop(permit);
    });
    let mut answer = Response::new(streamed(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let plain = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() || "-_. ".contains(letter) => letter,
        _ => '_',
    };
    let file: String = name.chars().map(plain).collect();
    let named = HeaderValue::from_str(&format!("attachment; filename=\"{file}.{ending}\""));
    if let Ok(named) = named {
        headers.insert(CONTENT_DISPOSITION, named);
    }
    Ok(answer)
}
