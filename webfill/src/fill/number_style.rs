//! The notation of numbers in a column of texts: the separator between groups of digits, and the mark before the
//! decimals.

use std::collections::BTreeMap;

use webfill_table::Kind;

use super::form::{MOST, plain_number};

/// The notation of numbers in a column of texts, such as `1.234,50`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberStyle {
    decimal: char,
    /// The separator between groups of three digits; `None` if digits are not grouped.
    group: Option<char>,
    /// The number of decimals, if nearly all values have the same number.
    decimals: Option<usize>,
}

/// The notation of a column, if exactly one notation fits nearly all known values. Columns of plain numbers, such as
/// `1234.5`, are not texts and have no such notation.
pub fn number_style<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Option<NumberStyle> {
    /// A notation is recognised only from at least this many known values.
    const LEAST: usize = 3;
    const GROUPS: [char; 7] = [',', '.', ' ', '\u{a0}', '\u{202f}', '\'', '\u{2019}'];
    let of_decimal = |decimal| {
        let groups = GROUPS.into_iter().filter(move |group| *group != decimal);
        let groups = groups.map(Some).chain([None]);
        groups.map(move |group| (decimal, group))
    };
    let mut shown = ['.', ',']
        .into_iter()
        .flat_map(of_decimal)
        .filter_map(|(decimal, group)| {
            let style = NumberStyle {
                decimal,
                group,
                decimals: None,
            };
            let (mut all, mut fitting, mut has_group, mut has_fraction) = (0, 0, false, false);
            let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
            for value in known() {
                all += 1;
                if let Some((whole, fraction)) = style.split_number(&value) {
                    fitting += 1;
                    has_group |= group.is_some_and(|group| whole.contains(group));
                    has_fraction |= !fraction.is_empty();
                    *counts.entry(fraction.len()).or_default() += 1;
                }
            }
            let is_shown = match group {
                // Whole numbers alone do not show which mark would begin the decimals.
                Some(mark) => has_group && (has_fraction || decimal == '.' || mark == '.'),
                None => has_fraction,
            };
            let (decimals, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
            let has_decimals = decimals > 0 && count * 100 >= all * MOST;
            let fits = all >= LEAST && fitting * 100 >= all * MOST;
            (is_shown && fits).then_some(NumberStyle {
                decimals: has_decimals.then_some(decimals),
                ..style
            })
        });
    let first = shown.next()?;
    shown.next().is_none().then_some(first)
}

impl NumberStyle {
    /// The digits before the decimals, with their separators, and the decimals. `None` for any other text.
    fn split_number<'v>(&self, value: &'v str) -> Option<(&'v str, &'v str)> {
        let digits = value.strip_prefix('-').unwrap_or(value);
        let (whole, fraction) = match digits.split_once(self.decimal) {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (digits, ""),
        };
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let mut groups = whole.split(|c| Some(c) == self.group);
        let first = groups.next()?;
        let is_first = !first.is_empty()
            && all_digits(first)
            && (first.len() == 1 || !first.starts_with('0'))
            && (self.group.is_none() || first.len() <= 3);
        let are_groups = groups.all(|group| group.len() == 3 && all_digits(group));
        (is_first && are_groups && all_digits(fraction)).then_some((whole, fraction))
    }

    /// Converts a number to the column's notation. Any other text stays unchanged.
    pub fn format(&self, value: String) -> String {
        let given = webfill_values::trim(&value);
        let is_plain = matches!(Kind::from_text(given), Kind::Integer | Kind::Number);
        let plain = match self.split_number(given) {
            Some(_) => given
                .replace(|c| Some(c) == self.group, "")
                .replace(self.decimal, "."),
            None if is_plain => given.to_owned(),
            None => match plain_number(given) {
                Some(plain) => plain,
                None => return value,
            },
        };
        let (sign, digits) = match plain.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", plain.as_str()),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mut written = sign.to_owned();
        for (at, digit) in whole.char_indices() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                written.extend(self.group);
            }
            written.push(digit);
        }
        let decimals = self.decimals.unwrap_or_default();
        if !fraction.is_empty() || decimals > 0 {
            written.push(self.decimal);
            written += &format!("{fraction:0<decimals$}");
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_their_column_writes_them() {
        let style =
            |values: &[&str]| number_style(|| values.iter().map(|value| (*value).to_owned()));
        let german = ["21882,31", "12,50", "7,00"];
        let grouped = ["1.234,50", "12,00", "1.234.567,00"];
        let english = ["1,234.50", "12.00", "999.99"];
        let whole = ["1,234", "567", "1,234,567"];
        let spaced = ["12\u{a0}345", "678", "1\u{a0}234\u{a0}567"];
        // Each entry has the known values of a column, a value, and the value in the column's notation.
        let table = [
            (&german, "98022.18", "98022,18"),
            (&german, "12.5", "12,50"),
            (&german, "12", "12,00"),
            (&german, "1,234.50", "1234,50"),
            (&german, "-3.20", "-3,20"),
            (&german, "12,34", "12,34"),
            (&german, "about 12", "about 12"),
            (&grouped, "98022.18", "98.022,18"),
            (&grouped, "1234567", "1.234.567,00"),
            (&grouped, "1,234.50", "1.234,50"),
            (&english, "98022.1", "98,022.10"),
            (&english, "1.234,50", "1,234.50"),
            (&whole, "98022", "98,022"),
            (&whole, "123", "123"),
            (&whole, "-1234", "-1,234"),
            (&spaced, "98022", "98\u{a0}022"),
        ];
        for (column, value, expected) in table {
            let style = style(column).unwrap();
            assert_eq!(
                style.format(value.to_owned()),
                expected,
                "{value} in {column:?}"
            );
        }
        let others: [&[&str]; 7] = [
            // These may be more than a thousand, or 1 and a fraction.
            &["1,234", "5,678", "9,012"],
            &["1,2,3", "4,5", "6"],
            &["12,5", "7,1"],
            &["0123,5", "045,1", "067,2"],
            &["Soup, Dinner", "12,5", "13,5"],
            &["12.5", "13", "14"],
            &["12", "13", "14"],
        ];
        for values in others {
            let found = style(values).filter(|style| style.decimal == ',' || style.group.is_some());
            assert_eq!(found, None, "{values:?}");
        }
    }
}
