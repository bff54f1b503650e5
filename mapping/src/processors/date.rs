//! `date`: reads a date, or date and time, and writes it as ISO 8601.

use jiff::civil::{DateTime, Time};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use jiff::{Zoned, tz::TimeZone};
use webfill_values::collapsed;

use crate::catalogue::{Entry, Example, Family, Input, Kind, Parameter, Presence, Refusal};
use crate::fault::quoted;
use crate::run::EachText;

pub(crate) const DATE: Entry = Entry {
    name: "date",
    family: Family::Convert,
    summary: "Reads a date or a date with a time and writes it as ISO 8601, as exact as it was; values that are none are dropped.",
    parameters: &[Parameter {
        name: "formats",
        kind: Kind::TextList,
        presence: Presence::Optional,
        meaning: "how the date may be written, in the letters of strptime, tried in order; left out: ISO 8601, RFC 2822 and English dates with the month in letters",
    }],
    examples: &[
        Example {
            parameters: r#"{"formats": ["%d.%m.%Y %H:%M", "%d.%m.%Y"]}"#,
            input: Input::Values(&["10.12.1815", "27.11.1852 21:30"]),
            output: &["1815-12-10", "1852-11-27T21:30:00"],
        },
        Example {
            parameters: r#"{"formats": ["%B %Y"]}"#,
            input: Input::Values(&["December 1815"]),
            output: &["1815-12"],
        },
        Example {
            parameters: "{}",
            input: Input::Values(&[
                "December 10, 1815",
                "Sat, 01 Mar 2025 10:00:00 +0100",
                "soon",
            ]),
            output: &["1815-12-10", "2025-03-01T10:00:00+01:00"],
        },
    ],
    build: |parameters, _| {
        let formats: Vec<String> = parameters
            .texts("formats")
            .into_iter()
            .map(str::to_owned)
            .collect();
        let refusals: Vec<Refusal> = formats
            .iter()
            .enumerate()
            .filter_map(|(index, format)| {
                let message = check_format(format).err()?;
                let parameter = format!("formats[{index}]");
                Some(Refusal { parameter, message })
            })
            .collect();
        if !refusals.is_empty() {
            return Err(refusals);
        }
        if formats.is_empty() {
            return Ok(Box::new(EachText(|text: &str| {
                read_usual(&collapsed(text))
            })));
        }
        Ok(Box::new(EachText(move |text: &str| {
            let text = collapsed(text);
            formats.iter().find_map(|format| read(format, &text))
        })))
    },
};

/// The formats that are tried if none are given. None of them is ambiguous.
const USUAL_FORMATS: &[&str] = &[
    "%B %d, %Y",
    "%b %d, %Y",
    "%b. %d, %Y",
    "%d %B %Y",
    "%d %b %Y",
    "%Y/%m/%d",
    "%B %Y",
];

/// Checks a format: it must read back what it writes, and contain at least a year.
fn check_format(format: &str) -> Result<(), String> {
    let invalid = |reason: &dyn std::fmt::Display| {
        format!("invalid date format {}: {reason}", quoted(format))
    };
    let sample = DateTime::constant(2024, 12, 31, 23, 58, 59, 0);
    let sample: Zoned = sample
        .to_zoned(TimeZone::UTC)
        .map_err(|error| invalid(&error))?;
    let written = jiff::fmt::strtime::format(format, &sample).map_err(|error| invalid(&error))?;
    let read_back = BrokenDownTime::parse(format, &written).map_err(|error| invalid(&error))?;
    match iso(&read_back) {
        Some(_) => Ok(()),
        None => Err(invalid(&"it needs at least a year, such as %Y")),
    }
}

fn read(format: &str, text: &str) -> Option<String> {
    iso(&BrokenDownTime::parse(format, text).ok()?)
}

fn read_usual(text: &str) -> Option<String> {
    if let Ok(pieces) = Pieces::parse(text) {
        return Some(written(
            pieces.date().into(),
            pieces.time(),
            pieces.to_numeric_offset(),
        ));
    }
    if let Ok(zoned) = jiff::fmt::rfc2822::parse(text) {
        return Some(written(
            zoned.datetime(),
            Some(zoned.time()),
            Some(zoned.offset()),
        ));
    }
    USUAL_FORMATS.iter().find_map(|format| read(format, text))
}

/// The date, with the precision of the input.
fn iso(time: &BrokenDownTime) -> Option<String> {
    if let Ok(date) = time.to_date() {
        let clock = time.hour().and_then(|_| time.to_time().ok());
        return Some(written(date.into(), clock, time.offset()));
    }
    if let Ok(timestamp) = time.to_timestamp() {
        let utc = timestamp.to_zoned(TimeZone::UTC);
        return Some(written(utc.datetime(), Some(utc.time()), Some(Offset::UTC)));
    }
    let year = time.year()?;
    Some(match time.month() {
        Some(month) => format!("{year:04}-{month:02}"),
        None => format!("{year:04}"),
    })
}

fn written(date: DateTime, clock: Option<Time>, offset: Option<Offset>) -> String {
    let date = date.date();
    let Some(clock) = clock else {
        return date.to_string();
    };
    let offset = offset.map_or(String::new(), |offset| match offset.seconds() {
        0 => "Z".to_owned(),
        seconds => {
            let sign = if seconds < 0 { '-' } else { '+' };
            let minutes = seconds.unsigned_abs() / 60;
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    });
    format!("{date}T{clock}{offset}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_dates_are_read_without_a_format() {
        for (text, expected) in [
            ("2024-03-01", "2024-03-01"),
            ("2024-03-01T10:00:00Z", "2024-03-01T10:00:00Z"),
            ("2024-03-01T10:00:00.5+05:30", "2024-03-01T10:00:00.5+05:30"),
            ("2024-03-01 10:00", "2024-03-01T10:00:00"),
            ("Fri, 01 Mar 2024 10:00:00 GMT", "2024-03-01T10:00:00Z"),
            ("1 March 2024", "2024-03-01"),
            ("mar 1, 2024", "2024-03-01"),
            ("2024/03/01", "2024-03-01"),
            ("March 2024", "2024-03"),
        ] {
            assert_eq!(read_usual(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(read_usual("01/02/2024"), None);
        assert_eq!(read_usual("2024-02-30"), None);
    }

    #[test]
    fn formats_that_cannot_give_a_date_are_refused() {
        for (format, part) in [
            ("%Q!", "invalid date format \"%Q!\""),
            ("%H:%M", "needs at least a year"),
            ("", "needs at least a year"),
        ] {
            let error = check_format(format).unwrap_err();
            assert!(error.contains(part), "{format}: {error}");
        }
        for format in [
            "%Y",
            "%d/%m/%y",
            "%s",
            "%A %d %B %Y, %I:%M %p",
            "%Y-%m-%dT%H:%M:%S%z",
        ] {
            assert_eq!(check_format(format), Ok(()), "{format}");
        }
    }

    #[test]
    fn a_number_of_seconds_is_a_time_in_utc() {
        assert_eq!(read("%s", "0").as_deref(), Some("1970-01-01T00:00:00Z"));
    }
}
