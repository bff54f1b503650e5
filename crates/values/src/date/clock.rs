//! The time of day in a date: `10:30 AM`, `10h30`, `14:05:09.5 +0100`, `10:30 Uhr MEZ`.

use std::fmt;

use jiff::civil::Time;

use super::names::{Meaning, meaning_of_word};
use super::zones;

/// A time of day, perhaps with its offset from UTC in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) time: Time,
    pub(super) offset: Option<i32>,
}

/// The error for a text that is written as a time, but no such time exists or its zone is unknown.
pub(super) struct InvalidTime;

/// Words that may stand between a date and its time (`BEFORE`), and words that may follow a time (`BEHIND`).
const BEFORE: &[&str] = &[
    "at", "um", "à", "om", "a las", "alle", "ore", "alle ore", "às", "o", "o godz", "godz", "kl",
    "в", "о", "об", "v", "ve", "saat", "στις", "klo", "la ora", "ora", "t", "-", "–", ",", "@",
    "|",
];
const BEHIND: &[&str] = &["uhr", "uur", "h", "o'clock", "hrs", "hs", "hod", "ч"];

/// Words that make two numbers separated by a point a time, as in `um 17.30` and `17.30 Uhr`.
const BEFORE_POINTS: &[&str] = &["um", "om", "ore", "kl", "kl.", "klo", "godz", "godz."];
const BEHIND_POINTS: &[&str] = &["uhr", "uur"];

impl fmt::Display for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.time)?;
        match self.offset {
            None => Ok(()),
            Some(0) => formatter.write_str("Z"),
            Some(seconds) => {
                let sign = if seconds < 0 { '-' } else { '+' };
                let minutes = seconds.unsigned_abs() / 60;
                write!(formatter, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

impl Clock {
    /// Splits a text into the rest without its time of day, and the time of day.
    pub(super) fn split_off_clock(text: &str) -> Result<(String, Option<Clock>), InvalidTime> {
        let Some((begin, end, mut digits)) = find_clock(text) else {
            return Ok((text.to_owned(), None));
        };
        let behind = text[end..].trim_start();
        let behind = digits.take_am_pm(behind)?;
        let behind = strip_word_after_clock(behind);
        let (offset, behind) = take_zone(behind)?;
        let time = digits.time().ok_or(InvalidTime)?;
        let before = strip_joiner(&text[..begin]);
        let rest = match (before.is_empty(), behind.is_empty()) {
            (false, false) => format!("{before} {behind}"),
            _ => format!("{before}{behind}"),
        };
        Ok((rest, Some(Clock { time, offset })))
    }
}

/// The numbers of a time of day as they are written, not yet checked.
struct ClockNumbers {
    hour: i8,
    minute: i8,
    second: i8,
    nanosecond: i32,
}

impl ClockNumbers {
    /// Removes `AM` or `PM` from the start of the text, and converts the hour to the 24-hour clock.
    fn take_am_pm<'t>(&mut self, text: &'t str) -> Result<&'t str, InvalidTime> {
        let lower = text.to_ascii_lowercase();
        let half = ["a.m.", "p.m.", "am", "pm"].into_iter().find(|half| {
            let behind = lower.strip_prefix(half);
            behind.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        });
        let Some(half) = half else {
            return Ok(text);
        };
        if !(0..=12).contains(&self.hour) {
            return Err(InvalidTime);
        }
        self.hour %= 12;
        if half.starts_with('p') {
            self.hour += 12;
        }
        Ok(text[half.len()..].trim_start())
    }

    fn time(&self) -> Option<Time> {
        Time::new(self.hour, self.minute, self.second, self.nanosecond).ok()
    }
}

/// The first time of day in a text: its start, its end and its numbers.
fn find_clock(text: &str) -> Option<(usize, usize, ClockNumbers)> {
    let bytes = text.as_bytes();
    let mut begin = 0;
    while begin < bytes.len() {
        let length = bytes[begin..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        if length == 0 {
            begin += 1;
            continue;
        }
        if length <= 2
            && let Some((end, digits)) = parse_numbers_at(text, begin, length)
        {
            return Some((begin, end, digits));
        }
        begin += length;
    }
    None
}

fn leading_digit_count(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn parse_numbers_at(text: &str, begin: usize, length: usize) -> Option<(usize, ClockNumbers)> {
    let hour: i8 = text[begin..begin + length].parse().ok()?;
    let mut end = begin + length;
    let rest = &text[end..];
    let mut digits = ClockNumbers {
        hour,
        minute: 0,
        second: 0,
        nanosecond: 0,
    };
    let is_sign = rest.starts_with(':')
        || rest.starts_with(['h', 'H'])
        || (rest.starts_with('.') && has_point_separator(&text[..begin], &rest[1..]));
    // French writes spaces around the `h`: `8 h 30`.
    let spaced = rest
        .strip_prefix(" h ")
        .filter(|behind| leading_digit_count(behind) == 2);
    if is_sign && leading_digit_count(&rest[1..]) == 2 {
        digits.minute = rest[1..3].parse().ok()?;
        end += 3;
    } else if let Some(behind) = spaced {
        digits.minute = behind[..2].parse().ok()?;
        end += 5;
    } else {
        let lower = rest.trim_start().to_ascii_lowercase();
        let has_half = ["am", "pm", "a.m.", "p.m."].iter().any(|half| {
            let behind = lower.strip_prefix(half);
            behind.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        });
        return (has_half || lower == "uhr").then_some((end, digits));
    }
    let rest = &text[end..];
    if rest.starts_with(':') && leading_digit_count(&rest[1..]) == 2 {
        digits.second = rest[1..3].parse().ok()?;
        end += 3;
        let rest = &text[end..];
        let places = rest.get(1..).map_or(0, leading_digit_count);
        if rest.starts_with(['.', ',']) && (1..=9).contains(&places) {
            let fraction = format!("{:0<9}", &rest[1..=places]);
            digits.nanosecond = fraction.parse().ok()?;
            end += 1 + places;
        }
    }
    Some((end, digits))
}

/// Whether a point separates hours from minutes, as in `um 17.30 Uhr`.
fn has_point_separator(before: &str, minutes: &str) -> bool {
    let word_before = before.split_whitespace().next_back();
    let word_before = word_before.unwrap_or_default().to_lowercase();
    let behind = minutes.trim_start_matches(|c: char| c.is_ascii_digit());
    let word_behind = behind.split_whitespace().next();
    let word_behind = word_behind.unwrap_or_default().to_lowercase();
    !behind.starts_with('.')
        && (BEFORE_POINTS.contains(&word_before.as_str())
            || BEHIND_POINTS.contains(&word_behind.as_str()))
}

fn strip_word_after_clock(text: &str) -> &str {
    let length = text
        .find(|c: char| !(c.is_alphabetic() || c == '\''))
        .unwrap_or(text.len());
    match BEHIND.contains(&text[..length].to_lowercase().as_str()) {
        true => text[length..].trim_start_matches(['.', ' ']),
        false => text,
    }
}

/// Takes the time zone off the start of the text, and a comment in brackets after it. Returns the offset and the rest.
fn take_zone(text: &str) -> Result<(Option<i32>, &str), InvalidTime> {
    let inner = text.trim_start_matches(['(', ' ']);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | ':' | '\u{2212}');
    let length = inner.find(|c| !is_part(c)).unwrap_or(inner.len());
    let word = inner[..length].replace('\u{2212}', "-");
    let is_offset = word.starts_with(['+', '-']);
    let is_name = word.len() >= 2
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.bytes().all(|b| !b.is_ascii_lowercase())
        && meaning_of_word(&word) == Meaning::default()
        || word == "Z";
    if !is_offset && !is_name {
        return Ok((None, text));
    }
    let seconds = zones::parse_offset(&word).ok_or(InvalidTime)?;
    let mut rest = inner[length..].trim_start_matches([')', ' ']);
    if rest.starts_with('(') {
        rest = rest
            .find(')')
            .map_or(rest, |end| rest[end + 1..].trim_start());
    }
    Ok((Some(seconds), rest))
}

fn strip_joiner(text: &str) -> &str {
    let mut text = text.trim_end_matches(['(', ' ', ',', '-', '–', '@', '|', '.']);
    loop {
        let lower = text.to_lowercase();
        let joiner = BEFORE.iter().find(|word| {
            let before = lower.strip_suffix(**word);
            before.is_some_and(|before| before.ends_with([' ', ',']) && lower.len() == text.len())
        });
        match joiner {
            Some(word) => {
                text = text[..text.len() - word.len()]
                    .trim_end_matches([' ', ',', '-', '–', '|', '.']);
            }
            None => return text,
        }
    }
}
