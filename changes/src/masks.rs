//! Times that only say when a page was served: "3 hours ago", the date of the day, the clock of the server.
//! They are masked for comparing, by the time of the look; other dates and times are content.

use std::borrow::Cow;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use regex::{Captures, Regex};

/// A clock is the server's if it is so near to the look's, in minutes, give or take a time zone.
const CLOCK_OFF_MIN: i64 = 3;

/// Time zones differ by multiples of this, in minutes.
const ZONE_STEP_MIN: i64 = 15;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is tested")
}

/// A time that is counted from now.
static RELATIVE: LazyLock<Regex> = LazyLock::new(|| {
    const NUMBER: &str = r"(?:\d+|an?|one|einer?|einem|une?|una?|um|een)";
    const UNIT: &str = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|mos?|months?|y|yrs?|years?)";
    const GERMAN: &str = r"(?:Sekunden?|Sek\.?|Minuten?|Min\.?|Stunden?|Std\.?|Tag(?:en?)?|Wochen?|Monat(?:en?)?|Jahr(?:en?)?)";
    const ROMANCE: &str = r"(?:secondes?|minutes?|heures?|jours?|semaines?|mois|ans?|segundos?|minutos?|horas?|d[ií]as?|semanas?|mes(?:es)?|m[eê]s|años?|anos?)";
    const ITALIAN: &str = r"(?:second[oi]|minut[oi]|or[ae]|giorn[oi]|settiman[ae]|mes[ei]|ann[oi])";
    const DUTCH: &str =
        r"(?:seconden?|minuten?|minuut|uur|uren|dag(?:en)?|we(?:ek|ken)|maand(?:en)?|jaar)";
    compiled(&format!(
        r"(?i)\b(?:(?:about |almost |over )?{NUMBER} ?{UNIT}(?: and {NUMBER} ?{UNIT})? ago|vor {NUMBER} {GERMAN}|(?:il y a|hace|há) {NUMBER} {ROMANCE}|{NUMBER} {ITALIAN} fa|{NUMBER} {DUTCH} geleden|just now|moments ago|gerade eben|yesterday|today|gestern|heute|vorgestern)\b"
    ))
});

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// A date with day, month and year, and with the name of the day before it.
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    const DAY: &str = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun|mo|di|mi|do|fr|sa|so|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)(?:day)?[.,]* (?:den )?)?";
    const NAME: &str =
        r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez)[a-zä]*";
    compiled(&format!(
        r"(?i)\b{DAY}(?:(?P<y1>\d{{4}})[-/.](?P<m1>\d{{1,2}})[-/.](?P<d1>\d{{1,2}})(?P<t>T)?|(?P<a>\d{{1,2}})[./-](?P<b>\d{{1,2}})[./-](?P<y2>\d{{4}})|(?P<d3>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?(?P<n3>{NAME})\.?,? (?P<y3>\d{{4}})|(?P<n4>{NAME})\.? (?P<d4>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y4>\d{{4}}))"
    ))
});

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)\b(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?::[0-5]\d(?:[.,]\d+)?)?(?: ?(?P<half>[ap])\.?m\b\.?)?",
    )
});

/// The text without times that follow from when it was served.
pub(crate) fn masked(text: &str, at_ms: i64) -> Cow<'_, str> {
    if !may_have_times(text) {
        return Cow::Borrowed(text);
    }
    let Ok(look) = Timestamp::from_millisecond(at_ms) else {
        return Cow::Borrowed(text);
    };
    let look = look.to_zoned(TimeZone::UTC);
    let (today, minute) = (
        look.date(),
        minute_of_day(look.hour().into(), look.minute().into()),
    );
    let text = replaced(&RELATIVE, Cow::Borrowed(text), |_| Some("⟨ago⟩".into()));
    let text = replaced(&DATE, text, |found| {
        let days = days_between(date(found)?, today)?;
        let time = if found.name("t").is_some() { " " } else { "" };
        (days.abs() <= 1).then(|| format!("⟨day{days:+}⟩{time}"))
    });
    replaced(&CLOCK, text, |found| {
        let clock = clock(found)?;
        let off = (clock - minute).rem_euclid(24 * 60);
        let zone = (off + ZONE_STEP_MIN / 2) / ZONE_STEP_MIN * ZONE_STEP_MIN;
        ((off - zone).abs() <= CLOCK_OFF_MIN).then(|| format!("⟨clock+{}⟩", zone % (24 * 60)))
    })
}

/// The text without any time, and whether one of them was counted from now.
pub(crate) fn timeless(text: &str) -> (String, bool) {
    let is_relative = RELATIVE.is_match(text);
    let text = replaced(&RELATIVE, Cow::Borrowed(text), |_| Some("⟨time⟩".into()));
    let text = replaced(&DATE, text, |_| Some("⟨time⟩".into()));
    (text.into_owned(), is_relative)
}

/// Whether a look at the patterns is worth it: most blocks have neither digits nor such words.
fn may_have_times(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit()) || RELATIVE.is_match(text)
}

fn replaced<'t>(
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

fn date(found: &Captures<'_>) -> Option<Date> {
    let number = |name: &str| found.name(name)?.as_str().parse::<i16>().ok();
    let month = |name: &str| {
        let name: String = found.name(name)?.as_str().chars().take(3).collect();
        let name = name.to_lowercase();
        let english = match &*name {
            "mär" => "mar",
            "mai" => "may",
            "okt" => "oct",
            "dez" => "dec",
            other => other,
        };
        let place = MONTHS.iter().position(|month| *month == english)?;
        i16::try_from(place + 1).ok()
    };
    let (year, month, day) = if let Some(year) = number("y1") {
        (year, number("m1")?, number("d1")?)
    } else if let Some(year) = number("y2") {
        let (one, other) = (number("a")?, number("b")?);
        // Day and month, unless that is no date.
        if other <= 12 {
            (year, other, one)
        } else {
            (year, one, other)
        }
    } else if let Some(year) = number("y3") {
        (year, month("n3")?, number("d3")?)
    } else {
        (number("y4")?, month("n4")?, number("d4")?)
    };
    Date::new(year, month.try_into().ok()?, day.try_into().ok()?).ok()
}

fn days_between(date: Date, today: Date) -> Option<i32> {
    Some(today.until(date).ok()?.get_days())
}

fn clock(found: &Captures<'_>) -> Option<i64> {
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

    /// 2026-11-23T02:13:20Z.
    const AT_MS: i64 = 1_795_400_000_000;
    const NEXT_MS: i64 = AT_MS + 24 * 3_600_000 + 9 * 60_000;

    #[test]
    fn times_of_the_serving_are_masked() {
        for (one, next) in [
            ("Posted 3 hours ago by Ada", "Posted 2 days ago by Ada"),
            ("vor 5 Minuten", "vor einer Stunde"),
            ("il y a 3 jours", "il y a 2 heures"),
            ("Updated today", "Updated yesterday"),
            ("Monday, 23 November 2026", "Tuesday, 24 November 2026"),
            ("Stand: 23.11.2026", "Stand: 24.11.2026"),
            ("as of Nov 23, 2026 03:13:19", "as of Nov 24, 2026 03:22:19"),
            ("2026-11-23T02:13:21Z", "2026-11-24T02:22:20Z"),
            ("made at 9:14 PM in 12 ms", "made at 9:23 PM in 12 ms"),
        ] {
            assert_eq!(masked(one, AT_MS), masked(next, NEXT_MS), "{one}");
        }
    }

    #[test]
    fn other_times_are_content() {
        for (one, next) in [
            ("Due on 1 December 2026", "Due on 2 December 2026"),
            ("open until 18:00", "open until 19:00"),
            ("Stand: 23.11.2026", "Stand: 23.11.2026"),
            ("3 days of rain", "4 days of rain"),
            ("starts 24.11.2026", "starts 23.11.2026"),
            ("from 9:00 to 17:00", "from 9:30 to 17:00"),
        ] {
            assert_ne!(masked(one, AT_MS), masked(next, NEXT_MS), "{one}");
        }
        assert_eq!(masked("room 12.40, 3 days", AT_MS), "room 12.40, 3 days");
    }

    #[test]
    fn a_relative_time_that_becomes_a_date_is_the_same() {
        let (ago, is_relative) = timeless("Posted 6 days ago");
        let (date, is_date_relative) = timeless("Posted Nov 17, 2026");
        assert_eq!(ago, date);
        assert!(is_relative && !is_date_relative);
    }
}
