//! The text around a value on its page, for people who check the value.

use webfill_learn::{fold_text, is_part_of_number, is_word_of_sentence};
use webfill_values::collapse_white_space;

/// The number of characters before and after the value.
const AROUND: usize = 60;

/// The text of a page without its tags: inaccurate, but sufficient to find values again.
pub struct PlainText<'p> {
    page: &'p str,
    text: String,
    folded: Option<String>,
}

/// Whether and how a value occurs on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    Not,
    /// It occurs only as a word within sentences.
    InSentences,
    Apart,
}

impl<'p> PlainText<'p> {
    pub fn from_html(page: &'p str) -> PlainText<'p> {
        let mut text = String::with_capacity(page.len() / 2);
        for (at, run) in texts(page).enumerate() {
            if at > 0 {
                text.push(' ');
            }
            text.push_str(run);
        }
        PlainText {
            page,
            text: collapse_white_space(&decode_references(&text)),
            folded: None,
        }
    }

    /// Whether a value occurs on the page, but not as a part of a longer word or number. Spellings that the learner
    /// takes for the same text count, too.
    pub fn contains_value(&mut self, value: &str) -> bool {
        let text = self.folded.get_or_insert_with(|| fold_text(&self.text));
        let mut spellings = std::iter::once(fold_text(value)).chain(group_digits(value));
        spellings.any(|value| value_positions(text, &value).next().is_some())
    }

    /// Whether a value occurs on the page, and whether only as a word within sentences.
    pub fn find_occurrence(&mut self, value: &str) -> Stands {
        if !self.contains_value(value) {
            return Stands::Not;
        }
        let value = fold_text(value);
        if !value.chars().all(char::is_alphabetic) {
            return Stands::Apart;
        }
        let mut is_in_sentence = false;
        for run in texts(self.page).filter(|run| run.len() >= value.len()) {
            let text = fold_text(&collapse_white_space(&decode_references(run)));
            for at in value_positions(&text, &value) {
                if !is_word_of_sentence(&text, at, value.len()) {
                    return Stands::Apart;
                }
                is_in_sentence = true;
            }
        }
        match is_in_sentence {
            true => Stands::InSentences,
            // No single text between tags contains the value, so tags divide it.
            false => Stands::Apart,
        }
    }

    /// The value with the words around it.
    pub fn words_around(&self, value: &str) -> Option<String> {
        let value = collapse_white_space(value);
        if value.is_empty() {
            return None;
        }
        let at = self.text.find(&value)?;
        let end = at + value.len();
        let before = self.text[..at].char_indices().rev().take(AROUND).last();
        let begin = before.map_or(at, |(place, _)| place);
        let after = self.text[end..].char_indices().nth(AROUND);
        let end = after.map_or(self.text.len(), |(place, _)| end + place);
        Some(webfill_values::trim(&self.text[begin..end]).to_owned())
    }
}

/// The texts between the tags of a page.
fn texts(page: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(page);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(open) = text.find('<') else {
            rest = None;
            return Some(text);
        };
        let is_tag =
            text[open + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c));
        let end = is_tag.then(|| text[open..].find('>')).flatten();
        rest = Some(&text[end.map_or(open + 1, |end| open + end + 1)..]);
        Some(&text[..open])
    })
}

/// The positions where a text contains a value that is not a part of a longer word or number.
fn value_positions(text: &str, value: &str) -> impl Iterator<Item = usize> {
    let places = text.match_indices(value).map(|(at, _)| at);
    places.filter(move |&at| {
        let (before, after) = (&text[..at], &text[at + value.len()..]);
        let goes_on = |one: Option<char>, other: Option<char>| {
            one.zip(other)
                .is_some_and(|(one, other)| is_one_word(one, other))
        };
        !goes_on(before.chars().next_back(), value.chars().next())
            && !goes_on(value.chars().next_back(), after.chars().next())
            && !is_part_of_number(text, at, value.len())
    })
}

/// Whether two neighbouring characters belong to one word or number. Only small letters count as letters, because
/// scripts without them, such as Chinese, may not separate words by spaces.
fn is_one_word(one: char, other: char) -> bool {
    one.is_ascii_digit() && other.is_ascii_digit() || one.is_lowercase() && other.is_lowercase()
}

/// A whole number of more than three digits, once with each usual separator between its groups of digits.
fn group_digits(value: &str) -> impl Iterator<Item = String> {
    let digits = value.strip_prefix('-').unwrap_or(value).to_owned();
    let is_whole = digits.len() > 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let marks: &[char] = if is_whole {
        &[',', '.', ' ', '\'']
    } else {
        &[]
    };
    marks.iter().map(move |mark| {
        let mut text = String::new();
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(*mark);
            }
            text.push(digit);
        }
        text
    })
}

/// Decodes the commonest character references.
fn decode_references(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((end, character_by_name(&rest[1..end])?))) {
            Some((end, character)) => {
                decoded.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded + rest
}

fn character_by_name(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_with_the_words_around_it() {
        let page = "<html><h1>The &#76;amp</h1><p title='x > y'>Price:\n <b>12&nbsp;&euro;</b> 1 < 2 &amp; more</p>";
        let mut text = PlainText::from_html(page);
        assert_eq!(
            text.words_around("Lamp").unwrap(),
            "The Lamp y'>Price: 12 &euro; 1 2 & more"
        );
        assert!(text.contains_value("PRICE:"));
        assert!(
            text.contains_value("lamp")
                && !text.contains_value("lam")
                && !text.contains_value("rice")
        );
        let mut text = PlainText::from_html("<p>since 1998, 12kg, 日本語</p>");
        assert!(
            text.contains_value("12") && text.contains_value("1998") && text.contains_value("本")
        );
        assert!(!text.contains_value("98") && !text.contains_value("199"));
        let page = "<p>The menu has eggs, salads, soups, a Mexican dish called <i>migas</i>, and <b>Thai</b> soups are on the menu of the day</p>\
            <p>Cuisine: American</p><p>An American diner with a long menu for people in a hurry</p>";
        let mut text = PlainText::from_html(page);
        assert_eq!(text.find_occurrence("Greek"), Stands::Not);
        assert_eq!(text.find_occurrence("Mexican"), Stands::InSentences);
        assert_eq!(text.find_occurrence("American"), Stands::Apart);
        assert_eq!(text.find_occurrence("Thai"), Stands::Apart);
        // This is how lists are compared with the values that were read.
        let mut text = PlainText::from_html("<p>Dinner, Lunch</p><p>Soup,Salad</p><p>1,234</p>");
        assert!(
            text.contains_value("Dinner,Lunch")
                && text.contains_value("soup, salad")
                && !text.contains_value("1, 234")
        );
        assert_eq!(text.words_around("nothing"), None);
        let page = format!("{} here {}", "é".repeat(500), "ü".repeat(500));
        let long = PlainText::from_html(&page);
        assert_eq!(
            long.words_around("here").unwrap().chars().count(),
            AROUND * 2 + 4
        );
    }
}
