//! Names of months and weekdays in several languages, from CLDR.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The possible meanings of a name: `mar` is both March and Tuesday in Italian.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// From 1 for January.
    pub(super) month: Option<i8>,
    /// From 1 for Monday.
    pub(super) weekday: Option<i8>,
    /// Whether the name is so short that it may be a word of another language: `pro` is December in Czech.
    pub(super) is_short: bool,
}

static NAMES: LazyLock<HashMap<&'static str, Meaning>> = LazyLock::new(|| {
    let mut names: HashMap<&str, Meaning> = HashMap::new();
    for line in include_str!("names.tsv").lines() {
        let mut cells = line.split('\t');
        let (Some(kind), Some(number), Some(name)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let Ok(number) = number.parse() else {
            continue;
        };
        let meaning = names.entry(name).or_default();
        match kind {
            "month" => meaning.month = Some(number),
            _ => meaning.weekday = Some(number),
        }
        meaning.is_short |= cells.nth(1) == Some("short");
    }
    names
});

/// For each first byte, which lengths the names that begin with it have, as bits. It rejects most words at once.
static LENGTHS: LazyLock<[u64; 256]> = LazyLock::new(|| {
    let mut lengths = [0; 256];
    for name in NAMES.keys() {
        lengths[usize::from(name.as_bytes()[0])] |= length_bit(name.len());
    }
    lengths
});

/// The bit that stands for a length. Lengths above 63 share one.
fn length_bit(bytes: usize) -> u64 {
    1 << bytes.min(63)
}

/// The month or weekday that a word may name, in any letter case, with or without the full stop of an abbreviation.
pub(super) fn meaning_of_word(word: &str) -> Meaning {
    let word = word.trim_end_matches('.');
    if word.is_ascii() && !may_be_ascii_name(word) {
        return Meaning::default();
    }
    // The Turkish `İ` becomes `i` and a dot above it.
    let lower = word.to_lowercase().replace("i\u{307}", "i");
    NAMES.get(lower.as_str()).copied().unwrap_or_default()
}

fn may_be_ascii_name(word: &str) -> bool {
    let first = word.bytes().next().unwrap_or_default();
    LENGTHS[usize::from(first.to_ascii_lowercase())] & length_bit(word.len()) != 0
}

/// The number of the month that a word may name; 1 is January.
pub fn month_of_name(word: &str) -> Option<i8> {
    meaning_of_word(word).month
}

/// The names of months (`are_months`) or else of weekdays, in lower case, except Chinese, Japanese and Korean ones, and
/// those that may be words of another language.
pub fn date_names(are_months: bool) -> impl Iterator<Item = &'static str> {
    let is_wanted = move |meaning: &Meaning| match are_months {
        _ if meaning.is_short => false,
        true => meaning.month.is_some(),
        false => meaning.weekday.is_some(),
    };
    let names = NAMES.iter().filter(move |(_, meaning)| is_wanted(meaning));
    let names = names.map(|(name, _)| *name);
    names.filter(|name| name.starts_with(|c: char| c < '\u{3000}'))
}

/// The Chinese, Japanese and Korean names of more than one character, longest first: `二月` (February) is the end of `十二月`
/// (December), so the longer name must be tried first.
pub(super) fn east_asian_names() -> &'static [(&'static str, Meaning)] {
    static OF_EAST_ASIA: LazyLock<Vec<(&'static str, Meaning)>> = LazyLock::new(|| {
        let mut names: Vec<(&str, Meaning)> = NAMES
            .iter()
            .map(|(name, meaning)| (*name, *meaning))
            .filter(|(name, _)| name.starts_with(|c: char| c >= '\u{3000}'))
            .filter(|(name, _)| name.chars().count() > 1)
            .collect();
        names.sort_by_key(|(name, _)| (std::cmp::Reverse(name.len()), *name));
        names
    });
    &OF_EAST_ASIA
}

/// Whether a text in lower case contains the name of a month or a weekday.
pub fn has_date_name(text: &str) -> bool {
    let is_name = |word: &str| {
        let meaning = meaning_of_word(word);
        meaning != Meaning::default() && !meaning.is_short
    };
    text.split(|c: char| !c.is_alphabetic()).any(is_name) || is_portuguese_day(text)
}

/// Whether a text ends in a Portuguese weekday, which contains a hyphen: `segunda-feira`.
fn is_portuguese_day(text: &str) -> bool {
    text.ends_with("-feira") && meaning_of_word(text).weekday.is_some()
}

/// The English name of a weekday; 1 is Monday.
pub(super) fn english_day(weekday: i8) -> Option<&'static str> {
    let index = usize::try_from(weekday).ok()?.checked_sub(1)?;
    ENGLISH_DAYS.get(index).copied()
}

const ENGLISH_MONTHS: [&str; 12] = [
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

const ENGLISH_DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Replaces the names of months and weekdays in a text with the English names that a strptime format expects: full
/// names for `%B` and `%A`, three letters for `%b`, `%h` and `%a`. The full stop of an abbreviation stays only if the
/// format has one.
pub fn translate_names(text: &str, format: &str) -> String {
    let mut directives = directives(format).into_iter().peekable();
    let mut english = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(char::is_alphabetic) {
        english.push_str(&rest[..begin]);
        let word = &rest[begin..];
        let letters = word
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(word.len());
        // Portuguese weekdays have a hyphen: `segunda-feira`.
        let is_hyphened = word[letters..].starts_with("-feira");
        let length = letters + if is_hyphened { "-feira".len() } else { 0 };
        let (word, behind) = word.split_at(length);
        rest = behind;
        let put = directives
            .peek()
            .and_then(|directive| directive.english_name(meaning_of_word(word)));
        let Some(put) = put else {
            english.push_str(word);
            continue;
        };
        english.push_str(&put);
        if let Some(directive) = directives.next()
            && !directive.has_full_stop
        {
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
    }
    english.push_str(rest);
    english
}

/// A directive of a strptime format that stands for a name, such as `%B`.
struct Directive {
    is_month: bool,
    is_full: bool,
    has_full_stop: bool,
}

fn directives(format: &str) -> Vec<Directive> {
    let letters: Vec<char> = format.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at + 1 < letters.len() {
        if letters[at] != '%' {
            at += 1;
            continue;
        }
        let letter = letters[at + 1];
        if matches!(letter, 'B' | 'b' | 'h' | 'A' | 'a') {
            found.push(Directive {
                is_month: matches!(letter, 'B' | 'b' | 'h'),
                is_full: matches!(letter, 'B' | 'A'),
                has_full_stop: letters.get(at + 2) == Some(&'.'),
            });
        }
        at += 2;
    }
    found
}

impl Directive {
    fn english_name(&self, meaning: Meaning) -> Option<String> {
        let (number, names): (i8, &[&str]) = match self.is_month {
            true => (meaning.month?, &ENGLISH_MONTHS),
            false => (meaning.weekday?, &ENGLISH_DAYS),
        };
        let name = names.get(usize::from(number.unsigned_abs()).checked_sub(1)?)?;
        Some(match self.is_full {
            true => (*name).to_owned(),
            false => name[..3].to_owned(),
        })
    }
}
