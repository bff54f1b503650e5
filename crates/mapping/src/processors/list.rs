//! Processors that work on the whole list of values: `split`, `join`, `first`, `last`, `nth`, `unique`,
//! `default`.

use std::collections::HashSet;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::item::Item;
use crate::pattern::Pattern;
use crate::processors::compile_pattern;
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const SPLIT: Entry = Entry {
    name: "split",
    family: Family::List,
    summary: "Splits every value; empty pieces are dropped.",
    parameters: &[
        Parameter {
            name: "separator",
            kind: Kind::Text,
            presence: Presence::Required,
            meaning: "the text or the regular expression between the pieces",
        },
        Parameter {
            name: "regex",
            kind: Kind::Boolean,
            presence: Presence::Boolean(false),
            meaning: "separator is a regular expression",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"separator": ", "}"#,
            input: Input::Values(&["Ada, Mary, "]),
            output: &["Ada", "Mary"],
        },
        Example {
            parameters: r#"{"separator": "\\s*[;/]\\s*", "regex": true}"#,
            input: Input::Values(&["Ada ; Mary/Jane"]),
            output: &["Ada", "Mary", "Jane"],
        },
    ],
    build: |parameters, _| {
        let separator = parameters.text("separator");
        if separator.is_empty() {
            return Err(refusal("separator", "the separator is empty"));
        }
        let by_pattern = parameters.boolean("regex");
        Ok(Box::new(match by_pattern {
            true => Split::At(compile_pattern("separator", separator)?),
            false => Split::Between(separator.to_owned()),
        }))
    },
};

enum Split {
    Between(String),
    At(Pattern),
}

impl Processor for Split {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.new_output();
        for item in items {
            let text = run.text(&item);
            let mut push = |piece: &str| piece.is_empty() || output.push_text(piece.to_owned());
            let goes_on = match self {
                Split::Between(separator) => text.split(separator).all(push),
                Split::At(pattern) => {
                    let mut end = 0;
                    let mut goes_on = true;
                    let searched = pattern.for_each_match(&text, |groups| {
                        goes_on = push(&text[end..groups.range().start]);
                        end = groups.range().end;
                        goes_on
                    });
                    if searched.is_err() {
                        run.warn("split: the expression took too many steps");
                    }
                    goes_on && push(&text[end..])
                }
            };
            if !goes_on {
                break;
            }
        }
        output.finish()
    }
}

pub(crate) const JOIN: Entry = Entry {
    name: "join",
    family: Family::List,
    summary: "Joins all values into one text.",
    parameters: &[Parameter {
        name: "separator",
        kind: Kind::Text,
        presence: Presence::Text(" "),
        meaning: "the text between two values",
    }],
    examples: &[Example {
        parameters: r#"{"separator": ", "}"#,
        input: Input::Values(&["Ada", "Mary"]),
        output: &["Ada, Mary"],
    }],
    build: |parameters, _| Ok(Box::new(Join(parameters.text("separator").to_owned()))),
};

struct Join(String);

impl Processor for Join {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        if items.is_empty() {
            return Ok(items);
        }
        let mut joined = String::new();
        for (index, item) in items.iter().enumerate() {
            run.check_time()?;
            if index > 0 {
                joined.push_str(&self.0);
            }
            joined.push_str(&run.text(item));
            if joined.len() > run.limits.value_bytes {
                break;
            }
        }
        let mut output = run.new_output();
        output.push_text(joined);
        output.finish()
    }
}

pub(crate) const FIRST: Entry = Entry {
    name: "first",
    family: Family::List,
    summary: "Keeps the first value.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&["a", "b", "c"]),
        output: &["a"],
    }],
    build: |_, _| Ok(Box::new(Position(1))),
};

pub(crate) const LAST: Entry = Entry {
    name: "last",
    family: Family::List,
    summary: "Keeps the last value.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&["a", "b", "c"]),
        output: &["c"],
    }],
    build: |_, _| Ok(Box::new(Position(-1))),
};

pub(crate) const NTH: Entry = Entry {
    name: "nth",
    family: Family::List,
    summary: "Keeps the value at a position.",
    parameters: &[Parameter {
        name: "position",
        kind: Kind::Integer(-1_000_000, 1_000_000),
        presence: Presence::Required,
        meaning: "1 is the first value, as in XPath; -1 is the last",
    }],
    examples: &[
        Example {
            parameters: r#"{"position": 2}"#,
            input: Input::Values(&["a", "b", "c"]),
            output: &["b"],
        },
        Example {
            parameters: r#"{"position": -2}"#,
            input: Input::Values(&["a", "b", "c"]),
            output: &["b"],
        },
    ],
    build: |parameters, _| match parameters.integer("position") {
        Some(position) if position != 0 => Ok(Box::new(Position(position))),
        _ => Err(refusal(
            "position",
            "expected a position other than 0: 1 is the first value, -1 the last",
        )),
    },
};

/// A position in a list, counted from 1, or from the end with -1.
struct Position(i64);

impl Processor for Position {
    fn apply<'p>(&self, items: Vec<Item<'p>>, _: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let distance = usize::try_from(self.0.unsigned_abs()).unwrap_or(usize::MAX);
        let index = match self.0 > 0 {
            true => Some(distance - 1),
            false => items.len().checked_sub(distance),
        };
        Ok(index
            .and_then(|index| items.into_iter().nth(index))
            .into_iter()
            .collect())
    }

    fn sees_markup(&self) -> bool {
        true
    }
}

pub(crate) const UNIQUE: Entry = Entry {
    name: "unique",
    family: Family::List,
    summary: "Drops values that repeat an earlier one.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&["a", "b", "a"]),
        output: &["a", "b"],
    }],
    build: |_, _| Ok(Box::new(Unique)),
};

struct Unique;

impl Processor for Unique {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut seen = HashSet::new();
        run.filter(items, |text| seen.insert(text.to_owned()))
    }
}

pub(crate) const DEFAULT: Entry = Entry {
    name: "default",
    family: Family::List,
    summary: "Yields a text if there is no value, or only blank ones. Alone in a chain it is a constant.",
    parameters: &[Parameter {
        name: "value",
        kind: Kind::Text,
        presence: Presence::Required,
        meaning: "the text",
    }],
    examples: &[
        Example {
            parameters: r#"{"value": "unknown"}"#,
            input: Input::Values(&[]),
            output: &["unknown"],
        },
        Example {
            parameters: r#"{"value": "unknown"}"#,
            input: Input::Values(&["London"]),
            output: &["London"],
        },
    ],
    build: |parameters, _| Ok(Box::new(Default(parameters.text("value").to_owned()))),
};

struct Default(String);

impl Processor for Default {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let is_value = |item: &Item<'p>| {
            !matches!(item, Item::Page) && !webfill_values::is_blank(&run.text(item))
        };
        match items.iter().any(is_value) {
            true => Ok(items),
            false => Ok(vec![self.0.clone().into()]),
        }
    }
}
