//! Converts telephone numbers: a page may have the national form of an international number, or the other way round.

use serde_json::{Value, json};

use crate::fold::KnownValue;
use crate::forms::{ConvertedPlace, pattern_with_any_space, replace_processor};
use crate::places::Places;

/// The most places on a page that are converted for one value.
const MOST_PLACES: usize = 6;

/// The fewest digits of the national part, after a country code.
const FEWEST: usize = 6;

/// The most digits of a country code.
const LONGEST_CODE: usize = 3;

/// The longest text whose end is read as a telephone number.
const LONGEST: usize = 60;

/// Finds the record's number on the page in the form (national or international) that the record does not use, perhaps
/// after words.
pub(crate) fn find(page: &Places<'_>, wanted: &KnownValue) -> Vec<ConvertedPlace> {
    let Some(digits) = &wanted.digits else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (place, at) in page.all.iter().enumerate() {
        let Some((head, read)) = last_number(&at.text) else {
            continue;
        };
        let Some((code, form)) = other_form(&wanted.text, digits, &read) else {
            continue;
        };
        let mut processors = form.processors(&code);
        if !head.is_empty() {
            let pattern = format!(r"^{}\s*(.+)$", pattern_with_any_space(head));
            processors.insert(
                0,
                json!({"type": "regex", "parameters": {"pattern": pattern}}),
            );
        }
        found.push(ConvertedPlace { place, processors });
        if found.len() >= MOST_PLACES {
            break;
        }
    }
    found
}

/// Splits a short text that ends in a telephone number: the words before it, and its digits, with a plus if it has one.
fn last_number(text: &str) -> Option<(&str, String)> {
    if text.len() > LONGEST || !text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let is_of_number = |c: char| c.is_ascii_digit() || "+-./() ".contains(c);
    let behind_words = text.trim_end_matches(is_of_number).len();
    // Marks before the number belong to the words: the point in `Tel. 020`.
    let begin = text[behind_words..].find(|c: char| c.is_ascii_digit() || "+(".contains(c))?;
    let (head, number) = text.split_at(behind_words + begin);
    let digits = number.chars().filter(|c| c.is_ascii_digit());
    let plus = number.starts_with('+').then_some('+');
    let read: String = plus.into_iter().chain(digits).collect();
    (read.len() > FEWEST && !head.contains(|c: char| c.is_ascii_digit()))
        .then_some((head.trim_end(), read))
}

/// The digits that a page writes before the national part of the number, and the form that the record writes it in.
fn other_form(known: &str, digits: &str, read: &str) -> Option<(String, Form)> {
    if known.starts_with('+') {
        let (trunk, number) = split_trunk(read)?;
        let code = digits.strip_suffix(number)?;
        let form = Form::of(known, code, number)?;
        return is_country(code, trunk, number).then(|| (trunk.to_owned(), form));
    }
    let (trunk, number) = split_trunk(digits)?;
    let code = read.strip_prefix('+')?.strip_suffix(number)?;
    let form = Form::of(known, trunk, number)?;
    is_country(code, trunk, number).then(|| (code.to_owned(), form))
}

/// Splits a national number into the zero at its start, if it has one, and the rest.
fn split_trunk(number: &str) -> Option<(&str, &str)> {
    let (trunk, number) = number.split_at(usize::from(number.starts_with('0')));
    (number.len() >= FEWEST && !number.starts_with('0')).then_some((trunk, number))
}

/// Whether the digits are the code of a country whose national numbers begin like this. North American numbers begin
/// with no zero and have ten digits. Elsewhere, a number without zero may be a local one.
fn is_country(code: &str, trunk: &str, number: &str) -> bool {
    match trunk {
        "" => code == "1" && number.len() == 10,
        _ => is_country_code(code),
    }
}

fn is_country_code(code: &str) -> bool {
    (1..=LONGEST_CODE).contains(&code.len()) && !code.starts_with('0')
}

/// How the record writes a number: the text before its national part, and the groups of digits of that part, each with
/// the marks before it.
struct Form {
    before: String,
    groups: Vec<(String, usize)>,
}

impl Form {
    fn of(text: &str, code: &str, number: &str) -> Option<Form> {
        let start = text.find(code)? + code.len();
        let (before, national) = text.split_at(start);
        let mut groups: Vec<(String, usize)> = Vec::new();
        let mut marks = String::new();
        let mut is_inside = false;
        for c in national.chars() {
            match c.is_ascii_digit() {
                true if is_inside => groups.last_mut()?.1 += 1,
                true => groups.push((std::mem::take(&mut marks), 1)),
                false => marks.push(c),
            }
            is_inside = c.is_ascii_digit();
        }
        let all: usize = groups.iter().map(|(_, digits)| digits).sum();
        (marks.is_empty() && all == number.len()).then(|| Form {
            before: before.to_owned(),
            groups,
        })
    }

    /// The processors that convert the number of a page, with `code` before its national part, to this form. The last
    /// group may be one digit longer or shorter. A text with more digits contains something else, such as an extension
    /// or opening hours.
    fn processors(&self, code: &str) -> Vec<Value> {
        let (mut pattern, mut with) = (format!("^{code}(?!0)"), self.before.replace('$', "$$"));
        for (at, (marks, digits)) in self.groups.iter().enumerate() {
            let is_last = at + 1 == self.groups.len();
            pattern += &if is_last {
                format!(r"(\d{{{},{}}})$", (*digits - 1).max(1), digits + 1)
            } else {
                format!(r"(\d{{{digits}}})")
            };
            with += &format!("{}${{{}}}", marks.replace('$', "$$"), at + 1);
        }
        let whole = json!({"type": "regex", "parameters": {"pattern": pattern, "group": 0}});
        let number =
            json!({"type": "regex", "parameters": {"pattern": r"^\+?[\d ()./-]+$", "group": 0}});
        vec![
            number,
            replace_processor(r"\D+", ""),
            whole,
            replace_processor(&pattern, &with),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_national_number_is_written_as_the_record_writes_it() {
        let form = Form::of("+44 20 7946 0018", "44", "2079460018").unwrap();
        let processors = form.processors("0");
        assert_eq!(
            processors[3]["parameters"]["find"],
            r"^0(?!0)(\d{2})(\d{4})(\d{3,5})$"
        );
        assert_eq!(processors[3]["parameters"]["with"], "+44 ${1} ${2} ${3}");
        let digits = "442079460018";
        let (words, read) = last_number("Tel. 020 7946 0018").unwrap();
        assert_eq!((words, read.as_str()), ("Tel.", "02079460018"));
        let (words, read) = last_number("Tel. +44 20 7946 0018").unwrap();
        assert_eq!((words, read.as_str()), ("Tel.", "+442079460018"));
        let (_, read) = last_number("(020) 7946 0018").unwrap();
        let (code, _) = other_form("+44 (20) 7946-0018", digits, &read).unwrap();
        assert_eq!(code, "0");
        let (code, _) = other_form("020 7946 0018", "02079460018", "+442079460018").unwrap();
        assert_eq!(code, "44");
        assert!(other_form("+44 20 7946 0018", digits, "02079460019").is_none());
        let (code, form) = other_form("(214) 555-0123", "2145550123", "+12145550123").unwrap();
        assert_eq!(code, "1");
        let with = &form.processors(&code)[3]["parameters"]["with"];
        assert_eq!(with, "(${1}) ${2}-${3}");
        assert!(other_form("7946 0018 12", "7946001812", "+447946001812").is_none());
    }
}
