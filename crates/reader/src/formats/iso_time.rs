//! Writes times in sheets. Times of day and durations become `HH:MM:SS`, with more than 24 hours if necessary. Dates
//! have no time of day if it is midnight.

/// Writes milliseconds as hours, minutes and seconds, with a fraction if there is one.
pub(super) fn format_milliseconds(milliseconds: i64) -> String {
    let sign = if milliseconds < 0 { "-" } else { "" };
    let all = milliseconds.unsigned_abs();
    let (seconds, fraction) = (all / 1000, all % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = match fraction {
        0 => String::new(),
        some => format!(".{some:03}").trim_end_matches('0').to_owned(),
    };
    format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

/// Writes days as hours, minutes and seconds, to the millisecond.
pub(super) fn format_days(days: f64) -> String {
    // The cast limits a float that exceeds the range of `i64`.
    format_milliseconds((days * 86_400_000.0).round() as i64)
}

/// Writes a duration given in XML notation, such as `PT09H30M00S`. `None` if it is invalid, or has years or months.
pub(super) fn format_duration(duration: &str) -> Option<String> {
    let (sign, rest) = match duration.trim().strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, duration.trim()),
    };
    let rest = rest.strip_prefix('P')?;
    let (days, times) = rest.split_once('T').unwrap_or((rest, ""));
    let seconds = sum_units(days, &[('D', 86_400.0)])?
        + sum_units(times, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)])?;
    let is_empty = days.is_empty() && times.is_empty();
    (!is_empty).then(|| format_milliseconds((sign * seconds * 1000.0).round() as i64))
}

/// Adds up numbers that are each followed by a unit, as in `9H30M`. Returns the sum in seconds.
fn sum_units(text: &str, units: &[(char, f64)]) -> Option<f64> {
    let mut seconds = 0.0;
    let mut rest = text;
    for (unit, seconds_each) in units {
        if let Some((number, after)) = rest.split_once(*unit) {
            let is_number = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            seconds += number.parse::<f64>().ok().filter(|_| is_number)? * seconds_each;
            rest = after;
        }
    }
    rest.is_empty().then_some(seconds)
}

/// Writes a date and time of XML, without midnight and without trailing zeros in the seconds.
pub(super) fn format_date(date: &str) -> String {
    let date = match date.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit()) => {
            let fraction = fraction.trim_end_matches('0');
            match fraction {
                "" => whole.to_owned(),
                some => format!("{whole}.{some}"),
            }
        }
        _ => date.to_owned(),
    };
    date.strip_suffix("T00:00:00").unwrap_or(&date).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_hours_minutes_and_seconds() {
        for (duration, expected) in [
            ("PT09H30M00S", Some("09:30:00")),
            ("PT9H30M", Some("09:30:00")),
            ("PT30H00M00S", Some("30:00:00")),
            ("P1DT2H3M4S", Some("26:03:04")),
            ("P2D", Some("48:00:00")),
            ("PT00H00M00.5S", Some("00:00:00.5")),
            ("PT12H00M00.000000001S", Some("12:00:00")),
            ("PT90M", Some("01:30:00")),
            ("PT0S", Some("00:00:00")),
            ("-PT01H30M00S", Some("-01:30:00")),
            ("PT1000H00M00S", Some("1000:00:00")),
            ("P1Y", None),
            ("P1M", None),
            ("P", None),
            ("PT", None),
            ("PTxS", None),
            ("PT-1S", None),
            ("PT1S2H", None),
            ("09:30", None),
            ("", None),
        ] {
            assert_eq!(format_duration(duration).as_deref(), expected, "{duration}");
        }
    }

    #[test]
    fn days_are_rounded_to_the_millisecond() {
        for (days, expected) in [
            (0.395_833_333_333_333_3, "09:30:00"),
            (1.25, "30:00:00"),
            (0.0, "00:00:00"),
            (0.999_988_425_925_925_9, "23:59:59"),
            (0.5 / 86_400.0, "00:00:00.5"),
            (-0.25, "-06:00:00"),
            (0.041_666_666_666_666_664, "01:00:00"),
        ] {
            assert_eq!(format_days(days), expected, "{days}");
        }
        assert!(!format_days(f64::MAX).is_empty());
    }

    #[test]
    fn dates_at_midnight_have_no_time_of_day() {
        for (date, expected) in [
            ("2024-03-01", "2024-03-01"),
            ("2024-03-01T00:00:00", "2024-03-01"),
            ("2024-03-01T00:00:00.000000000", "2024-03-01"),
            ("2024-03-01T09:30:00", "2024-03-01T09:30:00"),
            ("2024-03-01T09:30:00.500000000", "2024-03-01T09:30:00.5"),
            ("2024-03-01T09:30:00.000000000", "2024-03-01T09:30:00"),
            ("2024-03-01T09:30:00Z", "2024-03-01T09:30:00Z"),
        ] {
            assert_eq!(format_date(date), expected, "{date}");
        }
    }
}
