//! `replace`: find and replace, literally or by a regular expression.

use std::ops::Range;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, Refusal, refusal};
use crate::fault::quote;
use crate::item::Item;
use crate::pattern::{Groups, Pattern};
use crate::processors::compile_pattern;
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const REPLACE: Entry = Entry {
    name: "replace",
    family: Family::Text,
    summary: "Finds every occurrence of a text, or every match of a regular expression, and replaces it.",
    parameters: &[
        Parameter {
            name: "find",
            kind: Kind::Text,
            presence: Presence::Required,
            meaning: "the text or the regular expression to find",
        },
        Parameter {
            name: "with",
            kind: Kind::Text,
            presence: Presence::Text(""),
            meaning: "the replacement; with regex, $1, ${1} or ${name} is a group and $$ a dollar sign",
        },
        Parameter {
            name: "regex",
            kind: Kind::Boolean,
            presence: Presence::Boolean(false),
            meaning: "find is a regular expression",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"find": " (verified)"}"#,
            input: Input::Values(&["Ada (verified)"]),
            output: &["Ada"],
        },
        Example {
            parameters: r#"{"find": "^(\\w+), (\\w+)$", "with": "$2 $1", "regex": true}"#,
            input: Input::Values(&["Lovelace, Ada"]),
            output: &["Ada Lovelace"],
        },
    ],
    build: |parameters, _| {
        let find = parameters.text("find").to_owned();
        let with = parameters.text("with").to_owned();
        if find.is_empty() {
            return Err(refusal("find", "the text to find is empty"));
        }
        if !parameters.boolean("regex") {
            let template = vec![Piece::Literal(with)];
            return Ok(Box::new(Replace {
                find: Find::Text(find),
                template,
            }));
        }
        let pattern = compile_pattern("find", &find)?;
        let template = parse_template(&with, &pattern)?;
        Ok(Box::new(Replace {
            find: Find::Pattern(pattern),
            template,
        }))
    },
};

enum Find {
    Text(String),
    Pattern(Pattern),
}

/// A piece of the replacement: text, or a group of the match.
enum Piece {
    Literal(String),
    Group(usize),
}

struct Replace {
    find: Find,
    template: Vec<Piece>,
}

impl Processor for Replace {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut late = Ok(());
        let replaced = run.map_texts(items, |text| match self.replace_in(text, run) {
            Ok(text) => Some(text),
            Err(OutOfTime) => {
                late = Err(OutOfTime);
                None
            }
        })?;
        late.map(|()| replaced)
    }
}

impl Replace {
    fn replace_in(&self, text: &str, run: &Run<'_>) -> Result<String, OutOfTime> {
        let mut result = String::with_capacity(text.len());
        let mut end = 0;
        let mut time = Ok(());
        let mut replace = |range: Range<usize>, groups: Option<&Groups<'_>>| {
            result.push_str(&text[end..range.start]);
            self.fill_in(groups, &mut result);
            end = range.end;
            time = run.check_time();
            time.is_ok() && result.len() <= run.limits.value_bytes
        };
        match &self.find {
            Find::Text(find) => {
                text.match_indices(find.as_str())
                    .all(|(at, found)| replace(at..at + found.len(), None));
            }
            Find::Pattern(pattern) => {
                let searched =
                    pattern.for_each_match(text, |groups| replace(groups.range(), Some(&groups)));
                if searched.is_err() {
                    run.warn(
                        "replace: the expression took too many steps, the rest was left as it is",
                    );
                }
            }
        }
        time?;
        result.push_str(&text[end..]);
        Ok(result)
    }

    fn fill_in(&self, groups: Option<&Groups<'_>>, result: &mut String) {
        for piece in &self.template {
            match piece {
                Piece::Literal(text) => result.push_str(text),
                Piece::Group(number) => {
                    let group = groups.and_then(|groups| groups.get(*number));
                    result.push_str(group.unwrap_or_default());
                }
            }
        }
    }
}

/// Parses a replacement with `$1`, `${1}`, `${name}` and `$$`. Rejects groups that the expression does not have.
fn parse_template(with: &str, pattern: &Pattern) -> Result<Vec<Piece>, Vec<Refusal>> {
    let mut pieces = Vec::new();
    let mut rest = with;
    while let Some(at) = rest.find('$') {
        pieces.push(Piece::Literal(rest[..at].to_owned()));
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            pieces.push(Piece::Literal("$".to_owned()));
            rest = after;
            continue;
        }
        let (name, after) = parse_reference(rest).ok_or_else(|| {
            let message = format!("in {}: write $$ for a dollar sign", quote(with));
            refusal("with", message)
        })?;
        pieces.push(Piece::Group(group_number(name, pattern)?));
        rest = after;
    }
    pieces.push(Piece::Literal(rest.to_owned()));
    Ok(pieces)
}

/// Parses a group after a dollar sign: digits, or a number or name in braces. Returns the group and the rest of the
/// text.
fn parse_reference(text: &str) -> Option<(&str, &str)> {
    if let Some(braced) = text.strip_prefix('{') {
        let end = braced.find('}')?;
        return Some((&braced[..end], &braced[end + 1..]));
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| text.split_at(digits))
}

fn group_number(name: &str, pattern: &Pattern) -> Result<usize, Vec<Refusal>> {
    let number = match name.parse::<usize>() {
        Ok(number) => Some(number).filter(|&number| number < pattern.group_count()),
        Err(_) => pattern.group_index(name),
    };
    number.ok_or_else(|| {
        let message = format!("the regular expression has no group {}", quote(name));
        refusal("with", message)
    })
}
