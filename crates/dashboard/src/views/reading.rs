//! How views read the store: within a time limit, and page by page.
//!
//! If the store is unavailable, the rest of a view must still be shown: the view reports the fault in that part
//! ([`data_or_fault`]).

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use webfill_store::{BrowseHandles, ListPage, Place, StoreError};

use crate::answer::Problem;
use crate::extractions::MappingReport;
use crate::visit::Visit;

/// How long a visitor waits for the store.
const MOST_WAIT: Duration = Duration::from_secs(10);

/// How many rows a page of a list has.
pub(crate) const ROWS: u32 = 50;

/// Opens the store, within a time limit.
pub(crate) async fn open_store(visit: &Visit) -> Result<BrowseHandles, Problem> {
    match tokio::time::timeout(MOST_WAIT, visit.open_store()).await {
        Ok(opened) => opened,
        Err(_) => Err(store_timeout()),
    }
}

/// Reads from the store, within a time limit.
pub(crate) async fn with_time_limit<T>(
    read: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Problem> {
    with_limit(MOST_WAIT, read).await
}

async fn with_limit<T>(
    most: Duration,
    read: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(most, read).await {
        Ok(answer) => answer.map_err(Problem::unavailable),
        Err(_) => Err(store_timeout()),
    }
}

fn store_timeout() -> Problem {
    Problem::unavailable(format!(
        "the store has not answered for {} s",
        MOST_WAIT.as_secs()
    ))
}

/// Splits the result of a part of a page: its data, or the reason why they cannot be shown.
pub(crate) fn data_or_fault<T>(read: Result<T, Problem>) -> (Option<T>, Option<String>) {
    match read {
        Ok(read) => (Some(read), None),
        Err(problem) => (None, Some(problem.text)),
    }
}

/// One page of a list, as templates show it.
#[derive(Debug, Serialize)]
pub(crate) struct List {
    rows: Vec<Value>,
    /// The links to the next page of the list, and to its first page.
    next: Option<String>,
    beginning: String,
    is_beginning: bool,
    examined: u64,
}

impl List {
    pub(crate) fn from_store<T>(
        visit: &Visit,
        list_page: &ListPage<T>,
        row: impl Fn(&T) -> Value,
    ) -> List {
        let next = list_page.next.as_ref().map(ToString::to_string);
        List {
            rows: list_page.rows.iter().map(row).collect(),
            next: next.map(|next| visit.link_with(&[("after", &next)])),
            beginning: visit.link_with(&[("after", "")]),
            is_beginning: visit.query_value("after").is_none(),
            examined: list_page.examined,
        }
    }

    /// A page of a list that the fleet has sent. `next` is the cursor of the next page.
    pub(crate) fn from_fleet(visit: &Visit, rows: Vec<Value>, next: Option<String>) -> List {
        List {
            examined: rows.len() as u64,
            rows,
            next: next.map(|next| visit.link_with(&[("after", &next)])),
            beginning: visit.link_with(&[("after", "")]),
            is_beginning: visit.query_value("after").is_none(),
        }
    }
}

/// The cursor in the query: where the requested page of a list begins.
pub(crate) fn parse_cursor(visit: &Visit) -> Result<Option<Place>, Problem> {
    let after = visit.query_value("after");
    after
        .map(|text| text.parse().map_err(Problem::bad_request))
        .transpose()
}

/// The reports on all mappings that the visitor's store has, by name.
pub(crate) async fn load_extractions(visit: &Visit) -> Result<Arc<Vec<MappingReport>>, Problem> {
    let read = async { with_time_limit(open_store(visit).await?.store.health()).await };
    visit.dashboard.extractions.get_or_read(read).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_or_unavailable_store_is_reported_in_its_part_of_the_page() {
        let never = std::future::pending::<Result<(), StoreError>>();
        let read = with_limit(Duration::from_millis(1), never).await;
        assert_eq!(read.as_ref().unwrap_err().status, 503);
        let (read, fault) = data_or_fault(read);
        assert!(read.is_none());
        assert!(fault.is_some_and(|fault| fault.contains("has not answered")));
        let answered = async { Ok::<_, StoreError>(7) };
        assert_eq!(
            data_or_fault(with_time_limit(answered).await),
            (Some(7), None)
        );
    }
}
