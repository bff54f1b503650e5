//! Reads seeds: text, JSON lines or CSV, from a file or standard input, gzipped or not. JSON lines are records, crawl
//! requests ([`SeedRequest`]) or plain URLs. Exported rows can be read as seeds, too.
//!
//! The input is streamed with one line in memory at a time, so its size does not matter. A line that cannot be used
//! becomes a [`SeedFault`] with its number, and reading continues after it. The file's extension decides the format
//! (`.jsonl`, `.ndjson`, `.json`, `.csv`, each also with `.gz`). Without one of these, the first line decides: `{`
//! begins JSON lines, and a header with a column `url` or `urls` begins CSV. All other files have one URL per line.

mod document;
mod exported;
pub mod exported_cell;
mod json;
pub mod lines;
mod list_cells;
mod request;
mod table;

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::path::Path;

use serde_json::{Map, Value};
use webfill_api::{Refusal, RequestParser};
use webfill_store::SourceDocument;

pub use document::{DocumentRules, read_document};
pub use lines::Mark;
use lines::{Line, LineText, Lines};
pub use list_cells::{ListCells, ListSeparator};
pub use request::SeedRequest;
use table::Header;

/// How many characters of a broken line are shown.
const SHOWN_CHARS: usize = 160;

/// Where a crawl begins: one or more URLs, and perhaps the record whose fields they may fill.
#[derive(Debug, Clone, PartialEq)]
pub struct Seed {
    /// The line where the seed begins, counted from 1.
    pub line: u64,
    /// The record's id: its first URL if the input gives none. A seed without known or wanted fields
    /// has no record.
    pub id: Option<String>,
    /// The URLs of the seed in canonical form. There is at least one.
    pub urls: Vec<String>,
    /// The known fields of the record; a null field is missing.
    pub fields: Option<Map<String, Value>>,
    /// The names of the fields to fill.
    pub want: Vec<String>,
    /// Whether the line itself lists the fields to fill. The list may include fields that have a value. Without a list,
    /// all fields without a value are filled.
    pub lists_want: bool,
    /// The crawl request, if the seed is one. It names its own crawl.
    pub request: Option<Box<SeedRequest>>,
    /// The document that found values are written back to.
    pub source: Option<SourceDocument>,
}

impl Seed {
    /// Makes a seed of a plain URL.
    pub fn from_url(line: u64, url: String) -> Seed {
        Seed {
            line,
            id: None,
            urls: vec![url],
            fields: None,
            want: Vec::new(),
            lists_want: false,
            request: None,
            source: None,
        }
    }

    /// For a refresh, adds the fields that have a value and that a mapping extracts to the wanted fields. If the line
    /// itself lists the wanted fields, the list stays unchanged.
    pub fn want_extracted_fields(&mut self, extracted: &BTreeSet<String>) {
        if self.lists_want {
            return;
        }
        for name in self.fields.iter().flat_map(Map::keys) {
            if extracted.contains(name) && !self.want.contains(name) {
                self.want.push(name.clone());
            }
        }
    }
}

/// An unusable line, or an unusable URL in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedFault {
    pub line: u64,
    /// The id of the document, if the seed comes from a dataset.
    pub document: Option<String>,
    /// The JSON path of the fault, if the line is a crawl request.
    pub path: Option<String>,
    pub reason: String,
    /// The line or the URL, shortened and without control characters.
    pub text: String,
}

impl SeedFault {
    fn new(line: u64, reason: impl ToString, text: &[u8]) -> SeedFault {
        SeedFault {
            line,
            document: None,
            path: None,
            reason: reason.to_string(),
            text: printable_line(text),
        }
    }

    /// The fault of a refused crawl request.
    pub fn from_refusal(line: u64, refusal: Refusal, text: &[u8]) -> SeedFault {
        SeedFault {
            path: Some(refusal.path),
            ..SeedFault::new(line, refusal.message, text)
        }
    }
}

/// The seeds of an input, in order. A line with several URLs may yield both a seed and faults.
pub struct SeedReader {
    lines: Lines,
    format: Format,
    parser: RequestParser,
    ready: VecDeque<Result<Seed, SeedFault>>,
}

enum Format {
    Text,
    JsonLines,
    Csv(Header),
}

impl SeedReader {
    /// Opens a file, or standard input for `-`, and determines its format. Crawl requests that expire before `now_ms`,
    /// in milliseconds since the epoch, are refused. The error is a sentence that names the file.
    pub fn open(path: &Path, now_ms: i64) -> Result<SeedReader, String> {
        SeedReader::from_lines(path, Lines::open(path), now_ms)
    }

    /// Reads seeds from a file with this name that is already open.
    pub fn from_file(name: &Path, file: File, now_ms: i64) -> Result<SeedReader, String> {
        SeedReader::from_lines(name, Lines::from_reader(Box::new(file)), now_ms)
    }

    fn from_lines(
        path: &Path,
        lines: Result<Lines, String>,
        now_ms: i64,
    ) -> Result<SeedReader, String> {
        let in_file =
            |reason: String| format!("cannot read seeds from {}: {reason}", path.display());
        let mut lines = lines.map_err(in_file)?;
        let format = Format::detect(path, &mut lines).map_err(in_file)?;
        Ok(SeedReader {
            lines,
            format,
            parser: RequestParser::new(now_ms),
            ready: VecDeque::new(),
        })
    }

    /// Sets which cells of a table are lists. JSON lines need no such setting.
    pub fn set_lists(&mut self, lists: ListCells) {
        if let Format::Csv(header) = &mut self.format {
            header.set_lists(lists);
        }
    }

    /// Whether the format allows records.
    pub fn may_have_records(&self) -> bool {
        match &self.format {
            Format::Text => false,
            Format::JsonLines => true,
            Format::Csv(header) => header.has_fields(),
        }
    }

    /// The mark (position and hash) of the input after the last seed that was returned.
    pub fn mark(&self) -> Mark {
        self.lines.mark()
    }

    /// Reads one line into `ready`, the queue of seeds to return. Returns false at the end of the input.
    fn read_line(&mut self) -> bool {
        let Some(line) = self.lines.next() else {
            return false;
        };
        let text = match line.text {
            LineText::Whole(text) => text,
            LineText::Broken { reason, beginning } => {
                let fault = SeedFault::new(line.number, reason, &beginning);
                self.ready.push_back(Err(fault));
                return true;
            }
        };
        let found = match &self.format {
            _ if is_blank(&text) => return true,
            Format::Csv(header) => header.read_row(text, &mut self.lines),
            _ if is_comment(&text) => return true,
            Format::Text => find_url(&text),
            Format::JsonLines => json::read_seed(&text, &mut self.parser),
        };
        match found {
            Ok(found) => self.ready.extend(check_urls(line.number, found)),
            Err(fault) => self.ready.push_back(Err(SeedFault {
                line: line.number,
                ..fault
            })),
        }
        true
    }
}

impl Iterator for SeedReader {
    type Item = Result<Seed, SeedFault>;

    fn next(&mut self) -> Option<Result<Seed, SeedFault>> {
        while self.ready.is_empty() && self.read_line() {}
        self.ready.pop_front()
    }
}

/// Keeps the URLs that can be crawled as one seed. Each other URL becomes a fault.
fn check_urls(line: u64, found: LineContent) -> Vec<Result<Seed, SeedFault>> {
    let mut judged = Vec::new();
    let mut urls = Vec::with_capacity(found.urls.len());
    for text in &found.urls {
        match webfill_urls::canonical_url_with_route(text, None) {
            Ok(url) => urls.push(String::from(url)),
            Err(refusal) => judged.push(Err(SeedFault::new(line, refusal, text.as_bytes()))),
        }
    }
    let Some(first) = urls.first() else {
        return judged;
    };
    let is_record = !found.want.is_empty() || !found.fields.is_empty();
    let id = is_record.then(|| found.id.unwrap_or_else(|| first.clone()));
    judged.push(Ok(Seed {
        line,
        id,
        urls,
        fields: is_record.then_some(found.fields),
        want: found.want,
        lists_want: found.lists_want,
        request: found.request,
        source: None,
    }));
    judged
}

/// The content of a line, before its URLs are checked.
#[derive(Default)]
struct LineContent {
    id: Option<String>,
    /// The URLs of the line. There is at least one.
    urls: Vec<String>,
    fields: Map<String, Value>,
    want: Vec<String>,
    lists_want: bool,
    request: Option<Box<SeedRequest>>,
}

impl Format {
    /// Determines the format by the extension, or else by the first line that is neither blank nor a comment. That line
    /// is read again later, unless it is a CSV header.
    fn detect(path: &Path, lines: &mut Lines) -> Result<Format, String> {
        let by_name = Extension::from_path(path);
        let first = loop {
            match lines.next() {
                None if by_name == Extension::Csv => return Err(String::from("no header")),
                None => return Ok(Format::Text),
                Some(line) if line.is_blank_or_comment() => continue,
                Some(line) => break line,
            }
        };
        let text = match &first.text {
            LineText::Whole(text) => text.trim_ascii(),
            LineText::Broken { reason, .. } if by_name == Extension::Csv => {
                return Err(reason.clone());
            }
            LineText::Broken { .. } => b"",
        };
        if text.starts_with(b"[") && by_name != Extension::Csv {
            return Err(String::from(
                "it is one JSON array, but seeds are JSON lines, an object on each: \
                 convert it with jq -c '.[]'",
            ));
        }
        let is_json = by_name == Extension::Json || text.starts_with(b"{");
        if by_name == Extension::Csv || (!is_json && table::is_header(text)) {
            return Header::read(first, lines).map(Format::Csv);
        }
        lines.put_back(vec![first]);
        Ok(if is_json {
            Format::JsonLines
        } else {
            Format::Text
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extension {
    Json,
    Csv,
    Other,
}

impl Extension {
    fn from_path(path: &Path) -> Extension {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.') {
            Some((_, "jsonl" | "ndjson" | "json")) => Extension::Json,
            Some((_, "csv")) => Extension::Csv,
            _ => Extension::Other,
        }
    }
}

impl Line {
    fn is_blank_or_comment(&self) -> bool {
        matches!(&self.text, LineText::Whole(text) if is_blank(text) || is_comment(text))
    }
}

fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}

fn is_comment(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"#")
}

fn find_url(text: &[u8]) -> Result<LineContent, SeedFault> {
    let line = parse_utf8(text)?;
    // A `#` after a space begins a comment. A `#` within a URL has no space before it.
    let mut before_signs = line.match_indices('#').map(|(at, _)| &line[..at]);
    let url = before_signs
        .find(|before| before.ends_with(char::is_whitespace))
        .unwrap_or(line)
        .trim();
    if url.contains('\t') {
        let reason = "a tab in the URL: a line holds one URL and nothing else";
        return Err(SeedFault::new(0, reason, text));
    }
    if url.split_whitespace().skip(1).any(begins_as_url) {
        let reason = "several URLs: a line holds one URL and nothing else";
        return Err(SeedFault::new(0, reason, text));
    }
    Ok(LineContent {
        urls: vec![url.to_owned()],
        ..LineContent::default()
    })
}

fn begins_as_url(text: &str) -> bool {
    let begins = |scheme: &str| {
        let start = text.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    begins("http://") || begins("https://")
}

fn parse_utf8(text: &[u8]) -> Result<&str, SeedFault> {
    std::str::from_utf8(text).map_err(|error| {
        let reason = format!("invalid UTF-8 at byte {}", error.valid_up_to() + 1);
        SeedFault::new(0, reason, text)
    })
}

/// Shortens a text for people to one line without control characters.
fn printable_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN_CHARS)]);
    let visible = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
    let mut shown: String = text.chars().take(SHOWN_CHARS).map(visible).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
