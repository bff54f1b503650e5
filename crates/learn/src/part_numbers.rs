//! Recognises numbers that are parts of longer ones: the 19 of `$19,405`, the 12 of `12/24/2010`, the 10 of `10:30`. A
//! page has many of them, so they do not show that it has the value 19, 12 or 10.

/// Whether the value at this position in the text begins or ends in the middle of a number.
pub fn is_part_of_number(text: &str, start: usize, length: usize) -> bool {
    let value = &text[start..start + length];
    let (before, after) = (&text[..start], &text[start + length..]);
    continues_after(value, after)
        || continues_before(before, value)
        || is_in_date(before, value, after)
}

fn first_digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

fn last_digits(text: &str) -> &str {
    let start = text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    &text[start..]
}

/// Whether the text after a number continues it. Zeros after a point (`12.00`) do not change the number.
fn continues_after(value: &str, after: &str) -> bool {
    let mark = after.chars().next();
    let Some(mark) = mark.filter(|_| !last_digits(value).is_empty()) else {
        return false;
    };
    let digits = first_digits(&after[mark.len_utf8()..]);
    match mark {
        '.' => digits.bytes().any(|digit| digit != b'0'),
        ',' => digits.len() == 3 && last_digits(value).len() <= 3,
        ':' => digits.len() == 2 && last_digits(value).len() <= 2,
        _ => false,
    }
}

fn continues_before(before: &str, value: &str) -> bool {
    let digits = first_digits(value);
    let mark = before.chars().next_back();
    let Some(mark) = mark.filter(|_| !digits.is_empty()) else {
        return false;
    };
    let number = last_digits(&before[..before.len() - mark.len_utf8()]);
    match mark {
        '.' => !number.is_empty(),
        ',' => digits.len() == 3 && (1..=3).contains(&number.len()),
        ':' => digits.len() == 2 && (1..=2).contains(&number.len()),
        _ => false,
    }
}

/// Whether the value is the day or the month of a date in three numbers. The year of a date may be a value.
fn is_in_date(before: &str, value: &str, after: &str) -> bool {
    if value.len() > 2 || first_digits(value).len() < value.len() {
        return false;
    }
    ['/', '-'].into_iter().any(|mark| {
        let next = after.strip_prefix(mark).map_or("", first_digits);
        let previous = before.strip_suffix(mark).map_or("", last_digits);
        let far_next = || {
            after[1 + next.len()..]
                .strip_prefix(mark)
                .map_or("", first_digits)
        };
        let far_previous = || {
            let rest = &before[..before.len() - 1 - previous.len()];
            rest.strip_suffix(mark).map_or("", last_digits)
        };
        match (previous.is_empty(), next.is_empty()) {
            (false, false) => true,
            (true, false) => !far_next().is_empty(),
            (false, true) => !far_previous().is_empty(),
            (true, true) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_longer_ones_are_no_values() {
        let is_part = |text: &str, value: &str| {
            let start = text.find(value).unwrap();
            is_part_of_number(text, start, value.len())
        };
        for (text, value) in [
            ("$19,405", "19"),
            ("$1,405", "405"),
            ("2.5 l", "2"),
            ("0.75 l", "75"),
            ("10:30 PM", "10"),
            ("at 10:30", "30"),
            ("12/24/2010", "12"),
            ("12/24/2010", "24"),
            ("2010-12-24", "24"),
            ("Canon 12.1", "Canon 12"),
        ] {
            assert!(is_part(text, value), "{value} in {text}");
        }
        for (text, value) in [
            ("12.00 kg", "12"),
            ("12, 19", "12"),
            ("12,19", "19"),
            ("18/26 mpg", "18"),
            ("18-26 mpg", "26"),
            ("12/24/2010", "2010"),
            ("In 2010. 12 pages", "2010"),
            ("In 2010. 12 pages", "12"),
            ("No. 5", "5"),
            ("(325) 674-2000", "674"),
            ("ratio: 16", "16"),
            ("12", "12"),
        ] {
            assert!(!is_part(text, value), "{value} in {text}");
        }
    }
}
