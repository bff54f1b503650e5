//! Converts dates and times between Parquet's counts (such as milliseconds since 1970) and ISO 8601.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp, ToSpan};
use parquet::basic::TimeUnit;

const EPOCH: Date = jiff::civil::date(1970, 1, 1);

pub(super) fn nanoseconds_per_unit(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1_000,
        TimeUnit::NANOS => 1,
    }
}

pub(super) fn format_date(days: i32) -> Option<String> {
    let date = EPOCH.checked_add(days.days()).ok()?;
    Some(date.to_string())
}

pub(super) fn parse_days(text: &str) -> Option<i32> {
    const DATE_BYTES: usize = 10;
    let date: Date = text.parse().ok().filter(|_| text.len() <= DATE_BYTES)?;
    Some(date.duration_since(EPOCH).as_hours() as i32 / 24)
}

/// Converts a count to a time in ISO 8601: with a `Z` if it is in UTC, without it if it is local time.
pub(super) fn format_time(count: i64, unit: TimeUnit, is_utc: bool) -> Option<String> {
    let nanoseconds = i128::from(count) * nanoseconds_per_unit(unit);
    let time = Timestamp::from_nanosecond(nanoseconds).ok()?;
    match is_utc {
        true => Some(time.to_string()),
        false => Some(
            time.to_zoned(jiff::tz::TimeZone::UTC)
                .datetime()
                .to_string(),
        ),
    }
}

/// Converts a time in ISO 8601 to a count of units since 1970. An error says why the text does not fit.
pub(super) fn parse_time_count(text: &str, unit: TimeUnit, is_utc: bool) -> Result<i64, String> {
    let time = match is_utc {
        true => text
            .parse::<Timestamp>()
            .map_err(|_| "it is no time with a zone")?,
        false => {
            let time: DateTime = text.parse().map_err(|_| "it is no time without a zone")?;
            let utc = time.to_zoned(jiff::tz::TimeZone::UTC);
            utc.map_err(|_| "it is out of range")?.timestamp()
        }
    };
    to_exact_count(time.as_nanosecond(), unit)
}

pub(super) fn format_clock(count: i64, unit: TimeUnit) -> Option<String> {
    let nanoseconds = i128::from(count) * nanoseconds_per_unit(unit);
    let since = SignedDuration::from_nanos(i64::try_from(nanoseconds).ok()?);
    let time = Time::midnight().checked_add(since).ok()?;
    Some(time.to_string())
}

pub(super) fn parse_clock_count(text: &str, unit: TimeUnit) -> Result<i64, String> {
    let time: Time = text.parse().map_err(|_| "it is no time of day")?;
    to_exact_count(time.duration_since(Time::midnight()).as_nanos(), unit)
}

fn to_exact_count(nanoseconds: i128, unit: TimeUnit) -> Result<i64, String> {
    let per_unit = nanoseconds_per_unit(unit);
    if nanoseconds % per_unit != 0 {
        return Err(String::from("it is more exact than the column"));
    }
    i64::try_from(nanoseconds / per_unit).map_err(|_| String::from("it is out of range"))
}
