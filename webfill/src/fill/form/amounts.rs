//! Amounts: one number with a currency sign or a percent sign.

use std::collections::BTreeMap;

use super::MOST;

/// Whether nearly all known values are amounts, such as prices.
pub fn has_amounts<I: Iterator<Item = String>>(known: impl Fn() -> I) -> bool {
    let count = known().count();
    let amounts = known().filter(|value| is_amount(value)).count();
    count > 0 && amounts * 100 >= count * MOST
}

/// Whether a value is one number with a currency sign or a percent sign, such as `$1,234.50`. A range of prices or a
/// telephone number is not.
pub fn is_amount(value: &str) -> bool {
    let (mut numbers, mut is_within, mut has_sign) = (0, false, false);
    for c in webfill_values::trim(value).chars() {
        match c {
            _ if c.is_ascii_digit() => {
                numbers += usize::from(!is_within);
                is_within = true;
            }
            _ if c.is_alphabetic() => return false,
            // These characters may separate groups of digits.
            _ if c.is_whitespace() || ".,'\u{2019}".contains(c) => {}
            _ => {
                is_within = false;
                has_sign |= webfill_learn::is_amount_sign(c);
            }
        }
    }
    numbers == 1 && has_sign
}

/// The text between the number and its sign in nearly all known amounts: empty, or some kind of space.
pub fn amount_space<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in known() {
        if let Some(space) = space_at_sign(&value) {
            *counts.entry(value[space].to_owned()).or_default() += 1;
        }
    }
    let all: usize = counts.values().sum();
    let (space, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count * 100 >= all * MOST).then_some(space)
}

/// Puts this space between an amount's number and its sign. Any other text stays unchanged.
pub fn with_space_at_sign(mut value: String, space: Option<&str>) -> String {
    let at_sign = space_at_sign(&value).filter(|_| is_amount(&value));
    if let Some((at, space)) = at_sign.zip(space) {
        value.replace_range(at, space);
    }
    value
}

/// The position of the space between an amount's number and its sign.
fn space_at_sign(value: &str) -> Option<std::ops::Range<usize>> {
    let (at, sign) = value
        .char_indices()
        .find(|(_, c)| webfill_learn::is_amount_sign(*c))?;
    let (before, after) = (&value[..at], &value[at + sign.len_utf8()..]);
    let number = after.trim_start();
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(value.len() - after.len()..value.len() - number.len());
    }
    let number = before.trim_end();
    let ends = number.ends_with(|c: char| c.is_ascii_digit());
    ends.then_some(number.len()..at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_one_number_with_a_sign() {
        for value in [
            "$9,970",
            "12,50 \u{20ac}",
            "\u{20ac} 1 234.50",
            "$ 12",
            "50 %",
            "-$5",
            "1\u{2019}000 $",
            "\u{a3}5",
            "\u{20b9} 1,00,000",
        ] {
            assert!(is_amount(value), "{value}");
        }
        let others = [
            "$114,200 - $155,100",
            "$12\u{2013}15",
            "1,234",
            "from $12",
            "USD 12",
            "907/279-7311",
            "+49 30 123456",
            "6-5",
            "6'2\"",
            "$",
            "",
        ];
        for value in others {
            assert!(!is_amount(value), "{value}");
        }
        let of = |values: &[&str]| has_amounts(|| values.iter().map(|value| (*value).to_owned()));
        assert!(of(&["$9,970", "$12.50"]));
        assert!(!of(&["$9,970", "$12 - $15"]) && !of(&["12", "13"]) && !of(&[]));
    }

    #[test]
    fn amounts_have_the_space_at_their_sign_that_their_column_has() {
        let of = |values: &[&str]| amount_space(|| values.iter().map(|value| (*value).to_owned()));
        let table = [
            (["42%", "7%"], "15 %", "15%"),
            (["42 %", "7 %"], "15%", "15 %"),
            (
                ["12,50\u{a0}\u{20ac}", "7,00\u{a0}\u{20ac}"],
                "3,10 \u{20ac}",
                "3,10\u{a0}\u{20ac}",
            ),
            (["$12", "$ 7"], "$ 15", "$ 15"),
            (["$12", "$7"], "-$ 15.00", "-$15.00"),
            (["$12", "$7"], "$ 15 - $ 20", "$ 15 - $ 20"),
            (["$12", "$7"], "15", "15"),
        ];
        for (column, value, expected) in table {
            let space = of(&column);
            let written = with_space_at_sign(value.to_owned(), space.as_deref());
            assert_eq!(written, expected, "{column:?}");
        }
    }
}
