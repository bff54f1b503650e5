//! Writes a value as a cell of a delimited text.

use super::split::{Split, split};
use crate::format::{Dialect, Encoding, Escape};
use crate::gaps::gap_word_index;
use crate::text::{Span, encode};

/// For each column, whether all values of the first rows are in quotes, and one of them needs none. Gaps do not count,
/// because some programs write them without quotes.
pub(super) fn find_quoted_columns(
    beginning: &[u8],
    is_whole: bool,
    dialect: &Dialect,
    columns: usize,
) -> Vec<bool> {
    const MOST_ROWS: usize = 1_000;
    let (mut counts, mut rest) = (vec![(0, 0); columns], beginning);
    let mut spans: Vec<Span> = Vec::new();
    for row in 0..MOST_ROWS {
        let Split::Row(found) = split(rest, is_whole, dialect, &mut spans) else {
            break;
        };
        // The first row is the header, or shows no more than the others.
        if row > 0 {
            for ((quoted, bare), span) in counts.iter_mut().zip(&spans) {
                let text = String::from_utf8_lossy(&rest[span.start..span.end]);
                let quote = char::from(dialect.quote.unwrap_or(b'"'));
                let inner = text.trim_matches(quote);
                let is_gap = inner.is_empty() || gap_word_index(inner).is_some();
                match span.is_quoted {
                    true => *quoted += usize::from(!is_gap && !needs_quotes(inner, quote, dialect)),
                    false => *bare += usize::from(!is_gap),
                }
            }
        }
        rest = &rest[found.bytes..];
        if rest.is_empty() || found.bytes == 0 {
            break;
        }
    }
    counts
        .iter()
        .map(|(quoted, bare)| *quoted > 0 && *bare == 0)
        .collect()
}

/// The bytes of a cell with the value. It is in quotes only if it needs them, or if the old cell or its column has them.
/// An error says why the dialect cannot express the value.
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
