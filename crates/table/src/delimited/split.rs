//! Splits the bytes of a delimited text into rows and cells, without decoding them.

use memchr::{memchr, memchr2, memchr3};

use crate::format::{Dialect, Escape};
use crate::text::Span;

/// The result of splitting bytes: a row, or not enough bytes for one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Split {
    Row(SplitRow),
    /// The bytes end before the row does.
    Unfinished {
        is_in_quotes: bool,
    },
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SplitRow {
    /// The length of the row, its line end included.
    pub(super) bytes: usize,
    /// How many line ends are within quotes.
    pub(super) inner_lines: u64,
    /// Whether a cell has text after its closing quote, where only a delimiter or the end of the row may be.
    pub(super) is_askew: bool,
}

/// Splits the row at the start of the bytes, and puts the positions of its cells into `cells`. `is_whole` means that
/// the text ends with these bytes.
pub(super) fn split(
    bytes: &[u8],
    is_whole: bool,
    dialect: &Dialect,
    cells: &mut Vec<Span>,
) -> Split {
    cells.clear();
    let splitter = Splitter {
        bytes,
        is_whole,
        dialect,
        line_end: line_end(dialect),
    };
    match splitter.split_row(cells) {
        Ok(row) => Split::Row(row),
        Err(IncompleteRow(is_in_quotes)) => Split::Unfinished { is_in_quotes },
    }
}

pub(super) fn line_end(dialect: &Dialect) -> u8 {
    match dialect.ends_with_cr {
        true => b'\r',
        false => b'\n',
    }
}

/// The error that the bytes end before the row does. It holds `true` if they end within quotes.
struct IncompleteRow(bool);

struct Splitter<'a> {
    bytes: &'a [u8],
    is_whole: bool,
    dialect: &'a Dialect,
    line_end: u8,
}

/// What follows the end of a cell.
enum AfterCell {
    Delimiter,
    /// The end of the row, with its length in bytes.
    RowEnd(usize),
    Text,
}

impl Splitter<'_> {
    fn split_row(&self, cells: &mut Vec<Span>) -> Result<SplitRow, IncompleteRow> {
        let mut row = SplitRow::default();
        let mut at = 0;
        loop {
            let start = self.skip_blanks(at);
            let quoted = match self.dialect.quote {
                Some(quote) if self.bytes.get(start) == Some(&quote) => {
                    Some(self.split_quoted(start, quote, &mut row)?)
                }
                _ => None,
            };
            let mut span = quoted.unwrap_or(Span {
                start,
                end: start,
                is_quoted: false,
                is_escaped: false,
            });
            let mut behind = match span.is_quoted {
                true => self.classify_text_after_quote(span.end)?,
                false => AfterCell::Text,
            };
            if let AfterCell::Text = behind {
                row.is_askew |= span.is_quoted;
                span.is_quoted = false;
                (span.end, behind) = self.find_unquoted_end(span.end, &mut span.is_escaped)?;
            }
            cells.push(span);
            match behind {
                AfterCell::RowEnd(end) => {
                    row.bytes = span.end + end;
                    return Ok(row);
                }
                AfterCell::Delimiter | AfterCell::Text => at = span.end + 1,
            }
        }
    }

    fn skip_blanks(&self, at: usize) -> usize {
        let blanks = match self.dialect.skips_blanks {
            true => self.bytes[at..].iter().take_while(|byte| **byte == b' '),
            false => return at,
        };
        at + blanks.count()
    }

    fn split_quoted(
        &self,
        start: usize,
        quote: u8,
        row: &mut SplitRow,
    ) -> Result<Span, IncompleteRow> {
        let mut is_escaped = false;
        let mut at = start + 1;
        loop {
            let rest = &self.bytes[at..];
            let found = match self.dialect.escape {
                Escape::Doubled => memchr2(quote, self.line_end, rest),
                Escape::Backslash => memchr3(quote, self.line_end, b'\\', rest),
            };
            at += found.ok_or(IncompleteRow(true))?;
            let next = self.bytes.get(at + 1);
            if self.bytes[at] == self.line_end {
                row.inner_lines += 1;
                at += 1;
            } else if self.bytes[at] == b'\\' {
                match next {
                    None => return Err(IncompleteRow(true)),
                    Some(next) if *next == quote || *next == b'\\' => {
                        is_escaped = true;
                        at += 2;
                    }
                    Some(_) => at += 1,
                }
            } else if self.dialect.escape == Escape::Doubled && next == Some(&quote) {
                is_escaped = true;
                at += 2;
            } else if next.is_none() && !self.is_whole {
                return Err(IncompleteRow(true));
            } else {
                return Ok(Span {
                    start,
                    end: at + 1,
                    is_quoted: true,
                    is_escaped,
                });
            }
        }
    }

    /// Finds the end of an unquoted cell. `from` is a position inside it.
    fn find_unquoted_end(
        &self,
        from: usize,
        is_escaped: &mut bool,
    ) -> Result<(usize, AfterCell), IncompleteRow> {
        let mut at = from;
        loop {
            let rest = &self.bytes[at..];
            let found = match self.dialect.escape {
                Escape::Doubled => memchr2(self.dialect.delimiter, self.line_end, rest),
                Escape::Backslash => memchr3(self.dialect.delimiter, self.line_end, b'\\', rest),
            };
            let Some(found) = found else {
                return match self.is_whole {
                    true => Ok((self.bytes.len(), AfterCell::RowEnd(0))),
                    false => Err(IncompleteRow(false)),
                };
            };
            at += found;
            if self.bytes[at] == self.dialect.delimiter {
                return Ok((at, AfterCell::Delimiter));
            }
            if self.bytes[at] == b'\\' && self.dialect.escape == Escape::Backslash {
                let next = self.bytes.get(at + 1);
                if next.is_none() && !self.is_whole {
                    return Err(IncompleteRow(false));
                }
                let is_escape = next.is_some_and(|next| {
                    [self.dialect.delimiter, b'\\'].contains(next)
                        || Some(*next) == self.dialect.quote
                });
                *is_escaped |= is_escape;
                at += 1 + usize::from(is_escape);
                continue;
            }
            let has_cr = self.line_end == b'\n' && at > from && self.bytes[at - 1] == b'\r';
            let end = at - usize::from(has_cr);
            return Ok((end, AfterCell::RowEnd(1 + usize::from(has_cr))));
        }
    }

    /// Finds out what follows a closing quote.
    fn classify_text_after_quote(&self, at: usize) -> Result<AfterCell, IncompleteRow> {
        let rest = &self.bytes[at..];
        match rest {
            [] if self.is_whole => Ok(AfterCell::RowEnd(0)),
            [b'\r'] if !self.is_whole => Err(IncompleteRow(false)),
            [] => Err(IncompleteRow(false)),
            [b'\r', b'\n', ..] if self.line_end == b'\n' => Ok(AfterCell::RowEnd(2)),
            [first, ..] if *first == self.line_end => Ok(AfterCell::RowEnd(1)),
            [first, ..] if *first == self.dialect.delimiter => Ok(AfterCell::Delimiter),
            _ => Ok(AfterCell::Text),
        }
    }
}

/// The length of the first line, its line end included; `None` if the bytes end before the line does.
pub(super) fn line_bytes(bytes: &[u8], is_whole: bool, dialect: &Dialect) -> Option<usize> {
    match memchr(line_end(dialect), bytes) {
        Some(end) => Some(end + 1),
        None => is_whole.then_some(bytes.len()),
    }
}

/// The text of a cell, without quotes and escapes.
pub(super) fn unquote_and_unescape(cell: &str, span: &Span, dialect: &Dialect) -> String {
    let inner = match span.is_quoted {
        true => &cell[1..cell.len() - 1],
        false => cell,
    };
    if !span.is_escaped {
        return inner.to_owned();
    }
    let quote = dialect.quote.map(char::from);
    let delimiter = char::from(dialect.delimiter);
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        let is_escape = match dialect.escape {
            Escape::Doubled => Some(c) == quote && next == quote,
            Escape::Backslash => {
                let is_escapable = next.is_some_and(|next| {
                    next == '\\' || Some(next) == quote || (next == delimiter && !span.is_quoted)
                });
                c == '\\' && is_escapable
            }
        };
        text.push(match is_escape {
            true => characters.next().unwrap_or(c),
            false => c,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
        escape: Escape::Doubled,
        ends_with_cr: false,
        skips_blanks: false,
        has_header: true,
        has_separator_line: false,
        notes: 0,
    };

    fn split_cells(text: &str, dialect: &Dialect) -> (Vec<String>, SplitRow) {
        let mut spans = Vec::new();
        let Split::Row(row) = split(text.as_bytes(), true, dialect, &mut spans) else {
            return (vec![String::from("unfinished")], SplitRow::default());
        };
        let cell = |span: &Span| unquote_and_unescape(&text[span.start..span.end], span, dialect);
        (spans.iter().map(cell).collect(), row)
    }

    #[test]
    fn rows_are_split_by_the_dialect() {
        let backslash = Dialect {
            escape: Escape::Backslash,
            ..COMMA
        };
        let blanks = Dialect {
            skips_blanks: true,
            ..COMMA
        };
        let bare = Dialect {
            quote: None,
            delimiter: b'\t',
            ..COMMA
        };
        let old = Dialect {
            ends_with_cr: true,
            ..COMMA
        };
        let table: [(&Dialect, &str, &[&str], usize); 19] = [
            (&COMMA, "a,b\nc", &["a", "b"], 4),
            (&COMMA, "a,b\r\nc", &["a", "b"], 5),
            (&COMMA, "a,b", &["a", "b"], 3),
            (&COMMA, "a,", &["a", ""], 2),
            (&COMMA, "\n", &[""], 1),
            (&COMMA, "\r\n", &[""], 2),
            (&COMMA, ",\r\n", &["", ""], 3),
            (&COMMA, "\"a,b\",c\n", &["a,b", "c"], 8),
            (&COMMA, "\"a\"\"b\"\r\n", &["a\"b"], 8),
            (&COMMA, "\"\",\"\"\"\"", &["", "\""], 7),
            (&COMMA, "\"a\nb\",c\n", &["a\nb", "c"], 8),
            (&COMMA, "a\rb,c\n", &["a\rb", "c"], 6),
            (&COMMA, "5\" disk,c\n", &["5\" disk", "c"], 10),
            (&backslash, "\"a\\\"b\\n\\\\\",c", &["a\"b\\n\\", "c"], 12),
            (&backslash, "a\\,b,c", &["a,b", "c"], 6),
            (&blanks, "a, \"b,\",  c\n", &["a", "b,", "c"], 12),
            (&bare, "\"a\t\"b\"\n", &["\"a", "\"b\""], 7),
            (&old, "a,b\rc", &["a", "b"], 4),
            (&old, "\"a\rb\",c\r", &["a\rb", "c"], 8),
        ];
        for (dialect, text, expected, bytes) in table {
            let (cells, row) = split_cells(text, dialect);
            assert_eq!(cells, expected, "{text:?}");
            assert_eq!((row.bytes, row.is_askew), (bytes, false), "{text:?}");
        }
    }

    #[test]
    fn text_after_a_closing_quote_is_askew() {
        for text in ["\"a\"b,c\n", "\"a\" ,c\n", "x,\"a\"\rb\n"] {
            assert!(split_cells(text, &COMMA).1.is_askew, "{text:?}");
        }
    }

    #[test]
    fn a_row_that_is_cut_anywhere_is_unfinished() {
        let text = "\"a\"\"\n,\",b,\"c\"\r\n";
        let mut spans = Vec::new();
        for end in 0..text.len() {
            let cut = split(&text.as_bytes()[..end], false, &COMMA, &mut spans);
            assert!(matches!(cut, Split::Unfinished { .. }), "{end}");
        }
    }
}
