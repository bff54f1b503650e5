//! Cells of sheets: converts them to cells of a table, and values to cells of a sheet.

use calamine::{DataRef, ExcelDateTime};
use jiff::civil::{Date, DateTime, Time, date};
use serde_json::Value;
use webfill_values::Decimal;

use crate::cell::Cell;
use crate::kind::Kind;
use crate::shape::Shape;
use crate::value::typed_json;

/// The most characters that a cell can hold.
const MAX_CHARACTERS: usize = 32_767;

pub(super) fn cell_from_sheet(value: &DataRef<'_>) -> Cell {
    match value {
        DataRef::Int(number) => Cell::Number(number.to_string()),
        // Adding 0.0 removes the sign of a negative zero.
        DataRef::Float(number) => Cell::Number((number + 0.0).to_string()),
        DataRef::String(text) => cell_from_text(text),
        DataRef::SharedString(text) => cell_from_text(text),
        DataRef::DateTimeIso(text) => Cell::Date(text.clone()),
        DataRef::DurationIso(text) => Cell::Text(text.clone()),
        DataRef::Bool(value) => Cell::Bool(*value),
        DataRef::DateTime(time) => cell_from_time(time),
        DataRef::Error(error) => Cell::Text(error.to_string()),
        DataRef::Empty => Cell::Missing,
    }
}

fn cell_from_text(text: &str) -> Cell {
    match text.is_empty() {
        true => Cell::Missing,
        false => Cell::Text(text.to_owned()),
    }
}

/// Converts a date or time. A duration stays a number, a count of less than one day becomes a time of day, and a date
/// at midnight has only the day.
fn cell_from_time(time: &ExcelDateTime) -> Cell {
    if time.is_duration() {
        return Cell::Number(time.as_f64().to_string());
    }
    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    let fraction = match milli {
        0 => String::new(),
        milli => format!(".{milli:03}"),
    };
    let clock = format!("{hour:02}:{minute:02}:{second:02}{fraction}");
    let day = format!("{year:04}-{month:02}-{day:02}");
    Cell::Date(match (time.as_f64() < 1.0, clock.as_str()) {
        (true, clock) => clock.to_owned(),
        (false, "00:00:00") => day,
        (false, clock) => format!("{day}T{clock}"),
    })
}

/// A value as it is written into a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NewCell {
    Text(String),
    Number(String),
    Bool(bool),
    /// A date as a number of days. The format of the cell decides how it is shown.
    Days(String),
}

impl NewCell {
    /// The text of the value, for messages.
    pub(super) fn text(self) -> String {
        match self {
            NewCell::Text(text) | NewCell::Number(text) | NewCell::Days(text) => text,
            NewCell::Bool(value) => value.to_string(),
        }
    }
}

/// Converts a value to a new cell in a column of this shape. An error says why it does not fit.
pub(super) fn new_cell(value: &str, shape: &Shape, is_from_1904: bool) -> Result<NewCell, String> {
    if shape.is_typed && matches!(shape.kind, Kind::Date | Kind::Time) {
        return parse_days(value.trim(), is_from_1904).map(NewCell::Days);
    }
    match typed_json(value, shape)? {
        Value::Bool(value) => Ok(NewCell::Bool(value)),
        Value::Number(number) => {
            let text = number.to_string();
            let stored: f64 = text.parse().map_err(|_| "it is out of range")?;
            match Decimal::from_text(&stored.to_string()) == Decimal::from_text(&text) {
                true => Ok(NewCell::Number(text)),
                false => Err(String::from("no number of a sheet has all its digits")),
            }
        }
        Value::String(text) => match why_not_writable(&text) {
            Some(fault) => Err(fault.to_owned()),
            None => Ok(NewCell::Text(text)),
        },
        _ => Err(String::from("the column holds single values")),
    }
}

fn why_not_writable(text: &str) -> Option<&'static str> {
    let is_unfit = |c: char| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(is_unfit) {
        return Some("it holds control characters");
    }
    let is_long = text.encode_utf16().count() > MAX_CHARACTERS;
    is_long.then_some("it is longer than 32,767 characters")
}

fn parse_days(text: &str, is_from_1904: bool) -> Result<String, String> {
    let first = match is_from_1904 {
        true => date(1904, 1, 1),
        false => date(1899, 12, 30),
    };
    let of_clock = |time: Time| time.duration_since(Time::midnight()).as_secs_f64() / 86_400.0;
    if let Ok(time) = text.parse::<Time>()
        && !text.contains('-')
    {
        return Ok(of_clock(time).to_string());
    }
    let time: DateTime = text.parse().map_err(|_| "the column holds dates")?;
    let day: Date = time.date();
    // Sheets count a February 29, 1900, which did not exist, so earlier days are ambiguous.
    if day < date(1900, 3, 1).max(first) {
        return Err(String::from("sheets count no days before March 1900"));
    }
    let whole = day.duration_since(first).as_hours() / 24;
    Ok((whole as f64 + of_clock(time.time())).to_string())
}
