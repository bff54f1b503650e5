//! The cells of a record, from its document in the store.
//!
//! The state of a cell follows from the source of its value, differing values of other pages, the outcomes of the
//! record's pages, and people's decisions.

use serde_json::Value;
use webfill_store::{PageResult, has_value};
use webfill_table::Cell;
use webfill_urls::{Url, site};
use webfill_values::is_equivalent_value;
use webfill_wire::Outcome;

use super::building::cell_text;
use super::state::State;

/// How many characters of a value are shown in a list.
const SHOWN_CHARS: usize = 160;

/// The names of the fields that a record has, and of those that it lacks.
pub(crate) fn field_names(document: &Value) -> impl Iterator<Item = &str> {
    let fields = &document["fields"];
    let names = fields.as_object().into_iter().flatten();
    let missing = document["missing"].as_array().into_iter().flatten();
    let missing = missing.filter_map(Value::as_str);
    let others = missing.filter(move |name| fields.get(name).is_none());
    names.map(|(name, _)| name.as_str()).chain(others)
}

/// All URLs in a record's document: those given with the record, those that its values come from, and those in its
/// doubts.
pub(super) fn urls_in_record(document: &Value) -> impl Iterator<Item = &str> {
    let given = document["urls"].as_array().into_iter().flatten();
    let sources = document["sources"].as_object().into_iter().flatten();
    let sources = sources.map(|(_, source)| &source["url"]);
    let doubts = document["doubts"].as_object().into_iter().flatten();
    let doubts = doubts.map(|(url, _)| url.as_str());
    given.chain(sources).filter_map(Value::as_str).chain(doubts)
}

pub(super) fn sites_in_record(document: &Value) -> impl Iterator<Item = String> {
    let urls = urls_in_record(document).filter_map(|url| Url::parse(url).ok());
    urls.map(|url| site(&url))
}

/// Values from other pages that differ from the field's value. Incomplete lists are left out.
pub(crate) fn other_values<'a>(document: &'a Value, name: &str) -> Vec<&'a Value> {
    let own = &document["fields"][name];
    let candidates = document["candidates"][name].as_array();
    let candidates = candidates.into_iter().flatten();
    let is_whole = |one: &&Value| one["further"].is_null();
    candidates
        .filter(is_whole)
        .filter(|one| !is_equivalent_value(own, &one["value"]))
        .collect()
}

/// The state of a cell as far as the record shows it, without looking up its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    State(State),
    /// The cell has a value that the user has given. The pages show whether they agree with it.
    Given,
    /// The cell is empty. The pages show why.
    Gap,
}

impl Known {
    pub(super) fn from_document(document: &Value, name: &str) -> Known {
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

/// The state of a record's cell, from its document and the results of its pages.
pub(crate) fn cell_state(document: &Value, name: &str, pages: &[PageResult]) -> State {
    match Known::from_document(document, name) {
        Known::State(state) => state,
        Known::Given => {
            let own = &document["fields"][name];
            match value_on_page(pages, name, |value| is_equivalent_value(own, value)) {
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

/// The first page whose value for a field satisfies the condition, and that value.
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

/// A person's last answer about a field. A rejection does not count any more once the field has another value.
pub(crate) fn current_answer<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    let answer = document["decisions"][name]["answer"].as_str();
    let is_over = |answer: &&str| *answer == "rejected" && has_value(&document["fields"][name]);
    answer.filter(|answer| !is_over(answer))
}

/// Explains what a state means for a record's cell.
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
        State::BelowPrecision => "A gap: the value is not certain enough.",
        State::Empty => "A gap: the record has no URL, or none of its pages is fetched yet.",
        State::Given => "The value was given with the record.",
        State::Kept => "The record does not have this field.",
    }
}

/// A JSON value as a cell of a table.
pub(crate) fn value_to_cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Missing,
        Value::Bool(is_true) => Cell::Bool(*is_true),
        Value::Number(number) => Cell::Number(number.to_string()),
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(items) if items.iter().all(|item| !item.is_object()) => {
            Cell::List(items.iter().map(value_to_cell).collect())
        }
        other => Cell::Other(other.clone()),
    }
}

/// The value as text, shortened for a list.
pub(crate) fn shortened_text(value: &Value) -> Option<String> {
    let text = cell_text(&value_to_cell(value)).filter(|text| !text.is_empty())?;
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
            assert_eq!(cell_state(&document, name, &pages), state, "{name}");
        }
        let names: Vec<&str> = field_names(&document).collect();
        assert!(names.contains(&"absent") && names.len() == 9, "{names:?}");
    }

    #[test]
    fn a_list_shows_the_beginning_of_a_value() {
        assert_eq!(shortened_text(&json!(["a", "b"])).as_deref(), Some("a; b"));
        assert_eq!(shortened_text(&json!([])), None);
        let long = shortened_text(&json!("ü".repeat(500))).unwrap();
        assert_eq!(long.chars().count(), SHOWN_CHARS + 1);
    }
}
