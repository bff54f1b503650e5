//! Filters: numbers, sizes, durations and times for people, and texts as parts of addresses.
//!
//! | filter | of | is shown as |
//! |---|---|---|
//! | `number` | a number | `12 345`, with spaces that do not break |
//! | `bytes` | bytes | `1.2 GB` |
//! | `duration` | seconds | `3 h 5 min` |
//! | `time` | seconds since the epoch, or ISO 8601 text | a `<time>`, which scripts turn into the reader's zone |
//! | `time_ms` | milliseconds since the epoch | the same |
//! | `moments` | a sentence of the fleet that was made markup | its times (`08:42:49 UTC`) as `<time>`, too |
//! | `site_link` | the same, with the name of a site | the name leads to the site |
//! | `part` | text | percent-encoded, as one part of a path or a value in a query |

use std::fmt::Write as _;

use minijinja::{Environment, Value};
use webfill_store::{iso_time, parse_iso_time};

use crate::snapshot::now_ms;

/// The text that is shown instead of an unknown value.
const NOTHING: &str = "–";

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("number", |value: Value| {
        format_number_or_dash(&value, format_number)
    });
    environment.add_filter("bytes", |value: Value| {
        format_number_or_dash(&value, format_bytes)
    });
    environment.add_filter("duration", |value: Value| {
        format_number_or_dash(&value, format_duration)
    });
    environment.add_filter("time", |value: Value| time_element(parse_time_ms(&value)));
    environment.add_filter("time_ms", |value: Value| {
        time_element(i64::try_from(value).ok())
    });
    environment.add_filter("moments", |markup: Value| {
        let markup = markup.as_str().unwrap_or_default();
        Value::from_safe_string(mark_times(markup, now_ms()))
    });
    environment.add_filter("site_link", |markup: Value, site: Value| {
        let (markup, site) = (markup.as_str(), site.as_str());
        let linked = link_site(markup.unwrap_or_default(), site.unwrap_or_default());
        Value::from_safe_string(linked)
    });
    environment.add_filter("part", |value: Value| percent_encode(&value.to_string()));
}

fn format_number_or_dash(value: &Value, format: fn(f64) -> String) -> String {
    let number = f64::try_from(value.clone()).ok();
    number.map_or_else(|| NOTHING.to_owned(), format)
}

/// Formats a number with a space between thousands. A small number that is not whole gets one decimal.
pub(super) fn format_number(value: f64) -> String {
    if value.fract() != 0.0 && value.abs() < 10.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

fn format_bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = value.max(0.0);
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 99.95);
    format!("{value:.digits$}\u{a0}{}", UNITS[unit])
}

fn format_duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3_600 % 24, whole / 60 % 60);
    let text = match (days, hours, minutes) {
        (0, 0, 0) => format!("{whole} s"),
        (0, 0, 1) => format!("{whole} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, 0) => format!("{hours} h"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (1, hours, _) => format!("{} h", 24 + hours),
        (days, ..) => format!("{days} days"),
    };
    text.replace(' ', "\u{a0}")
}

fn parse_time_ms(value: &Value) -> Option<i64> {
    match value.as_str() {
        Some(text) => parse_iso_time(text),
        None => {
            let seconds = f64::try_from(value.clone()).ok()?;
            Some((seconds * 1_000.0) as i64)
        }
    }
}

/// A `<time>` element. Scripts replace its text, which is in UTC, by the time in the reader's zone.
fn time_element(at_ms: Option<i64>) -> Value {
    let Some(at_ms) = at_ms else {
        return NOTHING.into();
    };
    let iso = iso_time(at_ms);
    let (date, clock) = iso.split_once('T').unwrap_or((&iso, ""));
    let clock = clock.get(..5).unwrap_or(clock);
    // The text consists of digits and fixed words, so it needs no escaping.
    Value::from_safe_string(format!(
        "<time datetime=\"{iso}\">{date}\u{a0}{clock}\u{a0}UTC</time>"
    ))
}

const UTC: &str = " UTC";

/// Turns the times in a sentence from the fleet (`08:42:49 UTC`) into `<time>` elements. Times near the present have no
/// date in such sentences.
fn mark_times(markup: &str, now_ms: i64) -> String {
    let (mut marked, mut rest) = (String::with_capacity(markup.len()), markup);
    while let Some(end) = rest.find(UTC) {
        let (before, behind) = rest.split_at(end);
        match find_time_at_end(before, now_ms) {
            Some((begin, at_ms)) => {
                let (before, shown) = before.split_at(begin);
                let iso = iso_time(at_ms);
                let _ = write!(
                    marked,
                    "{before}<time class=\"clock\" datetime=\"{iso}\">{shown}{UTC}</time>"
                );
            }
            None => {
                let _ = write!(marked, "{before}{UTC}");
            }
        }
        rest = &behind[UTC.len()..];
    }
    marked + rest
}

/// Finds a time at the end of a text. Returns its byte position and its value in milliseconds. A time without a date
/// means the nearest such time.
fn find_time_at_end(text: &str, now_ms: i64) -> Option<(usize, i64)> {
    const DAY_MS: i64 = 24 * 3_600_000;
    let tail = |length: usize| {
        let begin = text.len().checked_sub(length)?;
        Some((begin, text.get(begin..)?))
    };
    if let Some((begin, moment)) = tail("2026-11-24 08:42".len())
        && let Some((date, clock)) = moment.split_once(' ')
        && let Some(at_ms) = parse_iso_time(&format!("{date}T{clock}:00Z"))
    {
        return Some((begin, at_ms));
    }
    for (length, seconds) in [("08:42:49".len(), ""), ("08:42".len(), ":00")] {
        let Some((begin, clock)) = tail(length) else {
            continue;
        };
        let days = [-DAY_MS, 0, DAY_MS].map(|off| iso_time(now_ms + off));
        let moments = days.iter().filter_map(|day| {
            let date = day.split('T').next()?;
            parse_iso_time(&format!("{date}T{clock}{seconds}Z"))
        });
        if let Some(nearest) = moments.min_by_key(|at_ms| (at_ms - now_ms).abs()) {
            return Some((begin, nearest));
        }
    }
    None
}

/// Turns the first mention of a site in a sentence into a link to the site's page. Host names need no escaping.
fn link_site(markup: &str, site: &str) -> String {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if site.is_empty() || !site.chars().all(is_host) {
        return markup.to_owned();
    }
    let path = percent_encode(site);
    let link = format!("<a href=\"/dashboard/site/{path}\">{site}</a>");
    markup.replacen(site, &link, 1)
}

/// Percent-encodes a text for use as one part of a path, or as a value in a query.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte.into());
            }
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_of_a_sentence_leads_to_its_view() {
        let link = "<a href=\"/dashboard/site/a.org\">a.org</a>";
        assert_eq!(
            link_site("1 site waits (a.org), 3 s left", "a.org"),
            format!("1 site waits ({link}), 3 s left")
        );
        for site in ["", "b.org", "<b>", "a.org\""] {
            assert_eq!(link_site("waits (a.org)", site), "waits (a.org)", "{site}");
        }
    }

    #[test]
    fn times_in_sentences_become_times_of_the_reader() {
        let now_ms = parse_iso_time("2026-11-24T23:50:00Z").unwrap();
        let reported = |text: &str| mark_times(text, now_ms);
        let time = |iso: &str, shown: &str| {
            format!("<time class=\"clock\" datetime=\"{iso}\">{shown}</time>")
        };
        assert_eq!(
            reported("1 site has been backing off since 23:42:49 UTC, until 00:10 UTC."),
            format!(
                "1 site has been backing off since {}, until {}.",
                time("2026-11-24T23:42:49.000Z", "23:42:49 UTC"),
                time("2026-11-25T00:10:00.000Z", "00:10 UTC")
            )
        );
        assert_eq!(
            reported("until 2026-12-01 06:00 UTC"),
            format!(
                "until {}",
                time("2026-12-01T06:00:00.000Z", "2026-12-01 06:00 UTC")
            )
        );
        for text in [
            "",
            " UTC",
            "ü UTC",
            "99:99:99 UTC",
            "the zone UTC",
            "x08:4 UTC UTC",
        ] {
            assert_eq!(reported(text), text);
        }
    }

    #[test]
    fn numbers_are_shown_as_people_read_them() {
        for (value, reported) in [
            (0.0, "0"),
            (999.0, "999"),
            (1_000.0, "1 000"),
            (12_345_678.4, "12 345 678"),
            (3.25, "3.2"),
            (-1_234.0, "-1 234"),
        ] {
            assert_eq!(format_number(value).replace('\u{a0}', " "), reported);
        }
        for (value, reported) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1_000.0, "1.0 kB"),
            (123_456_789.0, "123 MB"),
            (999_999_999.0, "1.0 GB"),
            (5e16, "50000 TB"),
        ] {
            assert_eq!(format_bytes(value).replace('\u{a0}', " "), reported);
        }
        for (value, reported) in [
            (0.4, "0 s"),
            (95.0, "95 s"),
            (3_600.0, "1 h"),
            (11_100.0, "3 h 5 min"),
            (100_000.0, "27 h"),
            (400_000.0, "4 days"),
        ] {
            assert_eq!(format_duration(value).replace('\u{a0}', " "), reported);
        }
        assert_eq!(
            format_number_or_dash(&Value::from("text"), format_number),
            NOTHING
        );
    }

    #[test]
    fn a_time_is_shown_with_its_zone_and_for_machines() {
        let reported =
            "<time datetime=\"2026-11-24T06:00:00.500Z\">2026-11-24\u{a0}06:00\u{a0}UTC</time>";
        assert_eq!(
            time_element(parse_time_ms(&Value::from(1_795_500_000.5))).as_str(),
            Some(reported)
        );
        let text = Value::from("2026-11-24T06:00:00.500Z");
        assert_eq!(time_element(parse_time_ms(&text)).as_str(), Some(reported));
        assert_eq!(
            time_element(parse_time_ms(&Value::from("<script>"))).as_str(),
            Some(NOTHING)
        );
    }

    #[test]
    fn a_part_of_an_address_stays_one_part() {
        assert_eq!(
            percent_encode("a/b?c#d&e=f \"<ü"),
            "a%2Fb%3Fc%23d%26e%3Df%20%22%3C%C3%BC"
        );
    }
}
