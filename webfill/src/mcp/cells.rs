//! Reads the evidence and the doubts of a table in parts, from the files beside it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};
use webfill_service::Fault;

use super::answer::{Answer, MOST_ROW_BYTES, json_size};
use super::arguments::{ResultsArguments, WhatArgument};
use crate::fill::{Project, open_doubts};

/// The most entries in an answer.
const MOST_ROWS: u32 = 100;

/// The most entries that one call reads, including those that the filter rejects.
const MOST_READ: u64 = 100_000;

/// An entry of a file, or the reason why it cannot be read.
type Entry = Result<Value, Fault>;

pub fn read_results(project: &Project, given: &ResultsArguments) -> Result<Answer, Fault> {
    let path = match given.what {
        WhatArgument::Evidence => project.evidence_file("jsonl"),
        WhatArgument::Doubts => project.doubts_file(),
    };
    let unread = |error: &dyn std::fmt::Display| {
        Fault::error(format!("cannot read {}: {error}", path.display()))
    };
    let unopened = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => Fault::usage("there are no results yet: `fill` completes the table"),
        _ => unread(&error),
    };
    let file = File::open(&path).map_err(unopened)?;
    let changed = changed_ms(&file).map_err(|error| unread(&error))?;
    let start = match &given.cursor {
        Some(cursor) => parse_cursor(cursor, changed)?,
        None => 0,
    };
    let entries: Box<dyn Iterator<Item = Entry>> = match given.what {
        WhatArgument::Evidence => Box::new(read_json_lines(BufReader::new(file), start)),
        WhatArgument::Doubts => Box::new(read_csv_records(
            open_doubts(&path).map_err(unopened)?,
            start,
        )),
    };
    let limit = given.limit.clamp(1, MOST_ROWS) as usize;
    let (rows, end) = read_part(entries, limit, |entry| is_wanted(entry, given))
        .map_err(|fault| unread(&fault))?;
    let next = end.map(|end| format!("{}.{changed}", start + end));
    let whole = format!("{} has the whole", file_name(&path));
    Ok(Answer::new(json!({"rows": rows}), &whole).with_next(next))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The time when a file was last changed. A cursor is valid only for this version, because entries have other positions
/// in another version.
fn changed_ms(file: &File) -> io::Result<u128> {
    let changed = file.metadata()?.modified()?.duration_since(UNIX_EPOCH);
    Ok(changed.map(|since| since.as_millis()).unwrap_or_default())
}

/// The number of entries to skip, from a cursor. The error says that the file has changed or that the cursor is
/// invalid.
fn parse_cursor(cursor: &str, changed: u128) -> Result<u64, Fault> {
    let parts = cursor.split_once('.');
    let parts =
        parts.and_then(|(start, of)| Some((start.parse::<u64>().ok()?, of.parse::<u128>().ok()?)));
    match parts {
        Some((start, of)) if of == changed => Ok(start),
        Some(_) => Err(Fault::usage(
            "cursor: the results have changed since: begin without one",
        )),
        None => Err(Fault::usage(format!(
            "cursor: `{cursor}` is the `next` of no answer: begin without one"
        ))),
    }
}

/// Reads the entries that match and fit into an answer. The second value is the number of entries read so far, if there
/// may be more.
fn read_part(
    mut entries: impl Iterator<Item = Entry>,
    limit: usize,
    is_wanted: impl Fn(&Value) -> bool,
) -> Result<(Vec<Value>, Option<u64>), Fault> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    for read in 0..MOST_READ {
        let Some(entry) = entries.next().transpose()? else {
            return Ok((rows, None));
        };
        if !is_wanted(&entry) {
            continue;
        }
        bytes += json_size(&entry) + 1;
        // If even one entry is too large, it is taken and shortened later.
        if rows.len() == limit || (bytes > MOST_ROW_BYTES && !rows.is_empty()) {
            return Ok((rows, Some(read)));
        }
        rows.push(entry);
    }
    Ok((rows, Some(MOST_READ)))
}

fn is_wanted(entry: &Value, given: &ResultsArguments) -> bool {
    let is = |key: &str, wanted: &Option<String>| {
        wanted.as_ref().is_none_or(|wanted| entry[key] == **wanted)
    };
    is("column", &given.column) && (given.what == WhatArgument::Doubts || is("state", &given.state))
}

fn read_json_lines(mut file: impl BufRead, start: u64) -> impl Iterator<Item = Entry> {
    let mut skipped = 0;
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        loop {
            line.clear();
            match file.read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Err(error) => return Some(Err(Fault::error(error))),
                Ok(_) if skipped < start => skipped += 1,
                Ok(_) => return Some(serde_json::from_slice(&line).map_err(Fault::error)),
            }
        }
    })
}

fn read_csv_records<R: io::Read>(
    mut table: csv::Reader<R>,
    start: u64,
) -> impl Iterator<Item = Entry> {
    let titles = table.headers().cloned().unwrap_or_default();
    let skipped = usize::try_from(start).unwrap_or(usize::MAX);
    table.into_records().skip(skipped).map(move |record| {
        let record = record.map_err(Fault::error)?;
        let cells = titles.iter().zip(&record);
        let entry: Map<String, Value> = cells
            .map(|(title, cell)| (title.to_owned(), cell.into()))
            .collect();
        Ok(Value::Object(entry))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: usize, text: &str) -> impl Iterator<Item = Entry> {
        let text = text.to_owned();
        (0..count).map(move |row| Ok(json!({"row": row, "text": text})))
    }

    #[test]
    fn consecutive_parts_contain_all_entries() {
        let all = "{\"row\":0}\n{\"row\":1}\n{\"row\":2}\n{\"row\":3}\n{\"row\":4}\n";
        let mut rows = Vec::new();
        let mut start = 0;
        loop {
            let (found, end) =
                read_part(read_json_lines(all.as_bytes(), start), 2, |_| true).unwrap();
            rows.extend(found);
            match end {
                Some(end) => start += end,
                None => break,
            }
        }
        let rows: Vec<&Value> = rows.iter().map(|row| &row["row"]).collect();
        assert_eq!(rows, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_part_ends_where_the_answer_is_full() {
        let (rows, end) = read_part(entries(10, &"x".repeat(10_000)), 100, |_| true).unwrap();
        assert_eq!((rows.len(), end), (3, Some(3)));
        let (rows, end) = read_part(entries(2, &"x".repeat(1 << 20)), 100, |_| true).unwrap();
        assert_eq!((rows.len(), end), (1, Some(1)));
        let (rows, end) = read_part(entries(200_000, ""), 100, |_| false).unwrap();
        assert_eq!((rows.len(), end), (0, Some(MOST_READ)));
    }

    #[test]
    fn a_cursor_of_another_version_of_the_file_is_refused() {
        assert_eq!(parse_cursor("12.34", 34).unwrap(), 12);
        for bad in ["12.35", "12", "", "x.34", "-1.34"] {
            assert!(parse_cursor(bad, 34).is_err(), "{bad}");
        }
    }
}
