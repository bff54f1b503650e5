//! Checks the tables of `tests/data`: white space and invisible marks, and different spellings of one value.

use serde_json::Value;
use webfill_values::{
    DateOrder, DateReading, Decimal, NumberNotation, NumberReading, collapse_white_space,
    folded_form, is_blank, is_equivalent_value, normal_form, read_dates, read_numbers, trim,
};

/// The cells of each line of a tab-separated table. Lines that begin with `#` are skipped.
fn rows(table: &str) -> Vec<Vec<String>> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split('\t').map(unescape).collect())
        .collect()
}

fn unescape(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        plain.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        plain.push_str(rest);
    }
    plain
}

#[test]
fn white_space_and_invisible_marks_are_no_value_and_are_removed() {
    let rows = rows(include_str!("data/blanks.tsv"));
    assert!(rows.len() >= 100, "{}", rows.len());
    for row in rows {
        let [text, blank, trimmed, collapsed] = row.as_slice() else {
            panic!("{row:?}");
        };
        assert_eq!(is_blank(text), blank == "blank", "{text:?}");
        assert_eq!(trim(text), trimmed, "{text:?}");
        assert_eq!(&collapse_white_space(text), collapsed, "{text:?}");
    }
}

#[test]
fn spellings_of_one_value_are_the_same_and_other_values_are_not() {
    let rows = rows(include_str!("data/spellings.tsv"));
    assert!(rows.len() >= 100, "{}", rows.len());
    let value = |text: &String| match text.strip_prefix('j') {
        Some(json) => serde_json::from_str(json).unwrap(),
        None => Value::String(text.clone()),
    };
    for row in rows {
        let [expected, one, other] = row.as_slice() else {
            panic!("{row:?}");
        };
        for (one, other) in [(one, other), (other, one)] {
            let is_same = is_equivalent_value(&value(one), &value(other));
            assert_eq!(is_same, expected == "same", "{one:?} {other:?}");
        }
        for text in [one, other] {
            let normal = normal_form(text);
            assert_eq!(normal_form(&normal), normal, "{text:?}");
            let folded = folded_form(text);
            assert_eq!(folded_form(&folded), folded, "{text:?}");
        }
    }
}

#[test]
fn decimals_keep_every_digit() {
    for (text, plain, number) in [
        ("0", "0", "0"),
        ("-0.00", "0", "0"),
        ("5", "5", "5"),
        ("5.00", "5", "5"),
        ("-12.50", "-12.5", "-12.5"),
        ("1e3", "1000", "1000"),
        ("1.5e-3", "0.0015", "0.0015"),
        (
            "9223372036854775808",
            "9223372036854775808",
            "9223372036854775808",
        ),
        (
            "18446744073709551615",
            "18446744073709551615",
            "18446744073709551615",
        ),
        ("18446744073709551616", "18446744073709551616", "none"),
        ("18446744073709551617", "18446744073709551617", "none"),
        ("9007199254740993", "9007199254740993", "9007199254740993"),
        ("9007199254740993.5", "9007199254740993.5", "none"),
        ("0.1234567890123456789", "0.1234567890123456789", "none"),
        ("1e200", "1e200", "1e+200"),
        ("0.3", "0.3", "0.3"),
    ] {
        let decimal = Decimal::from_text(text).unwrap();
        assert_eq!(decimal.plain(), plain, "{text}");
        let written = decimal.to_number(false);
        let written = written.map_or("none".to_owned(), |number| number.to_string());
        assert_eq!(written, number, "{text}");
    }
    for text in ["", "-", "1.2.3", "1e", "e3", "1,5", " 5", "NaN", "1e9999"] {
        assert_eq!(Decimal::from_text(text), None, "{text}");
    }
}

#[test]
fn numbers_are_read_as_they_are_written_around_the_world() {
    let rows = rows(include_str!("data/numbers.tsv"));
    assert!(rows.len() >= 100, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let [decimal, group, texts, expected] = row.as_slice() else {
            panic!("{row:?}");
        };
        let notation = NumberNotation {
            decimal: decimal.chars().next(),
            group: (!group.is_empty()).then(|| group.chars().collect()),
        };
        let texts: Vec<&str> = texts.split(" | ").collect();
        let read = read_numbers(&texts, &notation);
        let read: Vec<String> = read.into_iter().map(format_reading).collect();
        if read.join(" | ") != *expected {
            wrong.push(format!(
                "{texts:?} {decimal:?} {group:?}: {read:?} instead of {expected}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Formats a number without the zeros at the end of its fraction. One zero stays if there is no other digit in the
/// fraction: `5.0`.
fn format_reading(reading: NumberReading) -> String {
    match reading {
        NumberReading::None => "none".to_owned(),
        NumberReading::Undecided => "undecided".to_owned(),
        NumberReading::Several => "several".to_owned(),
        NumberReading::Number(decimal, fraction) => match fraction && decimal.is_integer() {
            true => format!("{}.0", decimal.plain()),
            false => decimal.plain(),
        },
    }
}

#[test]
fn dates_are_read_in_many_languages_and_only_if_they_exist() {
    let rows = rows(include_str!("data/dates.tsv"));
    assert!(rows.len() >= 100, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let [order, texts, expected] = row.as_slice() else {
            panic!("{row:?}");
        };
        let order = match order.as_str() {
            "day_first" => Some(DateOrder::DayFirst),
            "month_first" => Some(DateOrder::MonthFirst),
            _ => None,
        };
        let texts: Vec<&str> = texts.split(" | ").collect();
        let read = read_dates(&texts, order)
            .into_iter()
            .map(|reading| match reading {
                DateReading::None => "none".to_owned(),
                DateReading::Undecided => "undecided".to_owned(),
                DateReading::Date(date) => date,
            });
        let read: Vec<String> = read.collect();
        if read.join(" | ") != *expected {
            wrong.push(format!(
                "{texts:?} {order:?}: {read:?} instead of {expected}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
