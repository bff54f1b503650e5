//! Converts numbers and strings into each other (XPath 1.0, sections 4.2 and 4.4).

/// Whether a character is white space as defined by XML.
pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

pub(crate) fn text_to_number(text: &str) -> f64 {
    let digits = text.trim_matches(is_space);
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    let plain = unsigned
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    // The number parser rejects other invalid forms, such as `.` and `1.2.3`.
    if plain {
        digits.parse().unwrap_or(f64::NAN)
    } else {
        f64::NAN
    }
}

pub(crate) fn number_to_text(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_decimal_numbers_are_numbers() {
        assert_eq!(text_to_number(" \n-12.50\t"), -12.5);
        assert_eq!(text_to_number("5."), 5.0);
        assert_eq!(text_to_number(".5"), 0.5);
        for text in [
            "", "-", ".", "+5", "1e3", "inf", "NaN", "1 2", "--1", "- 1", "1.2.3", "0x1",
        ] {
            assert!(text_to_number(text).is_nan(), "{text:?}");
        }
    }

    #[test]
    fn numbers_are_written_without_exponent_and_needless_point() {
        assert_eq!(number_to_text(3.0), "3");
        assert_eq!(number_to_text(-0.0), "0");
        assert_eq!(number_to_text(0.000_001), "0.000001");
        assert_eq!(number_to_text(1e21), "1000000000000000000000");
        assert_eq!(number_to_text(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(number_to_text(f64::NAN), "NaN");
    }
}
