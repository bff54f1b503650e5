//! Times, numbers and reasons in words.

use webfill_store::iso_time;
use webfill_wire::BackoffReason;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The approximate length of a span of time.
pub(crate) fn format_duration(ms: i64) -> String {
    let about = |unit_ms: i64| (ms + unit_ms / 2) / unit_ms;
    if ms < 1_000 {
        "less than a second".into()
    } else if ms < 2 * MINUTE_MS {
        format!("{} s", about(1_000))
    } else if ms < 2 * HOUR_MS {
        format!("{} min", about(MINUTE_MS))
    } else if ms < 2 * DAY_MS {
        format!("about {} h", about(HOUR_MS))
    } else {
        format!("about {} days", about(DAY_MS))
    }
}

/// A time, without its date if it is near.
pub(crate) fn format_time(at_ms: i64, now_ms: i64) -> String {
    let text = iso_time(at_ms);
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    match (at_ms - now_ms).abs() {
        0..HOUR_MS => format!("{} UTC", time.get(..8).unwrap_or(time)),
        HOUR_MS..DAY_MS => format!("{} UTC", time.get(..5).unwrap_or(time)),
        _ => format!("{date} {} UTC", time.get(..5).unwrap_or(time)),
    }
}

/// Milliseconds as seconds, the form of times and durations in answers.
pub(crate) fn to_seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}

/// A number with its noun, such as `1 site` or `2 sites`.
pub(crate) fn pluralize(n: u64, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// The fault of a site that backs off for this reason, in words.
pub(crate) fn explain_backoff(reason: BackoffReason) -> &'static str {
    match reason {
        BackoffReason::Robots => "its robots.txt is unavailable",
        BackoffReason::Unreachable => "it does not answer",
        BackoffReason::Tls => "its certificate is not valid for it",
        BackoffReason::Dns => "its name does not resolve",
        BackoffReason::Busy => "it refuses the rate of requests",
        BackoffReason::Blocked => "it blocks",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_in_the_unit_that_people_would_choose() {
        for (ms, reported) in [
            (0, "less than a second"),
            (1_400, "1 s"),
            (90_000, "90 s"),
            (12 * MINUTE_MS, "12 min"),
            (3 * HOUR_MS + 10 * MINUTE_MS, "about 3 h"),
            (4 * DAY_MS, "about 4 days"),
        ] {
            assert_eq!(format_duration(ms), reported);
        }
    }

    #[test]
    fn a_time_has_its_date_only_if_it_is_another_day() {
        let noon_ms = 12 * HOUR_MS;
        assert_eq!(format_time(noon_ms + 5_000, noon_ms), "12:00:05 UTC");
        assert_eq!(format_time(noon_ms + 3 * HOUR_MS, noon_ms), "15:00 UTC");
        assert_eq!(
            format_time(noon_ms + 40 * HOUR_MS, noon_ms),
            "1970-01-03 04:00 UTC"
        );
    }
}
