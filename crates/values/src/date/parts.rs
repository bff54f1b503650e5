//! Reads day, month and year from a text without a time of day.

use super::names::{Meaning, meaning_of_word};

/// The numbers of a date as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    /// Year and month, without a day.
    Month(i16, i8),
    Day(i16, i8, i8),
    /// Two numbers and the year. Either of the two may be the day.
    Numbers(i8, i8, i16),
    /// A month in letters and two two-digit numbers: the day, and the year within its century.
    Short(i8, i8, i8),
    /// The text is written as a date, but its parts contradict each other or are ambiguous.
    Wrong,
}

/// Words that mean nothing in a date, such as `of` in `the 1st of March`.
const FILLERS: &[&str] = &[
    "of", "the", "on", "den", "der", "am", "vom", "le", "el", "il", "de", "del", "do", "em", "op",
    "dnia", "r", "roku", "г", "года", "год", "р", "року",
];

/// Endings of ordinal numbers in several languages: `1st`, `2nd`, `1er`.
const ORDINALS: &[&str] = &[
    "st", "nd", "rd", "th", "er", "re", "ère", "o", "a", "e", "ste", "de",
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Number(String),
    Word(String, Meaning),
    Mark(char),
}

impl Parts {
    /// Parses a date with its weekday (1 is Monday), if it has one; `None` if the text is not a date.
    pub(super) fn parse(text: &str) -> Option<(Parts, Option<i8>)> {
        let tokens = tokenize(text)?;
        if has_misplaced_name(&tokens) {
            return None;
        }
        let is_croatian = has_croatian_october(&tokens);
        let (tokens, month, weekday) = extract_names(tokens)?;
        let mut numbers: Vec<&str> = Vec::new();
        let mut marks: Vec<char> = Vec::new();
        for token in &tokens {
            match token {
                Token::Number(digits) => numbers.push(digits),
                Token::Mark(mark) => marks.push(*mark),
                Token::Word(..) => return None,
            }
        }
        let parts = match month {
            Some(_) if is_croatian => Parts::Wrong,
            Some(month) => parse_named(month, &numbers, &marks)?,
            None => parse_numeric(&numbers, &marks)?,
        };
        Some((parts, weekday))
    }
}

/// Splits a text into tokens; `None` if it has anything that a date cannot have.
fn tokenize(text: &str) -> Option<Vec<Token>> {
    // Ukrainian has a letter that is written like an apostrophe.
    let text = &text.replace("п'ят", "пʼят").replace("п’ят", "пʼят");
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let is_same = |c: char| match first {
            _ if first.is_ascii_digit() => c.is_ascii_digit(),
            _ if first.is_alphabetic() => c.is_alphabetic(),
            _ => false,
        };
        let length = rest.find(|c| !is_same(c)).unwrap_or(rest.len());
        let length = length.max(first.len_utf8());
        let (token, behind) = rest.split_at(length);
        rest = behind;
        if first == ' ' {
            continue;
        }
        if first.is_ascii_digit() {
            tokens.push(Token::Number(token.to_owned()));
        } else if first.is_alphabetic() {
            // Portuguese weekdays have a hyphen: `segunda-feira`.
            let (token, behind) = match behind.strip_prefix("-feira") {
                Some(behind) => (format!("{token}-feira"), behind),
                None => (token.to_owned(), behind),
            };
            rest = behind;
            let lower = token.to_lowercase();
            let is_ordinal = matches!(tokens.last(), Some(Token::Number(_)))
                && ORDINALS.contains(&lower.as_str())
                && is_preceded_by_digit(text, rest.len() + token.len());
            let meaning = meaning_of_word(&lower);
            if !is_ordinal && (meaning != Meaning::default() || !FILLERS.contains(&lower.as_str()))
            {
                tokens.push(Token::Word(lower, meaning));
            }
        } else if matches!(first, ',' | '.' | '/' | '-' | '–' | '°' | '(' | ')') {
            tokens.push(Token::Mark(if first == '–' { '-' } else { first }));
        } else {
            return None;
        }
    }
    tokens.retain(|token| !matches!(token, Token::Mark(',' | '°' | '(' | ')')));
    Some(tokens)
}

/// Whether a digit stands directly before the last `length` bytes of the text.
fn is_preceded_by_digit(text: &str, length: usize) -> bool {
    let before = text
        .len()
        .checked_sub(length)
        .and_then(|end| text.get(..end));
    before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
}

/// Whether a short name of a month, which may be a word of another language, is not between day and year: `Pro 5 2024`
/// is no date, but `5. pro 2024` is one in Czech.
fn has_misplaced_name(tokens: &[Token]) -> bool {
    let digits = |token: Option<&Token>| match token {
        Some(Token::Number(digits)) => digits.len(),
        _ => 0,
    };
    let plain: Vec<&Token> = tokens
        .iter()
        .filter(|token| !matches!(token, Token::Mark(_)))
        .collect();
    let mut places = plain.iter().enumerate();
    places.any(|(at, token)| {
        let before = at.checked_sub(1).and_then(|at| plain.get(at).copied());
        let is_between = matches!(digits(before), 1 | 2) && digits(plain.get(at + 1).copied()) == 4;
        let is_short = |meaning: &Meaning| meaning.is_short && meaning.month.is_some();
        matches!(token, Token::Word(_, meaning) if is_short(meaning)) && !is_between
    })
}

/// Whether the month is October in Croatian and November in Polish and Czech. Croatian has a full stop after the number
/// of the day; Polish has none.
fn has_croatian_october(tokens: &[Token]) -> bool {
    let is_name = |token: &Token| matches!(token, Token::Word(name, _) if matches!(name.as_str(), "listopad" | "listopada" | "lis"));
    let is_numbered =
        |pair: &[Token]| matches!(pair, [Token::Number(day), Token::Mark('.')] if day.len() <= 2);
    tokens.iter().any(is_name) && tokens.windows(2).any(is_numbered)
}

/// Takes the names out of the tokens. Returns the remaining tokens, the month and the weekday.
fn extract_names(tokens: Vec<Token>) -> Option<(Vec<Token>, Option<i8>, Option<i8>)> {
    let months = tokens
        .iter()
        .filter(|token| matches!(token, Token::Word(_, meaning) if meaning.month.is_some()));
    let mut spare = months.count().saturating_sub(1);
    let (mut month, mut weekday) = (None, None);
    let mut rest = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let Token::Word(_, meaning) = &token else {
            rest.push(token);
            continue;
        };
        // A full stop directly after a name marks an abbreviation, such as `Mar.`, and is skipped with it.
        let has_stop = matches!(tokens.peek(), Some(Token::Mark('.')));
        match (meaning.month, meaning.weekday) {
            (Some(_), Some(day)) if spare > 0 && weekday.is_none() => {
                spare -= 1;
                weekday = Some(day);
            }
            (Some(named), _) if month.is_none() => month = Some(named),
            (_, Some(day)) if weekday.is_none() => weekday = Some(day),
            _ => return None,
        }
        if has_stop {
            tokens.next();
        }
    }
    Some((rest, month, weekday))
}

/// Reads a date whose month is written as a name. It has a year of four digits and perhaps a day, or two numbers of at
/// most two digits ([`Parts::Short`]).
fn parse_named(month: i8, numbers: &[&str], marks: &[char]) -> Option<Parts> {
    if marks.iter().any(|mark| !matches!(mark, '.' | '-' | '/')) {
        return None;
    }
    let year = |digits: &str| (digits.len() == 4).then(|| digits.parse().ok()).flatten();
    let day = |digits: &str| {
        (digits.len() <= 2)
            .then(|| digits.parse::<i8>().ok())
            .flatten()
    };
    match numbers {
        [only] => year(only).map(|year| Parts::Month(year, month)),
        [first, second] => match (year(first), year(second)) {
            (None, Some(year)) => {
                Some(day(first).map_or(Parts::Wrong, |day| Parts::Day(year, month, day)))
            }
            (Some(year), None) => {
                Some(day(second).map_or(Parts::Wrong, |day| Parts::Day(year, month, day)))
            }
            _ => Some(match (day(first), day(second)) {
                (Some(first), Some(second)) => Parts::Short(month, first, second),
                _ => Parts::Wrong,
            }),
        },
        _ => None,
    }
}

/// Reads a date of numbers only: three numbers with the same mark between them, or year and month as in ISO 8601.
fn parse_numeric(numbers: &[&str], marks: &[char]) -> Option<Parts> {
    let short = |digits: &str| {
        (digits.len() <= 2)
            .then(|| digits.parse::<i8>().ok())
            .flatten()
    };
    let year = |digits: &str| {
        (digits.len() == 4)
            .then(|| digits.parse::<i16>().ok())
            .flatten()
    };
    match (numbers, marks) {
        ([first, second], ['-']) if second.len() == 2 => {
            let month = short(second).filter(|month| (1..=12).contains(month))?;
            Some(Parts::Month(year(first)?, month))
        }
        ([first, second, third], [one, other] | [one, other, '.']) if one == other => {
            if let Some(year) = year(first) {
                return Some(Parts::Day(year, short(second)?, short(third)?));
            }
            let (first, second) = (short(first)?, short(second)?);
            match year(third) {
                Some(year) => Some(Parts::Numbers(first, second, year)),
                // With a two-digit year, it is unclear which number is the year, and what century it belongs to.
                None if third.len() == 2 => Some(Parts::Wrong),
                None => None,
            }
        }
        _ => None,
    }
}
