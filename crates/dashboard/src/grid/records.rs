//! The records of a dataset as rows of the grid. They are read from the store as they are: there is no index of their
//! cells. A page follows the store's index of keys (or of states of records) and checks a bounded number of records
//! for the rest of a filter.
//!
//! The state of a cell follows from its record: where its value is from, which other values pages have had, how the
//! record's pages have ended, and what people have decided.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_store::{
    Browse, CrawlId, ListedRecord, PageResult, Place, RecordCondition, RecordFilter, StoreError,
    has_value, page_id, split_record_key,
};
use webfill_table::Cell;
use webfill_urls::{Url, canonical, site};
use webfill_values::same_value;
use webfill_wire::Outcome;

use super::building::text_of;
use super::state::State;

/// The maximum number of records checked for one page. The next page continues behind them.
const MOST_EXAMINED: u64 = 20_000;

/// The maximum time for one page, if few records match.
const SEARCH_TIME: Duration = Duration::from_millis(120);

/// The number of records read at a time if a filter needs their pages.
const STEP: u32 = 200;

/// The most records that can be sorted by a column, because sorting reads all of them.
pub(crate) const MOST_SORTED: u64 = 10_000;

/// The maximum number of a record's URLs whose pages are looked up.
const MOST_URLS: usize = 3;

/// The maximum number of crawls in which the pages of a record are looked up.
const MOST_CRAWLS: usize = 2;

/// The number of characters of a value that count when records are sorted.
const SORTED_CHARS: usize = 64;

/// The number of characters of a value that a list shows.
const SHOWN_CHARS: usize = 160;

/// The records to list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) records: RecordFilter,
    /// Only records with a cell of this state,
    pub(crate) state: Option<State>,
    /// in this column,
    pub(crate) column: Option<String>,
    /// and only records with a page of this site.
    pub(crate) site: Option<String>,
}

/// A record, and what is known of its pages.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) record: ListedRecord,
    pub(crate) pages: Vec<PageResult>,
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Row>,
    /// Where the list continues.
    pub(crate) next: Option<String>,
    pub(crate) examined: u64,
}

impl Filter {
    /// The part of the filter that the record alone decides.
    fn condition(&self) -> RecordCondition {
        let filter = self.clone();
        RecordCondition::new(move |document| {
            let is_of_site = filter
                .site
                .as_ref()
                .is_none_or(|wanted| sites_of(document).any(|site| site == *wanted));
            is_of_site && filter.may_be_in_state(document)
        })
    }

    fn may_be_in_state(&self, document: &Value) -> bool {
        let Some(state) = self.state else {
            return true;
        };
        self.columns(document)
            .iter()
            .any(|name| match Known::of(document, name) {
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
            })
    }

    fn takes(&self, row: &Row) -> bool {
        let document = &row.record.record.document;
        self.state.is_none_or(|state| {
            let mut columns = self.columns(document).into_iter();
            columns.any(|name| state_of(document, name, &row.pages) == state)
        })
    }

    /// The names of the columns that are searched.
    fn columns<'a>(&'a self, document: &'a Value) -> Vec<&'a str> {
        match &self.column {
            Some(column) => vec![column.as_str()],
            None => names_of(document).collect(),
        }
    }

    /// Whether the filter depends on the pages of records.
    fn needs_pages(&self) -> bool {
        !matches!(self.state, None | Some(State::Filled | State::Conflicting))
    }
}

/// The names of the fields of a record, and of those that it lacks.
pub(crate) fn names_of(document: &Value) -> impl Iterator<Item = &str> {
    let fields = &document["fields"];
    let names = fields.as_object().into_iter().flatten();
    let missing = document["missing"].as_array().into_iter().flatten();
    let missing = missing.filter_map(Value::as_str);
    let others = missing.filter(move |name| fields.get(name).is_none());
    names.map(|(name, _)| name.as_str()).chain(others)
}

/// The URLs that a record was given with, and those of its values and doubts.
fn urls_of(document: &Value) -> impl Iterator<Item = &str> {
    let given = document["urls"].as_array().into_iter().flatten();
    let sources = document["sources"].as_object().into_iter().flatten();
    let sources = sources.map(|(_, source)| &source["url"]);
    let doubts = document["doubts"].as_object().into_iter().flatten();
    let doubts = doubts.map(|(url, _)| url.as_str());
    given.chain(sources).filter_map(Value::as_str).chain(doubts)
}

fn sites_of(document: &Value) -> impl Iterator<Item = String> {
    let urls = urls_of(document).filter_map(|url| Url::parse(url).ok());
    urls.map(|url| site(&url))
}

/// Values from pages that differ from the field's own value, without parts of unfinished lists.
pub(crate) fn other_values<'a>(document: &'a Value, name: &str) -> Vec<&'a Value> {
    let own = &document["fields"][name];
    let candidates = document["candidates"][name].as_array();
    let candidates = candidates.into_iter().flatten();
    let is_whole = |one: &&Value| one["further"].is_null();
    candidates
        .filter(is_whole)
        .filter(|one| !same_value(own, &one["value"]))
        .collect()
}

/// What a record says of a cell without its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    State(State),
    /// A value of the user: its pages may have the same or another one.
    Given,
    /// A gap: its pages say why.
    Gap,
}

impl Known {
    fn of(document: &Value, name: &str) -> Known {
        let value = &document["fields"][name];
        let mut missing = document["missing"].as_array().into_iter().flatten();
        let is_missing = missing.any(|one| one == name);
        let answer = document["decisions"][name]["answer"].as_str();
        let is_final = answer.is_some_and(|answer| answer != "rejected");
        let is_of_page = !document["sources"][name].is_null();
        let has_others = !other_values(document, name).is_empty();
        match (has_value(value), is_of_page) {
            (true, true) if has_others && !is_final => Known::State(State::Contradicted),
            (true, true) => Known::State(State::Filled),
            (true, false) if is_final => Known::State(State::Given),
            (true, false) => Known::Given,
            (false, _) if !is_missing => Known::State(State::Kept),
            (false, _) if has_others => Known::State(State::Conflicting),
            (false, _) if answer == Some("rejected") => Known::State(State::Refused),
            (false, _) => Known::Gap,
        }
    }
}

/// The state of a cell.
pub(crate) fn state_of(document: &Value, name: &str, pages: &[PageResult]) -> State {
    match Known::of(document, name) {
        Known::State(state) => state,
        Known::Given => {
            let own = &document["fields"][name];
            match value_on_page(pages, name, |value| same_value(own, value)) {
                Some(_) => State::Known,
                None if value_on_page(pages, name, |_| true).is_some() => State::Contradicted,
                None => State::Given,
            }
        }
        Known::Gap => state_of_gap(name, pages),
    }
}

fn state_of_gap(name: &str, pages: &[PageResult]) -> State {
    let is_read = |page: &PageResult| page.outcome.is_page();
    let is_forbidden = |page: &PageResult| page.outcome == Outcome::Disallowed;
    if value_on_page(pages, name, |_| true).is_some() {
        State::Refused
    } else if pages.iter().any(is_read) {
        State::NotOnPage
    } else if pages.is_empty() {
        State::Empty
    } else if pages.iter().all(is_forbidden) {
        State::Robots
    } else {
        State::Unreachable
    }
}

/// A page that has such a value for a field, with the value.
pub(crate) fn value_on_page<'a>(
    pages: &'a [PageResult],
    name: &str,
    is_it: impl Fn(&Value) -> bool,
) -> Option<(&'a PageResult, &'a Value)> {
    pages.iter().find_map(|page| {
        let value = page.fields.as_ref()?.get(name)?;
        (has_value(value) && is_it(value)).then_some((page, value))
    })
}

/// The answer that a person has given about a field. A rejection no longer counts once the field has a value.
pub(crate) fn answer_of<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    let answer = document["decisions"][name]["answer"].as_str();
    let is_over = |answer: &&str| *answer == "rejected" && has_value(&document["fields"][name]);
    answer.filter(|answer| !is_over(answer))
}

/// What a state means for a record.
pub(crate) fn meaning(state: State) -> &'static str {
    match state {
        State::Filled => "A page has given the value, or a person has accepted it.",
        State::Known => "The value was given with the record, and a page has the same.",
        State::Contradicted => "Another page has another value.",
        State::Conflicting => "A gap: pages disagree, and nothing decides between them.",
        State::Refused => {
            "A gap: a page has a value, but it belongs to another record, or a person has rejected it."
        }
        State::NotOnPage => "A gap: nothing was read on its pages.",
        State::Unreachable => "A gap: none of its pages could be fetched.",
        State::Robots => "A gap: robots.txt disallows its pages.",
        State::BelowPrecision => "A gap: the value is not sure enough.",
        State::Empty => "A gap: the record has no URL, or none of its pages is fetched yet.",
        State::Given => "The value was given with the record.",
        State::Kept => "The record does not have this field.",
    }
}

/// The page of a list behind `after`.
pub(crate) async fn page(
    browse: &dyn Browse,
    filter: &Filter,
    after: Option<Place>,
    wanted: usize,
    with_pages: bool,
) -> Result<Page, StoreError> {
    let (began, condition) = (Instant::now(), filter.condition());
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
        let mut rows = with_pages_of(browse, listed.rows, with_pages).await?;
        rows.retain(|row| filter.takes(row));
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

/// Records with the results of their pages, read at once.
async fn with_pages_of(
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

/// A record with its pages.
pub(crate) async fn row(
    browse: &dyn Browse,
    record: ListedRecord,
) -> Result<Option<Row>, StoreError> {
    Ok(with_pages_of(browse, vec![record], true).await?.pop())
}

fn needs_pages(document: &Value) -> bool {
    names_of(document).any(|name| !matches!(Known::of(document, name), Known::State(_)))
}

/// The keys of the pages that are looked up for a record.
fn page_ids(document: &Value, crawls: &[CrawlId]) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for url in urls_of(document) {
        match canonical(url, None) {
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

/// The value by which a record is sorted. Records without one come last in either order.
#[derive(Debug, Clone, PartialEq)]
enum SortValue {
    Number(f64),
    Text(String),
}

impl SortValue {
    fn of(value: &Value) -> Option<SortValue> {
        if !has_value(value) {
            return None;
        }
        let text = text_of(&cell_of(value))?;
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        Some(match number {
            Some(number) => SortValue::Number(number),
            None => SortValue::Text(text.to_lowercase().chars().take(SORTED_CHARS).collect()),
        })
    }

    fn order(&self, other: &SortValue) -> Ordering {
        match (self, other) {
            (SortValue::Number(one), SortValue::Number(other)) => one.total_cmp(other),
            (SortValue::Text(one), SortValue::Text(other)) => one.cmp(other),
            (SortValue::Number(_), SortValue::Text(_)) => Ordering::Less,
            (SortValue::Text(_), SortValue::Number(_)) => Ordering::Greater,
        }
    }
}

/// A page of the records of a small dataset, sorted by a column. It begins behind the record with the key `after`;
/// `None` if that record no longer exists.
pub(crate) async fn sorted_page(
    browse: &dyn Browse,
    filter: &Filter,
    (column, is_descending): (&str, bool),
    after: Option<&str>,
    wanted: usize,
) -> Result<Option<Page>, StoreError> {
    let mut keys = sort_keys(browse, &filter.records, column).await?;
    keys.sort_by(|(one_key, one), (other_key, other)| match (one, other) {
        (Some(one), Some(other)) if is_descending => {
            other.order(one).then_with(|| other_key.cmp(one_key))
        }
        (Some(one), Some(other)) => one.order(other).then_with(|| one_key.cmp(other_key)),
        (None, None) => one_key.cmp(other_key),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
    });
    let begin = match after {
        None => 0,
        Some(after) => match keys.iter().position(|(key, _)| key == after) {
            Some(place) => place + 1,
            // It was removed meanwhile.
            None => return Ok(None),
        },
    };
    let (began, condition) = (Instant::now(), filter.condition());
    let mut page = Page::default();
    for (key, _) in &keys[begin..] {
        page.examined += 1;
        let id = split_record_key(key).1.to_owned();
        if let Some(record) = browse.record(key).await?
            && condition.takes(&record.document)
        {
            let listed = ListedRecord {
                place: Place::by_key(key.as_str()),
                id,
                record,
            };
            let row = row(browse, listed).await?;
            page.rows.extend(row.filter(|row| filter.takes(row)));
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

async fn sort_keys(
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
                Some(fields) => fields.get(column).and_then(SortValue::of),
                None => {
                    let whole = browse.record(&row.key).await?;
                    whole.and_then(|whole| SortValue::of(&whole.document["fields"][column]))
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

/// A value as a cell of a table.
pub(crate) fn cell_of(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Missing,
        Value::Bool(is_true) => Cell::Bool(*is_true),
        Value::Number(number) => Cell::Number(number.to_string()),
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(items) if items.iter().all(|item| !item.is_object()) => {
            Cell::List(items.iter().map(cell_of).collect())
        }
        other => Cell::Other(other.clone()),
    }
}

/// The beginning of a value, for a list.
pub(crate) fn beginning(value: &Value) -> Option<String> {
    let text = text_of(&cell_of(value)).filter(|text| !text.is_empty())?;
    Some(match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page_of(outcome: Outcome, fields: Value) -> PageResult {
        PageResult {
            id: String::from("a/c/1"),
            url: String::from("http://a.org/1"),
            outcome,
            fields: fields.as_object().cloned(),
        }
    }

    #[test]
    fn the_state_of_a_cell_follows_from_its_record_and_its_pages() {
        let source =
            json!({"url": "http://a.org/1", "mapping": "m", "at": "2026-01-01T12:00:00.000Z"});
        let document = json!({
            "fields": {"filled": "x", "other": "x", "given": "x", "gap": null, "torn": null, "out": null,
                "kept": "mine", "final": "x"},
            "sources": {"filled": source, "other": source, "final": source},
            "candidates": {"other": [{"value": "y", "url": "http://b.org/"}], "filled": [{"value": "X "}],
                "torn": [{"value": "1"}, {"value": "2"}], "final": [{"value": "y"}],
                "gap": [{"value": ["a"], "further": ["http://a.org/2"]}]},
            "missing": ["gap", "torn", "absent"],
            "decisions": {"kept": {"answer": "accepted"}, "final": {"answer": "accepted"}},
        });
        let read = |fields: Value| vec![page_of(Outcome::Ok, fields)];
        let lost = vec![page_of(Outcome::HttpError, json!({}))];
        let forbidden = vec![page_of(Outcome::Disallowed, json!({}))];
        for (name, pages, state) in [
            ("filled", vec![], State::Filled),
            ("other", vec![], State::Contradicted),
            ("final", vec![], State::Filled),
            ("torn", vec![], State::Conflicting),
            ("out", vec![], State::Kept),
            ("kept", read(json!({"kept": "theirs"})), State::Given),
            ("given", vec![], State::Given),
            ("given", read(json!({"given": "y"})), State::Contradicted),
            ("given", read(json!({"given": " x"})), State::Known),
            ("gap", vec![], State::Empty),
            ("gap", read(json!({})), State::NotOnPage),
            ("gap", read(json!({"gap": "z"})), State::Refused),
            ("gap", lost.clone(), State::Unreachable),
            ("gap", forbidden, State::Robots),
            ("absent", lost, State::Unreachable),
        ] {
            assert_eq!(state_of(&document, name, &pages), state, "{name}");
        }
        let names: Vec<&str> = names_of(&document).collect();
        assert!(names.contains(&"absent") && names.len() == 9, "{names:?}");
    }

    #[test]
    fn values_are_sorted_as_numbers_before_texts() {
        let value = |value: Value| SortValue::of(&value);
        let mut values = [json!("b"), json!("10"), json!(9.5), json!("A"), json!(-1)].map(value);
        values.sort_by(|one, other| one.as_ref().unwrap().order(other.as_ref().unwrap()));
        let expected = [json!(-1), json!(9.5), json!("10"), json!("a"), json!("b")].map(value);
        assert_eq!(values, expected);
        assert_eq!(value(json!("")), None);
        assert_eq!(beginning(&json!(["a", "b"])).as_deref(), Some("a; b"));
        assert_eq!(beginning(&json!([])), None);
        let long = beginning(&json!("ü".repeat(500))).unwrap();
        assert_eq!(long.chars().count(), SHOWN_CHARS + 1);
    }
}
