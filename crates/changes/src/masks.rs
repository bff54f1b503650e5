//! Masks times that depend on the moment of the fetch: "3 hours ago", today's date. Other dates and all clock times are
//! content, until checks of the page show that they move with the clock ([`times`](crate::times)).

use std::borrow::Cow;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use regex::{Captures, Regex};
use webfill_values::{date_names, month_of_name};

/// A date counts as the day of the fetch if it is that day in one of these time zones, given as hours from UTC. Zones
/// farther east would include tomorrow's date, which may be content.
const ZONES: std::ops::RangeInclusive<i8> = -8..=9;

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is tested")
}

/// Matches a time relative to now.
static RELATIVE: LazyLock<Regex> = LazyLock::new(|| {
    const NUMBER: &str = r"(?:\d+|an?|one|einer?|einem|une?|una?|um|een)";
    const UNIT: &str = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|mos?|months?|y|yrs?|years?)";
    const GERMAN: &str = r"(?:Sekunden?|Sek\.?|Minuten?|Min\.?|Stunden?|Std\.?|Tag(?:en?)?|Wochen?|Monat(?:en?)?|Jahr(?:en?)?)";
    const ROMANCE: &str = r"(?:secondes?|minutes?|heures?|jours?|semaines?|mois|ans?|segundos?|minutos?|horas?|d[ií]as?|semanas?|mes(?:es)?|m[eê]s|años?|anos?)";
    const ITALIAN: &str = r"(?:second[oi]|minut[oi]|or[ae]|giorn[oi]|settiman[ae]|mes[ei]|ann[oi])";
    const DUTCH: &str =
        r"(?:seconden?|minuten?|minuut|uur|uren|dag(?:en)?|we(?:ek|ken)|maand(?:en)?|jaar)";
    const POLISH: &str = r"(?:sekund[ęy]?|minut[ęy]?|godzin[ęy]?|dni|dzień|tydzień|tygodni[ea]?|tyg\.?|miesiąc[e]?|miesięcy|rok|lata?)";
    const EAST_ASIAN: &str =
        r"(?:秒|分钟|分鐘|分|時間|小时|小時|日|天|か月|ヶ月|个月|個月|週間|周|週|年)";
    const DAYS: &str = "yesterday|today|gestern|heute|vorgestern|aujourd['’]hui|ayer|hoy|ieri|oggi|ontem|hoje|gisteren|vandaag|wczoraj|dzisiaj|dziś";
    compile(&format!(
        r"(?i)\b(?:(?:about |almost |over )?{NUMBER} ?{UNIT}(?: and {NUMBER} ?{UNIT})? ago|vor {NUMBER} {GERMAN}|(?:il y a|hace|há) {NUMBER} {ROMANCE}|{NUMBER} {ITALIAN} fa|{NUMBER} {DUTCH} geleden|(?:{NUMBER} )?{POLISH} temu|just now|moments ago|gerade eben|{DAYS})\b|\d+ ?{EAST_ASIAN}前"
    ))
});

/// Matches a date with day and month, usually with the year, and with the weekday before it, in the languages whose
/// names the crate `values` knows.
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let day = format!(
        "(?:(?:{}|tues|weds|thurs)[.,]* (?:den |dnia )?)?",
        alternation_of(date_names(false))
    );
    let name = alternation_of(date_names(true).chain(["sept"]));
    compile(&format!(
        r"(?i)\b{day}(?:(?P<y1>\d{{4}})[-/.](?P<m1>\d{{1,2}})[-/.](?P<d1>\d{{1,2}})(?P<t>T)?|(?P<a>\d{{1,2}})[./-](?P<b>\d{{1,2}})[./-](?P<y2>\d{{4}})|(?P<y5>\d{{4}})年(?P<m5>\d{{1,2}})月(?P<d5>\d{{1,2}})日|(?P<d3>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)? (?:of |de )?(?P<n3>{name})\b\.?(?:,?(?: de| del)? (?P<y3>\d{{4}}))?|(?P<n4>{name})\b\.? (?P<d4>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y4>\d{{4}}))?)"
    ))
});

/// A pattern that matches one of these names, preferably the longest.
fn alternation_of(names: impl Iterator<Item = &'static str>) -> String {
    let mut names: Vec<String> = names.map(regex::escape).collect();
    names.sort_by_key(|name| (std::cmp::Reverse(name.len()), name.clone()));
    format!("(?:{})", names.join("|"))
}

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i)\b(?P<h>[01]?\d|2[0-3])[:.](?P<m>[0-5]\d)(?P<s>[:.][0-5]\d(?:[.,]\d+)?)?\b(?: ?(?P<half>[ap])\.?m\b\.?)?",
    )
});

/// Matches a span of time, such as in a countdown.
static SPAN: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i)\b(?P<n>\d+) ?(?P<unit>d|h|min|s|sec|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|tagen?|stunden?|std|minuten?|sekunden?)\b",
    )
});

/// The text with `⟨ago⟩` in place of times relative to now.
pub(crate) fn mask_relative_times(text: &str) -> Cow<'_, str> {
    replace_matches(&RELATIVE, Cow::Borrowed(text), |_| Some("⟨ago⟩".into()))
}

/// The text with a mark in place of dates that mean `today`; `None` if there are none.
pub(crate) fn mask_date(text: &str, today: Date) -> Option<String> {
    let masked = replace_matches(&DATE, Cow::Borrowed(text), |found| {
        let is_today = possible_dates(found, today.year()).contains(&Some(today));
        let time = if found.name("t").is_some() { " " } else { "" };
        is_today.then(|| format!("⟨today⟩{time}"))
    });
    (masked != text).then(|| masked.into_owned())
}

/// Two moments can be on the same day in one time zone and on different days in another. Returns the two days for each
/// zone where they differ.
pub(crate) fn differing_days_by_zone(old_ms: i64, new_ms: i64) -> Vec<(Date, Date)> {
    let day = |ms: i64, zone: i8| {
        let zone = TimeZone::fixed(Offset::constant(zone));
        Some(Timestamp::from_millisecond(ms).ok()?.to_zoned(zone).date())
    };
    let mut days: Vec<(Date, Date)> = Vec::new();
    for zone in ZONES {
        if let (Some(old), Some(new)) = (day(old_ms, zone), day(new_ms, zone))
            && old != new
            && !days.contains(&(old, new))
        {
            days.push((old, new));
        }
    }
    days
}

/// The text without dates and relative times, and whether it had a time relative to now.
pub(crate) fn strip_times(text: &str) -> (String, bool) {
    let is_relative = RELATIVE.is_match(text);
    let text = replace_matches(&RELATIVE, Cow::Borrowed(text), |_| Some("⟨time⟩".into()));
    let text = replace_matches(&DATE, text, |_| Some("⟨time⟩".into()));
    (text.into_owned(), is_relative)
}

/// The text without any date, clock time or span of time.
pub(crate) fn mask_times(text: &str) -> String {
    let (text, _) = strip_times(text);
    let text = replace_matches(&CLOCK, Cow::Owned(text), |_| Some("⟨clock⟩".into()));
    let text = replace_matches(&SPAN, text, |_| Some("⟨span⟩".into()));
    text.into_owned()
}

/// A time that was read from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Day(Date),
    /// A clock time, in minutes since midnight.
    Clock(i64),
    /// A span of time in minutes, and the length of its smallest unit in minutes.
    Span(i64, i64),
}

pub(crate) fn parse_times(text: &str, today: Date) -> Vec<Time> {
    let text = mask_relative_times(text);
    let day = |found: Captures<'_>| Some(Time::Day(possible_dates(&found, today.year())[0]?));
    let mut times: Vec<Time> = DATE.captures_iter(&text).filter_map(day).collect();
    let text = replace_matches(&DATE, text.clone(), |_| Some("⟨time⟩".into()));
    times.extend(
        CLOCK
            .captures_iter(&text)
            .filter_map(|found| parse_clock(&found))
            .map(Time::Clock),
    );
    let text = replace_matches(&CLOCK, text.clone(), |_| Some("⟨clock⟩".into()));
    times.extend(
        SPAN.captures_iter(&text)
            .filter_map(|found| parse_span(&found)),
    );
    times
}

fn parse_span(found: &Captures<'_>) -> Option<Time> {
    let unit = match &*found.name("unit")?.as_str().to_lowercase() {
        unit if unit.starts_with(['d', 't']) => 24 * 60,
        unit if unit.starts_with(['h']) || unit.starts_with("st") => 60,
        unit if unit.starts_with('s') => return None,
        _ => 1,
    };
    let number: i64 = found.name("n")?.as_str().parse().ok()?;
    Some(Time::Span(number.checked_mul(unit)?, unit))
}

fn replace_matches<'t>(
    pattern: &Regex,
    text: Cow<'t, str>,
    mask: impl Fn(&Captures<'_>) -> Option<String>,
) -> Cow<'t, str> {
    let change = |found: &Captures<'_>| mask(found).unwrap_or_else(|| found[0].to_owned());
    match pattern.replace_all(&text, change) {
        Cow::Owned(replaced) => Cow::Owned(replaced),
        Cow::Borrowed(_) => text,
    }
}

/// How many milliseconds a clock in the text takes to show another time: a second or a minute. `None` if no clock in
/// the text may show this moment in any time zone.
pub(crate) fn clock_step_ms(text: &str, at_ms: i64) -> Option<i64> {
    const ZONE_STEP: i64 = 15;
    const OFF: i64 = 2;
    let minutes = at_ms.div_euclid(60_000);
    let steps = CLOCK.captures_iter(text).filter_map(|found| {
        let off = (parse_clock(&found)? - minutes).rem_euclid(ZONE_STEP);
        let is_now = off <= OFF || off >= ZONE_STEP - OFF;
        let step_ms = if found.name("s").is_some() {
            1_000
        } else {
            60_000
        };
        is_now.then_some(step_ms)
    });
    steps.max()
}

/// The possible dates of a text: one with the day first, and one with the month first.
fn possible_dates(found: &Captures<'_>, this_year: i16) -> [Option<Date>; 2] {
    let number = |name: &str| found.name(name)?.as_str().parse::<i16>().ok();
    let month = |name: &str| match found.name(name)?.as_str() {
        name if name.eq_ignore_ascii_case("sept") => Some(9),
        name => month_of_name(name).map(i16::from),
    };
    let date = |year: i16, month: Option<i16>, day: Option<i16>| {
        Date::new(year, month?.try_into().ok()?, day?.try_into().ok()?).ok()
    };
    if let Some(year) = number("y1") {
        return [date(year, number("m1"), number("d1")), None];
    }
    if let Some(year) = number("y5") {
        return [date(year, number("m5"), number("d5")), None];
    }
    if let Some(year) = number("y2") {
        let (one, other) = (number("a"), number("b"));
        let (first, second) = (date(year, other, one), date(year, one, other));
        return if first.is_some() {
            [first, second]
        } else {
            [second, None]
        };
    }
    match number("d3") {
        Some(day) => [
            date(number("y3").unwrap_or(this_year), month("n3"), Some(day)),
            None,
        ],
        None => [
            date(number("y4").unwrap_or(this_year), month("n4"), number("d4")),
            None,
        ],
    }
}

fn parse_clock(found: &Captures<'_>) -> Option<i64> {
    let number = |name: &str| found.name(name)?.as_str().parse::<i64>().ok();
    let hour = match (number("h")?, found.name("half").map(|half| half.as_str())) {
        (hour, Some("p" | "P")) => hour % 12 + 12,
        (hour, Some(_)) => hour % 12,
        (hour, None) => hour,
    };
    Some(minute_of_day(hour, number("m")?))
}

fn minute_of_day(hour: i64, minute: i64) -> i64 {
    hour * 60 + minute
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn times_that_are_counted_from_now_are_masked() {
        for (one, next) in [
            ("Posted 3 hours ago by Ada", "Posted 2 days ago by Ada"),
            ("vor 5 Minuten", "vor einer Stunde"),
            ("il y a 3 jours", "il y a 2 heures"),
            ("Updated today", "Updated yesterday"),
            ("hace 5 horas", "hace 2 días"),
            ("5 ore fa", "2 giorni fa"),
            ("há 5 horas", "há 2 dias"),
            ("5 uur geleden", "2 dagen geleden"),
            ("5 godzin temu", "godzinę temu"),
            ("5時間前", "2日前"),
            ("5小时前", "2天前"),
        ] {
            assert_eq!(mask_relative_times(one), mask_relative_times(next), "{one}");
        }
        for content in ["3 days of rain", "open until 18:00", "room 12.40"] {
            assert_eq!(mask_relative_times(content), content);
        }
    }

    #[test]
    fn the_date_of_the_day_is_masked_and_no_other() {
        let (today, tomorrow) = (day("2026-11-23"), day("2026-11-24"));
        for (one, next) in [
            ("Monday, 23 November 2026", "Tuesday, 24 November 2026"),
            ("Stand: 23.11.2026", "Stand: 24.11.2026"),
            ("as of Nov 23, 2026 at noon", "as of Nov 24, 2026 at noon"),
            ("2026-11-23T", "2026-11-24T"),
            ("Mon 23 November", "Tue 24 November"),
            ("on 11/23/2026", "on 11/24/2026"),
            ("lundi 23 novembre 2026", "mardi 24 novembre 2026"),
            (
                "lunes, 23 de noviembre de 2026",
                "martes, 24 de noviembre de 2026",
            ),
            ("lunedì 23 novembre 2026", "martedì 24 novembre 2026"),
            (
                "segunda-feira, 23 de novembro de 2026",
                "terça-feira, 24 de novembro de 2026",
            ),
            ("maandag 23 november 2026", "dinsdag 24 november 2026"),
            (
                "poniedziałek, 23 listopada 2026",
                "wtorek, 24 listopada 2026",
            ),
            ("2026年11月23日", "2026年11月24日"),
        ] {
            let masked = mask_date(one, today);
            assert!(masked.is_some(), "{one}");
            assert_eq!(masked, mask_date(next, tomorrow), "{one}");
        }
        for content in [
            "Due on 1 December 2026",
            "23 markets",
            "24.11.2026",
            "5 mayors",
        ] {
            assert_eq!(mask_date(content, today), None, "{content}");
        }
        assert!(mask_date("05/11/2026", day("2026-05-11")).is_some());
        assert!(mask_date("05/11/2026", day("2026-11-05")).is_some());
    }

    #[test]
    fn a_relative_time_that_becomes_a_date_is_the_same() {
        let (ago, is_relative) = strip_times("Posted 6 days ago");
        let (date, is_date_relative) = strip_times("Posted Nov 17, 2026");
        assert_eq!(ago, date);
        assert!(is_relative && !is_date_relative);
    }

    #[test]
    fn times_are_read_and_taken_out() {
        let today = day("2026-11-23");
        for (text, expected) in [
            (
                "at 18:05 and 6:10 pm",
                vec![Time::Clock(18 * 60 + 5), Time::Clock(18 * 60 + 10)],
            ),
            (
                "3 days and 4 h left",
                vec![Time::Span(3 * 24 * 60, 24 * 60), Time::Span(240, 60)],
            ),
            ("23.11.2026 09:00", vec![Time::Day(today), Time::Clock(540)]),
            ("no time", vec![]),
        ] {
            assert_eq!(parse_times(text, today), expected, "{text}");
            assert_eq!(parse_times(&mask_times(text), today), [], "{text}");
        }
    }
}
