//! Rules for the keys of a message. Each kind of message has a table of [`Key`]s. One row of the table gives the check
//! of a value, the text of its refusal, and its JSON Schema.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};
use webfill_wire::Outcome;

use crate::refusal::Refusal;

/// The latest time allowed in a message, in seconds since the epoch: the end of the year 9999.
pub(crate) const LAST_SECOND: f64 = 253_402_300_799.0;

/// For an unknown key, the refusal suggests a known one at most this many edits away.
const NEAR: usize = 2;

/// A key of a message, and the rule for its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    pub(crate) rule: Rule,
    /// The meaning of the key: the `description` in the JSON Schema.
    pub(crate) meaning: &'static str,
}

/// The rule that a value must follow.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Text of 1 to at most this many characters.
    Text(usize),
    /// Text of 1 to at most this many characters of printable ASCII: the value of an HTTP header.
    HeaderText(usize),
    /// The id of an application or a crawl, of at most this many characters: no white space, no
    /// control character, and no slash, because the store joins ids with slashes.
    Id(usize),
    /// The name of a watch, of at most this many characters: it becomes a part of file names.
    Name(usize),
    /// A duration such as `90s`, `15m`, `2h` or `1d`.
    Duration,
    /// One of the words in this list.
    Word(&'static [&'static str]),
    /// A whole number between these, both included.
    Whole(u64, u64),
    /// Seconds, with fractions or without, between these, both included.
    Seconds(f64, f64),
    /// The same as `Seconds`, or null.
    SecondsOrNull(f64, f64),
    /// A whole number between these, or null.
    WholeOrNull(u64, u64),
    /// A list of at most the first number of texts, each of 1 to at most the second number of
    /// characters.
    Texts(usize, usize),
    /// A list of outcomes, at least one.
    Outcomes,
    /// A list of HTTP statuses, at least one and at most this many.
    Statuses(usize),
    /// An object of at most this many bytes of JSON.
    Object(usize),
    /// A list of at most the first number of objects, with at most the second number of bytes of JSON.
    Objects(usize, usize),
    /// A list of these words, at least one.
    Words(&'static [&'static str]),
    Flag,
}

/// The HTTP statuses that servers send, including nonstandard ones.
const STATUSES: RangeInclusive<u64> = 100..=999;

/// How many characters of an unknown key a refusal repeats.
const SHOWN_CHARS: usize = 60;

/// Checks that all keys of a message are known, that their values keep the rules, and that none of
/// the required keys is missing. `path` is the JSON path of the message.
pub(crate) fn check_members(
    keys: &[Key],
    message: &Map<String, Value>,
    path: &str,
) -> Result<(), Refusal> {
    for (name, value) in message {
        let Some(key) = keys.iter().find(|key| key.name == name) else {
            return Err(unknown_key_refusal(keys, name, path));
        };
        key.rule.check(value).map_err(|fault| {
            Refusal::new(&format!("{path}.{name}{}", fault.within), fault.message)
        })?;
    }
    match keys
        .iter()
        .find(|key| key.required && !message.contains_key(key.name))
    {
        Some(missing) => {
            let path = format!("{path}.{}", missing.name);
            Err(Refusal::new(&path, "missing, it is required"))
        }
        None => Ok(()),
    }
}

fn unknown_key_refusal(keys: &[Key], name: &str, path: &str) -> Refusal {
    let shown: String = name.chars().take(SHOWN_CHARS).collect();
    let path = member_path(path, &shown);
    let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
    let message = match nearest_known_name(&shown, known.iter().copied(), NEAR) {
        Some(nearest) => format!("unknown key, did you mean `{nearest}`?"),
        None => format!("unknown key, known are {}", known.join(", ")),
    };
    Refusal::new(&path, message)
}

/// The known name that a misspelt one stands for: the nearest, at most `edits` insertions,
/// deletions, substitutions and swaps away.
pub fn nearest_known_name<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    edits: usize,
) -> Option<&'a str> {
    let distances = known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= edits).then_some(nearest)
}

/// The JSON path of a member; an unusual name is quoted.
fn member_path(path: &str, name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !name.is_empty() && name.chars().all(plain) {
        true => format!("{path}.{name}"),
        false => format!("{path}[{}]", Value::String(name.to_owned())),
    }
}

/// What is wrong with a value.
#[derive(Debug)]
struct Fault {
    /// The JSON path within the value: empty, or the index of a list's item.
    within: String,
    message: Cow<'static, str>,
}

impl From<String> for Fault {
    fn from(message: String) -> Fault {
        Fault {
            within: String::new(),
            message: message.into(),
        }
    }
}

impl From<&'static str> for Fault {
    fn from(message: &'static str) -> Fault {
        Fault {
            within: String::new(),
            message: message.into(),
        }
    }
}

impl Rule {
    fn check(self, value: &Value) -> Result<(), Fault> {
        match self {
            Rule::Text(most) => check_text(value, most).map(drop),
            Rule::HeaderText(most) => match check_text(value, most)? {
                text if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => Ok(()),
                _ => Err("expected printable ASCII".into()),
            },
            Rule::Id(most) => match check_text(value, most)? {
                text if text.chars().all(may_be_in_id) => Ok(()),
                _ => Err("expected no white space, no control character and no `/`".into()),
            },
            Rule::Name(most) => match check_text(value, most)? {
                text if text.chars().all(may_be_in_name) => Ok(()),
                _ => Err("expected letters, digits, or - _ . :".into()),
            },
            Rule::Duration => match value.as_str().map(crate::duration_ms) {
                Some(Ok(_)) => Ok(()),
                _ => Err("expected a duration such as `90s`, `15m`, `2h` or `1d`".into()),
            },
            Rule::Word(words) => match value.as_str() {
                Some(word) if words.contains(&word) => Ok(()),
                _ => Err(format!("expected {}", join_quoted(words)).into()),
            },
            Rule::Whole(least, most) => match value.as_u64() {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("expected a whole number from {least} to {most}").into()),
            },
            Rule::Seconds(least, most) => match value.as_f64() {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("expected a number of seconds from {least} to {most}").into()),
            },
            Rule::SecondsOrNull(..) | Rule::WholeOrNull(..) if value.is_null() => Ok(()),
            Rule::SecondsOrNull(least, most) => Rule::Seconds(least, most).check(value),
            Rule::WholeOrNull(least, most) => Rule::Whole(least, most).check(value),
            Rule::Texts(most, most_chars) => check_texts(value, most, most_chars),
            Rule::Outcomes => check_list(value, Outcome::ALL.len(), check_outcome),
            Rule::Statuses(most) => {
                let (least, greatest) = STATUSES.into_inner();
                check_list(value, most, |item| Rule::Whole(least, greatest).check(item))
            }
            Rule::Object(most) => check_object(value, most),
            Rule::Objects(most, most_bytes) => {
                let list = value.as_array().ok_or("expected a list of objects")?;
                if list.len() > most {
                    return Err(format!("expected at most {most} objects").into());
                }
                match value.to_string().len() > most_bytes {
                    true => Err(format!("expected at most {most_bytes} bytes of JSON").into()),
                    false => Ok(()),
                }
            }
            Rule::Words(words) => {
                check_list(value, words.len(), |item| Rule::Word(words).check(item))
            }
            Rule::Flag if value.is_boolean() => Ok(()),
            Rule::Flag => Err("expected true or false".into()),
        }
    }

    /// The JSON Schema (draft 2020-12) of values that follow the rule.
    pub(crate) fn schema(self) -> Value {
        let text = |most: usize| json!({"type": "string", "minLength": 1, "maxLength": most});
        match self {
            Rule::Text(most) => text(most),
            Rule::HeaderText(most) => with_member(text(most), "pattern", "^[ -~]+$"),
            Rule::Id(most) => with_member(
                text(most),
                "pattern",
                r"^[^\s/\u0000-\u001f\u007f-\u009f]+$",
            ),
            Rule::Name(most) => with_member(text(most), "pattern", "^[A-Za-z0-9_.:-]+$"),
            Rule::Duration => with_member(text(20), "pattern", r"^[0-9]+(\.[0-9]+)?(ms|s|m|h|d)?$"),
            Rule::Word(words) => json!({"enum": words}),
            Rule::Whole(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Rule::Seconds(least, most) => {
                json!({"type": "number", "minimum": least, "maximum": most})
            }
            Rule::SecondsOrNull(least, most) => {
                json!({"type": ["number", "null"], "minimum": least, "maximum": most})
            }
            Rule::WholeOrNull(least, most) => {
                json!({"type": ["integer", "null"], "minimum": least, "maximum": most})
            }
            Rule::Texts(most, most_chars) => {
                json!({"type": "array", "maxItems": most, "items": text(most_chars)})
            }
            Rule::Outcomes => {
                let names: Vec<&str> = outcome_names().collect();
                json!({"type": "array", "minItems": 1, "maxItems": names.len(),
                       "items": {"enum": names}})
            }
            Rule::Statuses(most) => {
                let (least, greatest) = STATUSES.into_inner();
                let items = Rule::Whole(least, greatest).schema();
                json!({"type": "array", "minItems": 1, "maxItems": most, "items": items})
            }
            Rule::Object(_) => json!({"type": "object"}),
            Rule::Objects(most, _) => {
                json!({"type": "array", "maxItems": most, "items": {"type": "object"}})
            }
            Rule::Words(words) => json!({"type": "array", "minItems": 1, "maxItems": words.len(),
                                         "items": {"enum": words}}),
            Rule::Flag => json!({"type": "boolean"}),
        }
    }
}

fn with_member(mut schema: Value, key: &str, value: &str) -> Value {
    schema[key] = value.into();
    schema
}

fn may_be_in_id(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && c != '/' && c != '\u{feff}'
}

fn may_be_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.:".contains(c)
}

fn join_quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(" or ")
}

fn check_text(value: &Value, most: usize) -> Result<&str, Fault> {
    let text = value.as_str().ok_or("expected text")?;
    // A text never has more characters than bytes, so most need no counting.
    if text.is_empty() || (text.len() > most && text.chars().count() > most) {
        return Err(format!("expected 1 to {most} characters").into());
    }
    Ok(text)
}

fn check_texts(value: &Value, most: usize, most_chars: usize) -> Result<(), Fault> {
    let list = value.as_array().ok_or("expected a list of texts")?;
    if list.len() > most {
        return Err(format!("expected at most {most} texts").into());
    }
    for (index, item) in list.iter().enumerate() {
        check_text(item, most_chars).map_err(|fault| Fault {
            within: format!("[{index}]"),
            ..fault
        })?;
    }
    Ok(())
}

/// Checks a list of 1 to `most` items.
fn check_list(
    value: &Value,
    most: usize,
    check_item: impl Fn(&Value) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let list = value.as_array().ok_or("expected a list")?;
    if list.is_empty() || list.len() > most {
        return Err(format!("expected a list of 1 to {most}").into());
    }
    for (index, item) in list.iter().enumerate() {
        check_item(item).map_err(|fault| Fault {
            within: format!("[{index}]{}", fault.within),
            ..fault
        })?;
    }
    Ok(())
}

fn outcome_names() -> impl Iterator<Item = &'static str> {
    Outcome::ALL.iter().map(|outcome| outcome.as_str())
}

fn check_outcome(value: &Value) -> Result<(), Fault> {
    let name = value.as_str().ok_or("expected the name of an outcome")?;
    if outcome_names().any(|known| known == name) {
        return Ok(());
    }
    Err(match nearest_known_name(name, outcome_names(), NEAR) {
        Some(nearest) => format!("unknown outcome, did you mean `{nearest}`?").into(),
        None => {
            let known: Vec<&str> = outcome_names().collect();
            format!("unknown outcome, known are {}", known.join(", ")).into()
        }
    })
}

fn check_object(value: &Value, most: usize) -> Result<(), Fault> {
    if !value.is_object() {
        return Err("expected an object".into());
    }
    match value.to_string().len() > most {
        true => Err(format!("expected at most {most} bytes of JSON").into()),
        false => Ok(()),
    }
}
