//! The form of values: a value that is filled in gets the form of the known values in its column.

mod amounts;
mod commas;

use std::collections::BTreeMap;

use webfill_table::Kind;

pub use self::amounts::{amount_space, has_amounts, is_amount, with_space_at_sign};
pub use self::commas::{comma_style, with_comma_style};

/// The percentage of known values that must have the same form.
pub(super) const MOST: usize = 95;

/// The kind that nearly all of these known values have. A few mistakes are tolerated.
pub fn common_kind<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Kind {
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
        let fitting = known().filter(|value| Kind::from_text(value).fits_column(*kind));
        count > 0 && fitting.count() * 100 >= count * MOST
    };
    kinds.into_iter().find(is_of).unwrap_or(Kind::Text)
}

/// The number of decimals that nearly all known values have, as prices do. A few mistakes are tolerated.
pub fn decimals<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for value in known() {
        let digits = value.split_once('.').map_or(0, |(_, digits)| digits.len());
        *counts.entry(digits).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let (digits, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (digits > 0 && count * 100 >= all * MOST).then_some(digits)
}

/// Appends zeros until a number has at least this many decimals. No digit is removed.
pub fn pad_decimals(value: String, decimals: Option<usize>) -> String {
    let is_plain = |c: char| c.is_ascii_digit() || c == '-' || c == '.';
    let Some(decimals) = decimals.filter(|_| value.chars().all(is_plain)) else {
        return value;
    };
    let (whole, digits) = value.split_once('.').unwrap_or((&value, ""));
    format!("{whole}.{digits:0<decimals$}")
}

/// Whether nearly all known points in time are in UTC, which their final `Z` shows.
pub fn is_in_utc<I: Iterator<Item = String>>(known: impl Fn() -> I) -> bool {
    let (mut all, mut utc) = (0, 0);
    for value in known() {
        all += 1;
        utc += usize::from(value.ends_with('Z'));
    }
    all > 0 && utc * 100 >= all * MOST
}

/// Converts a point in time to UTC. A day without a time stays unchanged.
pub fn convert_to_utc(value: String) -> Result<String, String> {
    match Kind::from_text(&value) {
        Kind::Time if !value.ends_with('Z') => webfill_table::to_utc(&value).ok_or_else(|| {
            String::from(
                "nearly all known values of the column have a time zone, and this one has none",
            )
        }),
        _ => Ok(value),
    }
}

/// The years of the first and the last of these days.
pub fn year_range<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Option<(i32, i32)> {
    let first = known().filter_map(|value| year(&value)).min()?;
    let last = known().filter_map(|value| year(&value)).max()?;
    Some((first, last))
}

fn year(day: &str) -> Option<i32> {
    day.get(..4)?.parse().ok()
}

/// Whether a day is outside the range of known days, but a century earlier or later would be in or near that range.
/// Pages may write years with two digits, which are read as 1969 to 2068.
pub fn may_be_of_other_century(day: &str, (first, last): (i32, i32)) -> bool {
    /// How many years outside of the known range still count as near it. A few known days do not show the whole range.
    const BEYOND: i32 = 10;
    let is_near = |year: i32| (first - BEYOND..=last + BEYOND).contains(&year);
    year(day).is_some_and(|year| match year {
        1969..=1999 => year < first && is_near(year + 100),
        2000..=2068 => year > last && is_near(year - 100),
        _ => false,
    })
}

/// Whether the end of a value shows that it is incomplete: `Iris Murdoch and 2 more`, `Ada Byron et al.`,
/// `A lamp of...`.
pub fn is_cut_off(value: &str) -> bool {
    const REST: [&str; 5] = ["more", "others", "weitere", "autres", "m\u{e1}s"];
    let value = webfill_values::trim(value);
    let mut words = value.split_whitespace().rev();
    let (last, before) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let number = before.trim_start_matches('+');
    let counts_rest = REST.contains(&last.to_lowercase().as_str())
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit());
    counts_rest
        || before == "et" && matches!(last, "al" | "al.")
        || value.ends_with("...")
        || value.ends_with('\u{2026}')
}

/// Whether all known values have letters, as names and sentences do.
pub fn has_letters<I: Iterator<Item = String>>(known: impl Fn() -> I) -> bool {
    /// The result is true only from at least this many known values.
    const LEAST: usize = 8;
    known().take(LEAST).count() == LEAST && known().all(|value| value.contains(char::is_alphabetic))
}

/// Converts a value to the kind of its column. The error is the reason why that is impossible.
pub fn fit_to_kind(value: &str, form: Kind) -> Result<String, String> {
    let is_of_form = |value: &String| Kind::from_text(value).fits_column(form);
    let given = webfill_values::trim(value).to_owned();
    let converted = match form {
        Kind::Text | Kind::Other => return Ok(value.to_owned()),
        _ if is_of_form(&given) => return Ok(given),
        Kind::Integer => plain_number(&given).map(without_zero_fraction),
        Kind::Number => plain_number(&given),
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

/// Removes the decimals of a whole number that is written like a price: `45000.00`. Three zeros stay, because they may
/// be a group of digits.
fn without_zero_fraction(number: String) -> String {
    match number.split_once('.') {
        Some((whole, "0" | "00")) => whole.to_owned(),
        _ => number,
    }
}

/// A number without the separators between its groups of digits; `None` if its meaning is ambiguous.
pub(super) fn plain_number(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let is_mark = |c: char| ",.'\u{2019} \u{a0}\u{2009}\u{202f}".contains(c);
    let marks: Vec<(usize, char)> = digits.char_indices().filter(|(_, c)| is_mark(*c)).collect();
    let &(last_at, last) = marks.last()?;
    let behind = &digits[last_at + last.len_utf8()..];
    let is_only = marks.iter().filter(|(_, mark)| *mark == last).count() == 1;
    // The last separator begins the decimals if no other separator is the same and the digits after it are not a group.
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
            // This may mean 1 and a fraction, or more than a thousand.
            (Kind::Integer, "1.234", None),
            (Kind::Integer, "12,34", None),
            (Kind::Integer, "45,000.00", Some("45000")),
            (Kind::Integer, "45000.0", Some("45000")),
            (Kind::Integer, "45.000", None),
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
            let fitted = fit_to_kind(value, form).ok();
            assert_eq!(fitted.as_deref(), expected, "{value} as {form}");
        }
    }

    #[test]
    fn numbers_get_the_digits_after_the_point_that_their_column_has() {
        let of = |values: &[&str]| decimals(|| values.iter().map(|value| (*value).to_owned()));
        assert_eq!(of(&["1.50", "20.00"]), Some(2));
        assert_eq!(of(&["1.5", "20.25"]), None);
        assert_eq!(of(&["1", "20"]), None);
        assert_eq!(of(&[]), None);
        let padded = |value: &str| pad_decimals(value.to_owned(), Some(2));
        assert_eq!(padded("956.1"), "956.10");
        assert_eq!(padded("-956"), "-956.00");
        assert_eq!(padded("1.234"), "1.234");
        assert_eq!(padded("1e5"), "1e5");
    }

    #[test]
    fn the_end_of_a_value_says_whether_it_is_all() {
        for value in [
            "Iris Murdoch and 2 more",
            "Ada Byron, +3 others",
            "Ada Byron et al.",
            "A lamp of bra...",
            "A lamp of\u{2026} ",
            "Ada Byron und 12 weitere",
        ] {
            assert!(is_cut_off(value), "{value}");
        }
        for value in ["No more", "Ten others", "et", "more", "", "Al", "A lamp."] {
            assert!(!is_cut_off(value), "{value}");
        }
    }

    #[test]
    fn a_column_of_names_has_letters() {
        let names = [
            "Acorn", "B2", "7 Stars", "Cedar", "Elm", "Fir", "Gorse", "Holly",
        ];
        let of = |names: &[&str]| has_letters(|| names.iter().map(|name| (*name).to_owned()));
        assert!(of(&names) && !of(&names[1..]));
        assert!(!of(&[&names[..], &["1984"]].concat()));
    }

    #[test]
    fn points_in_time_are_in_the_zone_of_their_column() {
        let of = |values: &[&str]| is_in_utc(|| values.iter().map(|value| (*value).to_owned()));
        assert!(of(&["2020-11-20T02:38:00Z", "2021-11-20T02:38:00Z"]));
        assert!(!of(&["2020-11-20T02:38:00Z", "2021-11-20T02:38:00"]) && !of(&[]));
        let utc = |value: &str| convert_to_utc(value.to_owned()).ok();
        for (value, expected) in [
            ("2020-11-20T04:38:00+02:00", Some("2020-11-20T02:38:00Z")),
            ("2020-11-20T02:38:00Z", Some("2020-11-20T02:38:00Z")),
            ("2020-11-20T02:38:00", None),
            ("2020-11-20", Some("2020-11-20")),
        ] {
            assert_eq!(utc(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn a_day_that_is_a_century_beyond_the_known_ones_is_not_certain() {
        let known = || ["1966-01-02", "2030-05-06"].into_iter().map(str::to_owned);
        let years = year_range(known).unwrap();
        assert_eq!(years, (1966, 2030));
        for (day, expected) in [
            ("2064-05-01", true),
            ("2066-05-01", true),
            ("2031-05-01", false),
            ("1999-05-01", false),
            ("1930-05-01", false),
            ("2166-05-01", false),
        ] {
            assert_eq!(may_be_of_other_century(day, years), expected, "{day}");
        }
    }

    #[test]
    fn the_form_of_a_column_is_that_of_nearly_all_its_values() {
        let of = |values: &[&str]| common_kind(|| values.iter().map(|value| (*value).to_owned()));
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
