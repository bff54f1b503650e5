//! A cell of a record: its value and the value's source, other values, and the forms for a visitor to decide about it.
//! A decision is applied to the record at once, and kept with it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use webfill_store::{
    BrowseHandles, Decided, Decision, DecisionAnswer, ListedRecord, PageResult, Place, WholeRecord,
    has_value, page_id,
};

use super::cell::{CellRequest, load_passage};
use super::reading::{open_store, with_time_limit};
use super::records::record_path;
use crate::answer::{Problem, Shown, see_other};
use crate::form::Form;
use crate::grid::building::cell_text;
use crate::grid::record_cells::{
    cell_state, current_answer, meaning, other_values, value_on_page, value_to_cell,
};
use crate::grid::records::{Row, load_row};
use crate::grid::state::State;
use crate::messages::Message;
use crate::secrets::hex;
use crate::snapshot::now_ms;
use crate::templates::percent_encode;
use crate::visit::Visit;

/// The text that separates several values when a user types them.
const SEPARATOR: &str = ";";

/// A cell of a record, with everything that is known about it.
struct Cell {
    dataset: String,
    id: String,
    field: String,
    row: Row,
    state: State,
}

impl Cell {
    async fn load(
        visit: &Visit,
        store: &BrowseHandles,
        (dataset, id): (&str, &str),
        field: Option<&str>,
    ) -> Result<Cell, Problem> {
        let missing = || Problem::not_found(format!("record {id} of dataset {dataset} not found"));
        let key = format!("{dataset}/{id}");
        let record = with_time_limit(store.browse.record(&key)).await?;
        let record = record.ok_or_else(missing)?;
        if !is_visible(visit, &record) {
            // The answer is the same as for a missing record, so that it does not show whether the record exists.
            return Err(missing());
        }
        let field = field.ok_or_else(|| Problem::bad_request("field: expected a name"))?;
        let listed = ListedRecord {
            place: Place::by_key(key),
            id: id.to_owned(),
            record,
        };
        let row = with_time_limit(load_row(store.browse.as_ref(), listed)).await?;
        let row = row.ok_or_else(missing)?;
        let state = cell_state(&row.record.record.document, field, &row.pages);
        if state == State::Kept && row.record.record.document["fields"].get(field).is_none() {
            return Err(Problem::not_found("the record has no such field"));
        }
        Ok(Cell {
            dataset: dataset.to_owned(),
            id: id.to_owned(),
            field: field.to_owned(),
            row,
            state,
        })
    }

    fn document(&self) -> &Value {
        &self.row.record.record.document
    }

    /// The entry for this field in a member of the record's document, such as `sources`.
    fn member_of_field(&self, member: &str) -> &Value {
        &self.document()[member][&self.field]
    }

    fn value(&self) -> &Value {
        self.member_of_field("fields")
    }

    /// Whether the value was given by the user together with the record.
    fn is_given(&self) -> bool {
        has_value(self.value()) && self.member_of_field("sources").is_null()
    }

    /// The first page with a value for this field. `None` if the value of the field already comes from a page.
    fn page_with_value(&self) -> Option<(&PageResult, &Value)> {
        let is_open = self.is_given() || self.state == State::Refused;
        let has_value = value_on_page(&self.row.pages, &self.field, |_| true);
        has_value.filter(|_| is_open)
    }

    fn path(&self) -> String {
        let path = record_path(&self.dataset, &self.id);
        format!("{path}/cell?field={}", percent_encode(&self.field))
    }

    /// A text that is different after anything has changed that a person sees before deciding.
    fn version(&self) -> String {
        let members = ["fields", "sources", "candidates", "decisions"];
        let seen: Vec<&Value> = members
            .iter()
            .map(|member| self.member_of_field(member))
            .collect();
        let page = self.page_with_value().map(|(_, value)| value);
        let seen = json!([seen, page]).to_string();
        let mut digits = hex(&Sha256::digest(seen.as_bytes()));
        digits.truncate(16);
        digits
    }

    /// The URL of the page with the value that is to be judged.
    fn url_of_judged_page(&self) -> Option<&str> {
        match self.page_with_value() {
            Some((page, _)) => Some(&page.url),
            None => self.member_of_field("sources")["url"].as_str(),
        }
    }
}

/// Whether the visitor may see a record. Visitors whose rights are limited to some applications see only records in
/// crawls of these.
fn is_visible(visit: &Visit, record: &WholeRecord) -> bool {
    let rights = &visit.visitor.rights;
    let mut crawls = record.crawls.iter();
    !rights.is_limited_to_apps() || crawls.any(|crawl| rights.permits_app(&crawl.app_id))
}

/// Fails if the visitor may not decide about records. A decision applies to all applications, so it needs rights for
/// all.
fn require_decision_right(visit: &Visit) -> Result<(), Problem> {
    visit.require_whole_fleet()?;
    match visit.can_change() {
        true => Ok(()),
        false => Err(Problem::forbidden("your token may only read")),
    }
}

pub(crate) async fn show(visit: &Visit, dataset: &str, id: &str) -> Shown {
    let store = open_store(visit).await?;
    let cell = Cell::load(visit, &store, (dataset, id), visit.query_value("field")).await?;
    let copy = load_stored_copy(&store, &cell).await;
    let mut content = cell_content(&cell, copy);
    content["can_decide"] = require_decision_right(visit).is_ok().into();
    visit.render_page("cell.html", "Evidence", content)
}

/// The text around the value in the stored copy of its page, from the latest crawl that has a copy.
async fn load_stored_copy(store: &BrowseHandles, cell: &Cell) -> Option<Value> {
    let url = cell.url_of_judged_page()?;
    let value = match cell.page_with_value() {
        Some((_, value)) => value,
        None => cell.value(),
    };
    let first = match value {
        Value::Array(items) => items.first()?,
        value => value,
    };
    let text = cell_text(&value_to_cell(first))?;
    for crawl in &cell.row.record.record.crawls {
        let id = page_id(&crawl.app_id, &crawl.crawl_id, url);
        if let Some(found) = load_passage(store.browse.as_ref(), &id, text.clone()).await {
            return Some(found);
        }
    }
    None
}

fn editable_text(value: &Value) -> String {
    cell_text(&value_to_cell(value)).unwrap_or_default()
}

fn is_link(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

fn cell_content(cell: &Cell, copy: Option<Value>) -> Value {
    let (source, decision) = (
        cell.member_of_field("sources"),
        cell.member_of_field("decisions"),
    );
    let mut state = cell.state.to_json();
    state["meaning"] = meaning(cell.state).into();
    let is_given = cell.is_given();
    let page_value = match cell.page_with_value() {
        Some((_, value)) => editable_text(value),
        None if is_given || source["url"].is_null() => String::new(),
        None => editable_text(cell.value()),
    };
    let answer = current_answer(cell.document(), &cell.field);
    let typed = (answer == Some("edited")).then(|| editable_text(cell.value()));
    let others = other_values(cell.document(), &cell.field);
    let candidates: Vec<Value> = others
        .iter()
        .map(|one| {
            let url = one["url"].as_str().unwrap_or_default();
            json!({"text": editable_text(&one["value"]), "url": url, "is_link": is_link(url)})
        })
        .collect();
    let has_other_page = cell.page_with_value().is_some() && cell.state != State::Known;
    let is_filled = has_value(cell.value()) && !is_given;
    let can_accept = has_other_page || (is_filled && answer.is_none());
    let can_reject = has_other_page && is_given && answer.is_none()
        || is_filled && answer != Some("edited")
        || cell.state == State::Conflicting;
    let url = cell.url_of_judged_page();
    let record = record_path(&cell.dataset, &cell.id);
    let dataset = percent_encode(&cell.dataset);
    json!({
        "trail": {"link": record, "label": format!("Record {}", cell.id)},
        "words": {"own": "Given", "keep": "Keep given", "applied": "The record has it now.", "row": "Record"},
        "hidden": {"field": cell.field, "version": cell.version()},
        "path": cell.path(),
        "grid": format!("/dashboard/records?dataset={dataset}&from={}", percent_encode(&cell.id)),
        "title": cell.field, "id": cell.id, "row": cell.id,
        "state": state,
        "known": is_given.then(|| editable_text(cell.value())),
        "text": page_value,
        "has_evidence": true,
        "copy": copy,
        "has_no_copy": copy.is_none() && url.is_some(),
        "url": url,
        "is_link": url.is_some_and(is_link),
        "fetched_at": source["at"].as_str().filter(|_| !source["url"].is_null()),
        "mapping": source["mapping"],
        "candidates": candidates,
        "answer": answer.map(|kind| json!({"kind": kind, "value": typed, "by": decision["by"], "at": decision["at"]})),
        "current": editable_text(cell.value()),
        "can_accept": can_accept, "can_reject": can_reject,
        "edit": editable_text(cell.value()),
        "history": history_json(cell),
    })
}

/// The former values of the field in the order of time, then the present one.
fn history_json(cell: &Cell) -> Vec<Value> {
    let former = cell
        .member_of_field("history")
        .as_array()
        .into_iter()
        .flatten();
    let former =
        former.map(|one| json!({"text": editable_text(&one["value"]), "until": one["until"]}));
    let now = json!({"text": editable_text(cell.value()), "until": null});
    former.chain([now]).collect()
}

/// Converts a text that a user has typed into the type of `like`, a present or former value of the field.
fn parse_typed_text(text: &str, like: &Value) -> Value {
    match like {
        Value::Number(_) => match serde_json::from_str::<Value>(text) {
            Ok(Value::Number(number)) => number.into(),
            _ => text.into(),
        },
        Value::Bool(_) => match text {
            "true" => true.into(),
            "false" => false.into(),
            _ => text.into(),
        },
        Value::Array(items) => {
            let like = items.first().unwrap_or(&Value::Null);
            let parts = text.split(SEPARATOR).map(str::trim);
            let parts = parts.filter(|part| !part.is_empty());
            parts.map(|part| parse_typed_text(part, like)).collect()
        }
        _ => text.into(),
    }
}

/// Applies the visitor's decision to the record, and shows the cell again.
pub(crate) async fn submit(visit: &Visit, dataset: &str, id: &str, form: &Form) -> Shown {
    require_decision_right(visit)?;
    let wanted = CellRequest::from_form(form)?;
    let store = open_store(visit).await?;
    let cell = Cell::load(visit, &store, (dataset, id), form.get("field")).await?;
    let path = cell.path();
    if form.get("version") != Some(&*cell.version()) {
        return report_changed_meanwhile(visit, &path);
    }
    let answer = resolve_answer(&store, &cell, &wanted).await?;
    let decision = Decision {
        record: format!("{dataset}/{id}"),
        field: cell.field.clone(),
        seen: cell.value().clone(),
        answer,
        by: visit.visitor.name.as_deref().map(str::to_owned),
    };
    let mut about = json!({"dataset": dataset, "record": id, "field": cell.field, "answer": form.get("answer")});
    match &decision.answer {
        DecisionAnswer::Type(value) | DecisionAnswer::AcceptOther { value, .. } => {
            about["value"] = value.clone();
        }
        _ => {}
    }
    // The audit log is written first, so that it contains every decision that takes effect.
    visit
        .write_audit_entry("record_review", about.clone())
        .await?;
    let decided = with_time_limit(store.store.decide(decision, now_ms())).await;
    let failed = match decided {
        Ok(Decided::Done) => return Ok(see_other(&path)),
        Ok(Decided::Changed) => None,
        Ok(Decided::Unknown) => Some(Problem::not_found("the record has no such field")),
        Ok(Decided::Nothing) => Some(Problem::bad_request(
            "nothing to decide: the field has no such value, or it is too large",
        )),
        Err(problem) => Some(problem),
    };
    about["result"] = "failed".into();
    visit.write_audit_entry("record_review", about).await?;
    match failed {
        Some(problem) => Err(problem),
        None => report_changed_meanwhile(visit, &path),
    }
}

fn report_changed_meanwhile(visit: &Visit, path: &str) -> Shown {
    let message = visit.dashboard.messages.store(Message {
        is_fault: true,
        text: String::from("Nothing was changed: the record has changed meanwhile"),
    });
    Ok(see_other(&format!("{path}&message={message}")))
}

async fn resolve_answer(
    store: &BrowseHandles,
    cell: &Cell,
    wanted: &CellRequest,
) -> Result<DecisionAnswer, Problem> {
    Ok(match wanted {
        CellRequest::Undo => DecisionAnswer::Undo,
        // A page disagrees with the user's own value. Rejecting the page's value means accepting the user's.
        CellRequest::Reject if cell.is_given() => DecisionAnswer::Accept,
        CellRequest::Reject => DecisionAnswer::Reject,
        CellRequest::Text(text) => {
            let candidates = cell.member_of_field("candidates");
            let like = match has_value(cell.value()) {
                true => cell.value(),
                false => &candidates[0]["value"],
            };
            DecisionAnswer::Type(parse_typed_text(text, like))
        }
        CellRequest::Candidate(place) => {
            let others = other_values(cell.document(), &cell.field);
            let other = others.get(*place);
            let other = other.ok_or_else(|| Problem::bad_request("the cell has no such value"))?;
            let mut source = (*other).clone();
            if let Value::Object(members) = &mut source {
                members.shift_remove("value");
            }
            DecisionAnswer::AcceptOther {
                value: other["value"].clone(),
                source,
            }
        }
        CellRequest::Page => match cell.page_with_value() {
            Some((page, value)) => DecisionAnswer::AcceptOther {
                value: value.clone(),
                source: load_source(store, page).await?,
            },
            None => DecisionAnswer::Accept,
        },
    })
}

/// The source of a value from this page, as records store sources.
async fn load_source(store: &BrowseHandles, page: &PageResult) -> Result<Value, Problem> {
    let whole = with_time_limit(store.browse.page(&page.id)).await?;
    let whole = whole.ok_or_else(|| Problem::not_found("the page is no longer stored"))?;
    Ok(json!({"url": page.url, "mapping": whole["mapping"], "at": whole["started_at"]}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_text_becomes_the_kind_of_value_that_the_field_has() {
        for (text, like, value) in [
            ("12", json!("x"), json!("12")),
            ("12", json!(3), json!(12)),
            ("1.5", json!(3), json!(1.5)),
            ("about 12", json!(3), json!("about 12")),
            ("true", json!(false), json!(true)),
            ("a; b ;", json!(["x"]), json!(["a", "b"])),
            ("1;2", json!([3]), json!([1, 2])),
            ("{\"a\": 1}", Value::Null, json!("{\"a\": 1}")),
        ] {
            assert_eq!(parse_typed_text(text, &like), value, "{text} like {like}");
        }
    }
}
