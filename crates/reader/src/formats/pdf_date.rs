//! Converts the dates of PDFs, such as `D:20240131120000+01'00'`.

/// Converts a date to ISO 8601, as far as it is given. `None` if the text is not a date.
pub(super) fn to_iso(date: &str) -> Option<String> {
    let digits = date.trim().trim_start_matches("D:");
    let length = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let (digits, zone) = digits.split_at(length.min(14));
    let part = |from: usize, to: usize| digits.get(from..to);
    let mut iso = part(0, 4)?.to_owned();
    for (separator, from) in [("-", 4), ("-", 6), ("T", 8), (":", 10), (":", 12)] {
        // A time of day counts only if it has at least hours and minutes.
        let Some(two) = part(from, from + 2).filter(|_| from != 8 || digits.len() >= 12) else {
            return Some(iso);
        };
        iso = iso + separator + two;
    }
    Some(iso + &format_zone(zone).unwrap_or_default())
}

fn format_zone(zone: &str) -> Option<String> {
    let sign = zone.chars().next()?;
    if sign == 'Z' {
        return Some("Z".into());
    }
    let digits: String = zone.chars().skip(1).filter(char::is_ascii_digit).collect();
    let (hours, minutes) = (digits.get(0..2)?, digits.get(2..4).unwrap_or("00"));
    matches!(sign, '+' | '-').then(|| format!("{sign}{hours}:{minutes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_as_long_as_they_were_given() {
        for (date, expected) in [
            ("D:20240131120000+01'00'", "2024-01-31T12:00:00+01:00"),
            ("D:20240131120000Z00'00'", "2024-01-31T12:00:00Z"),
            ("D:20240131120000", "2024-01-31T12:00:00"),
            ("20240131", "2024-01-31"),
            ("D:2024", "2024"),
            ("D:2024013112", "2024-01-31"),
        ] {
            assert_eq!(to_iso(date).as_deref(), Some(expected), "{date}");
        }
        for wrong in [
            "",
            "D:",
            "yesterday",
            "D:20\u{e9}",
            "D:20240131120000\u{e9}",
        ] {
            assert!(
                to_iso(wrong).is_none_or(|iso| iso.starts_with("2024")),
                "{wrong}"
            );
        }
    }
}
