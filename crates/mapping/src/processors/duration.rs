//! `duration`: reads a duration, and yields it in one unit.

use std::sync::LazyLock;

use regex::Regex;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence};
use crate::run::EachText;

pub(crate) const DURATION: Entry = Entry {
    name: "duration",
    family: Family::Convert,
    summary: "Reads the duration in every value and yields it in one unit: ISO 8601 (`PT1H30M`), numbers with units in English, German or French (`1 h 30 min`, `1h30`, `1½ hours`), or hours, minutes and seconds (`1:30:00`). Values with other text are dropped, and so is `1:30`, which may be minutes and seconds.",
    parameters: &[Parameter {
        name: "unit",
        kind: Kind::Choice(&["seconds", "minutes", "hours"]),
        presence: Presence::Text("minutes"),
        meaning: "the unit of the result",
    }],
    examples: &[
        Example {
            parameters: "{}",
            input: Input::Values(&["PT1H30M", "2 hrs 5 mins", "45 min", "soon"]),
            output: &["90", "125", "45"],
        },
        Example {
            parameters: r#"{"unit": "hours"}"#,
            input: Input::Values(&["PT90M"]),
            output: &["1.5"],
        },
    ],
    build: |parameters, _| {
        let unit = match parameters.text("unit") {
            "seconds" => 1.0,
            "hours" => 3_600.0,
            _ => 60.0,
        };
        Ok(Box::new(EachText(move |text: &str| {
            let number = seconds_of_duration(text)? / unit;
            // The number is rounded to thousandths, so that a third of an hour does not get a long fraction.
            Some(((number * 1e3).round() / 1e3).to_string())
        })))
    },
};

static ISO: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^P(?:([0-9]{1,6})D)?(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,6}(?:\.[0-9]{1,9})?)S)?)?$";
    Regex::new(pattern).expect("a constant pattern")
});

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([0-9]{1,4}):([0-5][0-9]):([0-5][0-9])$").expect("a constant pattern")
});

static PART: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)^(?:,|and\b|und\b|et\b)?\s*([0-9]{1,6}(?:[.,][0-9]{1,2})?)?\s*([½¼¾])?\s*(days?|tage?|jours?|d|hours?|hrs?|stunden?|std|heures?|h|minute[ns]?|mins?|m|sekunden?|seconde?s?|secs?|sek|s)\.?\s*";
    Regex::new(pattern).expect("a constant pattern")
});

const DAY: f64 = 86_400.0;
const HOUR: f64 = 3_600.0;
const MINUTE: f64 = 60.0;

/// The seconds of a duration such as `1 h 30 min`; `None` if the text is anything else.
pub fn seconds_of_duration(text: &str) -> Option<f64> {
    const LONGEST: usize = 60;
    let text = webfill_values::trim(text);
    if text.len() > LONGEST || !text.contains(char::is_numeric) {
        return None;
    }
    let sum = |parts: regex::Captures<'_>, units: &[f64]| {
        let number = |group: usize| {
            parts
                .get(group)
                .and_then(|part| part.as_str().parse::<f64>().ok())
        };
        let parts = units.iter().zip(1..);
        parts
            .map(|(unit, group)| unit * number(group).unwrap_or(0.0))
            .sum()
    };
    if let Some(parts) = ISO.captures(text) {
        return Some(sum(parts, &[DAY, HOUR, MINUTE, 1.0]));
    }
    if let Some(parts) = CLOCK.captures(text) {
        return Some(sum(parts, &[HOUR, MINUTE, 1.0]));
    }
    seconds_of_parts(text)
}

/// The minutes behind the hours of `1h30`.
static MINUTES_OF_HOUR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[0-5][0-9]$").expect("a constant pattern"));

/// The seconds of a text of numbers with units, the largest unit first.
fn seconds_of_parts(text: &str) -> Option<f64> {
    let (mut rest, mut seconds, mut before) = (text, 0.0, f64::INFINITY);
    while !rest.is_empty() {
        if before == HOUR && MINUTES_OF_HOUR.is_match(rest) {
            return Some(seconds + MINUTE * rest.parse::<f64>().ok()?);
        }
        let part = PART.captures(rest)?;
        let number = number_of_part(&part)?;
        let unit = match part[3].to_ascii_lowercase().as_str() {
            "d" | "day" | "days" | "tag" | "tage" | "jour" | "jours" => DAY,
            unit if unit.starts_with("st") || unit.starts_with('h') => HOUR,
            unit if unit.starts_with('m') => MINUTE,
            _ => 1.0,
        };
        if unit >= before {
            return None;
        }
        (seconds, before) = (seconds + number * unit, unit);
        rest = &rest[part[0].len()..];
    }
    Some(seconds)
}

/// The number of a part: digits, a fraction such as `½`, or both.
fn number_of_part(part: &regex::Captures<'_>) -> Option<f64> {
    let fraction = match part.get(2).map(|sign| sign.as_str()) {
        Some("¼") => 0.25,
        Some("½") => 0.5,
        Some(_) => 0.75,
        None => return part.get(1)?.as_str().replace(',', ".").parse().ok(),
    };
    let whole = part.get(1).map_or("0", |digits| digits.as_str());
    Some(f64::from(whole.parse::<u32>().ok()?) + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_the_usual_notations() {
        let table = [
            ("PT90M", Some(90.0)),
            ("PT1H30M", Some(90.0)),
            ("P1DT2H", Some(1_560.0)),
            ("PT2H", Some(120.0)),
            ("1 h 30 min", Some(90.0)),
            ("1h30m", Some(90.0)),
            ("2 hrs 5 mins", Some(125.0)),
            ("1 hour, 30 minutes", Some(90.0)),
            ("1 hour and 5 minutes", Some(65.0)),
            ("1 Std. 20 Min.", Some(80.0)),
            ("1,5 Stunden", Some(90.0)),
            ("2h", Some(120.0)),
            ("45 min", Some(45.0)),
            ("1:30:00", Some(90.0)),
            ("30 s", Some(0.5)),
            ("1h30", Some(90.0)),
            ("2 h 05", Some(125.0)),
            ("90 Minuten", Some(90.0)),
            ("30 secondes", Some(0.5)),
            ("1½ hours", Some(90.0)),
            ("½ h", Some(30.0)),
            ("1h5", None),
            ("1h75", None),
            ("5 min 30", None),
            ("h", None),
            ("minutes 5", None),
            ("PT1M1.5S", Some(61.5 / 60.0)),
            ("\u{661}:30:00", None),
            ("1:30", None),
            ("90", None),
            ("5 m 2 h", None),
            ("20 min per side", None),
            ("20 mm", None),
            ("5 months", None),
            ("12 dozen", None),
            ("PT", None),
            ("", None),
        ];
        for (text, minutes) in table {
            let read = seconds_of_duration(text).map(|seconds| seconds / 60.0);
            assert_eq!(read, minutes, "{text}");
        }
    }
}
