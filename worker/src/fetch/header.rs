//! Reads headers of a response.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// The value of a header that is a URL. Its non-ASCII bytes are percent-encoded whatever their encoding, as in
/// browsers.
pub(super) fn url_header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let mut url = String::new();
    for byte in headers.get(name)?.as_bytes() {
        if byte.is_ascii() {
            url.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
    Some(url)
}

/// Joins all values of a header that may occur several times into one list (RFC 9110, 5.3).
pub(super) fn joined_header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let values: Vec<String> = headers.get_all(name).iter().map(to_lossy_text).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

fn to_lossy_text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The longest wait that a server may ask for: a year.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(31_536_000);

/// Reads `Retry-After`: seconds or an HTTP date (RFC 9110 10.2.3), at most a year. Clear deviations from the standard
/// are accepted, too: fractions, units, and other notations of GMT in a date.
pub fn parse_retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    let wait = parse_time_span(value).or_else(|| {
        let date = ["+0000", "-0000", "UTC", "UT"]
            .iter()
            .find_map(|zone| value.strip_suffix(zone))
            .map_or_else(|| value.to_owned(), |date| format!("{date}GMT"));
        let date = httpdate::parse_http_date(&date).ok()?;
        Some(date.duration_since(SystemTime::now()).unwrap_or_default())
    })?;
    Some(wait.min(LONGEST_RETRY_AFTER))
}

/// Reads a number of seconds, or of another unit that follows it, such as `5m`; fractions are rounded up.
fn parse_time_span(value: &str) -> Option<Duration> {
    let end = value.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = value.split_at(end.unwrap_or(value.len()));
    if digits.is_empty() {
        return None;
    }
    // Parsing fails only for a number that exceeds the range of `u64`.
    let whole: u64 = digits.parse().unwrap_or(u64::MAX);
    let (rest, is_more) = match rest.strip_prefix('.') {
        Some(fraction) => {
            let rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = &fraction[..fraction.len() - rest.len()];
            (rest, digits.bytes().any(|digit| digit != b'0'))
        }
        None => (rest, false),
    };
    let seconds = match rest.trim_start().to_ascii_lowercase().as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        _ => return None,
    };
    let count = whole.saturating_add(u64::from(is_more));
    Some(Duration::from_secs(count.saturating_mul(seconds)))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{CONTENT_TYPE, LOCATION};

    use super::*;

    #[test]
    fn headers_that_come_twice_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(joined_header(&headers, CONTENT_TYPE), None);
        for value in ["text/html; charset=a", "text/html"] {
            headers.append(CONTENT_TYPE, HeaderValue::from_static(value));
        }
        let expected = Some("text/html; charset=a, text/html");
        assert_eq!(joined_header(&headers, CONTENT_TYPE).as_deref(), expected);
    }

    #[test]
    fn the_bytes_of_a_url_are_escaped_in_the_encoding_in_which_they_came() {
        for (sent, expected) in [
            (&b"/a?b=c"[..], "/a?b=c"),
            ("/größe?q=ö".as_bytes(), "/gr%C3%B6%C3%9Fe?q=%C3%B6"),
            (b"/gr\xf6\xdfe?q=\xf6", "/gr%F6%DFe?q=%F6"),
            (b"/%C3%B6 x", "/%C3%B6 x"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_bytes(sent).unwrap());
            assert_eq!(url_header(&headers, LOCATION).as_deref(), Some(expected));
        }
    }

    #[test]
    fn clear_deviations_from_the_standard_of_retry_after_are_read() {
        for (value, seconds) in [
            ("1.5", Some(2)),
            ("2.0", Some(2)),
            ("2s", Some(2)),
            ("2 seconds", Some(2)),
            ("5 Minutes", Some(300)),
            ("1h", Some(3_600)),
            ("2 days", None),
            ("1.5.2", None),
            (".5", None),
            ("2026-11-27T10:00:00Z", None),
            ("\"5\"", None),
        ] {
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(parse_retry_after(value), expected, "{value}");
        }
        let soon = SystemTime::now() + Duration::from_secs(60);
        for zone in ["+0000", "UTC"] {
            let date = httpdate::fmt_http_date(soon).replace("GMT", zone);
            let wait = parse_retry_after(&date).unwrap();
            assert!(wait > Duration::from_secs(50), "{date}");
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        assert_eq!(parse_retry_after(" 120 "), Some(Duration::from_secs(120)));
        assert_eq!(parse_retry_after("soon"), None);
        assert_eq!(parse_retry_after("-5"), None);
        let past = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(parse_retry_after(past), Some(Duration::ZERO));
        let future = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(60));
        let wait = parse_retry_after(&future).unwrap();
        assert!(wait > Duration::from_secs(50) && wait <= Duration::from_secs(60));
        let far = parse_retry_after("99999999999999999").unwrap();
        assert_eq!(far, LONGEST_RETRY_AFTER);
        let far = parse_retry_after("99999999999999999999999").unwrap();
        assert_eq!(far, LONGEST_RETRY_AFTER, "more than a number holds");
        let far = parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT").unwrap();
        assert_eq!(far, LONGEST_RETRY_AFTER);
    }
}
