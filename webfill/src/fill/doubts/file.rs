//! Reads a file of doubts that a person has answered.

use std::io::Cursor;
use std::path::Path;

use webfill_service::Fault;

use super::listed::{Answer, ListedDoubt, ShownCells};

pub(super) const COLUMNS: [&str; 9] = [
    "row",
    "id",
    "column",
    "known",
    "page",
    "confidence",
    "url",
    "excerpt",
    "answer",
];

/// A line of a file of doubts.
pub(super) struct Line {
    number: u64,
    shown: ShownCells,
    pub(super) answer: String,
}

impl Line {
    /// The doubt that this line is about, and whether the line's values are unchanged.
    pub(super) fn find<'l>(&self, listed: &'l [ListedDoubt]) -> Option<(&'l ListedDoubt, bool)> {
        let is_of_page = |shown: &ShownCells| {
            (&shown.column, &shown.url) == (&self.shown.column, &self.shown.url)
        };
        let is_of_row = |shown: &ShownCells| is_of_page(shown) && shown.id == self.shown.id;
        let has_values = |shown: &ShownCells| {
            is_of_page(shown)
                && (&shown.known, &shown.page) == (&self.shown.known, &self.shown.page)
        };
        let mut its: Vec<&ListedDoubt> =
            listed.iter().filter(|one| is_of_row(&one.shown)).collect();
        if its.is_empty() {
            // Spreadsheets change ids that look like numbers or dates: `007` to `7`. The same values of the same page
            // show that the line is not about another row.
            its = listed.iter().filter(|one| has_values(&one.shown)).collect();
        }
        match (
            its.iter().find(|doubt| doubt.shown == self.shown),
            its.as_slice(),
        ) {
            (Some(doubt), _) => Some((*doubt, true)),
            (None, [doubt]) => Some((*doubt, false)),
            _ => None,
        }
    }

    pub(super) fn is_accepted(&self) -> Result<bool, String> {
        match self.answer.as_str() {
            "accept" => Ok(true),
            "reject" => Ok(false),
            other => Err(format!("`{other}` is no answer: write accept or reject")),
        }
    }
}

/// Opens a file of doubts. A spreadsheet may have saved it with another encoding and another delimiter.
pub fn open_doubts(file: &Path) -> std::io::Result<csv::Reader<Cursor<String>>> {
    let text = webfill_table::decode_file_text(&std::fs::read(file)?);
    let head = text.lines().next().unwrap_or_default();
    let delimiter = [b';', b'\t']
        .into_iter()
        .find(|sign| head.contains(char::from(*sign)));
    Ok(csv::ReaderBuilder::new()
        .delimiter(delimiter.unwrap_or(b','))
        .from_reader(Cursor::new(text)))
}

pub(super) fn read_lines(file: &Path) -> Result<Vec<Line>, Fault> {
    let unread = |error: String| Fault::usage(format!("cannot read {}: {error}", file.display()));
    let mut reader = open_doubts(file).map_err(|error| unread(error.to_string()))?;
    let text = reader.get_ref().get_ref().clone();
    let heads = reader
        .headers()
        .map_err(|error| unread(error.to_string()))?;
    let place = |name: &&str| {
        let place = heads.iter().position(|head| head == *name);
        place.ok_or_else(|| {
            let file = file.display();
            Fault::usage(format!(
                "{file} is not a file of doubts: it has no column `{name}`"
            ))
        })
    };
    let places: Vec<usize> = COLUMNS.iter().map(place).collect::<Result<_, Fault>>()?;
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| unread(error.to_string()))?;
        let cell = |column: usize| record.get(places[column]).unwrap_or_default().to_owned();
        lines.push(Line {
            number: record.position().map_or(0, |at| line_number(&text, at)),
            shown: ShownCells {
                id: cell(1),
                column: cell(2),
                known: cell(3),
                page: cell(4),
                url: cell(6),
            },
            answer: webfill_values::trim(&cell(8)).to_lowercase(),
        });
    }
    Ok(lines)
}

/// The number of the line at a position. Behind `\r\n` the reader's position is before the second character.
fn line_number(text: &str, position: &csv::Position) -> u64 {
    let at = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let is_within_end = text.as_bytes().get(at) == Some(&b'\n');
    position.line() + u64::from(is_within_end)
}

pub(super) fn read_answers(file: &Path, listed: &[ListedDoubt]) -> Result<Vec<Answer>, Fault> {
    let shown = file.display();
    let mut answers = Vec::new();
    for line in read_lines(file)?
        .iter()
        .filter(|line| !line.answer.is_empty())
    {
        let refused =
            |why: String| Fault::usage(format!("--doubts {shown}: line {}: {why}", line.number));
        let is_accepted = line.is_accepted().map_err(refused)?;
        let found = line.find(listed).ok_or_else(|| {
            refused(String::from(
                "no such doubt was listed for this table: its id, column or url was changed",
            ))
        })?;
        let (doubt, is_as_written) = found;
        if !is_as_written {
            webfill_service::say!(
                "webfill: {shown}: line {}: its values were changed: the answer is taken for `{}` of the table and `{}` \
                 of the page",
                line.number,
                doubt.shown.known,
                doubt.shown.page
            );
        }
        answers.push(Answer {
            doubt: doubt.clone(),
            is_accepted,
        });
    }
    Ok(answers)
}
