//! Decisions of people about single values of a record.
//!
//! - An accepted or typed value is final: no page replaces it and no refresh asks for another one. A page's value keeps
//!   its source, a typed one has a source without a URL. Both are written back like values of pages.
//! - A rejected value does not come back, from whatever page. Its field is missing until another value comes.
//! - A value that the user's input gives later is newer than any decision, and ends it.
//! - The last state before the first decision is kept, so that all decisions about a field can be undone.
//!
//! Decisions are kept with the record's [`doubts`](super::doubts).

use serde_json::{Value, json};

use super::source::MAX_CANDIDATE_BYTES;
use super::spelling::has_value;
use super::stored::StoredRecord;
use crate::timestamp::iso_time;

/// The most rejected values of a field. Beyond that, the oldest are forgotten.
const MAX_REJECTED: usize = 16;

/// A person's decision about a field of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The record's key.
    pub record: String,
    pub field: String,
    /// The value that the person has seen; null if there was none. If the field has another value by now, nothing is
    /// decided.
    pub seen: Value,
    pub answer: DecisionAnswer,
    /// The person's name, if it is known.
    pub by: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DecisionAnswer {
    /// The present value is right.
    Accept,
    /// Another value, from a page, is right. `source` has the members `url`, `mapping` and `at`.
    AcceptOther { value: Value, source: Value },
    /// The person has typed the right value.
    Type(Value),
    /// The present value is wrong. If there is no present value, all candidates are wrong.
    Reject,
    /// Takes all decisions about the field back.
    Undo,
}

/// The result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    Done,
    /// There is no such record, or it has no such field.
    Unknown,
    /// The value is no longer the one that the person has seen.
    Changed,
    /// There is nothing to accept, to reject or to undo, or the value is too large to be kept.
    Nothing,
}

impl StoredRecord {
    /// Applies a decision.
    pub(crate) fn decide(&mut self, decision: &Decision, now_ms: i64) -> Decided {
        let name = decision.field.as_str();
        if !self.fields.contains_key(name) && !self.missing.iter().any(|one| one == name) {
            return Decided::Unknown;
        }
        let kept = self.fields.get(name).cloned().unwrap_or_default();
        if kept != decision.seen {
            return Decided::Changed;
        }
        let done = match &decision.answer {
            DecisionAnswer::Undo => self.undo_decision(name),
            DecisionAnswer::Accept if has_value(&kept) => {
                self.note_decision(decision, "accepted", now_ms);
                self.missing.retain(|one| one != name);
                true
            }
            DecisionAnswer::AcceptOther { value, source } if is_usable(value) => {
                self.note_decision(decision, "accepted", now_ms);
                self.replace_value(name, value, source.clone(), now_ms);
                true
            }
            DecisionAnswer::Type(value) if is_usable(value) => {
                self.note_decision(decision, "edited", now_ms);
                let source = json!({"url": null, "mapping": null, "at": iso_time(now_ms)});
                self.replace_value(name, value, source, now_ms);
                true
            }
            DecisionAnswer::Reject => self.reject_value(decision, &kept, now_ms),
            _ => false,
        };
        if !done {
            return Decided::Nothing;
        }
        self.clear_rivals_if_complete();
        self.update_resolved_at(now_ms);
        Decided::Done
    }

    /// Whether the last decision about the field is exactly this one. An undo is not stored, so for an undo the answer
    /// is false.
    pub(crate) fn has_decision(&self, decision: &Decision, now_ms: i64) -> bool {
        let answer = match &decision.answer {
            DecisionAnswer::Accept | DecisionAnswer::AcceptOther { .. } => "accepted",
            DecisionAnswer::Type(_) => "edited",
            DecisionAnswer::Reject => "rejected",
            DecisionAnswer::Undo => return false,
        };
        self.doubts.decision(&decision.field).is_some_and(|known| {
            known["at"] == iso_time(now_ms)
                && known["by"].as_str() == decision.by.as_deref()
                && known["answer"] == answer
        })
    }

    fn replace_value(&mut self, name: &str, value: &Value, source: Value, now_ms: i64) {
        let former = self.fields.insert(name.to_owned(), value.clone());
        let former_source = self.sources.insert(name.to_owned(), source);
        if let Some(former) = former.filter(|former| former != value) {
            self.history.add(name, former, former_source, now_ms);
        }
        self.candidates.remove_value(name, value);
        self.missing.retain(|one| one != name);
    }

    /// Rejects the present value, or all candidates if there is none. Returns whether there was a value to reject.
    fn reject_value(&mut self, decision: &Decision, kept: &Value, now_ms: i64) -> bool {
        let name = decision.field.as_str();
        let wrong: Vec<Value> = match has_value(kept) {
            true => vec![kept.clone()],
            false => {
                let candidates = self.candidates.of_field(name).iter();
                candidates.map(|one| one["value"].clone()).collect()
            }
        };
        if wrong.is_empty() {
            return false;
        }
        self.note_decision(decision, "rejected", now_ms);
        if has_value(kept) {
            let source = self.sources.shift_remove(name);
            self.fields.insert(name.to_owned(), Value::Null);
            self.history.add(name, kept.clone(), source, now_ms);
        }
        for value in &wrong {
            self.candidates.remove_value(name, value);
        }
        if let Some(Value::Array(rejected)) = self
            .doubts
            .decision_mut(name)
            .map(|one| &mut one["rejected"])
        {
            rejected.extend(wrong);
            let surplus = rejected.len().saturating_sub(MAX_REJECTED);
            rejected.drain(..surplus);
        }
        if !self.missing.iter().any(|one| one == name) {
            self.missing.push(name.to_owned());
        }
        true
    }

    /// Records a decision, with the state before the first decision about the field.
    fn note_decision(&mut self, decision: &Decision, answer: &str, now_ms: i64) {
        let name = decision.field.as_str();
        let former = match self.doubts.decision(name) {
            Some(known) => known["former"].clone(),
            None => json!({
                "value": self.fields.get(name),
                "source": self.sources.get(name),
                "candidates": self.candidates.get(name),
                "missing": self.missing.iter().any(|one| one == name),
            }),
        };
        let rejected = self
            .doubts
            .decision(name)
            .map(|known| known["rejected"].clone());
        let noted = json!({
            "answer": answer,
            "by": decision.by,
            "at": iso_time(now_ms),
            "rejected": rejected.unwrap_or_else(|| json!([])),
            "former": former,
        });
        self.doubts.set_decision(name, noted);
    }

    fn undo_decision(&mut self, name: &str) -> bool {
        let Some(decision) = self.doubts.forget_decision(name) else {
            return false;
        };
        let former = &decision["former"];
        self.fields.insert(name.to_owned(), former["value"].clone());
        match former["source"].is_null() {
            true => self.sources.shift_remove(name),
            false => self
                .sources
                .insert(name.to_owned(), former["source"].clone()),
        };
        let candidates = former["candidates"].as_array();
        self.candidates
            .set(name, candidates.cloned().unwrap_or_default());
        self.history.remove_if_current(name, &former["value"]);
        self.missing.retain(|one| one != name);
        if former["missing"] == true {
            self.missing.push(name.to_owned());
        }
        true
    }
}

/// Whether a value can be accepted or typed. A large value cannot, because decisions store it several times.
fn is_usable(value: &Value) -> bool {
    has_value(value) && value.to_string().len() <= MAX_CANDIDATE_BYTES
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::super::fill_rules::NOWHERE;
    use super::super::{FillRules, PageValues, Record};
    use super::*;
    use crate::record::Entry;
    use crate::source_document::DatasetRecord;

    const AT_MS: i64 = 1_795_000_000_000;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn fill(record: &mut StoredRecord, url: &str, mapping: &str, fields: Value, at_ms: i64) {
        let fields = object(fields);
        let page = PageValues {
            fields: &fields,
            url,
            mapping: Some(mapping),
            started_at_ms: at_ms,
            ended_at_ms: at_ms + 1,
            depth: Some(0),
            leads: &NOWHERE,
            is_of_other: false,
            is_reread: false,
        };
        record.fill(&page, &FillRules::default());
    }

    fn put(record: &mut StoredRecord, fields: Value, want: &[&str]) {
        let input = DatasetRecord::from(Record {
            dataset: "d".parse().unwrap(),
            id: String::from("1"),
            fields: object(fields),
            want: want.iter().map(|name| (*name).to_owned()).collect(),
        });
        let entry = Entry {
            enters: true,
            is_repeat: false,
        };
        record.put(&input, entry, AT_MS + 50);
    }

    fn decide(record: &mut StoredRecord, answer: DecisionAnswer) -> Decided {
        let decision = Decision {
            record: String::from("d/1"),
            field: String::from("name"),
            seen: record.fields.get("name").cloned().unwrap_or_default(),
            answer,
            by: Some(String::from("ada")),
        };
        record.decide(&decision, AT_MS + 10)
    }

    /// A record whose name was filled by a page. A second page has another name.
    fn filled_record() -> StoredRecord {
        let mut record = StoredRecord::default();
        put(&mut record, json!({"name": null, "id": 7}), &["name"]);
        fill(
            &mut record,
            "http://a.org/1",
            "m",
            json!({"name": "Ada"}),
            AT_MS,
        );
        fill(
            &mut record,
            "http://a.org/2",
            "m",
            json!({"name": "Bob"}),
            AT_MS,
        );
        assert_eq!(record.fields["name"], "Ada");
        assert_eq!(record.candidates["name"][0]["value"], "Bob");
        record
    }

    fn accept_other_answer() -> DecisionAnswer {
        DecisionAnswer::AcceptOther {
            value: json!("Bob"),
            source: json!({"url": "http://a.org/2", "mapping": "m", "at": iso_time(AT_MS)}),
        }
    }

    #[test]
    fn an_accepted_value_stays_whatever_pages_say() {
        for answer in [
            DecisionAnswer::Accept,
            accept_other_answer(),
            DecisionAnswer::Type(json!("Eve")),
        ] {
            let mut record = filled_record();
            assert_eq!(decide(&mut record, answer), Decided::Done);
            let decided = record.clone();
            fill(
                &mut record,
                "http://a.org/3",
                "m",
                json!({"name": "Zoe"}),
                AT_MS + 20,
            );
            record.mark_for_refresh(&[String::from("name")]);
            let taken = ("http://a.org/2", &*iso_time(AT_MS));
            record.take_back(taken, &FillRules::default(), AT_MS + 30);
            assert_eq!(record.fields, decided.fields);
            assert_eq!(record.sources, decided.sources);
            assert!(record.missing.is_empty());
            // The same input again, without a value, changes nothing.
            put(&mut record, json!({"name": null, "id": 7}), &["name"]);
            assert_eq!(record.fields, decided.fields);
            // Another value of the user replaces the decided one.
            put(&mut record, json!({"name": "Mine"}), &["name"]);
            assert_eq!(record.fields["name"], "Mine");
            assert!(!record.doubts.is_final("name"));
        }
    }

    #[test]
    fn a_rejected_value_does_not_come_back_and_another_one_may_come() {
        let mut record = filled_record();
        assert_eq!(decide(&mut record, DecisionAnswer::Reject), Decided::Done);
        assert_eq!(record.fields["name"], Value::Null);
        assert_eq!(
            (&*record.missing, &record.resolved_at),
            (&[String::from("name")][..], &None)
        );
        fill(
            &mut record,
            "http://a.org/9",
            "m",
            json!({"name": "Ada"}),
            AT_MS + 20,
        );
        assert_eq!(record.fields["name"], Value::Null);
        // The field has no value now, so the next rejection is for all candidates.
        assert_eq!(decide(&mut record, DecisionAnswer::Reject), Decided::Done);
        assert!(record.candidates.is_empty());
        assert_eq!(
            decide(&mut record, DecisionAnswer::Reject),
            Decided::Nothing
        );
        fill(
            &mut record,
            "http://a.org/8",
            "m",
            json!({"name": "Bob"}),
            AT_MS + 30,
        );
        assert_eq!(record.fields["name"], Value::Null);
        fill(
            &mut record,
            "http://a.org/7",
            "m",
            json!({"name": "Zoe"}),
            AT_MS + 40,
        );
        assert_eq!(record.fields["name"], "Zoe");
        assert!(record.resolved_at.is_some());
    }

    #[test]
    fn all_decisions_are_undone_at_once() {
        let before = filled_record();
        let mut record = before.clone();
        decide(&mut record, DecisionAnswer::Reject);
        decide(&mut record, accept_other_answer());
        decide(&mut record, DecisionAnswer::Type(json!("Eve")));
        assert_eq!(record.history["name"].as_array().unwrap().len(), 2);
        assert_eq!(decide(&mut record, DecisionAnswer::Undo), Decided::Done);
        assert_eq!(record.fields, before.fields);
        assert_eq!(record.sources, before.sources);
        assert_eq!(record.candidates, before.candidates);
        assert_eq!(record.missing, before.missing);
        assert_eq!(record.doubts, before.doubts);
        assert_eq!(decide(&mut record, DecisionAnswer::Undo), Decided::Nothing);
    }

    #[test]
    fn a_value_that_the_person_has_not_seen_is_not_decided() {
        let mut record = filled_record();
        let before = record.clone();
        let decision = |field: &str, seen: Value, answer| Decision {
            record: String::from("d/1"),
            field: field.to_owned(),
            seen,
            answer,
            by: None,
        };
        let stale = decision("name", json!("Zoe"), DecisionAnswer::Reject);
        assert_eq!(record.decide(&stale, AT_MS), Decided::Changed);
        let unknown = decision("other", Value::Null, DecisionAnswer::Type(json!("x")));
        assert_eq!(record.decide(&unknown, AT_MS), Decided::Unknown);
        let large = DecisionAnswer::Type(json!("x".repeat(MAX_CANDIDATE_BYTES)));
        assert_eq!(decide(&mut record, large), Decided::Nothing);
        assert_eq!(record, before);
    }
}
