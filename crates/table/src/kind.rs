//! The kinds of values: numbers, dates, links and so on.

use std::fmt::{self, Display, Formatter};

use jiff::civil;
use webfill_values::Decimal;

use crate::cell::Cell;

/// The kind of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A boolean.
    Bool,
    /// A day in ISO 8601.
    Date,
    /// A point in time in ISO 8601, with a zone or without.
    Time,
    /// A link, or several in a cell.
    Url,
    /// An object, or anything else that is never filled in.
    Other,
}

impl Kind {
    /// The kind of a text. Digits with a leading zero are a code, not a number.
    pub fn from_text(text: &str) -> Kind {
        const MAX_BYTES: usize = 64;
        let text = text.trim();
        if is_url(text) {
            return Kind::Url;
        }
        let may_be_typed = text.len() <= MAX_BYTES
            && text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
        if !may_be_typed {
            return match text {
                "true" | "false" | "True" | "False" | "TRUE" | "FALSE" => Kind::Bool,
                _ => Kind::Text,
            };
        }
        match Decimal::from_plain_text(text) {
            Some(number) if number.is_integer() && !text.contains('.') => Kind::Integer,
            Some(_) => Kind::Number,
            None if text.parse::<civil::Date>().is_ok() && text.len() <= 10 => Kind::Date,
            None if is_time(text) => Kind::Time,
            None => Kind::Text,
        }
    }

    /// The kind of a cell; for a list, the kind of its entries. `None` if the cell is empty.
    pub fn from_cell(cell: &Cell) -> Option<Kind> {
        match cell {
            Cell::Missing => None,
            Cell::Text(text) if webfill_values::is_blank(text) => None,
            Cell::Text(text) => Some(Kind::from_text(text)),
            Cell::Number(text) => Some(match Kind::from_text(text) {
                Kind::Integer => Kind::Integer,
                _ => Kind::Number,
            }),
            Cell::Bool(_) => Some(Kind::Bool),
            Cell::Date(text) => Some(match text.parse::<civil::Date>() {
                Ok(_) if text.len() <= 10 => Kind::Date,
                _ => Kind::Time,
            }),
            Cell::List(cells) => {
                let kinds = cells.iter().filter_map(Kind::from_cell);
                kinds.reduce(Kind::merged_with)
            }
            Cell::Other(_) => Some(Kind::Other),
        }
    }

    /// The narrowest kind that can hold values of both kinds: an integer and a number are a number.
    pub fn merged_with(self, other: Kind) -> Kind {
        match (self, other) {
            _ if self == other => self,
            (Kind::Other, _) | (_, Kind::Other) => Kind::Other,
            (Kind::Integer, Kind::Number) | (Kind::Number, Kind::Integer) => Kind::Number,
            (Kind::Date, Kind::Time) | (Kind::Time, Kind::Date) => Kind::Time,
            _ => Kind::Text,
        }
    }

    /// Whether a value of this kind may be put into a column of the kind `column`.
    pub fn fits_column(self, column: Kind) -> bool {
        self.merged_with(column) == column
    }
}

/// Converts a point in time in ISO 8601 to UTC; `None` if it has no offset.
pub fn to_utc(text: &str) -> Option<String> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.to_string())
}

fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_web && !rest.is_empty()
}

fn is_time(text: &str) -> bool {
    let has_clock = text.len() > 10 && text.contains(':');
    has_clock
        && (text.parse::<civil::DateTime>().is_ok() || text.parse::<jiff::Timestamp>().is_ok())
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Text => "text",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Bool => "true or false",
            Kind::Date => "date",
            Kind::Time => "time",
            Kind::Url => "link",
            Kind::Other => "object",
        })
    }
}
