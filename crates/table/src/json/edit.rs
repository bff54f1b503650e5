//! Writes values into a JSON object, and leaves the rest of its text unchanged.

use serde_json::Value;

use super::members::parse_members;
use crate::error::Refusal;
use crate::shape::Shape;
use crate::text::{Content, Edit, EditedRow, MAX_CELL_BYTES, Piece};
use crate::value::typed_json;

/// Writes new values into the text of a row. A member that the object lacks is added after its last member, with the
/// same spacing as the others.
pub(super) fn edit_row(
    piece: &Piece,
    names: impl Fn(usize) -> String,
    edits: Vec<Edit>,
    shapes: &[Shape],
    refused: &mut Vec<Refusal>,
) -> EditedRow {
    let Content::Row(spans) = &piece.content else {
        return EditedRow::default();
    };
    let place = Place::detect(&piece.raw);
    let mut is_first = place.is_empty_object;
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    for Edit { column, value } in edits {
        let span = spans[column];
        let json = match typed_value(&value, &shapes[column]) {
            Ok(json) => json.to_string(),
            Err(reason) => {
                refused.push(Refusal {
                    row: piece.number,
                    column,
                    value,
                    reason,
                });
                continue;
            }
        };
        if span.end > 0 {
            changes.push((span.start, span.end, json));
            continue;
        }
        let name = Value::String(names(column)).to_string();
        let lead = if is_first { "" } else { &place.lead };
        let colon = &place.colon;
        changes.push((place.at, place.at, format!("{lead}{name}{colon}{json}")));
        is_first = false;
    }
    // New members all have the same position. A stable sort keeps them in the order of the columns.
    changes.sort_by_key(|(start, ..)| *start);
    let mut edited = EditedRow {
        cells: changes.len() as u64,
        ..EditedRow::default()
    };
    let mut at = 0;
    for (start, end, json) in changes {
        edited.raw.extend_from_slice(&piece.raw[at..start]);
        edited.raw.extend_from_slice(json.as_bytes());
        at = end;
    }
    edited.raw.extend_from_slice(&piece.raw[at..]);
    edited
}

fn typed_value(value: &str, shape: &Shape) -> Result<Value, String> {
    if value.len() > MAX_CELL_BYTES {
        return Err(String::from("it is longer than 1 MiB"));
    }
    typed_json(value, shape)
}

/// Where new members are inserted into an object, and what spacing they get.
struct Place {
    at: usize,
    /// The text before a new member: a comma and blanks.
    lead: String,
    colon: String,
    is_empty_object: bool,
}

impl Place {
    fn detect(raw: &[u8]) -> Place {
        let text = String::from_utf8_lossy(raw);
        let members = parse_members(&text).unwrap_or_default();
        let between = |start: usize, end: usize| text[start..end].to_owned();
        let Some(last) = members.last() else {
            return Place {
                at: text.find('{').map_or(0, |brace| brace + 1),
                lead: String::from(", "),
                colon: String::from(": "),
                is_empty_object: true,
            };
        };
        let colon = between(last.key.end, last.value.start);
        let lead = match members.as_slice() {
            [.., before, last] => between(before.value.end, last.key.start),
            _ => {
                let brace = text.find('{').map_or(0, |brace| brace + 1);
                let blanks = between(brace, last.key.start);
                match blanks.is_empty() && colon.ends_with(' ') {
                    true => String::from(", "),
                    false => format!(",{blanks}"),
                }
            }
        };
        Place {
            at: last.value.end,
            lead,
            colon,
            is_empty_object: false,
        }
    }
}
