//! Reads the values of `Crawl-delay` and `Sitemap` with `texting_robots`.
//!
//! That library gets a small file without rules, because it compiles rules to regular expressions, which a hostile file
//! can make slow or huge.

use std::panic;

use texting_robots::Robot;

use super::lines::Selected;

/// The longest delay, in milliseconds: one day. Longer delays are reduced to it.
const MAX_DELAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The most values that are read. Real files have one delay and at most some
/// hundreds of sitemaps.
const MAX_DELAYS: usize = 16;
const MAX_SITEMAPS: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Hints {
    pub(super) crawl_delay_ms: Option<u64>,
    pub(super) sitemaps: Box<[Box<str>]>,
}

/// The library `texting_robots` failed or panicked, so the values are unknown.
#[derive(Debug)]
pub(super) struct Unreadable;

pub(super) fn read(selected: &Selected<'_>) -> Result<Hints, Unreadable> {
    read_with_reader(selected, |file| {
        Robot::new("*", file).map_err(|_| Unreadable)
    })
}

fn read_with_reader(
    selected: &Selected<'_>,
    reader: impl Fn(&[u8]) -> Result<Robot, Unreadable> + panic::RefUnwindSafe,
) -> Result<Hints, Unreadable> {
    let read = |file: &[u8]| panic::catch_unwind(|| reader(file)).unwrap_or(Err(Unreadable));
    let mut hints = Hints::default();
    // Each delay is read separately, because the library reads only the first one of a file, but the longest one
    // counts.
    for delay in selected.crawl_delays.iter().take(MAX_DELAYS) {
        let delay_s = read(&robots_file("Crawl-delay: ", &[delay]))?.delay;
        let delay_s = delay_s.or_else(|| parse_seconds(delay));
        hints.crawl_delay_ms = hints.crawl_delay_ms.max(delay_s.and_then(to_milliseconds));
    }
    if !selected.sitemaps.is_empty() {
        let counted = selected.sitemaps.len().min(MAX_SITEMAPS);
        let sitemaps = read(&robots_file("Sitemap: ", &selected.sitemaps[..counted]))?.sitemaps;
        hints.sitemaps = sitemaps.into_iter().map(String::into_boxed_str).collect();
    }
    Ok(hints)
}

/// Makes a robots.txt for all agents, with one line per value.
fn robots_file(key: &str, values: &[&[u8]]) -> Vec<u8> {
    let mut file = b"User-agent: *\n".to_vec();
    for value in values {
        file.extend_from_slice(key.as_bytes());
        file.extend_from_slice(value);
        file.push(b'\n');
    }
    file
}

/// Reads a delay in notations that the library does not know: `60s`, `30 seconds`, `1,5`, `"2"`, `2 min`.
fn parse_seconds(value: &[u8]) -> Option<f32> {
    let value = String::from_utf8_lossy(value).to_ascii_lowercase();
    let value = value.trim_start_matches(|c: char| c.is_whitespace() || "\"'=:".contains(c));
    let end = value.find(|c: char| !(c.is_ascii_digit() || ".,".contains(c)));
    let (number, unit) = value.split_at(end.unwrap_or(value.len()));
    let number = number.trim_end_matches(['.', ',']).replace(',', ".");
    let unit = unit.trim_start();
    let unit = &unit[..unit
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(unit.len())];
    let factor = match unit {
        "ms" | "msec" | "msecs" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3600.0,
        _ => 1.0,
    };
    Some(number.parse::<f32>().ok()? * factor)
}

/// Converts seconds to milliseconds. `None` if the value is not a duration: negative, infinite, or not a number.
fn to_milliseconds(seconds: f32) -> Option<u64> {
    if !seconds.is_finite() || seconds < 0.0 {
        return None;
    }
    // The cast limits a float that exceeds the range of `u64` to the largest `u64`.
    Some(((f64::from(seconds) * 1000.0).round() as u64).min(MAX_DELAY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_delay() -> Selected<'static> {
        Selected {
            crawl_delays: vec![b"7"],
            ..Selected::default()
        }
    }

    #[test]
    fn a_reader_that_panics_or_fails_is_reported() {
        let selected = one_delay();
        assert!(read_with_reader(&selected, |_| panic!("as on some real file")).is_err());
        assert!(read_with_reader(&selected, |_| Err(Unreadable)).is_err());
        assert_eq!(read(&selected).unwrap().crawl_delay_ms, Some(7_000));
    }

    #[test]
    fn a_delay_is_read_however_it_is_written() {
        for (value, expected) in [
            ("60", Some(60_000)),
            ("60s", Some(60_000)),
            ("60S", Some(60_000)),
            ("60 sec.", Some(60_000)),
            ("30 seconds", Some(30_000)),
            ("30 seconds between requests", Some(30_000)),
            ("1.5", Some(1_500)),
            ("1,5", Some(1_500)),
            ("1,5 s", Some(1_500)),
            ("\"2\"", Some(2_000)),
            ("'2'", Some(2_000)),
            ("= 2", Some(2_000)),
            ("10;", Some(10_000)),
            ("10.", Some(10_000)),
            ("10,", Some(10_000)),
            ("500ms", Some(500)),
            ("2 min", Some(120_000)),
            ("2 minutes", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("48 hours", Some(86_400_000)),
            ("5-10", Some(5_000)),
            ("1.2.3", None),
            ("-1", None),
            ("- 1", None),
            ("seconds", None),
            ("none", None),
            ("inf", None),
            ("NaN", None),
            (".", None),
            ("", None),
        ] {
            let selected = Selected {
                crawl_delays: vec![value.as_bytes()],
                ..Selected::default()
            };
            let hints = read(&selected).unwrap();
            assert_eq!(hints.crawl_delay_ms, expected, "{value}");
        }
    }

    #[test]
    fn invalid_times_are_no_delays() {
        for (seconds, expected) in [
            (f32::INFINITY, None),
            (f32::NAN, None),
            (-1.0, None),
            (0.0, Some(0)),
            (0.1, Some(100)),
            (2.5, Some(2_500)),
            (86_400.0, Some(86_400_000)),
            (1e38, Some(86_400_000)),
        ] {
            assert_eq!(to_milliseconds(seconds), expected, "{seconds}");
        }
    }
}
