//! Parses the argument of `:nth-child()` and similar pseudo-classes: `2n+1`, `odd`, `3 of .x`.

use super::cursor::{CssResult, Cursor, is_name_part, is_space};
use super::parser::{Leading, Parser};
use super::pseudo::any_of;
use crate::xpath::plan::{SiblingPlace, Test};

/// Parses the argument of the pseudo-class `name`. Returns a test of the positions that it selects.
pub(crate) fn parse_positions(parser: &mut Parser<'_, '_>, name: &str) -> CssResult<Test> {
    let (step, offset) = parse_step_and_offset(&mut parser.cursor)?;
    let same_name = name.ends_with("of-type");
    parser.cursor.skip_space();
    let of = match !same_name && parser.cursor.take_word("of") {
        true => Some(Box::new(any_of(parser.parse_list(Leading::Refused)?))),
        false => None,
    };
    Ok(Test::Sibling(SiblingPlace {
        step,
        offset,
        same_name,
        from_end: name.starts_with("nth-last"),
        of,
    }))
}

/// Reads `an+b` in one of its forms: `odd`, `even`, `3`, `2n+1`, `-n + 3`. Returns `a` and `b`.
fn parse_step_and_offset(cursor: &mut Cursor<'_>) -> CssResult<(i32, i32)> {
    let start = cursor.offset;
    let mut compact = String::new();
    while let Some(character) = cursor.peek().filter(|c| is_name_part(*c) || *c == '+') {
        if cursor.is_at_word("of") {
            break;
        }
        compact.push(character.to_ascii_lowercase());
        cursor.take(character.encode_utf8(&mut [0; 4]));
        cursor.skip_space();
    }
    parse_formula(&compact).ok_or_else(|| {
        let written = cursor.text_since(start).trim_end_matches(is_space);
        let reason = format!("expected a position such as `2n+1`, found `{written}`");
        cursor.fault_at(start, &reason)
    })
}

fn parse_formula(compact: &str) -> Option<(i32, i32)> {
    match compact {
        "odd" => return Some((2, 1)),
        "even" => return Some((2, 0)),
        _ => {}
    }
    let Some((step, offset)) = compact.split_once('n') else {
        return parse_integer(compact).map(|offset| (0, offset));
    };
    let step = match step {
        "" | "+" => 1,
        "-" => -1,
        number => parse_integer(number)?,
    };
    let offset = if offset.is_empty() {
        0
    } else {
        parse_integer(offset)?
    };
    Some((step, offset))
}

/// Reads an integer of at most a million, so that later calculations cannot overflow.
fn parse_integer(text: &str) -> Option<i32> {
    text.parse()
        .ok()
        .filter(|number: &i32| number.abs() <= 1_000_000)
}
