//! The marks between digits: decimal marks and group marks.

use super::notation::NumberNotation;

/// A run of digits, and the mark before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DigitRun {
    /// The mark before the digits; `None` for the first run of a number.
    pub(super) mark: Option<char>,
    pub(super) digits: String,
}

/// One way to read the marks between digits: which mark begins the fraction, and which marks separate groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notation {
    pub(super) decimal: char,
    groups: Vec<char>,
    pub(super) group: Group,
}

/// Where the group marks of a notation come from: the user's settings, or common usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Set,
    Usual,
}

/// Apostrophes and other marks that can only separate groups.
const ONLY_GROUPS: &[char] = &['\'', '\u{2019}', '\u{2bc}', '_', '\u{66c}'];

/// Marks that can only begin a fraction: the Arabic decimal separator and the raised point.
const ONLY_DECIMALS: &[char] = &['\u{66b}', '\u{b7}'];

pub(super) fn is_only_decimal(character: char) -> bool {
    ONLY_DECIMALS.contains(&character)
}

pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() && !character.is_control()
}

/// Whether a character is a space that never separates two numbers, such as a no-break space.
pub(super) fn is_fixed_space(character: char) -> bool {
    is_space(character) && character != ' ' && character != '\u{3000}'
}

/// Whether a character may stand between the digits of one number.
pub(super) fn is_number_mark(character: char, set: &NumberNotation) -> bool {
    matches!(character, '.' | ',')
        || ONLY_GROUPS.contains(&character)
        || ONLY_DECIMALS.contains(&character)
        || set.decimal == Some(character)
        || set
            .group
            .as_ref()
            .is_some_and(|group| group.contains(&character))
}

/// All notations that the user's settings allow.
pub(super) fn allowed_notations(set: &NumberNotation) -> Vec<Notation> {
    let decimals: Vec<char> = match (set.decimal, &set.group) {
        (Some(decimal), _) => vec![decimal],
        (None, None) => vec!['.', ','],
        (None, Some(group)) => {
            let usual = ['.', ','].into_iter();
            usual.filter(|mark| !group.contains(mark)).collect()
        }
    };
    let mut notations = Vec::new();
    for decimal in decimals {
        let Some(group) = &set.group else {
            let mut marks: Vec<char> = vec!['.', ',', ' '];
            marks.extend(ONLY_GROUPS);
            let usual = marks.into_iter().filter(|mark| *mark != decimal);
            notations.extend(usual.map(|mark| Notation {
                decimal,
                groups: vec![mark],
                group: Group::Usual,
            }));
            continue;
        };
        notations.push(Notation {
            decimal,
            groups: group.clone(),
            group: Group::Set,
        });
    }
    notations
}

impl Notation {
    /// Splits the digits into whole part and fraction; `None` if the number is not written in this notation.
    pub(super) fn split(&self, runs: &[DigitRun]) -> Option<(String, String)> {
        let (first, rest) = runs.split_first()?;
        let (groups, fraction) = match rest.split_last() {
            Some((last, groups)) if last.mark.is_some_and(|mark| self.is_decimal(mark)) => {
                (groups, last.digits.as_str())
            }
            _ => (rest, ""),
        };
        if !self.are_valid_groups(&first.digits, groups) {
            return None;
        }
        let mut whole = first.digits.clone();
        groups
            .iter()
            .for_each(|group| whole.push_str(&group.digits));
        (!whole.is_empty() || !fraction.is_empty()).then(|| (whole, fraction.to_owned()))
    }

    /// Whether a mark begins the fraction. A currency sign between digits also begins a fraction, as in `5€99`.
    fn is_decimal(&self, mark: char) -> bool {
        mark == self.decimal || is_only_decimal(mark) || super::words::is_currency_sign(mark)
    }

    /// Whether the groups of digits are valid: three digits each (`1,234,567`), or as in India two digits in all but
    /// the last (`12,34,567`).
    fn are_valid_groups(&self, first: &str, groups: &[DigitRun]) -> bool {
        let Some((last, middle)) = groups.split_last() else {
            return true;
        };
        let mark = groups[0].mark;
        let is_same = |group: &DigitRun| {
            group.mark == mark || group.mark.is_some_and(is_space) && mark.is_some_and(is_space)
        };
        let are_marks = mark.is_some_and(|mark| self.is_group(mark)) && groups.iter().all(is_same);
        let begins = |most: usize| (1..=most).contains(&first.len()) && !first.starts_with('0');
        let have = |length: usize| middle.iter().all(|group| group.digits.len() == length);
        let is_western = begins(3) && have(3);
        let is_indian = mark == Some(',') && begins(2) && !middle.is_empty() && have(2);
        are_marks && last.digits.len() == 3 && (is_western || is_indian)
    }

    fn is_group(&self, mark: char) -> bool {
        self.groups.contains(&mark) || (is_space(mark) && self.groups.contains(&' '))
    }
}
