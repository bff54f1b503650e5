//! Telephone numbers and other codes made of digits, where separators are only spelling.

/// The digits of a text that looks like a telephone number: 7 to 15 digits, and nothing else but `+`, brackets and
/// separators.
pub fn telephone_digits(text: &str) -> Option<String> {
    let is_part =
        |c: char| c.is_ascii_digit() || "+-./() \u{a0}\u{2010}\u{2011}\u{2013}".contains(c);
    if text.len() > 40 || !text.chars().all(is_part) {
        return None;
    }
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    (7..=15).contains(&digits.len()).then_some(digits)
}

/// Whether two texts are the same telephone number. Their digits must be equal, and separators must show that they are
/// telephone numbers: `1.234567` and `12.34567` have equal digits too, and so may two dates.
pub(crate) fn is_equivalent_telephone(one: &str, other: &str) -> bool {
    let shows = is_separated(one) || is_separated(other);
    let dates = is_date_like(one) || is_date_like(other);
    shows
        && !dates
        && telephone_digits(one).is_some_and(|digits| Some(digits) == telephone_digits(other))
}

fn is_separated(text: &str) -> bool {
    text.chars().any(|c| !c.is_ascii_digit() && c != '.')
}

/// Whether a text has three groups of digits and one of them may be a year.
fn is_date_like(text: &str) -> bool {
    let groups = || text.split(|c: char| !c.is_ascii_digit());
    let is_year = |group: &str| group.len() == 4 && matches!(&group[..2], "18" | "19" | "20");
    groups().count() == 3
        && groups().filter(|group| is_year(group)).count() == 1
        && groups()
            .filter(|group| matches!(group.len(), 1 | 2))
            .count()
            == 2
}
