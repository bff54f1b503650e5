//! Tests columns where some pages have an odd text in place of the value, and columns whose pages have other words than
//! the records.

use serde_json::Value;
use webfill_learn::{Page, learn};

use crate::made::{page, read, task};

/// The number of pages that are learned from, and of further pages that are read.
const KNOWN: usize = 24;
const READ: usize = 12;

/// One page in six has an odd text.
const ODD: usize = 6;

/// A page with a few other fields, whose texts differ.
fn item(number: usize, label: &str, shown: &str, known: &[(&str, &[&str])]) -> Page {
    let html = format!(
        "<title>Item {number}</title><nav><a>Home</a><a>Shelf {}</a></nav><h1>Item no. {number}</h1><table>\
         <tr><th>Colour</th><td>{}</td></tr><tr><th>Maker</th><td>{}</td></tr>\
         <tr><th>{label}</th><td>{shown}</td></tr><tr><th>Rating</th><td>{}</td></tr></table>\
         <p>Ordered by {} people</p>",
        number % 4,
        ["red", "green", "blue"][number * 7 % 11 % 3],
        ["Acorn", "Birch", "Cedar", "Dogwood"][number * 5 % 13 % 4],
        number * 3 % 7 % 5 + 1,
        number * 37 % 91,
    );
    page(&format!("item/{number}"), html, known)
}

/// Learns from pages with these values and texts. The last ones are not learned from; returns what is read on them.
fn learn_and_read(pages: &[(String, String)]) -> Vec<Option<String>> {
    let made = |number: usize, is_known: bool| {
        let (value, shown) = &pages[number];
        let known: &[(&str, &[&str])] = match is_known {
            true => &[("field", &[value.as_str()])],
            false => &[],
        };
        item(number, "Value", shown, known)
    };
    let known: Vec<Page> = (0..KNOWN).map(|number| made(number, true)).collect();
    let learned = learn(&known, &[], &task()).unwrap();
    let text = |number: usize| {
        let mapping = &learned.mappings.first()?.mapping;
        match read(mapping, &made(number, false)).get("field")? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    };
    (KNOWN..pages.len()).map(text).collect()
}

#[test]
fn an_odd_text_in_place_of_a_number_costs_no_other_page() {
    let grams: fn(usize) -> usize = |number| 90 + number * 37 % 211;
    let large: fn(usize) -> usize = |number| 1_000 + number * 311 % 7_919;
    type Value = fn(usize) -> usize;
    type Write = fn(usize) -> String;
    type WriteOdd = fn(usize, Write) -> String;
    let columns: [(&str, Value, Write); 4] = [
        ("a unit", grams, |grams| format!("{grams} g")),
        ("no unit", grams, |grams| grams.to_string()),
        ("large numbers", large, |number| number.to_string()),
        ("a currency", large, |price| format!("${price}")),
    ];
    let odd: [(&str, WriteOdd); 6] = [
        ("a range", |grams, write| {
            format!("{} - {}", write(grams - 10), write(grams + 10))
        }),
        ("a range with one unit", |grams, write| {
            format!("{} \u{2013} {}", grams - 10, write(grams + 10))
        }),
        ("N/A", |_, _| String::from("N/A")),
        ("unknown", |_, _| String::from("unknown")),
        ("a dash", |_, _| String::from("-")),
        ("two numbers", |grams, write| {
            format!("{} to {}", write(grams - 10), write(grams + 15))
        }),
    ];
    let mut wrong = Vec::new();
    for (of_column, value, write) in columns {
        for (of_odd, write_odd) in odd {
            let one = |number: usize| {
                let value = value(number);
                let shown = match number % ODD {
                    3 => write_odd(value, write),
                    _ => write(value),
                };
                (value.to_string(), shown)
            };
            let pages: Vec<(String, String)> = (0..KNOWN + READ).map(one).collect();
            for (at, read) in learn_and_read(&pages).into_iter().enumerate() {
                let number = KNOWN + at;
                let expected = (number % ODD != 3).then(|| pages[number].0.clone());
                if read != expected {
                    let (_, shown) = &pages[number];
                    wrong.push(format!("{of_column}, {of_odd}: {read:?} of {shown}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_of_a_column_with_a_unit_have_the_unit() {
    let one = |number: usize| {
        let grams = 90 + number * 37 % 211;
        let shown = match number % ODD {
            3 => format!("{} - {} g", grams - 10, grams + 10),
            4 => format!("approx. {grams} g"),
            _ => format!("{grams} g"),
        };
        (format!("{grams} g"), shown)
    };
    let pages: Vec<(String, String)> = (0..KNOWN + READ).map(one).collect();
    for (at, read) in learn_and_read(&pages).into_iter().enumerate() {
        let number = KNOWN + at;
        let (value, shown) = &pages[number];
        match number % ODD {
            3 => assert_eq!(read, None, "{shown}"),
            4 => assert!(read.is_none_or(|read| read == *value), "{shown}"),
            _ => assert_eq!(read.as_ref(), Some(value), "{shown}"),
        }
    }
}

/// A column with few different values: each value with the word of its page.
const FEW: &[(&str, &[(&str, &str)])] = &[
    (
        "true and false",
        &[("true", "In stock"), ("false", "Sold out")],
    ),
    (
        "1 and 0",
        &[("1", "On the shelf"), ("0", "At the workshop")],
    ),
    (
        "ja and nein",
        &[("ja", "lieferbar"), ("nein", "vergriffen")],
    ),
    ("Y and N", &[("Y", "Vegan"), ("N", "Contains milk")]),
    (
        "two words for one value",
        &[("yes", "In stock"), ("no", "Sold out"), ("yes", "Few left")],
    ),
    (
        "languages",
        &[("en", "English"), ("de", "German"), ("fr", "French")],
    ),
    (
        "countries",
        &[
            ("DE", "Germany"),
            ("AT", "Austria"),
            ("CH", "Switzerland"),
            ("PL", "Poland"),
        ],
    ),
    ("m and f", &[("m", "Male"), ("f", "Female")]),
];

fn few_values(pairs: &[(&str, &str)], number: usize) -> (String, String) {
    let (value, word) = pairs[number * number * 5 % 23 % pairs.len()];
    (value.to_owned(), word.to_owned())
}

#[test]
fn words_of_pages_become_the_few_values_of_a_column() {
    let mut wrong = Vec::new();
    for (name, pairs) in FEW {
        let pages: Vec<(String, String)> = (0..KNOWN + READ)
            .map(|number| few_values(pairs, number))
            .collect();
        for (at, read) in learn_and_read(&pages).into_iter().enumerate() {
            let (value, word) = &pages[KNOWN + at];
            if read.as_ref() != Some(value) {
                wrong.push(format!("{name}: {read:?} of {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn some_wrong_records_do_not_hide_the_meaning_of_words() {
    for (name, pairs) in FEW.iter().filter(|(_, pairs)| pairs.len() == 2) {
        let mut pages: Vec<(String, String)> = (0..KNOWN + READ)
            .map(|number| few_values(pairs, number))
            .collect();
        for number in [5, 11] {
            let other = pairs.iter().find(|(value, _)| *value != pages[number].0);
            pages[number].0 = other.unwrap().0.to_owned();
        }
        for (at, read) in learn_and_read(&pages).into_iter().enumerate() {
            let (value, word) = &pages[KNOWN + at];
            assert_eq!(read.as_ref(), Some(value), "{name}: {word}");
        }
    }
}

#[test]
fn a_word_that_was_not_learned_gives_no_value() {
    for (name, pairs) in FEW {
        let mut pages: Vec<(String, String)> = (0..KNOWN + READ)
            .map(|number| few_values(pairs, number))
            .collect();
        for (_, word) in pages.iter_mut().skip(KNOWN) {
            *word = String::from("Ask us");
        }
        let read = learn_and_read(&pages);
        assert!(read.iter().all(Option::is_none), "{name}: {read:?}");
    }
}

/// Values that no word of the pages goes with. Nothing may be learned for them.
#[test]
fn words_that_agree_by_chance_are_not_learned() {
    const DRAWS: usize = 60;
    const KNOWN: [usize; 4] = [8, 12, 20, 40];
    let mut learned = 0;
    for draw in 0..DRAWS {
        for known in KNOWN {
            let mut state = (draw * 97 + known) as u64;
            let mut value = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                ["true", "false"][(state >> 40) as usize % 2]
            };
            let pages = (0..known).map(|number| {
                item(
                    number + draw * 3,
                    "Value",
                    "the same",
                    &[("field", &[value()])],
                )
            });
            let pages: Vec<Page> = pages.collect();
            let found = learn(&pages, &[], &task()).unwrap();
            learned += usize::from(!found.mappings.is_empty());
        }
    }
    assert!(learned * 50 <= DRAWS * KNOWN.len(), "{learned}");
}
