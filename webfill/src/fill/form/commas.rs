//! The style of commas between words: with or without a space after the comma.

use super::MOST;

/// The style of commas between words in nearly all known values: with or without a space after the comma. Values that
/// may have commas within words are ignored.
pub fn comma_style<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Option<&'static str> {
    /// A style is recognised only from at least this many commas.
    const LEAST: usize = 3;
    let (mut tight, mut spaced) = (0, 0);
    for value in known() {
        for (before, behind) in comma_positions(&value).unwrap_or_default() {
            match behind - before {
                1 => tight += 1,
                _ => spaced += 1,
            }
        }
    }
    let all = tight + spaced;
    match all >= LEAST {
        true if tight * 100 >= all * MOST => Some(","),
        true if spaced * 100 >= all * MOST => Some(", "),
        _ => None,
    }
}

/// Gives a value's commas the style of its column. A value that may have commas within words stays unchanged.
pub fn with_comma_style(value: String, comma: Option<&'static str>) -> String {
    let Some((comma, commas)) = comma.zip(comma_positions(&value)) else {
        return value;
    };
    let (mut written, mut from) = (String::with_capacity(value.len()), 0);
    for (before, behind) in commas {
        written.push_str(&value[from..before]);
        written.push_str(comma);
        from = behind;
    }
    written.push_str(&value[from..]);
    written
}

/// The positions of commas between letters, each with the end of the spaces after it. `None` if any comma may be within
/// a word (`N,N-Dimethyl`), an address, a function call or the like.
fn comma_positions(value: &str) -> Option<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    for (at, _) in value.match_indices(',') {
        let (before, after) = (&value[..at], &value[at + 1..]);
        let rest = after.trim_start_matches(' ');
        if !before.ends_with(char::is_alphabetic) || !rest.starts_with(char::is_alphabetic) {
            continue;
        }
        if rest.len() == after.len() && !are_words(last_part(before), first_part(after)) {
            return None;
        }
        found.push((at, value.len() - rest.len()));
    }
    Some(found)
}

fn last_part(text: &str) -> &str {
    text.rsplit(is_end_of_part).next().unwrap_or_default()
}

fn first_part(text: &str) -> &str {
    text.split(is_end_of_part).next().unwrap_or_default()
}

fn is_end_of_part(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

/// Whether the parts before and after a comma are words, if no space follows the comma. The first part may have
/// hyphens.
fn are_words(before: &str, after: &str) -> bool {
    let is_word = |part: &str| {
        let is_of_word = |c: char| c.is_alphabetic() || "'\u{2019}.-".contains(c);
        let has_points_inside = part.contains('.') && !part.ends_with('.');
        part.chars().all(is_of_word) && !has_points_inside
    };
    let is_letter = |part: &str| part.chars().filter(|c| c.is_alphabetic()).count() < 2;
    is_word(before)
        && is_word(after)
        && !after.contains('-')
        && !(is_letter(before) && is_letter(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_between_words_are_written_as_their_column_has_them() {
        let of = |values: &[&str]| comma_style(|| values.iter().map(|value| (*value).to_owned()));
        let tight = of(&["Soup", "Dinner,Lunch", "Main Course,Pasta,Easy"]);
        assert_eq!(tight, Some(","));
        let spaced = of(&["Byron, Ada", "Hopper, Grace", "Knuth, Donald"]);
        assert_eq!(spaced, Some(", "));
        assert_eq!(of(&["Byron, Ada", "Hopper,Grace", "Knuth, Donald"]), None);
        assert_eq!(of(&["1,234", "5,678", "a, 1", "Dinner,Lunch"]), None);
        let written = |value: &str, comma| with_comma_style(value.to_owned(), comma);
        assert_eq!(written("Dinner, Lunch,  Tea", tight), "Dinner,Lunch,Tea");
        assert_eq!(written("Byron,Ada", spaced), "Byron, Ada");
        assert_eq!(written("1, 2 and 3,b", tight), "1, 2 and 3,b");
        assert_eq!(written("Dinner, Lunch", None), "Dinner, Lunch");
    }

    #[test]
    fn commas_within_words_and_numbers_stay_as_they_are() {
        // Each entry has a value, then its form in a column with spaces after commas, then its form in a column
        // without.
        let table = [
            ("Smith,John", "Smith, John", "Smith,John"),
            ("Smith, John", "Smith, John", "Smith,John"),
            ("Smith,J.", "Smith, J.", "Smith,J."),
            ("Smith,J. R.", "Smith, J. R.", "Smith,J. R."),
            ("O'Neill,Anna", "O'Neill, Anna", "O'Neill,Anna"),
            (
                "Lloyd-Webber,Andrew",
                "Lloyd-Webber, Andrew",
                "Lloyd-Webber,Andrew",
            ),
            ("Washington,D.C.", "Washington, D.C.", "Washington,D.C."),
            ("Acme Co., Ltd.", "Acme Co., Ltd.", "Acme Co., Ltd."),
            ("en,de,fr", "en, de, fr", "en,de,fr"),
            (
                "\u{6771}\u{4eac},\u{5927}\u{962a}",
                "\u{6771}\u{4eac}, \u{5927}\u{962a}",
                "\u{6771}\u{4eac},\u{5927}\u{962a}",
            ),
            (
                "Main Course,Soup, Tea",
                "Main Course, Soup, Tea",
                "Main Course,Soup,Tea",
            ),
            // On the page, a space follows the comma, so the comma separates words.
            ("Anna, Mary-Ann", "Anna, Mary-Ann", "Anna,Mary-Ann"),
        ];
        for (value, spaced, tight) in table {
            assert_eq!(with_comma_style(value.to_owned(), Some(", ")), spaced);
            assert_eq!(with_comma_style(value.to_owned(), Some(",")), tight);
        }
        let same = [
            "1,234",
            "1,234,567.5",
            "48.1,11.5",
            "1, 2",
            "48.1N,11.5E",
            "N,N-Dimethylaniline",
            "O,O-Diethyl",
            "N,N',N''-Triphenyl",
            "trans,trans-2,4-Decadienal",
            "cis,trans-decalin",
            "\u{3b1},\u{3b2}-unsaturated",
            "(R,R)-Tartaric acid",
            "A,B",
            "f(x,y)",
            "max(first,second)",
            "rgb(a,b)",
            "https://example.org/a,b",
            "https://example.org/maps/berlin,mitte/",
            "ada@example.org,alan@example.org",
            "www.example.org,www.example.net",
            "font-family:Arial,Helvetica",
            "Arial,Helvetica,sans-serif",
            "a=b,c=d",
            "de_DE,en_US",
            "H2O,NaCl",
            "C:\\a,b",
            "Anna,Mary-Ann",
            // The first comma may be within a word, so no comma is changed.
            "N,N-Dimethylaniline, Acetone",
        ];
        for value in same {
            for comma in [", ", ","] {
                assert_eq!(with_comma_style(value.to_owned(), Some(comma)), value);
            }
        }
        // Commas that may be within words do not show the style of the column.
        let of = |values: &[&str]| comma_style(|| values.iter().map(|value| (*value).to_owned()));
        assert_eq!(
            of(&["N,N-Dimethyl", "O,O-Diethyl", "S,S-Ethyl", "Ethanol"]),
            None
        );
    }
}
