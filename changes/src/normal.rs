//! The form in which texts are compared: what looks the same is the same.

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The text composed (NFC, Unicode Standard Annex 15), with single spaces, and without marks that are never seen
/// (`Default_Ignorable_Code_Point` of the Unicode Character Database).
pub(crate) fn normal(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    let mut has_space = false;
    for letter in text.chars().filter(|letter| !is_invisible(*letter)) {
        match letter.is_whitespace() || letter.is_control() {
            true => has_space = !spaced.is_empty(),
            false => {
                if std::mem::take(&mut has_space) {
                    spaced.push(' ');
                }
                spaced.push(letter);
            }
        }
    }
    match is_nfc(&spaced) {
        true => spaced,
        false => spaced.nfc().collect(),
    }
}

fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_the_same_is_the_same() {
        for (one, other) in [
            ("caf\u{e9}", "cafe\u{301}"),
            ("10 EUR", "10\u{a0}EUR"),
            ("10 EUR", "10\u{202f}\n EUR\u{200b}"),
            ("Name", "\u{200e}Name\u{200f}\u{2060}"),
            ("Item", "It\u{ad}em\u{feff}"),
            ("\u{c5}ngstr\u{f6}m", "\u{212b}ngstro\u{308}m"),
            (
                "\u{d55c}\u{ae00}",
                "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}",
            ),
            ("\u{2764}", "\u{2764}\u{fe0f}"),
            ("a b", " \ta\u{3000}b\r\n"),
        ] {
            assert_eq!(normal(one), normal(other), "{one}");
        }
        for (one, other) in [
            ("10", "1 0"),
            ("a", "A"),
            ("m\u{b2}", "m2"),
            ("resume", "r\u{e9}sum\u{e9}"),
        ] {
            assert_ne!(normal(one), normal(other), "{one}");
        }
    }
}
