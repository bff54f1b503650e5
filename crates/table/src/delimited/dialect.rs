//! Detects the dialect (delimiter, quote, escape) of a delimited text. With the right one, most rows have the same
//! number of cells.

use std::collections::HashMap;

use memchr::memmem;

use super::split::{Split, line_bytes, split};
use crate::format::{Dialect, Escape};
use crate::text::Span;

/// The possible delimiters, in order of preference.
const DELIMITERS: [u8; 4] = *b",\t;|";

/// How many bytes at the beginning of the text are examined to detect the dialect.
const SAMPLE_BYTES: usize = 256 << 10;
const SAMPLE_ROWS: u32 = 1_000;

/// How many bytes of the sample are searched for the end of a row.
const ROW_BYTES: usize = 64 << 10;

/// By how much a dialect's score must exceed the score of a dialect that was tried before it.
const CLEARLY: f64 = 0.02;

/// Detects the dialect from the first bytes of a text. `is_whole` means that these are all bytes, and `hint` is the
/// delimiter that the file name suggests.
pub(super) fn detect_dialect(beginning: &[u8], is_whole: bool, hint: Option<u8>) -> Dialect {
    let sample = &beginning[..beginning.len().min(SAMPLE_BYTES)];
    let is_whole = is_whole && sample.len() == beginning.len();
    let mut base = Dialect {
        delimiter: hint.unwrap_or(b','),
        quote: Some(b'"'),
        escape: Escape::Doubled,
        ends_with_cr: !sample.contains(&b'\n') && sample.contains(&b'\r'),
        skips_blanks: false,
        has_header: true,
        has_separator_line: false,
        notes: 0,
    };
    if let Some(delimiter) = separator_line(sample) {
        base.delimiter = delimiter;
        base.has_separator_line = true;
    }
    let rows = match base.has_separator_line {
        true => line_bytes(sample, true, &base).unwrap_or(0),
        false => 0,
    };
    let sample = &sample[rows..];
    let mut best: Option<(Dialect, Tally)> = None;
    for dialect in candidates(sample, base, hint) {
        let tally = Tally::from_sample(sample, is_whole, &dialect);
        let is_better = best
            .as_ref()
            .is_none_or(|(best_dialect, best)| tally.is_better_than(&dialect, best, best_dialect));
        if is_better {
            best = Some((dialect, tally));
        }
    }
    best.map_or(base, |(dialect, _)| dialect)
}

/// The delimiter in a first line such as `sep=;`; `None` if there is no such line.
fn separator_line(sample: &[u8]) -> Option<u8> {
    match sample {
        [b's', b'e', b'p', b'=', delimiter, b'\r' | b'\n', ..] if delimiter.is_ascii() => {
            Some(*delimiter)
        }
        _ => None,
    }
}

fn candidates(sample: &[u8], base: Dialect, hint: Option<u8>) -> Vec<Dialect> {
    let delimiters: Vec<u8> = match base.has_separator_line {
        true => vec![base.delimiter],
        false => hint
            .into_iter()
            .chain(DELIMITERS.into_iter().filter(|one| Some(*one) != hint))
            .collect(),
    };
    let escapes: &[Escape] = match sample.contains(&b'\\') {
        true => &[Escape::Doubled, Escape::Backslash],
        false => &[Escape::Doubled],
    };
    let mut candidates = Vec::new();
    let single = sample.contains(&b'\'').then_some(Some(b'\''));
    for quote in [Some(b'"')].into_iter().chain(single).chain([None]) {
        for delimiter in &delimiters {
            for escape in escapes {
                for skips_blanks in [false, true] {
                    let opens_behind_blank = quote.is_some_and(|quote| {
                        memmem::find(sample, &[*delimiter, b' ', quote]).is_some()
                    });
                    if skips_blanks && !opens_behind_blank {
                        continue;
                    }
                    candidates.push(Dialect {
                        delimiter: *delimiter,
                        quote,
                        escape: *escape,
                        skips_blanks,
                        ..base
                    });
                }
            }
        }
    }
    candidates
}

/// Counts of the rows and cells into which a dialect splits the sample.
#[derive(Default)]
struct Tally {
    rows: u32,
    /// How many rows have the commonest number of cells.
    agreeing: u32,
    /// The commonest number of cells in a row.
    cells: usize,
    first_row_agrees: bool,
    /// How many cells are in quotes (`quoted_cells`), and how many rows cannot be split because of misplaced quotes.
    quoted_cells: u32,
    bad_rows: u32,
}

impl Tally {
    fn from_sample(sample: &[u8], is_whole: bool, dialect: &Dialect) -> Tally {
        let mut tally = Tally::default();
        let mut counts: HashMap<usize, u32> = HashMap::new();
        let mut first = 0;
        let mut spans: Vec<Span> = Vec::new();
        let mut rest = sample;
        while !rest.is_empty() && tally.rows < SAMPLE_ROWS {
            let row = &rest[..rest.len().min(ROW_BYTES)];
            let is_end = row.len() == rest.len();
            let (bytes, is_row) = match split(row, is_end && is_whole, dialect, &mut spans) {
                Split::Row(row) if !(row.is_askew && row.inner_lines > 0) => {
                    (row.bytes, !row.is_askew)
                }
                Split::Unfinished { .. } if is_end && !is_whole => break,
                _ => match line_bytes(rest, true, dialect) {
                    Some(bytes) => (bytes, false),
                    None => break,
                },
            };
            rest = &rest[bytes.max(1)..];
            if is_row && matches!(spans.as_slice(), [span] if span.start == span.end) {
                continue;
            }
            tally.rows += 1;
            if !is_row {
                tally.bad_rows += 1;
                continue;
            }
            tally.quoted_cells += spans.iter().filter(|span| span.is_quoted).count() as u32;
            if tally.rows == 1 {
                first = spans.len();
            }
            *counts.entry(spans.len()).or_default() += 1;
        }
        let most = counts
            .into_iter()
            .max_by_key(|(cells, rows)| (*rows, *cells));
        (tally.cells, tally.agreeing) = most.unwrap_or_default();
        tally.first_row_agrees = first == tally.cells;
        tally
    }

    /// The score of the dialect, from 0 to 1. A single column scores low, because any text has a single column in a
    /// wrong dialect.
    fn score(&self) -> f64 {
        let share = f64::from(self.agreeing) / f64::from(self.rows.max(1));
        let of_first = if self.first_row_agrees { 1.0 } else { 0.5 };
        let of_cells = if self.cells > 1 { 1.0 } else { 0.1 };
        share * share * of_first * of_cells
    }

    /// Whether this dialect is better than the best dialect that was tried before.
    fn is_better_than(&self, dialect: &Dialect, best: &Tally, best_dialect: &Dialect) -> bool {
        let is_clear = self.score() > best.score() + CLEARLY;
        match dialect.quote {
            // A dialect without quotes cannot have misplaced ones. So it wins only if the best dialect so far, with
            // quotes, has many bad rows for its number of quoted cells.
            None => is_clear && best.quoted_cells < 3 * best.bad_rows.max(1),
            Some(b'\'') if best_dialect.quote == Some(b'"') && best.quoted_cells == 0 => {
                let cells = u64::from(self.agreeing) * self.cells as u64;
                let are_usual = u64::from(self.quoted_cells) * 2 >= cells.max(1);
                is_clear || (are_usual && self.score() >= best.score())
            }
            Some(_) => is_clear,
        }
    }
}
