//! Converts a text with the same meaning to the record's form: the order of a date, the names of months, capitals, and
//! marks between digits.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::dates;
use crate::fold::KnownValue;

static ORDERED_DAY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d{1,4})([./-])(\d{1,2})([./-])(\d{1,4})$").expect("constant pattern")
});

/// All ways to convert a text with the same meaning to the record's form, each as a list of processors. Empty if there
/// is none.
pub(crate) fn conversions(wanted: &KnownValue, text: &str) -> Vec<Vec<Value>> {
    let value = &wanted.text;
    let mut ways: Vec<Vec<Value>> = spelling_conversion(text, value)
        .map(|one| vec![one])
        .into_iter()
        .collect();
    if let Some(day) = wanted.day.as_ref().filter(|_| text != value) {
        for way in dates::date_interpretations(text)
            .iter()
            .filter(|way| way.day == *day)
        {
            let as_iso = way.processors(false);
            let ordered = day_conversion(day, value).into_iter().map(|one| vec![one]);
            let written = ordered.chain(named_day_conversions(day, value));
            ways.extend(written.map(|form| as_iso.iter().cloned().chain(form).collect()));
        }
    }
    ways
}

/// The processors that convert a day in ISO 8601 to the record's form. There are several ways if `value` does not show
/// which number is the day.
fn day_conversion(iso: &str, value: &str) -> Vec<Value> {
    let Some(parts) = ORDERED_DAY.captures(value) else {
        return Vec::new();
    };
    let (first, second) = (&parts[2], &parts[4]);
    let (padded, plain) = (r"^(\d{4})-(\d{2})-(\d{2})$", r"^(\d{4})-0?(\d+)-0?(\d+)$");
    let orders = [
        format!("$3{first}$2{second}$1"),
        format!("$2{first}$3{second}$1"),
        format!("$1{first}$2{second}$3"),
    ];
    let mut ways = Vec::new();
    for pattern in [padded, plain] {
        for with in &orders {
            let written = Regex::new(pattern).map(|pattern| pattern.replace(iso, with.as_str()));
            if written.is_ok_and(|written| written == value) && iso != value {
                ways.push(replace_processor(pattern, with));
            }
        }
    }
    ways
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The ways to convert a day in ISO 8601 to the record's form, with the English name of the month or its first three
/// letters. For May, both are the same, so other known values decide.
fn named_day_conversions(iso: &str, value: &str) -> Vec<Vec<Value>> {
    let parts: Vec<&str> = iso.split('-').collect();
    let [year, month, day] = parts[..] else {
        return Vec::new();
    };
    let name = month
        .parse::<usize>()
        .ok()
        .and_then(|at| MONTHS.get(at.checked_sub(1)?));
    let Some(name) = name.filter(|_| iso != value) else {
        return Vec::new();
    };
    let mut ways = Vec::new();
    for letters in [usize::MAX, 3] {
        let shortened = |name: &'static str| &name[..letters.min(name.len())];
        let name = shortened(name);
        let bare = day.trim_start_matches('0');
        for (pattern, day) in [
            (r"^(\d{4})-(\d{2})-(\d{2})$", day),
            (r"^(\d{4})-(\d{2})-0?(\d+)$", bare),
        ] {
            // A control character stands for each part of the date, so that inserted text is not replaced again.
            let mut form = value.to_owned();
            for (what, part) in [(year, "\u{1}"), (name, "\u{2}"), (day, "\u{3}")] {
                if form.matches(what).count() != 1 {
                    form.clear();
                }
                form = form.replacen(what, part, 1);
            }
            // Letters or digits that remain, such as the name of a weekday, would be wrong for most other dates.
            if form.is_empty() || form.contains(char::is_alphanumeric) {
                continue;
            }
            let form = form.replace('$', "$$").replace('\u{1}', "${1}");
            let form = form.replace('\u{2}', "{m${2}}").replace('\u{3}', "${3}");
            let mut processors = vec![replace_processor(pattern, &form)];
            processors.extend(MONTHS.iter().enumerate().map(|(at, month)| {
                let find = format!("{{m{:02}}}", at + 1);
                json!({"type": "replace", "parameters": {"find": find, "with": shortened(month)}})
            }));
            ways.push(processors);
        }
    }
    ways
}

/// Whether a processor inserts the name of a month.
pub(crate) fn names_month(processor: &Value) -> bool {
    let find = processor["parameters"]["find"].as_str();
    find.is_some_and(|find| find.starts_with("{m"))
}

/// The processors that convert a number or text to the record's form, if both have the same digits and letters.
fn spelling_conversion(text: &str, value: &str) -> Option<Value> {
    if text == value {
        return None;
    }
    if text.to_uppercase() == value {
        return Some(json!({"type": "uppercase"}));
    }
    if text.to_lowercase() == value {
        return Some(json!({"type": "lowercase"}));
    }
    if text.replacen('.', ",", 1) == value && text.matches('.').count() == 1 {
        return Some(json!({"type": "replace", "parameters": {"find": ".", "with": ","}}));
    }
    let is_grouped = |mark: char| {
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let groups: Vec<&str> = value.split(mark).collect();
        groups.len() > 1
            && groups.concat() == text
            && groups.iter().all(|group| digits(group))
            && groups[1..].iter().all(|group| group.len() == 3)
            && groups[0].len() <= 3
    };
    let mark = [',', '.', ' ', '\'']
        .into_iter()
        .find(|mark| is_grouped(*mark))?;
    Some(replace_processor(
        r"(?<=\d)(?=(?:\d{3})+$)",
        &mark.to_string(),
    ))
}

pub(crate) fn replace_processor(find: &str, with: &str) -> Value {
    json!({"type": "replace", "parameters": {"find": find, "with": with, "regex": true}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_a_day_is_what_the_record_shows() {
        let with = |iso, value| -> Vec<String> {
            let ways = day_conversion(iso, value);
            let with = |way: &Value| way["parameters"]["with"].as_str().unwrap().to_owned();
            ways.iter().map(with).collect()
        };
        assert_eq!(with("2010-05-25", "25.05.2010"), ["$3.$2.$1"]);
        assert_eq!(with("2010-05-25", "5/25/2010"), ["$2/$3/$1"]);
        assert_eq!(with("2010-05-25", "25/06/2010"), [""; 0]);
        // Either number may be the day, so both orders are returned, and other known values decide.
        assert_eq!(with("2010-05-05", "05/05/2010"), ["$3/$2/$1", "$2/$3/$1"]);
        assert_eq!(with("2010-05-25", "2010-05-25"), [""; 0]);
    }

    #[test]
    fn months_are_named_as_the_record_names_them() {
        let forms = |iso, value| -> Vec<(String, String)> {
            let ways = named_day_conversions(iso, value);
            let text = |one: &Value| one["parameters"]["with"].as_str().unwrap().to_owned();
            ways.iter()
                .map(|way| (text(&way[0]), text(&way[9])))
                .collect()
        };
        let full = |form: &str| (form.to_owned(), String::from("September"));
        let short = |form: &str| (form.to_owned(), String::from("Sep"));
        let of = |iso, value, expected: &[(String, String)]| {
            assert_eq!(forms(iso, value), expected, "{value}");
        };
        let (month_first, day_first) = ("{m${2}} ${3}, ${1}", "${3} {m${2}} ${1}");
        // The day 25 does not show whether a day below 10 gets a leading zero.
        of(
            "2010-09-25",
            "September 25, 2010",
            &[full(month_first), full(month_first)],
        );
        of("2010-09-05", "5 Sep 2010", &[short(day_first)]);
        of(
            "2010-05-05",
            "05 May 2010",
            &[full(day_first), short(day_first)],
        );
        of("2010-09-25", "Tuesday, September 25, 2010", &[]);
        of("2010-09-02", "2 Sep 2010", &[short(day_first)]);
        of(
            "2010-09-20",
            "20 Sep 2010",
            &[short(day_first), short(day_first)],
        );
        of("2010-09-25", "25.09.2010", &[]);
        of("2010-09-25", "September 2010", &[]);
    }

    #[test]
    fn spellings_are_those_of_the_record() {
        let kind = |text, value| spelling_conversion(text, value).map(|one| one["type"].clone());
        assert_eq!(kind("Canon", "CANON"), Some("uppercase".into()));
        assert_eq!(kind("Canon", "canon"), Some("lowercase".into()));
        assert_eq!(kind("12.5", "12,5"), Some("replace".into()));
        assert_eq!(kind("1234567", "1,234,567"), Some("replace".into()));
        assert_eq!(kind("1234567", "12,34,567"), None);
        assert_eq!(kind("Canon", "Nikon"), None);
    }
}
