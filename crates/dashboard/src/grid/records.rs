//! The records of a dataset as rows of the grid. They are read from the store as they are: there is no index of their
//! cells. The store's index of keys, or of record states, supplies the records of a page. The rest of the filter is
//! checked on a limited number of them.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_store::{
    Browse, CrawlId, ListedRecord, PageResult, Place, RecordCondition, RecordFilter, StoreError,
    has_value, page_id, split_record_key,
};
use webfill_urls::canonical_url;

use super::building::cell_text;
use super::record_cells::{
    Known, cell_state, field_names, sites_in_record, urls_in_record, value_to_cell,
};
use super::state::State;

/// How many records are checked for one page of the list. The next page continues after them.
const MOST_EXAMINED: u64 = 20_000;

/// How long records are searched for one page of the list, if few records match.
const SEARCH_TIME: Duration = Duration::from_millis(120);

/// How many records are read together if the filter depends on their pages.
const STEP: u32 = 200;

/// How many records can be sorted by a column, which means that all of them are read.
pub(crate) const MOST_SORTED: u64 = 10_000;

/// How many of a record's URLs have their pages looked up.
const MOST_URLS: usize = 3;

/// In how many crawls the pages of a record are looked up.
const MOST_CRAWLS: usize = 2;

/// How many characters of a value are compared when records are sorted.
const SORTED_CHARS: usize = 64;

/// The records to list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) records: RecordFilter,
    /// Lists only records with a cell in this state.
    pub(crate) state: Option<State>,
    /// Lists only records where the cell with the given state is in this column.
    pub(crate) column: Option<String>,
    /// Lists only records with a page of this site.
    pub(crate) site: Option<String>,
}

/// A record, with the results of its pages.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) record: ListedRecord,
    pub(crate) pages: Vec<PageResult>,
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Row>,
    /// Where the list continues; `None` at its end.
    pub(crate) next: Option<String>,
    pub(crate) examined: u64,
}

impl Filter {
    /// The part of the filter that needs only the record, not its pages.
    fn record_condition(&self) -> RecordCondition {
        let filter = self.clone();
        RecordCondition::new(move |document| {
            let is_of_site = filter
                .site
                .as_ref()
                .is_none_or(|wanted| sites_in_record(document).any(|site| site == *wanted));
            is_of_site && filter.may_be_in_state(document)
        })
    }

    fn may_be_in_state(&self, document: &Value) -> bool {
        let Some(state) = self.state else {
            return true;
        };
        self.searched_columns(document).iter().any(|name| {
            match Known::from_document(document, name) {
                Known::State(known) => known == state,
                Known::Given => {
                    matches!(state, State::Given | State::Known | State::Contradicted)
                }
                Known::Gap => matches!(
                    state,
                    State::Empty
                        | State::NotOnPage
                        | State::Unreachable
                        | State::Robots
                        | State::Refused
                ),
            }
        })
    }

    fn matches(&self, row: &Row) -> bool {
        let document = &row.record.record.document;
        self.state.is_none_or(|state| {
            let mut columns = self.searched_columns(document).into_iter();
            columns.any(|name| cell_state(document, name, &row.pages) == state)
        })
    }

    /// The columns where the filter searches for the state.
    fn searched_columns<'a>(&'a self, document: &'a Value) -> Vec<&'a str> {
        match &self.column {
            Some(column) => vec![column.as_str()],
            None => field_names(document).collect(),
        }
    }

    /// Whether the results of pages are needed to apply the filter.
    fn needs_pages(&self) -> bool {
        !matches!(self.state, None | Some(State::Filled | State::Conflicting))
    }
}

/// Reads the page of the list that follows the place `after`.
pub(crate) async fn load_page(
    browse: &dyn Browse,
    filter: &Filter,
    after: Option<Place>,
    wanted: usize,
    with_pages: bool,
) -> Result<Page, StoreError> {
    let (began, condition) = (Instant::now(), filter.record_condition());
    let with_pages = with_pages || filter.needs_pages();
    let mut page = Page::default();
    let mut from = after;
    loop {
        let left = u32::try_from(wanted - page.rows.len()).unwrap_or(u32::MAX);
        let step = match filter.needs_pages() {
            true => STEP.max(left),
            false => left,
        };
        let listed = browse
            .whole_records(&filter.records, &condition, from.as_ref(), step)
            .await?;
        page.examined += listed.examined;
        let mut rows = load_rows(browse, listed.rows, with_pages).await?;
        rows.retain(|row| filter.matches(row));
        from = listed.next;
        let room = wanted - page.rows.len();
        if rows.len() > room {
            rows.truncate(room);
            from = rows.last().map(|row| row.record.place.clone());
        }
        page.rows.extend(rows);
        let is_full = page.rows.len() >= wanted
            || page.examined >= MOST_EXAMINED
            || began.elapsed() >= SEARCH_TIME;
        if is_full || from.is_none() {
            page.next = from.map(|place| place.to_string());
            return Ok(page);
        }
    }
}

/// Adds the results of their pages to records. All pages are read from the store at once.
async fn load_rows(
    browse: &dyn Browse,
    records: Vec<ListedRecord>,
    with_pages: bool,
) -> Result<Vec<Row>, StoreError> {
    let mut ids: Vec<Vec<String>> = Vec::with_capacity(records.len());
    for record in &records {
        let record = &record.record;
        ids.push(match with_pages && needs_pages(&record.document) {
            true => page_ids(&record.document, &record.crawls),
            false => Vec::new(),
        });
    }
    let all: Vec<String> = ids.iter().flatten().cloned().collect();
    let found = match all.is_empty() {
        true => Vec::new(),
        false => browse.page_results(&all).await?,
    };
    let found: HashMap<&str, &PageResult> =
        found.iter().map(|page| (page.id.as_str(), page)).collect();
    let rows = records.into_iter().zip(ids).map(|(record, ids)| Row {
        record,
        pages: ids
            .iter()
            .filter_map(|id| found.get(id.as_str()).map(|page| (*page).clone()))
            .collect(),
    });
    Ok(rows.collect())
}

/// Adds the results of its pages to one record.
pub(crate) async fn load_row(
    browse: &dyn Browse,
    record: ListedRecord,
) -> Result<Option<Row>, StoreError> {
    Ok(load_rows(browse, vec![record], true).await?.pop())
}

fn needs_pages(document: &Value) -> bool {
    field_names(document)
        .any(|name| !matches!(Known::from_document(document, name), Known::State(_)))
}

/// The keys of the pages of a record that are looked up.
fn page_ids(document: &Value, crawls: &[CrawlId]) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for url in urls_in_record(document) {
        match canonical_url(url, None) {
            Ok(url) if urls.len() < MOST_URLS && !urls.iter().any(|one| one == url.as_str()) => {
                urls.push(url.into());
            }
            _ => {}
        }
    }
    let crawls = crawls.iter().take(MOST_CRAWLS);
    crawls
        .flat_map(|crawl| urls.iter().map(move |url| (crawl, url)))
        .map(|(crawl, url)| page_id(&crawl.app_id, &crawl.crawl_id, url))
        .collect()
}

/// The value that a record is sorted by. Records without a value come last in both directions.
#[derive(Debug, Clone, PartialEq)]
enum SortValue {
    Number(f64),
    Text(String),
}

impl SortValue {
    fn from_value(value: &Value) -> Option<SortValue> {
        if !has_value(value) {
            return None;
        }
        let text = cell_text(&value_to_cell(value))?;
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        Some(match number {
            Some(number) => SortValue::Number(number),
            None => SortValue::Text(text.to_lowercase().chars().take(SORTED_CHARS).collect()),
        })
    }

    fn compare(&self, other: &SortValue) -> Ordering {
        match (self, other) {
            (SortValue::Number(one), SortValue::Number(other)) => one.total_cmp(other),
            (SortValue::Text(one), SortValue::Text(other)) => one.cmp(other),
            (SortValue::Number(_), SortValue::Text(_)) => Ordering::Less,
            (SortValue::Text(_), SortValue::Number(_)) => Ordering::Greater,
        }
    }
}

/// A page of the records of a small dataset, sorted by a column. It follows the record with the key `after`. `None` if
/// that record does not exist any more.
pub(crate) async fn sorted_page(
    browse: &dyn Browse,
    filter: &Filter,
    (column, is_descending): (&str, bool),
    after: Option<&str>,
    wanted: usize,
) -> Result<Option<Page>, StoreError> {
    let mut keys = load_sort_keys(browse, &filter.records, column).await?;
    keys.sort_by(|(one_key, one), (other_key, other)| match (one, other) {
        (Some(one), Some(other)) if is_descending => {
            other.compare(one).then_with(|| other_key.cmp(one_key))
        }
        (Some(one), Some(other)) => one.compare(other).then_with(|| one_key.cmp(other_key)),
        (None, None) => one_key.cmp(other_key),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
    });
    let begin = match after {
        None => 0,
        Some(after) => match keys.iter().position(|(key, _)| key == after) {
            Some(place) => place + 1,
            // The record that the page should follow was removed.
            None => return Ok(None),
        },
    };
    let (began, condition) = (Instant::now(), filter.record_condition());
    let mut page = Page::default();
    for (key, _) in &keys[begin..] {
        page.examined += 1;
        let id = split_record_key(key).1.to_owned();
        if let Some(record) = browse.record(key).await?
            && condition.matches(&record.document)
        {
            let listed = ListedRecord {
                place: Place::by_key(key.as_str()),
                id,
                record,
            };
            let row = load_row(browse, listed).await?;
            page.rows.extend(row.filter(|row| filter.matches(row)));
        }
        let is_full = page.rows.len() >= wanted || began.elapsed() >= SEARCH_TIME;
        if is_full {
            page.next = Some(key.clone());
            break;
        }
    }
    if page.next.as_ref() == keys.last().map(|(key, _)| key) {
        page.next = None;
    }
    Ok(Some(page))
}

async fn load_sort_keys(
    browse: &dyn Browse,
    records: &RecordFilter,
    column: &str,
) -> Result<Vec<(String, Option<SortValue>)>, StoreError> {
    let (mut keys, mut from) = (Vec::new(), None);
    loop {
        let listed = browse
            .records(records, from.as_ref(), webfill_store::MAX_LIST_PAGE)
            .await?;
        for row in listed.rows {
            let value = match &row.fields {
                Some(fields) => fields.get(column).and_then(SortValue::from_value),
                None => {
                    let whole = browse.record(&row.key).await?;
                    whole.and_then(|whole| SortValue::from_value(&whole.document["fields"][column]))
                }
            };
            keys.push((row.key, value));
        }
        from = listed.next;
        if from.is_none() || keys.len() as u64 > 2 * MOST_SORTED {
            return Ok(keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_sorted_as_numbers_before_texts() {
        let value = |value: Value| SortValue::from_value(&value);
        let mut values = [json!("b"), json!("10"), json!(9.5), json!("A"), json!(-1)].map(value);
        values.sort_by(|one, other| one.as_ref().unwrap().compare(other.as_ref().unwrap()));
        let expected = [json!(-1), json!(9.5), json!("10"), json!("a"), json!("b")].map(value);
        assert_eq!(values, expected);
        assert_eq!(value(json!("")), None);
    }
}
