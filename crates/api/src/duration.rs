//! Parses durations as people write them, such as `90s` or `2h`.

/// Parses `90s`, `15m`, `2h`, `1d`, or a plain number of seconds; returns milliseconds. The error is one clause.
pub fn duration_ms(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is not a duration such as 90s, 15m, 2h or 1d");
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let factor = match unit {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return Err(wrong()),
    };
    let millis = number.parse::<f64>().map_err(|_| wrong())? * factor;
    match millis.is_finite() && (0.0..1e15).contains(&millis) {
        true => Ok(millis.round() as i64),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration_ms("90"), Ok(90_000));
        assert_eq!(duration_ms("15m"), Ok(900_000));
        assert_eq!(duration_ms("1.5h"), Ok(5_400_000));
        for wrong in ["", "m", "-1s", "5 weeks", "1w", "infs", "nans", "1e300d"] {
            assert!(duration_ms(wrong).is_err(), "{wrong}");
        }
    }
}
