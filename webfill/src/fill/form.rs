//! The form of values: what is written has the form that the known values of its column have.

use webfill_table::Kind;

/// So many of a hundred known values must be of a kind.
const MOST: usize = 95;

/// What nearly all of these known values are; a few may be of other kinds by mistake.
pub fn of<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Kind {
    let count = known().count();
    let kinds = [
        Kind::Integer,
        Kind::Number,
        Kind::Date,
        Kind::Time,
        Kind::Bool,
        Kind::Url,
    ];
    let is_of = |kind: &Kind| {
        let fitting = known().filter(|value| Kind::of_text(value).fits(*kind));
        count > 0 && fitting.count() * 100 >= count * MOST
    };
    kinds.into_iter().find(is_of).unwrap_or(Kind::Text)
}

/// A value as its column has it, or why it cannot be.
pub fn fitted(value: &str, form: Kind) -> Result<String, String> {
    let is_of_form = |value: &String| Kind::of_text(value).fits(form);
    let given = webfill_values::trimmed(value).to_owned();
    let converted = match form {
        Kind::Text | Kind::Other => return Ok(value.to_owned()),
        _ if is_of_form(&given) => return Ok(given),
        Kind::Integer | Kind::Number => plain_number(&given),
        Kind::Date | Kind::Time => {
            let form = webfill_learn::common_form(&given);
            form.strip_prefix("day ").map(str::to_owned)
        }
        Kind::Bool | Kind::Url => None,
    };
    converted
        .filter(is_of_form)
        .ok_or_else(|| format!("nearly all known values of the column are of the kind {form}"))
}

/// A number without the marks between its groups of digits, if these are certain.
fn plain_number(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let is_mark = |c: char| ",.'\u{2019} \u{a0}\u{2009}\u{202f}".contains(c);
    let marks: Vec<(usize, char)> = digits.char_indices().filter(|(_, c)| is_mark(*c)).collect();
    let &(last_at, last) = marks.last()?;
    let behind = &digits[last_at + last.len_utf8()..];
    let is_only = marks.iter().filter(|(_, mark)| *mark == last).count() == 1;
    // The last mark stands before a fraction if it is the only one of its kind, and no group follows.
    let is_fraction =
        ",.".contains(last) && is_only && (marks.len() > 1 || behind.len() != 3 || last == '.');
    let (whole, fraction) = match is_fraction {
        true => (&digits[..last_at], behind),
        false => (digits, ""),
    };
    let separators: Vec<char> = whole.chars().filter(|c| is_mark(*c)).collect();
    if separators.windows(2).any(|two| two[0] != two[1]) {
        return None;
    }
    let mut groups = whole.split(is_mark);
    let first = groups.next()?;
    let is_grouped =
        separators.is_empty() || (first.len() <= 3 && groups.all(|group| group.len() == 3));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let plain: String = whole.chars().filter(|c| !is_mark(*c)).collect();
    if !is_grouped || first.is_empty() || !all_digits(&plain) || !all_digits(fraction) {
        return None;
    }
    Some(match fraction {
        "" => format!("{sign}{plain}"),
        fraction => format!("{sign}{plain}.{fraction}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_form_of_their_column_or_are_refused() {
        let table = [
            (Kind::Integer, "1234567", Some("1234567")),
            (Kind::Integer, "1,234,567", Some("1234567")),
            (Kind::Integer, "1 234", Some("1234")),
            (Kind::Integer, "1\u{a0}234", Some("1234")),
            (Kind::Integer, "\u{2212}1,234", Some("-1234")),
            (Kind::Integer, "1.234.567", Some("1234567")),
            // One and a bit, or a thousand and more.
            (Kind::Integer, "1.234", None),
            (Kind::Integer, "12,34", None),
            (Kind::Integer, "1,23,456", None),
            (Kind::Integer, "about 1,234", None),
            (Kind::Integer, "300 pages", None),
            (Kind::Integer, ",123", None),
            (Kind::Number, "1,234.50", Some("1234.50")),
            (Kind::Number, "1.234,50", Some("1234.50")),
            (Kind::Number, "12,5", Some("12.5")),
            (Kind::Number, "12.5", Some("12.5")),
            (Kind::Number, "12.5 kg", None),
            (Kind::Date, "2010-05-25", Some("2010-05-25")),
            (Kind::Date, "May 25, 2010", Some("2010-05-25")),
            (Kind::Date, "01/02/2024", None),
            (Kind::Url, "/a/b", None),
            (Kind::Text, "1,234", Some("1,234")),
        ];
        for (form, value, expected) in table {
            let fitted = fitted(value, form).ok();
            assert_eq!(fitted.as_deref(), expected, "{value} as {form}");
        }
    }

    #[test]
    fn the_form_of_a_column_is_that_of_nearly_all_its_values() {
        let of = |values: &[&str]| of(|| values.iter().map(|value| (*value).to_owned()));
        assert_eq!(of(&["1", "20"]), Kind::Integer);
        assert_eq!(of(&["1", "2.5"]), Kind::Number);
        assert_eq!(of(&["2010-05-25"]), Kind::Date);
        assert_eq!(of(&["1", "two", "3"]), Kind::Text);
        assert_eq!(of(&["0123", "0456"]), Kind::Text);
        assert_eq!(of(&[]), Kind::Text);
        let mut one_wrong = vec!["7"; 99];
        one_wrong.push("seven");
        assert_eq!(of(&one_wrong), Kind::Integer);
    }
}
