//! Shared by both sources of the grid: column heads, cells, the legend, the choice of columns, and files.

use std::sync::Arc;

use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Sender};

use crate::answer::{Problem, Shown, streaming_body};
use crate::grid::download::Format;
use crate::grid::state::State;
use crate::visit::Visit;

/// How many rows and how many columns one page of the grid shows.
pub(super) const ROWS: usize = 50;
pub(super) const COLUMNS: usize = 40;

/// How many pieces of a file may wait for a slow receiver.
const PIECES: usize = 4;

/// The formats that rows can be downloaded in, with their names for users.
const FILES: [(&str, &str); 4] = [
    ("csv", "CSV"),
    ("json", "JSON"),
    ("jsonl", "JSON lines"),
    ("parquet", "Parquet"),
];

/// Query parameters with empty values, which reset a list to its beginning.
pub(super) const BEGINNING: [(&str, &str); 2] = [("after", ""), ("from", "")];

/// A link to this page with some values of its query changed. The list starts at its beginning again.
pub(super) fn link_from_beginning(visit: &Visit, values: &[(&str, &str)]) -> String {
    visit.link_with(&[&BEGINNING[..], values].concat())
}

/// The range of columns that are shown, beginning at `first`, and the links to the columns before and after them.
pub(super) fn column_window(visit: &Visit, first: usize, columns: usize) -> (usize, usize, Value) {
    let first = if first < columns { first } else { 0 };
    let end = columns.min(first + COLUMNS);
    let link = |first: usize| visit.link_with(&[("first", &first.to_string())]);
    let window = json!({
        "first": first + 1,
        "last": end,
        "previous": (first > 0).then(|| link(first.saturating_sub(COLUMNS))),
        "next": (end < columns).then(|| link(end)),
    });
    (first, end, window)
}

/// The header of a column, with a link that changes the order: to ascending, then descending, then the table's own.
/// `key` is the column's name in addresses.
pub(super) fn column_header(
    visit: &Visit,
    at: usize,
    name: &str,
    key: &str,
    can_sort: bool,
) -> Value {
    let is_sorted = visit.query_value("sort") == Some(key);
    let is_descending = visit.query_value("order") == Some("desc");
    let (sort, order) = match (is_sorted, is_descending) {
        (false, _) => (key, ""),
        (true, false) => (key, "desc"),
        (true, true) => ("", ""),
    };
    let sorted = match (is_sorted, is_descending) {
        (false, _) => "none",
        (true, false) => "ascending",
        (true, true) => "descending",
    };
    let link = can_sort.then(|| link_from_beginning(visit, &[("sort", sort), ("order", order)]));
    json!({"at": at, "name": name, "sorted": sorted, "link": link})
}

/// An entry of the legend: a state, and a link to the rows with a cell in this state. `count` is null if it is unknown.
pub(super) fn legend_entry(
    visit: &Visit,
    state: State,
    asked: Option<State>,
    count: Option<u64>,
) -> Value {
    let mut shown = state.to_json();
    let is_on = asked == Some(state);
    let wanted = if is_on { "" } else { state.name() };
    shown["count"] = json!(count);
    shown["is_on"] = is_on.into();
    shown["link"] = link_from_beginning(visit, &[("state", wanted)]).into();
    shown
}

/// The links to download a list as a file, with its filter but without its order. `files` is the path of the file
/// without its extension.
pub(super) fn download_links(visit: &Visit, files: &str) -> Vec<Value> {
    let query = link_from_beginning(visit, &[("sort", ""), ("order", ""), ("first", "")]);
    let query = query.split_once('?').map_or("", |(_, query)| query);
    let mark = if query.is_empty() { "" } else { "?" };
    let link = |(ending, label): (&str, &str)| json!({"label": label, "link": format!("{files}.{ending}{mark}{query}")});
    FILES.into_iter().map(link).collect()
}

/// The value of a query parameter as a number; `None` if it is missing or empty.
pub(super) fn number_in_query(visit: &Visit, key: &str) -> Result<Option<u64>, Problem> {
    let text = visit.query_value(key).map(str::trim);
    let read = text.map(|text| {
        let read = text.parse();
        read.map_err(|_| Problem::bad_request(format!("{key}: expected a number")))
    });
    read.transpose()
}

/// The value of a query parameter as a position in a list; `None` if it is missing or empty.
pub(super) fn position_in_query(visit: &Visit, key: &str) -> Result<Option<usize>, Problem> {
    Ok(number_in_query(visit, key)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

pub(super) fn parse_state(name: &str) -> Result<State, Problem> {
    let found = State::from_name(name);
    found.ok_or_else(|| Problem::bad_request(format!("no cell is `{name}`")))
}

/// Gets a permit for a download. Each download has a thread until it ends.
pub(super) fn acquire_download_permit(visit: &Visit) -> Result<OwnedSemaphorePermit, Problem> {
    let permits = Arc::clone(&visit.dashboard.downloads);
    permits.try_acquire_owned().map_err(|_| {
        Problem::unavailable("too many files are being downloaded: try again when one is complete")
    })
}

/// Sends a file to the browser while it is being written.
pub(super) fn send_file(
    (name, ending): (&str, &str),
    format: Format,
    permit: OwnedSemaphorePermit,
    send: impl FnOnce(Sender<Bytes>) + Send + 'static,
) -> Shown {
    let (pieces, body) = mpsc::channel(PIECES);
    // The download has a thread of its own, because a slow receiver keeps it busy for long.
    std::thread::spawn(move || {
        send(pieces);
        drop(permit);
    });
    let mut answer = Response::new(streaming_body(body));
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
