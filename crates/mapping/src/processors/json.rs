//! `jsonpath`: selects values from JSON pages, data scripts and texts.

use serde_json::{Number, Value};

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::item::Item;
use crate::json_query::{self, JsonQuery};
use crate::run::{OutOfTime, Output, Processor, Run};

pub(crate) const JSONPATH: Entry = Entry {
    name: "jsonpath",
    family: Family::Find,
    summary: "Yields the results of a JSONPath (RFC 9535): in a JSON page, also one that is sent as text/html, in the data scripts of an HTML page (application/json and application/ld+json), or in values that are JSON. Objects and lists stay JSON for a later jsonpath; null is dropped.",
    parameters: &[Parameter {
        name: "expression",
        kind: Kind::Text,
        presence: Presence::Required,
        meaning: "the JSONPath, beginning with $",
    }],
    examples: &[
        Example {
            parameters: r#"{"expression": "$.people[*].name"}"#,
            input: Input::Values(&[r#"{"people": [{"name": "Ada"}, {"name": "Mary"}]}"#]),
            output: &["Ada", "Mary"],
        },
        Example {
            parameters: r#"{"expression": "$.props.user.id"}"#,
            input: Input::Page(
                r#"<script id="data" type="application/json">{"props": {"user": {"id": 7}}}</script>"#,
            ),
            output: &["7"],
        },
    ],
    build: |parameters, _| {
        let query = JsonQuery::compile(parameters.text("expression"));
        let query = query.map_err(|message| refusal("expression", message))?;
        Ok(Box::new(JsonPaths(query)))
    },
};

struct JsonPaths(JsonQuery);

impl Processor for JsonPaths {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.new_output();
        for item in items {
            let goes_on = match &item {
                Item::Page => run
                    .page
                    .json(run)
                    .iter()
                    .all(|json| push_found(&self.0, json, run, &mut output)),
                other => {
                    match json_query::parse(&run.text(other), run.limits, run.page.memory_left()) {
                        Ok(json) => {
                            if let Some(oddity) = json.oddity {
                                run.warn(format_args!(
                                    "jsonpath: a value is not pure JSON: {oddity}"
                                ));
                            }
                            let mut values = json.values.iter();
                            values.all(|json| push_found(&self.0, json, run, &mut output))
                        }
                        Err(reason) => {
                            run.warn(format_args!("jsonpath: a value was skipped: {reason}"));
                            true
                        }
                    }
                }
            };
            if !goes_on {
                break;
            }
        }
        output.finish()
    }
}

/// Adds the values that a JSONPath finds in `json` to the output. Returns false if the output is full.
pub(super) fn push_found(
    query: &JsonQuery,
    json: &Value,
    run: &Run<'_>,
    output: &mut Output<'_, '_>,
) -> bool {
    match query.find(json, run.limits) {
        Ok(found) => found.into_iter().all(|value| push_json(value, output)),
        Err(reason) => {
            run.warn(reason);
            true
        }
    }
}

/// Adds a JSON value to the output: null is left out, texts and numbers are added as they are, everything else as JSON
/// text.
pub(super) fn push_json(value: &Value, output: &mut Output<'_, '_>) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => output.push_text(text.clone()),
        Value::Number(number) => output.push(Item::Number(without_sign_of_zero(number))),
        other => output.push_text(other.to_string()),
    }
}

/// Turns `-0` into `0`. JSON allows it, but nobody means it.
fn without_sign_of_zero(number: &Number) -> Number {
    match number.as_f64() {
        Some(0.0) if number.is_f64() && number.to_string().starts_with('-') => 0.into(),
        _ => number.clone(),
    }
}
