//! Dates in texts: `1. März 2024, 10:30 CET` is 2024-03-01T10:30:00+01:00. Not accepted as dates: a day that does not
//! exist, a weekday that does not match, and a zone name used by several countries. Nor is `01/02/2024` if nothing
//! shows which number is the month.

mod clock;
mod east_asia;
mod names;
mod parts;
mod zones;

use jiff::civil::Date;
use jiff::fmt::temporal::Pieces;

use crate::normal::normal_form;
use clock::Clock;
pub use names::{date_names, has_date_name, month_of_name, translate_names};
use parts::Parts;
pub use zones::replace_zone_names;

/// Which of the two leading numbers of a date is the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateOrder {
    DayFirst,
    MonthFirst,
}

/// The result of reading a text as a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateReading {
    /// The text is not a date, or has other words beside it.
    None,
    /// The date in ISO 8601, as precise as it is written.
    Date(String),
    /// The text is written as a date, but it is ambiguous, or no such day exists.
    Undecided,
}

/// The most bytes of a text that is read as a date. Longer texts are not dates.
const MAX_TEXT_BYTES: usize = 400;

/// Reads each text as a date. The texts are values of one field: if one of them shows the order of day and month, it
/// applies to all.
pub fn read_dates<T: AsRef<str>>(texts: &[T], order: Option<DateOrder>) -> Vec<DateReading> {
    let dates = Dates::find(texts);
    let order = order.or_else(|| dates.evidence().order());
    dates.read(order)
}

/// The dates found in several texts of a field, before the order of day and month is decided.
pub struct Dates(Vec<Option<WrittenDate>>);

impl Dates {
    pub fn find<T: AsRef<str>>(texts: &[T]) -> Dates {
        let written = texts
            .iter()
            .map(|text| Some(text.as_ref()).filter(|text| text.len() <= MAX_TEXT_BYTES))
            .map(|text| WrittenDate::parse(&normal_form(text?)));
        Dates(written.collect())
    }

    /// What the texts show about the order of day and month: a number over twelve must be a day.
    pub fn evidence(&self) -> DateEvidence {
        let mut evidence = DateEvidence::default();
        for (first, second) in self.numbers() {
            evidence.day_first |= first > 12 && second <= 12;
            evidence.month_first |= first <= 12 && second > 12;
        }
        evidence
    }

    /// Whether further texts of the field could change how one of these dates is read.
    pub fn depend_on_others(&self) -> bool {
        self.numbers()
            .any(|(first, second)| first <= 12 && second <= 12 && first != second)
    }

    /// Reads the dates in the given order of day and month. Without an order, ambiguous dates are undecided.
    pub fn read(self, order: Option<DateOrder>) -> Vec<DateReading> {
        let readings = self.0.into_iter().map(|written| match written {
            None => DateReading::None,
            Some(written) => written
                .into_iso(order)
                .map_or(DateReading::Undecided, DateReading::Date),
        });
        readings.collect()
    }

    /// The two leading numbers of each date such as `01/02/2024`, where only the order shows the month.
    fn numbers(&self) -> impl Iterator<Item = (i8, i8)> {
        self.0.iter().filter_map(|written| match written {
            Some(WrittenDate::Parts(Parts::Numbers(first, second, _), ..)) => {
                Some((*first, *second))
            }
            _ => None,
        })
    }
}

/// What the texts of a field show about its order of day and month.
#[derive(Debug, Clone, Default)]
pub struct DateEvidence {
    day_first: bool,
    month_first: bool,
}

impl DateEvidence {
    /// Adds the evidence of other texts of the same field.
    pub fn merge(&mut self, other: &DateEvidence) {
        self.day_first |= other.day_first;
        self.month_first |= other.month_first;
    }

    /// The order that the texts show, if they do not contradict each other.
    pub fn order(&self) -> Option<DateOrder> {
        match (self.day_first, self.month_first) {
            (true, false) => Some(DateOrder::DayFirst),
            (false, true) => Some(DateOrder::MonthFirst),
            _ => None,
        }
    }
}

/// A date as it is written, before the order of day and month is decided.
enum WrittenDate {
    /// An ISO 8601 date, ready to use.
    Iso(String),
    Parts(Parts, Option<Clock>, Option<i8>),
    /// A date whose parts contradict each other.
    Wrong,
}

impl WrittenDate {
    /// Parses a text; `None` if it is not a date.
    fn parse(text: &str) -> Option<WrittenDate> {
        let has_number = text.bytes().any(|b| b.is_ascii_digit()) || text.contains('年');
        if text.len() > 100 || !has_number {
            return None;
        }
        if let Some(iso) = parse_iso(text) {
            return Some(WrittenDate::Iso(iso));
        }
        let taken = east_asia::to_western_date(text).and_then(|text| Clock::split_off_clock(&text));
        let (text, clock) = match taken {
            Ok(taken) => taken,
            Err(clock::InvalidTime) => return Some(WrittenDate::Wrong),
        };
        let (parts, weekday) = Parts::parse(&text)?;
        Some(WrittenDate::Parts(parts, clock, weekday))
    }

    fn into_iso(self, order: Option<DateOrder>) -> Option<String> {
        let (parts, clock, weekday) = match self {
            WrittenDate::Iso(iso) => return Some(iso),
            WrittenDate::Wrong => return None,
            WrittenDate::Parts(parts, clock, weekday) => (parts, clock, weekday),
        };
        let (year, month, day) = match parts {
            Parts::Month(year, month) => {
                let exists = (1..=12).contains(&month) && clock.is_none() && weekday.is_none();
                return exists.then(|| format!("{year:04}-{month:02}"));
            }
            Parts::Day(year, month, day) => (year, month, day),
            Parts::Numbers(first, second, year) => match order {
                _ if first == second => (year, first, second),
                _ if first > 12 => (year, second, first),
                _ if second > 12 => (year, first, second),
                Some(DateOrder::DayFirst) => (year, second, first),
                Some(DateOrder::MonthFirst) => (year, first, second),
                None => return None,
            },
            Parts::Short(month, day, year) => resolve_century(month, day, year, weekday?)?,
            Parts::Wrong => return None,
        };
        let contradicts = match order {
            Some(DateOrder::DayFirst) => {
                matches!(parts, Parts::Numbers(_, second, _) if second > 12)
            }
            Some(DateOrder::MonthFirst) => matches!(parts, Parts::Numbers(first, ..) if first > 12),
            None => false,
        };
        let date = Date::new(year, month, day).ok()?;
        let is_its_day = weekday.is_none_or(|day| date.weekday().to_monday_one_offset() == day);
        if contradicts || !is_its_day {
            return None;
        }
        Some(match clock {
            Some(clock) => format!("{date}T{clock}"),
            None => date.to_string(),
        })
    }
}

/// Completes a two-digit year, as in `Fri, 01 Mar 24` (RFC 822). The weekday decides between 19xx and 20xx.
fn resolve_century(month: i8, day: i8, year: i8, weekday: i8) -> Option<(i16, i8, i8)> {
    let is_its_day = |year: &i16| {
        Date::new(*year, month, day)
            .is_ok_and(|date| date.weekday().to_monday_one_offset() == weekday)
    };
    let years = [1900, 2000].map(|century| century + i16::from(year));
    Some((years.into_iter().find(is_its_day)?, month, day))
}

/// Reads a date in ISO 8601 or RFC 3339; `None` for other texts.
fn parse_iso(text: &str) -> Option<String> {
    let begins = text.len() >= 10 || text.len() == 8;
    let pieces = begins.then(|| Pieces::parse(text).ok()).flatten()?;
    let date = pieces.date();
    Some(match pieces.time() {
        None => date.to_string(),
        Some(time) => {
            let offset = pieces.to_numeric_offset().map(|offset| offset.seconds());
            format!("{date}T{}", Clock { time, offset })
        }
    })
}
