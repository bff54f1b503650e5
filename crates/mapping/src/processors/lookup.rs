//! `map`: replaces whole values by a look-up table.

use std::collections::HashMap;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::run::EachText;

pub(crate) const MAP: Entry = Entry {
    name: "map",
    family: Family::Text,
    summary: "Replaces whole values by those of a look-up table.",
    parameters: &[
        Parameter {
            name: "table",
            kind: Kind::TextTable,
            presence: Presence::Required,
            meaning: "new values by old value",
        },
        Parameter {
            name: "others",
            kind: Kind::Choice(&["keep", "drop"]),
            presence: Presence::Text("keep"),
            meaning: "what to do with values that are not in the table",
        },
        Parameter {
            name: "ignore_case",
            kind: Kind::Boolean,
            presence: Presence::Boolean(false),
            meaning: "ignore the difference between upper and lower case",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"table": {"UK": "United Kingdom"}}"#,
            input: Input::Values(&["UK", "France"]),
            output: &["United Kingdom", "France"],
        },
        Example {
            parameters: r#"{"table": {"yes": "true", "no": "false"}, "others": "drop", "ignore_case": true}"#,
            input: Input::Values(&["Yes", "perhaps"]),
            output: &["true"],
        },
    ],
    build: |parameters, _| {
        let ignore_case = parameters.boolean("ignore_case");
        let keep_others = parameters.text("others") == "keep";
        let table: HashMap<String, String> = parameters
            .table("table")
            .into_iter()
            .map(|(from, to)| (normal_key(from, ignore_case), to.to_owned()))
            .collect();
        if table.is_empty() {
            return Err(refusal("table", "the table is empty"));
        }
        Ok(Box::new(EachText(move |text: &str| {
            match table.get(&normal_key(text, ignore_case)) {
                Some(replacement) => Some(replacement.clone()),
                None => keep_others.then(|| text.to_owned()),
            }
        })))
    },
};

fn normal_key(text: &str, ignore_case: bool) -> String {
    let normal = webfill_values::normal_form(text);
    match ignore_case {
        true => normal.to_lowercase(),
        false => normal,
    }
}
