//! `json_ld`: selects values from a page's linked data (schema.org and others).

use serde_json::Value;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::item::Item;
use crate::json_query::JsonQuery;
use crate::processors::json::{push_found, push_json};
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const JSON_LD: Entry = Entry {
    name: "json_ld",
    family: Family::Find,
    summary: "Yields the JSON-LD objects of the page, also those in lists and in @graph. With a type, it finds those within other objects as well.",
    parameters: &[
        Parameter {
            name: "type",
            kind: Kind::Text,
            presence: Presence::Optional,
            meaning: "only objects of this @type, such as Person, without its vocabulary",
        },
        Parameter {
            name: "expression",
            kind: Kind::Text,
            presence: Presence::Optional,
            meaning: "a JSONPath to take values out of each object",
        },
    ],
    examples: &[Example {
        parameters: r#"{"type": "Person", "expression": "$.name"}"#,
        input: Input::Page(
            r#"<script type="application/ld+json">{"@graph": [{"@type": "WebPage", "name": "Home"},
            {"@type": "Book", "author": {"@type": "schema:Person", "name": "Ada"}}]}</script>"#,
        ),
        output: &["Ada"],
    }],
    build: |parameters, _| {
        let expression = parameters
            .optional_text("expression")
            .map(JsonQuery::compile);
        let expression = expression.transpose();
        Ok(Box::new(JsonLd {
            wanted: parameters.optional_text("type").map(str::to_owned),
            query: expression.map_err(|message| refusal("expression", message))?,
        }))
    },
};

struct JsonLd {
    /// The `@type` of the objects to select; `None` for the top-level objects.
    wanted: Option<String>,
    query: Option<JsonQuery>,
}

impl Processor for JsonLd {
    fn apply<'p>(&self, _: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut objects = Vec::new();
        for value in run.page.json_ld(run) {
            match &self.wanted {
                Some(wanted) => collect_of_type(value, wanted, &mut objects),
                None => collect_top_level(value, &mut objects),
            }
        }
        let mut output = run.new_output();
        for object in objects {
            let goes_on = match &self.query {
                Some(query) => push_found(query, object, run, &mut output),
                None => push_json(object, &mut output),
            };
            if !goes_on {
                break;
            }
        }
        output.finish()
    }
}

/// Collects the top-level objects. Recursive, because the parser limits the depth.
fn collect_top_level<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Array(entries) => entries
            .iter()
            .for_each(|entry| collect_top_level(entry, found)),
        Value::Object(members) => match members.get("@graph") {
            Some(graph) => collect_top_level(graph, found),
            None => found.push(value),
        },
        _ => {}
    }
}

/// Collects every object with this `@type`, at any depth.
fn collect_of_type<'v>(value: &'v Value, wanted: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Array(entries) => entries
            .iter()
            .for_each(|entry| collect_of_type(entry, wanted, found)),
        Value::Object(members) => {
            if members
                .get("@type")
                .is_some_and(|types| is_type(types, wanted))
            {
                found.push(value);
            }
            members
                .values()
                .for_each(|member| collect_of_type(member, wanted, found));
        }
        _ => {}
    }
}

/// Whether an `@type` is `wanted`, or is a list that contains it. The vocabulary before the name is ignored.
fn is_type(types: &Value, wanted: &str) -> bool {
    match types {
        Value::String(name) => name.rsplit(['/', '#', ':']).next() == Some(wanted),
        Value::Array(entries) => entries.iter().any(|entry| is_type(entry, wanted)),
        _ => false,
    }
}
