//! The words that pages are compared by: which ones are significant, and which change from request to request (times,
//! counters, tokens) or with the address (page numbers, months).

use webfill_values::has_date_name;

use crate::blocks::words;

/// Stands in a text for each word that does not distinguish pages, such as a time or a token.
pub(super) const FOLDED: &str = "#";

/// Runs of at least this many letters and digits are random tokens; shorter ones may be numbers of things, such as
/// `x250`.
const TOKEN_CHARACTERS: usize = 12;
const HEX_TOKEN_CHARACTERS: usize = 8;

/// A number next to one of these words describes the server or its visitors, as in `0.3 seconds`.
const OF_SERVER: [&str; 18] = [
    "second",
    "sec",
    "ms",
    "msec",
    "millisecond",
    "sekunde",
    "segundo",
    "seconde",
    "querie",
    "visitor",
    "visit",
    "view",
    "hit",
    "online",
    "besucher",
    "aufrufe",
    "memory",
    "cached",
];

/// Numbers in these ranges may be days of a month, or years in a calendar.
const LAST_DAY: u64 = 31;
const YEARS: std::ops::Range<u64> = 1_900..2_200;

/// A text of a page: a paragraph, a cell, an item.
#[derive(Debug, PartialEq)]
pub(super) struct FoldedText<'a, 'b> {
    /// The words of the text, with changing ones replaced by [`FOLDED`]. Empty if all of them change. A text without
    /// changing words stays as it is.
    pub(super) text: &'b str,
    /// The numbers of the text that may distinguish pages, including words that mix digits and letters.
    pub(super) numbers: Vec<&'a str>,
}

/// The words of a text without those that have digits.
pub(super) fn words_without_digits(text: &str) -> impl Iterator<Item = &str> {
    let words = words(text).map(trim_punctuation);
    words.filter(|word| !word.is_empty() && !has_digit(word))
}

/// Replaces the changing words of a text, which is in lower case. `address` holds the numbers in the address of the
/// page. The buffer takes the folded text, so that one allocation serves all texts of a page.
pub(super) fn fold_text<'a: 'b, 'b>(
    text: &'a str,
    address: &[u64],
    folded: &'b mut String,
) -> FoldedText<'a, 'b> {
    let words = words(text).map(trim_punctuation);
    let has_digits = has_digit(text);
    // Without digits, only short texts can be dates, such as the head of a calendar.
    if !has_digits && words.clone().nth(2).is_some() {
        return FoldedText {
            text,
            numbers: Vec::new(),
        };
    }
    let is_of_server = has_digits && words.clone().any(describes_server);
    folded.clear();
    let mut numbers = Vec::new();
    let mut is_said = false;
    for word in words.filter(|word| !word.is_empty()) {
        let kept = match has_digit(word) {
            true => FOLDED,
            false if is_date_name(word) => FOLDED,
            false => word,
        };
        is_said |= kept != FOLDED;
        folded.push_str(kept);
        folded.push(' ');
        if kept == FOLDED && !is_of_server && may_distinguish_pages(word, address) {
            numbers.push(word);
        }
    }
    if !is_said {
        folded.clear();
    }
    FoldedText {
        text: folded,
        numbers,
    }
}

fn has_digit(text: &str) -> bool {
    // A loop that does not end early is compiled to one that reads many bytes at a time.
    text.bytes()
        .fold(false, |found, byte| found | byte.is_ascii_digit())
}

fn trim_punctuation(word: &str) -> &str {
    // Most words have no punctuation at their ends.
    let ends = [word.as_bytes().first(), word.as_bytes().last()];
    if ends
        .iter()
        .flatten()
        .all(|byte| byte.is_ascii_alphanumeric())
    {
        return word;
    }
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a word is the name of a day or a month, in the supported languages.
fn is_date_name(word: &str) -> bool {
    // Names of days and months are translated to English, which changes at least their first letter to a capital.
    word.len() <= 24 && has_date_name(word)
}

fn describes_server(word: &str) -> bool {
    OF_SERVER.contains(&word.trim_end_matches('s'))
}

/// Whether a word with digits may distinguish pages: it is not a date, a time, a number of the address, or a token.
fn may_distinguish_pages(word: &str, address: &[u64]) -> bool {
    if !has_digit(word) || word.contains([':', '/']) {
        return false;
    }
    if word.split(['-', '.']).count() > 2
        || word.split(|c: char| !c.is_alphanumeric()).any(is_token)
    {
        return false;
    }
    match word.parse::<u64>() {
        Ok(number) => {
            let is_near = |known: &u64| known.abs_diff(number) <= 1;
            number > LAST_DAY && !YEARS.contains(&number) && !address.iter().any(is_near)
        }
        Err(_) => true,
    }
}

/// Whether a word is a random token: it mixes letters and digits in a way that names do not.
pub(super) fn is_token(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_plain = digits + letters == word.len() && digits >= 1 && letters >= 1;
    let is_hex = || word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let least = match is_plain && is_hex() {
        true => HEX_TOKEN_CHARACTERS,
        false => TOKEN_CHARACTERS,
    };
    is_plain && word.len() >= least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_words_are_folded_and_numbers_of_things_are_kept() {
        for (text, expected, numbers) in [
            (
                "item 4711 for 12.50 eur",
                "item # for # eur ",
                &["4711", "12.50"][..],
            ),
            ("may 2027", "", &[]),
            ("5. märz 2027, 12:03", "", &[]),
            (
                "it may rain on monday and tuesday",
                "it may rain on monday and tuesday",
                &[],
            ),
            ("page 700", "page # ", &[]),
            (
                "page generated in 0.0213 seconds",
                "page generated in # seconds ",
                &[],
            ),
            ("visitors: 4711", "visitors # ", &[]),
            ("ticket 8fa3b1c2d4", "ticket # ", &[]),
            ("bolt m8x40", "bolt # ", &["m8x40"]),
            ("isbn 9780306406157", "isbn # ", &["9780306406157"]),
            ("2027-05-03", "", &[]),
            ("", "", &[]),
        ] {
            let mut buffer = String::from("of another text");
            let found = fold_text(text, &[700], &mut buffer);
            assert_eq!(
                (found.text, &found.numbers[..]),
                (expected, numbers),
                "{text}"
            );
        }
    }
}
