//! The JSON Schema of the [lines](super::lines) of `--progress json`, from a table of their kinds and members.

use serde_json::{Map, Value, json};

/// A kind of line: its name, its meaning, and its members besides `kind`.
type Kind = (&'static str, &'static str, &'static [Member]);

/// A member of a line: its name, its type, and its meaning.
type Member = (&'static str, Type, &'static str);

#[derive(Clone, Copy)]
enum Type {
    Count,
    CountOrNull,
    CountByName,
    Text,
    TextOrNull,
    OneOf(&'static [&'static str]),
}

use Type::{Count, CountByName, CountOrNull, OneOf, Text, TextOrNull};

const KINDS: &[Kind] = &[
    (
        "crawl",
        "The counts of a crawl on this machine.",
        &[
            ("done", Count, "URLs with an outcome."),
            (
                "total",
                Count,
                "URLs with an outcome, queued or being fetched; it grows while links are found.",
            ),
            ("pages", Count, "Pages fetched."),
            ("errors", Count, "URLs that failed."),
            ("queued", Count, "URLs that wait."),
            ("leased", Count, "URLs that are being fetched."),
            ("sites", Count, "Sites with such URLs."),
            ("records", Count, "Records of the crawl."),
            ("resolved", Count, "Records without a missing field."),
            (
                "least_seconds_left",
                Count,
                "The seconds that the slowest site needs for its queue, at least.",
            ),
            ("waiting", TextOrNull, "Which sites wait, and why."),
            (
                "offline",
                TextOrNull,
                "Since when this machine is offline, and the evidence.",
            ),
        ],
    ),
    (
        "fill",
        "A step of `webfill fill` that begins, or its end.",
        &[
            (
                "step",
                OneOf(&["fetch", "learn", "read", "judge", "write", "done"]),
                "The step. `fetch` to `judge` may repeat.",
            ),
            ("rows", Count, "Rows of the table."),
            ("gaps", Count, "Cells without a value."),
            (
                "filled",
                CountOrNull,
                "Gaps that have a value, as far as pages were judged; null with steps that judge nothing.",
            ),
            ("pages", Count, "Pages stored."),
        ],
    ),
    (
        "fleet",
        "The pages of a table that a fleet still has to fetch.",
        &[
            ("left", Count, "Pages left."),
            ("waiting", Text, "The reasons that they wait."),
        ],
    ),
    (
        "feed",
        "The counts of a feed.",
        &[
            ("accepted", Count, "Requests accepted."),
            (
                "skipped",
                CountByName,
                "Accepted requests that are not crawled, by reason.",
            ),
            ("refused", Count, "Requests refused."),
        ],
    ),
    (
        "message",
        "A sentence for people.",
        &[("text", Text, "The sentence.")],
    ),
];

/// The JSON Schema of a line.
pub fn schema() -> Value {
    let kinds: Vec<Value> = KINDS.iter().map(kind_schema).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "webfill progress",
        "description": "A line on standard error with `--progress json`. Lines that do not begin with `{` are for \
                        people. In any second there are at most 10 lines; a line of counts is printed only if one of \
                        them has changed. Later versions may add kinds and members.",
        "oneOf": kinds,
    })
}

fn kind_schema((name, meaning, members): &Kind) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), json!({"const": name}));
    for (name, of_type, meaning) in *members {
        let mut schema = of_type.schema();
        schema["description"] = json!(meaning);
        properties.insert((*name).to_owned(), schema);
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "type": "object",
        "description": meaning,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

impl Type {
    fn schema(self) -> Value {
        match self {
            Count => json!({"type": "integer", "minimum": 0}),
            CountOrNull => json!({"type": ["integer", "null"], "minimum": 0}),
            CountByName => json!({"type": "object", "additionalProperties": Count.schema()}),
            Text => json!({"type": "string"}),
            TextOrNull => json!({"type": ["string", "null"]}),
            OneOf(words) => json!({"enum": words}),
        }
    }
}
