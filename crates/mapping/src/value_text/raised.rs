//! Raised text behind a number: the cents of an amount, the mark of a note, or a power of ten.

use webfill_document::NodeRef;
use webfill_values::{begins_with_currency, ends_with_currency};

use crate::page_text::has_style;

/// What an element within a line is, behind the text before it.
pub(super) enum Raised {
    No,
    /// The mark of a note. It is no part of the value.
    Note,
    /// A power of ten, in raised characters.
    Power(String),
    /// Perhaps the cents of an amount. They certainly are if the class of the element says so.
    Cents {
        is_certain: bool,
    },
}

impl Raised {
    pub(super) fn find(node: NodeRef<'_>, tag: &str, before: &str) -> Raised {
        const LONGEST: usize = 40;
        let is_behind_number = before.trim_end().ends_with(|c: char| c.is_ascii_digit());
        if !is_behind_number || node.text().len() > LONGEST {
            return Raised::No;
        }
        let text = node.text().trim();
        let is_directly_behind = before.ends_with(|c: char| c.is_ascii_digit());
        if is_directly_behind && is_note(node, tag, text) {
            return Raised::Note;
        }
        if let Some(power) = power_of_ten(tag, before, text) {
            return Raised::Power(power);
        }
        if text.len() != 2 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Raised::No;
        }
        let is_certain =
            is_directly_behind && has_word(node, &["cent", "cents", "decimal", "decimals"]);
        let is_raised = tag == "sup"
            || tag == "small" && is_directly_behind
            || ["super", "top", "text-top"]
                .iter()
                .any(|place| has_style(node, "vertical-align", place));
        match is_certain || is_raised {
            true => Raised::Cents { is_certain },
            false => Raised::No,
        }
    }
}

/// Whether an element directly behind a number is the mark of a note: raised digits that link to a place of the page,
/// or whose class says so. Bare digits may as well be an exponent.
fn is_note(node: NodeRef<'_>, tag: &str, text: &str) -> bool {
    let digits = text.trim_end_matches(')');
    let is_number = (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number || text.len() > digits.len() + 1 {
        return false;
    }
    let is_link = |node: NodeRef<'_>| {
        node.tag() == Some("a") && node.attribute("href").is_some_and(|to| to.starts_with('#'))
    };
    let mut within = node.descendants();
    match tag {
        "sup" => {
            text.ends_with(')')
                || has_word(node, &["footnote", "reference", "note", "fn", "cite"])
                || within.any(is_link)
        }
        "a" => is_link(node) && within.any(|node| node.tag() == Some("sup")),
        _ => false,
    }
}

/// The raised digits behind `× 10`, in raised characters.
fn power_of_ten(tag: &str, before: &str, text: &str) -> Option<String> {
    const RAISED: [char; 10] = [
        '\u{2070}', '\u{b9}', '\u{b2}', '\u{b3}', '\u{2074}', '\u{2075}', '\u{2076}', '\u{2077}',
        '\u{2078}', '\u{2079}',
    ];
    let factor = before.strip_suffix("10")?.trim_end();
    let factor = factor.strip_suffix(['\u{d7}', '\u{b7}', '\u{22c5}', 'x', '*'])?;
    let is_product = factor.trim_end().ends_with(|c: char| c.is_ascii_digit());
    if tag != "sup" || !is_product || text.len() > 6 {
        return None;
    }
    let (sign, digits) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(digits) => ("\u{207b}", digits),
        None => ("", text),
    };
    let raised = digits
        .chars()
        .map(|c| Some(RAISED[c.to_digit(10)? as usize]));
    let raised: String = raised.collect::<Option<_>>()?;
    (!raised.is_empty()).then(|| format!("{sign}{raised}"))
}

/// Whether the class of an element has one of these words, as in `price__cents`.
fn has_word(node: NodeRef<'_>, words: &[&str]) -> bool {
    let Some(classes) = node.attribute("class") else {
        return false;
    };
    classes
        .split(|c: char| !c.is_alphanumeric())
        .any(|one| words.iter().any(|word| one.eq_ignore_ascii_case(word)))
}

/// Digits that may be the cents of an amount.
pub(super) struct Cents {
    /// The end of the digits before them, as a byte index in the text.
    end: usize,
    is_certain: bool,
}

impl Cents {
    pub(super) fn new(end: usize, is_certain: bool) -> Cents {
        Cents { end, is_certain }
    }

    /// Puts the decimal mark before the cents, if these digits are cents.
    pub(super) fn write(&self, text: &mut String, decimal: char) {
        let (before, behind) = text.split_at(self.end);
        let gap = behind.len() - behind.trim_start().len();
        let Some(after) = behind.get(gap + 2..) else {
            return;
        };
        let ends = !after.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let number =
            before.trim_end_matches(|c: char| c.is_ascii_digit() || "., '\u{2019}".contains(c));
        let whole = before[number.len()..].trim_start_matches([' ', '.', ',', '\'', '\u{2019}']);
        let is_amount = self.is_certain
            || ends_with_currency(number.trim_end())
            || begins_with_currency(after.trim_start());
        if let Some(mark) = decimal_mark(whole, decimal).filter(|_| ends && is_amount) {
            text.replace_range(self.end..self.end + gap, &mark.to_string());
        }
    }
}

/// The decimal mark of a number with these digits before it. `None` if they have a fraction already.
fn decimal_mark(whole: &str, decimal: char) -> Option<char> {
    let is_mark = |c: char| !c.is_ascii_digit();
    let group = whole.chars().find(|c| is_mark(*c));
    let mut groups = whole.split(|c: char| Some(c) == group);
    let first = groups.next().filter(|first| !first.is_empty())?;
    let are_groups = group.is_none() || first.len() <= 3;
    let is_group = |one: &str| one.len() == 3 && !one.contains(is_mark);
    (are_groups && groups.all(is_group)).then_some(match group {
        Some('.') => ',',
        Some(',') => '.',
        _ => decimal,
    })
}
