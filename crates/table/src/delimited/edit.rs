//! Writes a value as a cell of a delimited text.

use crate::format::{Dialect, Encoding, Escape};
use crate::text::encode;

/// The bytes of a cell with the value. It is in quotes only if it needs them or if the old cell had them. An error says
/// why the dialect cannot express the value.
pub(super) fn encode_cell(
    value: &str,
    was_quoted: bool,
    dialect: &Dialect,
    encoding: Encoding,
) -> Result<Vec<u8>, String> {
    let text = match dialect.quote.map(char::from) {
        Some(quote) if was_quoted || needs_quotes(value, quote, dialect) => {
            quote_value(value, quote, dialect.escape)
        }
        quote => escape_unquoted(value, quote, dialect)?,
    };
    encode(&text, encoding).map(|bytes| bytes.into_owned())
}

fn needs_quotes(value: &str, quote: char, dialect: &Dialect) -> bool {
    let delimiter = char::from(dialect.delimiter);
    value.contains([delimiter, quote, '\n', '\r'])
        || (dialect.skips_blanks && value.starts_with(' '))
}

fn quote_value(value: &str, quote: char, escape: Escape) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push(quote);
    for c in value.chars() {
        match escape {
            Escape::Doubled if c == quote => text.push(quote),
            Escape::Backslash if c == quote || c == '\\' => text.push('\\'),
            _ => {}
        }
        text.push(c);
    }
    text.push(quote);
    text
}

fn escape_unquoted(value: &str, quote: Option<char>, dialect: &Dialect) -> Result<String, String> {
    let delimiter = char::from(dialect.delimiter);
    if value.contains(['\n', '\r']) {
        return Err(String::from(
            "it has several lines, and the table no quotes",
        ));
    }
    if dialect.escape == Escape::Doubled {
        return match value.contains(delimiter) {
            true => Err(String::from(
                "it holds the delimiter, and the table has no quotes",
            )),
            false => Ok(value.to_owned()),
        };
    }
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if c == delimiter || c == '\\' || Some(c) == quote {
            text.push('\\');
        }
        text.push(c);
    }
    Ok(text)
}
