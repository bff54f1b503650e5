//! Reads the sheets of an ODS: the name of each sheet, and a line for each row that is not empty. Cells are read as
//! stored, not as shown, because the display depends on the author's settings.

use super::iso_time::{format_date, format_duration};
use super::xml::{Attributes, Token};
use crate::formats::Trouble;
use crate::text::TextWriter;

/// The largest numbers of columns and rows of a sheet in LibreOffice and Excel. A cell or a row repeated more often
/// does not fit a sheet, so it counts once.
const MAX_COLUMNS: usize = 16_384;
const MAX_ROWS: usize = 1_048_576;

/// The reader's position in the sheets.
#[derive(Default)]
pub(super) struct Sheets {
    pub(super) count: u32,
    row: Row,
    /// How many cells are around the current position. Only the outermost one belongs to the sheet.
    in_cells: usize,
    in_paragraphs: usize,
    /// How many comments and other elements outside the content of a cell are around the current position.
    in_aside: usize,
}

#[derive(Default)]
struct Row {
    times: usize,
    cells: Vec<(usize, String)>,
    /// The stored value of the current cell, if it differs from its text.
    value: Option<String>,
    shown: Option<TextWriter>,
    cell_times: usize,
}

const ASIDES: [&str; 3] = ["annotation", "tracked-changes", "desc"];

impl Sheets {
    pub(super) fn write(
        &mut self,
        token: &Token<'_>,
        writer: &mut TextWriter,
    ) -> Result<(), Trouble> {
        match token {
            Token::Begin(name, _) if self.in_aside > 0 || ASIDES.contains(name) => {
                self.in_aside += 1;
            }
            Token::End(_) if self.in_aside > 0 => self.in_aside -= 1,
            Token::Begin("table", attributes) if self.in_cells == 0 => {
                self.count = self.count.saturating_add(1);
                writer.end_paragraph();
                writer.push(&attributes.get("name").unwrap_or_default())?;
                writer.end_paragraph();
            }
            Token::Begin("table-row", attributes) if self.in_cells == 0 => {
                self.row = Row {
                    times: repeat_count(attributes, "number-rows-repeated", MAX_ROWS),
                    ..Row::default()
                };
            }
            Token::End("table-row") if self.in_cells == 0 => {
                std::mem::take(&mut self.row).write(writer)?;
            }
            Token::Begin("table-cell" | "covered-table-cell", attributes) => {
                self.in_cells += 1;
                if self.in_cells == 1 {
                    self.row.begin_cell(attributes, writer.max_bytes());
                }
            }
            Token::End("table-cell" | "covered-table-cell") => {
                self.in_cells = self.in_cells.saturating_sub(1);
                if self.in_cells == 0 {
                    self.row.end_cell();
                }
            }
            other => self.write_text(other, writer)?,
        }
        Ok(())
    }

    fn write_text(&mut self, token: &Token<'_>, writer: &mut TextWriter) -> Result<(), Trouble> {
        let target = self.row.shown.as_mut().unwrap_or(writer);
        match token {
            Token::Begin("p" | "h", _) => self.in_paragraphs += 1,
            Token::End("p" | "h") => {
                self.in_paragraphs = self.in_paragraphs.saturating_sub(1);
                target.end_paragraph();
            }
            Token::Begin("s" | "tab", _) => target.push_space(),
            Token::Begin("line-break", _) => target.push_line_break(),
            Token::Text(text) if self.in_paragraphs > 0 => target.push(text)?,
            _ => {}
        }
        Ok(())
    }
}

impl Row {
    fn begin_cell(&mut self, attributes: &Attributes<'_>, max_bytes: u64) {
        self.cell_times = repeat_count(attributes, "number-columns-repeated", MAX_COLUMNS);
        self.value = stored_value(attributes);
        self.shown = Some(TextWriter::new(max_bytes));
    }

    fn end_cell(&mut self) {
        let shown = self
            .shown
            .take()
            .map(TextWriter::finish)
            .unwrap_or_default();
        let text = self.value.take().unwrap_or(shown);
        match self.cells.last_mut() {
            // Adjacent empty cells are merged, because sheets may have millions of them.
            Some((times, before)) if before.is_empty() && text.is_empty() => {
                *times = times.saturating_add(self.cell_times);
            }
            _ => self.cells.push((self.cell_times, text)),
        }
    }

    fn write(self, writer: &mut TextWriter) -> Result<(), Trouble> {
        if self.cells.iter().all(|(_, text)| text.trim().is_empty()) {
            return Ok(());
        }
        for _ in 0..self.times {
            for (times, text) in &self.cells {
                if text.is_empty() {
                    writer.skip_cells(*times);
                    continue;
                }
                for _ in 0..*times {
                    writer.begin_cell();
                    writer.push(text)?;
                    writer.end_cell();
                }
            }
            writer.end_paragraph();
        }
        Ok(())
    }
}

fn repeat_count(attributes: &Attributes<'_>, name: &str, most: usize) -> usize {
    let times = attributes.get(name).and_then(|times| times.parse().ok());
    times.filter(|times| *times <= most).unwrap_or(1)
}

/// The stored value of a cell, if it has one in addition to its text.
fn stored_value(attributes: &Attributes<'_>) -> Option<String> {
    match attributes.get("value-type")?.as_str() {
        "float" | "currency" | "percentage" => attributes.get("value"),
        "date" => attributes.get("date-value").map(|date| format_date(&date)),
        "time" => format_duration(&attributes.get("time-value")?),
        "boolean" => attributes.get("boolean-value"),
        // The attribute may stand in for the text. If there is a text, both are equal, except for errors, where the
        // attribute is empty.
        "string" => attributes
            .get("string-value")
            .filter(|text| !text.is_empty()),
        _ => None,
    }
}
