//! `date`: reads a date, or date and time, and writes it as ISO 8601.

use std::borrow::Cow;

use jiff::civil::{DateTime, Time};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;
use jiff::{Zoned, tz::TimeZone};
use webfill_values::{
    DateOrder, DateReading, Dates, normal_form, replace_zone_names, translate_names,
};

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, Refusal};
use crate::fault::quote;
use crate::item::Item;
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const DATE: Entry = Entry {
    name: "date",
    family: Family::Convert,
    summary: "Reads a date or a date with a time and writes it as ISO 8601, as exact as it was; other values are dropped. These are dropped with a warning: a day that does not exist, a wrong day of the week, an unknown time zone or one whose name several countries use, and `01/02/2024` if nothing decides. Names of months and days are read in English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Japanese and Chinese.",
    parameters: &[
        Parameter {
            name: "formats",
            kind: Kind::TextList,
            presence: Presence::Optional,
            meaning: "possible notations of the date, in the letters of strptime, tried in order; `%Z` is the name of a time zone, such as `CET`; left out: ISO 8601, RFC 2822, dates with the month in letters, with or without a time, and dates in numbers",
        },
        Parameter {
            name: "order",
            kind: Kind::Choice(&["day_first", "month_first"]),
            presence: Presence::Optional,
            meaning: "which number of `01/02/2024` is the day, without formats; by default as all values of the field show",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"formats": ["%d.%m.%Y %H:%M", "%d.%m.%Y"]}"#,
            input: Input::Values(&["10.12.1815", "27.11.1852 21:30", "31.04.1853"]),
            output: &["1815-12-10", "1852-11-27T21:30:00"],
        },
        Example {
            parameters: r#"{"formats": ["%B %Y"]}"#,
            input: Input::Values(&["December 1815", "März 1816"]),
            output: &["1815-12", "1816-03"],
        },
        Example {
            parameters: "{}",
            input: Input::Values(&[
                "December 10, 1815",
                "Sat, 01 Mar 2025 10:00:00 +0100",
                "1. März 2024, 10:30 Uhr",
                "soon",
            ]),
            output: &[
                "1815-12-10",
                "2025-03-01T10:00:00+01:00",
                "2024-03-01T10:30:00",
            ],
        },
        Example {
            parameters: "{}",
            input: Input::Values(&["01/02/2024", "25/12/2024"]),
            output: &["2024-02-01", "2024-12-25"],
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
        let order = parameters.optional_text("order").map(|order| match order {
            "month_first" => DateOrder::MonthFirst,
            _ => DateOrder::DayFirst,
        });
        Ok(Box::new(ReadDate { formats, order }))
    },
};

/// Replaces other hyphens and minus signs by the plain hyphen of ISO 8601. Pages write them, for example to keep a date
/// on one line.
fn with_plain_hyphens(text: Cow<'_, str>) -> Cow<'_, str> {
    const HYPHENS: [char; 3] = ['\u{2010}', '\u{2011}', '\u{2212}'];
    match text.contains(HYPHENS) {
        true => Cow::Owned(text.replace(HYPHENS, "-")),
        false => text,
    }
}

struct ReadDate {
    /// The date formats to try; empty for the usual formats.
    formats: Vec<String>,
    order: Option<DateOrder>,
}

impl Processor for ReadDate {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        run.check_time()?;
        let texts: Vec<_> = items
            .iter()
            .map(|item| with_plain_hyphens(run.value_text(item)))
            .collect();
        let readings = match self.formats.is_empty() {
            true => {
                let dates = Dates::find(&texts);
                let order = self.order.or_else(|| run.columns.date_order(self, &dates));
                dates.read(order)
            }
            false => texts
                .iter()
                .map(|text| self.read_by_formats(text))
                .collect(),
        };
        let is_undecided = |reading: &DateReading| *reading == DateReading::Undecided;
        if let Some(first) = readings.iter().position(is_undecided) {
            let count = readings
                .iter()
                .filter(|reading| is_undecided(reading))
                .count();
            let example = quote(texts[first].trim());
            let is_set = self.order.is_some() || !self.formats.is_empty();
            run.warn_undecided(format_args!(
                "date: {count} dropped: not a day of the calendar, or readable in two ways, such as {example}{}",
                if is_set { "" } else { "; set `order` or `formats`" }
            ));
        }
        let mut output = run.new_output();
        for reading in readings {
            if let DateReading::Date(date) = reading
                && !output.push_text(date)
            {
                break;
            }
        }
        output.finish()
    }
}

impl ReadDate {
    fn read_by_formats(&self, text: &str) -> DateReading {
        let text = normal_form(text);
        let readings = self.formats.iter().map(|format| read(format, &text));
        let mut worst = DateReading::None;
        for reading in readings {
            match reading {
                DateReading::Date(_) => return reading,
                DateReading::Undecided => worst = reading,
                DateReading::None => {}
            }
        }
        worst
    }
}

/// Checks a date format: it must be able to parse its own output, and contain at least a year.
fn check_format(format: &str) -> Result<(), String> {
    let invalid =
        |reason: &dyn std::fmt::Display| format!("invalid date format {}: {reason}", quote(format));
    let format = &with_numeric_zone(format);
    let sample = DateTime::constant(2024, 12, 31, 23, 58, 59, 0);
    let sample: Zoned = sample
        .to_zoned(TimeZone::UTC)
        .map_err(|error| invalid(&error))?;
    let written = jiff::fmt::strtime::format(format, &sample).map_err(|error| invalid(&error))?;
    let read_back = BrokenDownTime::parse(format, &written).map_err(|error| invalid(&error))?;
    match to_iso(&read_back) {
        Some(_) => Ok(()),
        None => Err(invalid(&"a format needs at least a year, such as %Y")),
    }
}

/// Replaces `%Z` by `%z` in a date format, because the library cannot read names of time zones. They are resolved
/// before.
fn with_numeric_zone(format: &str) -> String {
    let mut numeric = String::with_capacity(format.len());
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        numeric.push(letter);
        if letter == '%'
            && let Some(directive) = letters.next()
        {
            numeric.push(if directive == 'Z' { 'z' } else { directive });
        }
    }
    numeric
}

fn read(format: &str, text: &str) -> DateReading {
    let numeric = with_numeric_zone(format);
    if numeric == format {
        return read_with_numeric_zone(format, text);
    }
    match read_with_numeric_zone(&numeric, &replace_zone_names(text, "?")) {
        // The text is a date except for its unknown time zone, so its time is undecided.
        DateReading::None
            if read_with_numeric_zone(&numeric, &replace_zone_names(text, "+0000"))
                != DateReading::None =>
        {
            DateReading::Undecided
        }
        reading => reading,
    }
}

fn read_with_numeric_zone(format: &str, text: &str) -> DateReading {
    let english = translate_names(text, format);
    let parsed =
        BrokenDownTime::parse(format, text).or_else(|_| BrokenDownTime::parse(format, &english));
    match parsed {
        Ok(time) => to_iso(&time).map_or(DateReading::Undecided, DateReading::Date),
        Err(_) => DateReading::None,
    }
}

/// Writes a date as ISO 8601, with the precision of the input. `None` if the day does not exist or contradicts its day
/// of the week.
fn to_iso(time: &BrokenDownTime) -> Option<String> {
    if let Ok(date) = time.to_date() {
        let clock = time.hour().and_then(|_| time.to_time().ok());
        return Some(format_iso(date.into(), clock, time.offset()));
    }
    if let Ok(timestamp) = time.to_timestamp() {
        let utc = timestamp.to_zoned(TimeZone::UTC);
        return Some(format_iso(
            utc.datetime(),
            Some(utc.time()),
            Some(Offset::UTC),
        ));
    }
    let says_more = time.day().is_some()
        || time.day_of_year().is_some()
        || time.weekday().is_some()
        || time.hour().is_some();
    if says_more {
        return None;
    }
    let year = time.year()?;
    Some(match time.month() {
        Some(month) => format!("{year:04}-{month:02}"),
        None => format!("{year:04}"),
    })
}

fn format_iso(date: DateTime, clock: Option<Time>, offset: Option<Offset>) -> String {
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
    fn names_are_read_in_other_languages_and_days_are_checked() {
        for (format, text, expected) in [
            ("%d. %B %Y", "1. März 2024", Some("2024-03-01")),
            ("%d %B %Y", "1 mars 2024", Some("2024-03-01")),
            ("%d %b %Y", "5 Sept 2023", Some("2023-09-05")),
            ("%d %b. %Y", "5 sept. 2023", Some("2023-09-05")),
            ("%d %b %Y", "5 févr. 2023", Some("2023-02-05")),
            ("%A %d %B %Y", "vendredi 1 mars 2024", Some("2024-03-01")),
            ("%a %d %b %Y", "mar 5 mars 2024", Some("2024-03-05")),
            ("%a %d %b %Y", "Fri 1 Mar 2024", Some("2024-03-01")),
            ("%a %d %b %Y", "Mon 1 Mar 2024", None),
            ("%d.%m.%Y", "31.04.2023", None),
            ("%d.%m.%Y %H:%M", "30.02.2024 09:00", None),
            ("%Y年%m月%d日", "2024年3月1日", Some("2024-03-01")),
            ("%d de %B de %Y", "1 de marzo de 2024", Some("2024-03-01")),
            (
                "%d %b %Y %H:%M %Z",
                "1 Mar 2024 10:30 CET",
                Some("2024-03-01T10:30:00+01:00"),
            ),
            (
                "%a, %d %b %Y %H:%M:%S %Z",
                "Fri, 01 Mar 2024 10:30:00 GMT",
                Some("2024-03-01T10:30:00Z"),
            ),
            (
                "%Y-%m-%d %H:%M:%S%Z",
                "2024-03-01 10:30:00Z",
                Some("2024-03-01T10:30:00Z"),
            ),
            (
                "%Y-%m-%d %I:%M %p %Z",
                "2024-03-01 10:30 PM EST",
                Some("2024-03-01T22:30:00-05:00"),
            ),
            (
                "%d. %B %Y %H:%M (%Z)",
                "1. März 2024 10:30 (MEZ)",
                Some("2024-03-01T10:30:00+01:00"),
            ),
            (
                "%Y-%m-%d %H:%M %Z",
                "2024-03-01 10:30 UTC+5:30",
                Some("2024-03-01T10:30:00+05:30"),
            ),
            (
                "%Y-%m-%d %H:%M %Z",
                "2024-03-01 10:30 +0100",
                Some("2024-03-01T10:30:00+01:00"),
            ),
            ("%Y-%m-%d %H:%M %Z", "2024-03-01 10:30 BST", None),
            ("%Y-%m-%d %H:%M %Z", "2024-03-01 10:30 XYZ", None),
        ] {
            let expected = match expected {
                Some(date) => DateReading::Date(date.to_owned()),
                None => DateReading::Undecided,
            };
            assert_eq!(read(format, text), expected, "{format} {text}");
        }
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
            "%d %b %Y %H:%M %Z",
        ] {
            assert_eq!(check_format(format), Ok(()), "{format}");
        }
    }

    #[test]
    fn a_number_of_seconds_is_a_time_in_utc() {
        let read = read("%s", "0");
        assert_eq!(read, DateReading::Date("1970-01-01T00:00:00Z".to_owned()));
    }
}
