//! Reads the sheets of XLSX and XLS workbooks, one after another: a line for each row that is not empty.

use std::io::{Cursor, Read, Seek};

use calamine::{Data, DataRef, ExcelDateTime, Reader, Xls, XlsError, Xlsx, XlsxError};

use super::flow::read_metadata;
use super::iso_time::{format_date, format_days};
use super::long_numbers::{SheetNumbers, Sheets};
use super::package::Package;
use super::{Content, Trouble};
use crate::report::Metadata;
use crate::text::TextWriter;

/// Reads an XLSX cell by cell. So a sheet that declares a huge size takes no memory for it.
pub(super) fn read_xlsx(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut package = Package::open(bytes)?;
    let mut workbook = Xlsx::new(Cursor::new(bytes)).map_err(trouble_of_xlsx)?;
    let names = workbook.sheet_names();
    let sheets = Sheets::from_package(&mut package)?;
    let mut writer = TextWriter::new(max_text_bytes);
    for name in &names {
        let long_numbers = sheets.long_numbers(&mut package, name);
        write_sheet(&mut workbook, name, &long_numbers, &mut writer)?;
    }
    let mut content = Content {
        text: writer.finish(),
        ..Content::default()
    };
    read_metadata(&mut package, "docProps/core.xml", &mut content.metadata);
    content.metadata.pages = u32::try_from(names.len()).ok();
    Ok(content)
}

fn write_sheet<R: Read + Seek>(
    workbook: &mut Xlsx<R>,
    name: &str,
    long_numbers: &SheetNumbers,
    writer: &mut TextWriter,
) -> Result<(), Trouble> {
    let mut cells = match workbook.worksheet_cells_reader(name) {
        Ok(cells) => cells,
        // A sheet that is a chart has no cells.
        Err(XlsxError::NotAWorksheet(_)) => return Ok(()),
        Err(error) => return Err(trouble_of_xlsx(error)),
    };
    writer.push(name)?;
    writer.end_paragraph();
    let mut row = None;
    // The column after the last one that was written to the line.
    let mut at = 0;
    while let Some(cell) = cells.next_cell().map_err(trouble_of_xlsx)? {
        let (of_row, column) = cell.get_position();
        if row != Some(of_row) {
            writer.end_paragraph();
            (row, at) = (Some(of_row), 0);
        }
        let text = match cell.get_value() {
            DataRef::Float(number) => long_numbers
                .get(&(of_row, column))
                .cloned()
                .unwrap_or_else(|| text_of_number(*number)),
            other => text_of_cell(other),
        };
        if text.is_empty() {
            continue;
        }
        writer.skip_cells(column.saturating_sub(at) as usize);
        write_cell(&text, writer)?;
        at = column + 1;
    }
    writer.end_paragraph();
    Ok(())
}

fn write_cell(text: &str, writer: &mut TextWriter) -> Result<(), Trouble> {
    writer.begin_cell();
    writer.push(text)?;
    writer.end_cell();
    Ok(())
}

pub(super) fn read_xls(bytes: Vec<u8>, max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut workbook = Xls::new(Cursor::new(bytes)).map_err(|error| match error {
        XlsError::Password => Trouble::Encrypted,
        other => Trouble::broken(other),
    })?;
    let names = workbook.sheet_names();
    let mut writer = TextWriter::new(max_text_bytes);
    for name in &names {
        let range = workbook.worksheet_range(name).map_err(Trouble::broken)?;
        writer.push(name)?;
        writer.end_paragraph();
        let before = range.start().map_or(0, |(_, column)| column);
        for row in range.rows() {
            writer.skip_cells(before as usize);
            for cell in row {
                write_cell(&text_of_data(cell), &mut writer)?;
            }
            writer.end_paragraph();
        }
    }
    let metadata = Metadata {
        pages: u32::try_from(names.len()).ok(),
        ..Metadata::default()
    };
    let text = writer.finish();
    Ok(Content {
        text,
        metadata,
        unread: 0,
    })
}

fn text_of_cell(cell: &DataRef<'_>) -> String {
    match cell {
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => text_of_number(*number),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            text.clone()
        }
        DataRef::SharedString(text) => (*text).to_owned(),
        DataRef::Bool(value) => value.to_string(),
        DataRef::DateTime(time) => text_of_time(time),
        DataRef::Error(error) => error.to_string(),
        DataRef::Empty => String::new(),
    }
}

fn text_of_data(cell: &Data) -> String {
    match cell {
        Data::DateTime(time) => text_of_time(time),
        Data::Float(number) => text_of_number(*number),
        Data::Empty => String::new(),
        other => other.to_string(),
    }
}

/// Converts a number to text. Zero never has a sign.
fn text_of_number(number: f64) -> String {
    (number + 0.0).to_string()
}

/// A date as ISO 8601, without the time of day if it is midnight. A number of less than a day becomes a time of day.
/// The cell's format, which decides what a program shows, is unknown here.
fn text_of_time(time: &ExcelDateTime) -> String {
    if time.is_duration() || time.as_f64() < 1.0 {
        return format_days(time.as_f64());
    }
    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    format_date(&format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}"
    ))
}

fn trouble_of_xlsx(error: XlsxError) -> Trouble {
    match error {
        XlsxError::Password => Trouble::Encrypted,
        other => Trouble::broken(other),
    }
}
