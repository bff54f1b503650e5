//! Reads times of day, on a clock of 12 or 24 hours.

use std::sync::LazyLock;

use regex::Regex;

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)^([0-9]{1,2})(?:[:.h]([0-9]{2}))?(?::00)?\s*(?:([ap])\.?\s?m\.?|(uhr|h))?$";
    Regex::new(pattern).expect("a constant pattern")
});

/// The minutes since midnight if the text is a time of day and nothing else; otherwise `None`. `12.30` is no time,
/// because it may be a number.
pub fn minutes_of_day(text: &str) -> Option<u32> {
    const LONGEST: usize = 16;
    let text = webfill_values::trim(text);
    if text.len() > LONGEST || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let found = CLOCK.captures(text)?;
    let number = |group: usize| {
        found
            .get(group)
            .and_then(|part| part.as_str().parse::<u32>().ok())
    };
    let (hours, minutes) = (number(1)?, number(2));
    let half = found.get(3).map(|half| half.as_str().to_ascii_lowercase());
    let is_marked = half.is_some() || found.get(4).is_some();
    if !(is_marked || minutes.is_some() && text.contains(':')) {
        return None;
    }
    let hours = match half.as_deref() {
        None if hours < 24 => hours,
        Some("a") if (1..=12).contains(&hours) => hours % 12,
        Some("p") if (1..=12).contains(&hours) => hours % 12 + 12,
        _ => return None,
    };
    minutes
        .is_none_or(|minutes| minutes < 60)
        .then(|| hours * 60 + minutes.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_the_same_on_both_clocks() {
        let table = [
            ("13:05", Some(785)),
            ("1:05 pm", Some(785)),
            ("1:05 P.M.", Some(785)),
            ("01:05PM", Some(785)),
            ("13.05 Uhr", Some(785)),
            ("13h05", None),
            ("13h05 h", Some(785)),
            ("13:05:00", Some(785)),
            ("12:30 am", Some(30)),
            ("12:30 pm", Some(750)),
            ("9 am", Some(540)),
            ("9 Uhr", Some(540)),
            ("9", None),
            ("12.30", None),
            ("25:10", None),
            ("13:05 pm", None),
            ("12:75", None),
            ("12:30:15", None),
            ("1:05 to 2:05", None),
        ];
        for (text, minutes) in table {
            assert_eq!(minutes_of_day(text), minutes, "{text}");
        }
    }
}
