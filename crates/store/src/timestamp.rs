//! Stored times: ISO 8601 text in UTC, always 24 characters, so that text order is time order.

use jiff::Timestamp;

/// 0000-01-01T00:00:00.000Z: the text of an earlier time would start with a minus.
const FIRST_MS: i64 = -62_167_219_200_000;

/// The text for a time in milliseconds since the epoch, limited to the years 0 to 9999.
pub fn iso_time(at_ms: i64) -> String {
    let timestamp = Timestamp::from_millisecond(at_ms.max(FIRST_MS)).unwrap_or(Timestamp::MAX);
    format!("{timestamp:.3}")
}

/// Reads a time that [`iso_time`] wrote, or any other ISO 8601 time with an offset.
pub fn parse_iso_time(text: &str) -> Option<i64> {
    let timestamp: Timestamp = text.parse().ok()?;
    Some(timestamp.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_as_they_were_written() {
        for at_ms in [0, 1, -1, 1_767_268_800_123, FIRST_MS] {
            let text = iso_time(at_ms);
            assert_eq!(text.len(), 24, "{text}");
            assert_eq!(parse_iso_time(&text), Some(at_ms));
        }
        assert_eq!(iso_time(1_767_268_800_123), "2026-01-01T12:00:00.123Z");
    }

    #[test]
    fn times_out_of_range_stop_at_its_edge() {
        assert_eq!(iso_time(i64::MAX), "9999-12-30T22:00:00.999Z");
        assert_eq!(iso_time(i64::MIN), "0000-01-01T00:00:00.000Z");
    }

    #[test]
    fn text_order_is_time_order() {
        let mut times = vec![-5_000, -1, 0, 999, 1_000, 86_400_000, 1_767_268_800_123];
        times.sort();
        let texts: Vec<String> = times.into_iter().map(iso_time).collect();
        assert!(texts.is_sorted());
    }
}
