//! Forms: ways that a page writes a value differently from the record. It is a small, closed set, each form being
//! expressed by ordinary processors.
//!
//! - Numbers and amounts: without their words (`6 ft 5 in` as `6-5`), marks between digits, fractions, a missing or
//!   another unit or sign, units a power of ten apart.
//! - Times: durations, times of day, dates in another order.
//! - Others: other marks between letters, reordered names, capitals, national telephone numbers, relative links, yes
//!   and no.
//!
//! Words that stand for the few values of a field are found by `lookups.rs`.
//!
//! Known values decide: a form is used only if several pages show it, and it must read their values like any other
//! extraction chain.

mod conversions;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};
use webfill_mapping::seconds_of_duration;

pub(crate) use self::conversions::{conversions, names_month, replace_processor};
use crate::amounts;
use crate::clock::minutes_of_day;
use crate::fold::{KnownValue, fold_text};
use crate::fractions;
use crate::labels::Leaks;
use crate::marks;
use crate::places::{PlaceKind, Places};
use crate::telephones;
use crate::truth_words;

/// A form must occur on at least this many pages before it is used.
pub(crate) const SHOWN_BY: usize = 2;

/// The longest text that numbers are taken from as a value.
const LONGEST: usize = 80;

/// The longest words before, between and after numbers.
const LONGEST_WORDS: usize = 24;

/// The most places on a page that are converted for one value.
const MOST_PLACES: usize = 6;

/// The longest unit or sign.
pub(crate) const LONGEST_AFFIX: usize = 12;

/// A place that has the value in another form, with the processors that convert its text to the value.
pub(crate) struct ConvertedPlace {
    pub(crate) place: usize,
    pub(crate) processors: Vec<Value>,
}

/// The places of a page that have the value in another form.
pub(crate) fn find(page: &Places<'_>, wanted: &KnownValue, leaks: &Leaks) -> Vec<ConvertedPlace> {
    let mut found = find_by_numbers(page, &wanted.text, leaks);
    found.extend(find_reordered_name(page, &wanted.text));
    found.extend(find_without_affixes(page, &wanted.text));
    found.extend(amounts::find(page, &wanted.text, leaks));
    found.extend(fractions::find(page, &wanted.text, leaks));
    found.extend(telephones::find(page, wanted));
    let by_marks = marks::find(page, wanted).into_iter();
    found.extend(by_marks.map(|(place, processors)| ConvertedPlace { place, processors }));
    found.extend(find_durations(page, &wanted.text));
    found.extend(find_stars(page, &wanted.text));
    found.extend(find_times(page, wanted));
    found.extend(find_relative_links(page, &wanted.text));
    found.extend(find_truth_words(page, &wanted.text));
    found.extend(find_truth_classes(page, &wanted.text));
    found
}

/// Finds durations that are this number of seconds, minutes or hours.
fn find_durations(page: &Places<'_>, value: &str) -> Vec<ConvertedPlace> {
    const UNITS: [(&str, f64); 3] = [("minutes", 60.0), ("seconds", 1.0), ("hours", 3_600.0)];
    const LONGEST_NUMBER: usize = 7;
    let is_number =
        value.len() <= LONGEST_NUMBER && (!value.starts_with('0') || value.starts_with("0."));
    let Some(number) = value.parse::<f64>().ok().filter(|_| is_number) else {
        return Vec::new();
    };
    let places = page.all.iter().enumerate();
    let durations = places.filter_map(|(at, place)| Some((at, seconds_of_duration(&place.text)?)));
    let formed = durations.flat_map(|(place, seconds)| {
        let of_unit = move |(_, unit): &(&str, f64)| (seconds - number * unit).abs() < unit / 2e3;
        UNITS
            .into_iter()
            .filter(of_unit)
            .map(move |(unit, _)| ConvertedPlace {
                place,
                processors: vec![json!({"type": "duration", "parameters": {"unit": unit}})],
            })
    });
    formed.take(MOST_PLACES).collect()
}

/// Finds texts with as many full stars as the number `value`, alone or filled up to five with empty stars.
fn find_stars(page: &Places<'_>, value: &str) -> Vec<ConvertedPlace> {
    const MOST_STARS: usize = 5;
    let Some(number) = value
        .parse()
        .ok()
        .filter(|number| (1..=MOST_STARS).contains(number))
    else {
        return Vec::new();
    };
    let full = |number: usize| "\u{2605}".repeat(number);
    let with_empty = |number: usize| full(number) + &"\u{2606}".repeat(MOST_STARS - number);
    let table: Map<String, Value> = (1..=MOST_STARS)
        .flat_map(|number| [(full(number), number), (with_empty(number), number)])
        .map(|(stars, number)| (stars, number.to_string().into()))
        .collect();
    let places = [full(number), with_empty(number)];
    let places = places
        .iter()
        .flat_map(|stars| page.find_text(&fold_text(stars)));
    let formed = places.map(|&place| ConvertedPlace {
        place,
        processors: vec![json!({"type": "map", "parameters": {"table": table, "others": "drop"}})],
    });
    formed.take(MOST_PLACES).collect()
}

/// Patterns of a time of day in a text, on a clock of 12 hours and on one of 24 hours.
const TIMES: [&str; 2] = [
    r"(?:.*?[^\d:.])??(\d{1,2}(?:[:.]\d{2})?\s*[ap]\.?m\b\.?)",
    r"(?:.*?[^\d:.+])??(\d{1,2}:\d{2})",
];

/// Patterns that reject texts with two times, on a clock of 12 or 24 hours, and ranges such as `10-2 pm`.
const NOT_TWO_TIMES: [&str; 2] = [
    r"(?!.*\d\s*[ap]\.?m\b.*\d\s*[ap]\.?m\b)",
    r"(?!.*\d:\d\d.*\d:\d\d)",
];
const NOT_A_RANGE: &str = r"(?!.*\d\s*(?:[-\x{2013}\x{2014}]|to|till?|until|bis|\x{e0})\s*\d)";

static TIME_IN_TEXT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    TIMES
        .iter()
        .map(|time| Regex::new(&format!("(?i)^{time}")).expect("constant patterns"))
        .collect()
});

/// The patterns for 12 and 24 hours that extract a time of day from a text with only one time.
fn patterns_of_times() -> [String; 2] {
    let [of_12, of_24] = TIMES;
    let [not_two_of_12, not_two_of_24] = NOT_TWO_TIMES;
    [
        format!("(?i)^{not_two_of_12}{NOT_A_RANGE}{of_12}"),
        format!(r"(?i)^{not_two_of_24}{NOT_A_RANGE}{of_24}(?![:\d])"),
    ]
}

/// Finds texts that have this time of day, in another notation, among other words.
fn find_times(page: &Places<'_>, wanted: &KnownValue) -> Vec<ConvertedPlace> {
    let Some(minutes) = wanted.minutes else {
        return Vec::new();
    };
    let patterns = patterns_of_times();
    let places = page.all.iter().enumerate();
    let short = places.filter(|(_, place)| {
        place.text.len() <= LONGEST && place.text.bytes().any(|b| b.is_ascii_digit())
    });
    let formed = short.filter_map(|(place, at)| {
        let (pattern, _) = patterns
            .iter()
            .zip(TIME_IN_TEXT.iter())
            .find(|(_, regex)| {
                let found = regex.captures(&at.text);
                found.is_some_and(|found| minutes_of_day(&found[1]) == Some(minutes))
            })?;
        let processors = vec![json!({"type": "regex", "parameters": {"pattern": pattern}})];
        Some(ConvertedPlace { place, processors })
    });
    formed.take(MOST_PLACES).collect()
}

/// Finds relative links to the known URL, as in the `src` of images.
fn find_relative_links(page: &Places<'_>, value: &str) -> Vec<ConvertedPlace> {
    const SHORTEST_PATH: usize = 3;
    if !value.starts_with("http://") && !value.starts_with("https://") {
        return Vec::new();
    }
    let is_it = |text: &str| {
        let path = text
            .trim_start_matches("../")
            .trim_start_matches("./")
            .trim_start_matches('/');
        path.len() >= SHORTEST_PATH && text.len() < value.len() && value.ends_with(path)
    };
    let places = page.all.iter().enumerate();
    let links = places.filter(|(_, place)| {
        let is_of_link = |name: &str| {
            matches!(name, "href" | "src") || name.starts_with("data-") && name.ends_with("src")
        };
        matches!(place.at, PlaceKind::Attribute(_, name) if is_of_link(name)) && is_it(&place.text)
    });
    let formed = links.map(|(place, _)| ConvertedPlace {
        place,
        processors: vec![json!({"type": "url"})],
    });
    formed.take(MOST_PLACES).collect()
}

/// Finds `class` attributes, such as those of icons, that stand for the known `true` or `false`.
fn find_truth_classes(page: &Places<'_>, value: &str) -> Vec<ConvertedPlace> {
    let Some((class_means, processors)) = truth_words::class_test_and_processors(value) else {
        return Vec::new();
    };
    let places = page.all.iter().enumerate();
    let classes = places.filter(|(_, place)| {
        matches!(place.at, PlaceKind::Attribute(_, "class")) && class_means(&place.text)
    });
    let formed = classes.map(|(place, _)| ConvertedPlace {
        place,
        processors: processors.clone(),
    });
    formed.take(MOST_PLACES).collect()
}

/// Finds words and signs on the page that stand for the known `true` or `false`.
fn find_truth_words(page: &Places<'_>, value: &str) -> Vec<ConvertedPlace> {
    let Some((words, map)) = truth_words::page_words(value) else {
        return Vec::new();
    };
    let places = words
        .iter()
        .flat_map(|word| page.find_text(&fold_text(word)));
    let formed = places.map(|&place| ConvertedPlace {
        place,
        processors: vec![map.clone()],
    });
    formed.take(MOST_PLACES).collect()
}

static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d+(?:\.\d+)?").expect("constant pattern"));

/// Splits a text into its numbers, and the texts before, between and after them.
fn split_at_numbers(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut words, mut numbers, mut end) = (Vec::new(), Vec::new(), 0);
    for number in NUMBER.find_iter(text) {
        words.push(&text[end..number.start()]);
        numbers.push(number.as_str());
        end = number.end();
    }
    words.push(&text[end..]);
    (words, numbers)
}

/// Finds texts that begin with the same two or more numbers as the value, in the same order, but with other words.
/// Further numbers may follow, such as the same measure in inches.
fn find_by_numbers(page: &Places<'_>, value: &str, leaks: &Leaks) -> Vec<ConvertedPlace> {
    let (marks, numbers) = split_at_numbers(value);
    if numbers.len() < 2 || value.len() > LONGEST {
        return Vec::new();
    }
    let places = page.all.iter().enumerate();
    let short = places.filter(|(_, place)| {
        place.text.len() <= LONGEST && place.text.contains(numbers[0]) && place.text != value
    });
    let formed = short.filter_map(|(at, place)| {
        let (words, others) = split_at_numbers(&place.text);
        let is_short = |words: &&str| words.len() <= LONGEST_WORDS;
        if !others.starts_with(&numbers) || !words.iter().all(is_short) {
            return None;
        }
        if words.iter().any(|words| leaks.occur_in(words)) {
            return None;
        }
        let mut pattern = String::from("^");
        for (at, words) in words.iter().enumerate() {
            pattern += &pattern_with_any_space(words);
            pattern += match at {
                _ if at < numbers.len() => r"(\d+(?:\.\d+)?)",
                _ if at < others.len() => r"\d+(?:\.\d+)?",
                _ => "$",
            };
        }
        let mut with = String::new();
        for (at, mark) in marks.iter().enumerate() {
            with += &mark.replace('$', "$$");
            if at < numbers.len() {
                with += &format!("${{{}}}", at + 1);
            }
        }
        // First, a pattern must match the whole text, so that texts of other forms are not converted.
        let whole = json!({"type": "regex", "parameters": {"pattern": pattern, "group": 0}});
        Some(ConvertedPlace {
            place: at,
            processors: vec![whole, replace_processor(&pattern, &with)],
        })
    });
    formed.take(MOST_PLACES).collect()
}

/// Turns a text into a pattern that accepts any white space in place of its spaces.
pub(crate) fn pattern_with_any_space(text: &str) -> String {
    if !text.is_empty() && text.trim().is_empty() {
        // A text of white space alone must match at least one space, because without a space two numbers would become
        // one.
        return String::from(r"\s+");
    }
    let escaped: Vec<String> = text.split(' ').map(regex::escape).collect();
    escaped.join(r"\s*")
}

/// Finds a name in the other order: `Ada Lovelace` and `Lovelace, Ada`.
fn find_reordered_name(page: &Places<'_>, value: &str) -> Vec<ConvertedPlace> {
    let ways: Vec<(String, Vec<Value>)> = match value.split_once(", ") {
        Some((last, first)) if !first.contains(',') => {
            let last_word = replace_processor(r"^(.+)\s+(\S+)$", "$2, $1");
            let all_but_first = replace_processor(r"^(\S+)\s+(.+)$", "$2, $1");
            let ways = vec![last_word, all_but_first];
            vec![(format!("{first} {last}"), ways)]
        }
        _ => {
            let back = replace_processor(r"^([^,]+),\s*([^,]+)$", "$2 $1");
            let words: Vec<&str> = value.split(' ').collect();
            let splits = (1..words.len().min(4)).map(|at| {
                let (first, last) = words.split_at(at);
                let turned = format!("{}, {}", last.join(" "), first.join(" "));
                (turned, vec![back.clone()])
            });
            splits.collect()
        }
    };
    let has_letters = value.chars().any(char::is_alphabetic);
    let ways = ways.into_iter().filter(|_| has_letters);
    let formed = ways.flat_map(|(turned, processors)| {
        let places = page.find_text(&fold_text(&turned));
        places.iter().take(MOST_PLACES).flat_map(move |&place| {
            let formed = |one: &Value| ConvertedPlace {
                place,
                processors: vec![one.clone()],
            };
            processors.iter().map(formed).collect::<Vec<_>>()
        })
    });
    formed.collect()
}

static AFFIXED: LazyLock<Regex> = LazyLock::new(|| {
    let affix = format!(r"[^\d]{{0,{LONGEST_AFFIX}}}");
    let pattern = format!(r"^({affix}?)(\d[\d.,]*\d|\d)({affix})$");
    Regex::new(&pattern).expect("constant pattern")
});

/// Finds places where the page writes only the number, without the sign or unit that the record has.
fn find_without_affixes(page: &Places<'_>, value: &str) -> Vec<ConvertedPlace> {
    let Some(parts) = AFFIXED.captures(value) else {
        return Vec::new();
    };
    let (before, number, behind) = (&parts[1], &parts[2], &parts[3]);
    // With a minus sign, it would be another number.
    if before.len() + behind.len() == 0 || before.contains(['-', '\u{2212}']) {
        return Vec::new();
    }
    // The sign or unit is added only to a text that is a bare number.
    let bare = json!({"type": "regex", "parameters": {"pattern": r"^\d[\d.,]*$", "group": 0}});
    let mut processors = vec![bare];
    if !before.is_empty() {
        processors.push(json!({"type": "prefix", "parameters": {"text": before}}));
    }
    if !behind.is_empty() {
        processors.push(json!({"type": "suffix", "parameters": {"text": behind}}));
    }
    let places = page.find_text(&fold_text(number)).iter().take(MOST_PLACES);
    let formed = places.map(|&place| ConvertedPlace {
        place,
        processors: processors.clone(),
    });
    formed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_out_of_their_words() {
        assert_eq!(
            split_at_numbers("27 City / 36.5 Hwy"),
            (vec!["", " City / ", " Hwy"], vec!["27", "36.5"])
        );
    }
}
