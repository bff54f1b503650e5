//! Decides whether two spellings mean the same value. They may differ in white space, case, Unicode compatibility
//! forms, notation of numbers and dates, and separators of telephone numbers.

use std::borrow::Cow;

use crate::clock::minutes_of_day;
use crate::dates;
pub(crate) use webfill_values::collapse_white_space;

/// Brings a text into a form that is equal for all spellings of one value. Besides [`webfill_values::folded_form`], it
/// puts a space after each comma between words, because `a,b` and `a, b` are the same list. It removes spaces between a
/// number and its sign, because `42%` and `42 %` are the same share.
pub fn fold_text(text: &str) -> String {
    let folded = remove_spaces_at_signs(webfill_values::folded_form(text));
    let is_tight = |at: &usize| {
        folded[..*at].ends_with(char::is_alphabetic)
            && folded[at + 1..].starts_with(char::is_alphabetic)
    };
    let commas = folded.match_indices(',').map(|(at, _)| at);
    let tight: Vec<usize> = commas.filter(is_tight).collect();
    if tight.is_empty() {
        return folded;
    }
    let (mut spaced, mut from) = (String::with_capacity(folded.len() + tight.len()), 0);
    for at in tight {
        spaced.push_str(&folded[from..=at]);
        spaced.push(' ');
        from = at + 1;
    }
    spaced.push_str(&folded[from..]);
    spaced
}

/// Whether a character is the sign of a currency, or a percent sign.
pub fn is_amount_sign(c: char) -> bool {
    matches!(c, '$' | '%' | '\u{a2}'..='\u{a5}' | '\u{20a0}'..='\u{20cf}' | '\u{e3f}')
}

fn remove_spaces_at_signs(text: String) -> String {
    if !text.contains(is_amount_sign) || !text.contains(' ') {
        return text;
    }
    let is_apart = |(at, _): &(usize, &str)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + 1..].chars().next();
        before.zip(after).is_some_and(|(before, after)| {
            before.is_ascii_digit() && is_amount_sign(after)
                || is_amount_sign(before) && after.is_ascii_digit()
        })
    };
    let (mut plain, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(' ').filter(is_apart) {
        plain.push_str(&text[from..at]);
        from = at + 1;
    }
    plain.push_str(&text[from..]);
    plain
}

/// A known value, with the normal forms that its other spellings are recognised by.
#[derive(Debug, Clone)]
pub(crate) struct KnownValue {
    /// The value as the record writes it.
    pub(crate) given: String,
    /// The given text with single spaces and without character references such as `&amp;`.
    pub(crate) text: String,
    pub(crate) folded: String,
    pub(crate) number: Option<String>,
    /// The day in ISO 8601, if the value is a date.
    pub(crate) day: Option<String>,
    /// The minutes since midnight, if the value is a time of day.
    pub(crate) minutes: Option<u32>,
    pub(crate) digits: Option<String>,
}

impl KnownValue {
    /// Prepares a known value; `None` if the text has nothing to search for.
    pub(crate) fn new(value: &str) -> Option<KnownValue> {
        let text = collapse_white_space(&decode_references(value));
        let folded = fold_text(&text);
        if folded.is_empty() {
            return None;
        }
        let day = dates::day_of(&text);
        let plain = remove_group_marks(&text);
        let is_number = day.is_none()
            && !is_code(&text)
            && plain
                .bytes()
                .all(|b| b.is_ascii_digit() || b"-.,".contains(&b));
        Some(KnownValue {
            number: is_number.then(|| number_in(&text)).flatten(),
            digits: phone_digits(&text).filter(|_| day.is_none()),
            day,
            minutes: minutes_of_day(&text),
            given: value.to_owned(),
            text,
            folded,
        })
    }

    /// Whether the value begins with a plus or a zero, as telephone numbers and postcodes do. As a number, it would
    /// lose that.
    pub(crate) fn is_code(&self) -> bool {
        is_code(&self.text)
    }

    /// Whether the read text means this value, but is not in the record's form.
    pub(crate) fn is_respelt(&self, read: &Spelling) -> bool {
        let is_iso = |text: &str| dates::iso_day(text).is_some();
        let has_time = is_iso(&self.text) && is_iso(&read.text);
        self.matches(read) && self.text != read.text && !has_time
    }

    /// Whether the read text differs from this value by one typing error.
    pub(crate) fn is_misspelt(&self, read: &Spelling) -> bool {
        differ_by_one_typo(&self.folded, &read.folded) && !self.is_in_other_notation(read)
    }

    /// Whether one of the two texts is a part of the other one. Then the record is right, and the extraction chain
    /// reads too little or too much. A record that was confused with another one has nothing in common with its page.
    pub(crate) fn overlaps(&self, read: &Spelling) -> bool {
        /// The fewest bytes of the shorter text. A shorter one, above all a number, may be part of the other text by
        /// chance.
        const LEAST: usize = 4;
        const LEAST_OF_NUMBERS: usize = 8;
        let (one, other) = (&self.folded, &read.folded);
        let is_number = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_digit() || b"-., ".contains(&b))
        };
        let least = match is_number(one) && is_number(other) {
            true => LEAST_OF_NUMBERS,
            false => LEAST,
        };
        one.len().min(other.len()) >= least
            && one != other
            && (one.contains(other.as_str()) || other.contains(one.as_str()))
    }

    /// Whether the read text differs from this number only in its sign or leading zeros: `(12)` for `-12`, `1067` for
    /// `01067`. Then the record is right, and the page writes only a part of the number.
    pub(crate) fn is_in_other_notation(&self, read: &Spelling) -> bool {
        self.folded != read.folded
            && amount_in(&self.folded).is_some_and(|amount| amount_in(&read.folded) == Some(amount))
    }

    /// Whether the read text means this value.
    pub(crate) fn matches(&self, read: &Spelling) -> bool {
        self.folded == read.folded
            || (self.number.is_some() && self.number == read.number)
            || (self.digits.is_some() && self.digits == read.digits)
            || (self.day.is_some() && self.day == read.day)
            || (self.minutes.is_some() && self.minutes == read.minutes)
    }
}

fn is_code(text: &str) -> bool {
    let mut bytes = text.bytes();
    match bytes.next() {
        Some(b'+') => true,
        Some(b'0') => bytes.next().is_some_and(|next| next.is_ascii_digit()),
        _ => false,
    }
}

impl PartialEq for KnownValue {
    fn eq(&self, other: &KnownValue) -> bool {
        self.folded == other.folded
    }
}

/// A text that was read from a page, with the normal forms that it is compared by.
#[derive(Debug, Clone)]
pub(crate) struct Spelling {
    /// The text as it was read.
    pub(crate) text: String,
    pub(crate) folded: String,
    number: Option<String>,
    digits: Option<String>,
    day: Option<String>,
    minutes: Option<u32>,
}

/// Two texts are equal if they are spellings of the same value.
impl PartialEq for Spelling {
    fn eq(&self, other: &Spelling) -> bool {
        self.folded == other.folded
    }
}

impl Spelling {
    pub(crate) fn new(read: &str) -> Spelling {
        let is_short = read.len() <= 40 && read.bytes().any(|b| b.is_ascii_digit());
        let plain = is_short
            && remove_group_marks(read)
                .bytes()
                .all(|b| b.is_ascii_digit() || b"+-., ".contains(&b));
        Spelling {
            text: read.to_owned(),
            folded: fold_text(read),
            number: if plain { number_in(read) } else { None },
            digits: if is_short { phone_digits(read) } else { None },
            day: dates::day_of(&collapse_white_space(read)),
            minutes: minutes_of_day(read),
        }
    }
}

impl Spelling {
    /// The digits of the text if it is a telephone number.
    pub(crate) fn into_phone_digits(self) -> Option<String> {
        self.digits
    }
}

/// Whether a text ends in a mark of truncation: `...`, `…`, or one of them alone in brackets. In `DROP VIEW name [,
/// ...]`, the brackets hold more than the dots, so the text is complete.
pub(crate) fn is_cut_off(text: &str) -> bool {
    let text = text.trim_end();
    let inner = |open, close| {
        let (_, inner) = text.strip_suffix(close)?.rsplit_once(open)?;
        Some(inner.trim())
    };
    let is_mark = |inner: Option<&str>| matches!(inner, Some("..." | "\u{2026}"));
    text.ends_with('\u{2026}')
        || text.ends_with("...")
        || is_mark(inner('[', ']'))
        || is_mark(inner('(', ')'))
}

/// A text with fewer characters does not count as misspelt: short texts that differ by one character may be different
/// values.
const LEAST_MISSPELT: usize = 5;

/// Whether two texts differ by one typing error: a wrong, missing or extra character, or two adjacent ones swapped.
fn differ_by_one_typo(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().min(other.len()) < LEAST_MISSPELT || one.len().abs_diff(other.len()) > 1 {
        return false;
    }
    let both = one.iter().zip(&other);
    let same = both.take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[same..], &other[same..]);
    let ends = one.iter().rev().zip(other.iter().rev());
    let same = ends.take_while(|(one, other)| one == other).count();
    match (&one[..one.len() - same], &other[..other.len() - same]) {
        ([_], [_]) | ([_], []) | ([], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

/// Replaces character references such as `&amp;` that are left in a known value.
fn decode_references(value: &str) -> String {
    if !value.contains('&') {
        return value.to_owned();
    }
    [
        ("&amp;", "&"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&nbsp;", " "),
    ]
    .iter()
    .fold(value.to_owned(), |text, (reference, character)| {
        text.replace(reference, character)
    })
}

/// Whether a character other than a comma or point may separate groups of digits: `1'234.50` in Switzerland, `1 234,50`
/// in France.
fn is_group_mark(c: char) -> bool {
    matches!(
        c,
        '\'' | '\u{2019}' | ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}'
    )
}

/// Removes group marks from a text: one to three digits precede such a mark, and exactly three digits follow it.
fn remove_group_marks(text: &str) -> Cow<'_, str> {
    if !text.contains(is_group_mark) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let after = text[at + c.len_utf8()..].bytes();
        let before = text[..at].bytes().rev().take_while(u8::is_ascii_digit);
        let is_group = || {
            (1..=3).contains(&before.count())
                && after.take_while(u8::is_ascii_digit).count() == 3
                && !plain
                    .trim_start_matches(|c: char| !c.is_ascii_digit())
                    .starts_with('0')
        };
        if !is_group_mark(c) || !is_group() {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

/// The only number in a text, in a normal form without group marks and without zeros at the end of the fraction.
pub(crate) fn number_in(text: &str) -> Option<String> {
    let text = &*remove_group_marks(text);
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let mut runs = text
        .split(|c: char| !is_part(c))
        .map(|run| run.trim_matches(['.', ',']))
        .filter(|run| !run.is_empty());
    let run = runs.next()?;
    if runs.next().is_some() || run.len() > 20 {
        return None;
    }
    let negative = text
        .split(run)
        .next()
        .is_some_and(|before| before.ends_with(['-', '−']));
    // The last point or comma separates groups of digits, not the fraction, if it occurs more than once. It also does
    // if exactly three digits follow it and the other mark does not precede it, unless only a zero precedes it.
    let fraction = run.rfind(['.', ',']).filter(|&at| {
        let mark = &run[at..=at];
        let other = if mark == "." { ',' } else { '.' };
        let is_three_digits = run.len() - at == 4;
        let is_fraction = !is_three_digits || run[..at].contains(other) || &run[..at] == "0";
        run.matches(mark).count() == 1 && is_fraction
    });
    let whole: String = run[..fraction.unwrap_or(run.len())]
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let whole = whole.trim_start_matches('0');
    let part = fraction.map_or("", |at| run[at + 1..].trim_end_matches('0'));
    let sign = if negative { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if part.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{part}")
    })
}

/// The number in a text without other contents, but without its sign and leading zeros.
fn amount_in(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || "+-\u{2212}()., ".contains(c);
    let number = number_in(text).filter(|_| text.chars().all(is_part))?;
    Some(number.trim_start_matches('-').to_owned())
}

/// The digits of a text that looks like a telephone number.
fn phone_digits(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_phone = (7..=15).contains(&digits.len())
        && text.len() <= 30
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b"+-./() ".contains(&b));
    is_phone.then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(known: &str, read: &str) -> bool {
        KnownValue::new(known)
            .unwrap()
            .matches(&Spelling::new(read))
    }

    #[test]
    fn spellings_of_one_value_are_equal() {
        assert!(is_same("Caf\u{e9} &amp; Bar", "  CAFE\u{301}  & bar"));
        assert!(is_same("1234.5", "1,234.50"));
        assert!(is_same("1234567", "1.234.567"));
        assert!(
            is_same("1234567", "1'234'567")
                && is_same("1234567", "1 234 567")
                && is_same("1234.5", "1\u{2019}234.50")
        );
        assert!(is_same("+1 (325) 674-2000", "1.325.674.2000"));
        assert!(is_same("2010-05-25", "May 25, 2010"));
        assert!(is_same("25 May 2010", "2010-05-25"));
        assert!(is_same("2024-03-01", "1. M\u{e4}rz 2024"));
        assert!(is_same("2024-12-25", "25/12/2024"));
        assert!(is_same("Main Course,Pasta", "Main Course, Pasta"));
        assert!(is_same("42%", "42 %") && is_same("$ 12.50", "$12.50"));
        assert!(is_same("12,50 \u{20ac}", "12,50\u{a0}\u{20ac}"));
        assert!(!is_same("4 2 %", "42%"));
        assert!(!is_same("1,2", "1, 2"));
    }

    #[test]
    fn a_mark_at_the_end_shows_what_was_cut_off_and_brackets_of_a_grammar_do_not() {
        for text in [
            "Lamp of brass an...",
            "Lamp of brass \u{2026}",
            "Lamp of brass [...]",
            "Lamp of brass (\u{2026}) ",
            "Lamp (of brass) [ ... ]",
        ] {
            assert!(is_cut_off(text), "{text}");
        }
        for text in [
            "Lamp of brass",
            "DROP VIEW name [, ...]",
            "OPTIONS ( option 'value' [, ... ] )",
            "pg_dump [option...]",
            "int printf(const char *format, ...)",
            "Lamp ... of brass",
            "",
        ] {
            assert!(!is_cut_off(text), "{text}");
        }
    }

    #[test]
    fn one_slip_of_the_keyboard_is_a_misspelt_value_and_two_are_another_one() {
        let misspelt = |known, read| {
            KnownValue::new(known)
                .unwrap()
                .is_misspelt(&Spelling::new(read))
        };
        for (known, read) in [
            ("oBston Celtics", "Boston Celtics"),
            ("$9,790", "$9,970"),
            ("Mice Gorups", "Mice  Groups"),
            ("978-0345504068", "978-0345504968"),
            ("Reading", "Readings"),
            ("Readdings", "Readings"),
            ("aaaaa", "aaaaaa"),
        ] {
            assert!(misspelt(known, read), "{known} {read}");
        }
        for (known, read) in [
            ("Boston Celtics", "Boston Celtics"),
            ("Denver Nuggets", "Boston Celtics"),
            ("1999", "1989"),
            ("$129.00", "$219.50"),
            ("6-11", "6-10"),
            ("Readings", "Reading it"),
            // In these pairs, the page lacks the sign or leading zeros of the number, or writes them in another
            // notation.
            ("-12345", "12345"),
            ("12345", "\u{2212}12345"),
            ("-1234.50", "1234.50-"),
            ("032190", "32190"),
        ] {
            assert!(!misspelt(known, read), "{known} {read}");
        }
    }

    #[test]
    fn a_text_that_is_part_of_another_one_overlaps_with_it() {
        let overlaps = |known, read| {
            KnownValue::new(known)
                .unwrap()
                .overlaps(&Spelling::new(read))
        };
        assert!(overlaps("9783337446730", "3337446730"));
        assert!(overlaps("Iris Murdoch", "iris murdoch and 2 more"));
        assert!(!overlaps("Iris", "Iris") && !overlaps("9.99", "19.99") && !overlaps("A", "AB"));
    }

    #[test]
    fn a_number_without_its_sign_or_zeros_is_in_another_notation() {
        let is_in_other = |known, read| {
            KnownValue::new(known)
                .unwrap()
                .is_in_other_notation(&Spelling::new(read))
        };
        for (known, read) in [
            ("-635117", "(635,117)"),
            ("-635117", "635117"),
            ("-480.09", "480.09-"),
            ("01067", "1067"),
            ("009392", "9392"),
        ] {
            assert!(is_in_other(known, read), "{known} {read}");
        }
        for (known, read) in [
            ("635117", "635117"),
            ("635117", "635118"),
            ("01067", "10670"),
            ("A-12", "A12"),
            ("12 (3)", "12"),
            ("-", "+"),
        ] {
            assert!(!is_in_other(known, read), "{known} {read}");
        }
    }

    #[test]
    fn other_values_are_not() {
        assert!(!is_same("12", "1.2"));
        assert!(!is_same("18", "18 dogs"));
        assert!(!is_same("2010-05-25", "May 26, 2010"));
        assert!(!is_same("-5", "5"));
        assert!(!is_same("2024-02-01", "01/02/2024"));
    }
}
