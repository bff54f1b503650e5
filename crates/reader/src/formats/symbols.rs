//! Fonts of symbols, whose codes are not characters. Knows the characters of some fonts, by their names.

/// A font of symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolFont {
    Symbol,
    Wingdings,
    Wingdings2,
    /// A font of symbols whose characters are unknown.
    Other,
}

/// The characters of the font Symbol (Adobe's encoding): these are for the codes 0x20 to 0x7e, and those below for 0xa0
/// to 0xfe. Parts of large brackets have no character.
const SYMBOL_LOW: &str = concat!(
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?",
    "≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_",
    "\u{fffd}αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
);
const SYMBOL_HIGH: &str = concat!(
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…\u{fffd}\u{fffd}↵",
    "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓",
    "◊〈®©™∑\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}〉∫⌠\u{fffd}⌡\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
);

/// Bullets, ticks and boxes of Wingdings and Wingdings 2.
const WINGDINGS: [(u8, char); 15] = [
    (0x6c, '●'),
    (0x6e, '■'),
    (0x6f, '□'),
    (0x71, '❑'),
    (0x72, '❒'),
    (0x76, '❖'),
    (0x9f, '•'),
    (0xa7, '▪'),
    (0xa8, '◻'),
    (0xd8, '➢'),
    (0xe0, '→'),
    (0xfb, '✗'),
    (0xfc, '✓'),
    (0xfd, '☒'),
    (0xfe, '☑'),
];
const WINGDINGS_2: [(u8, char); 6] = [
    (0x4f, '✗'),
    (0x50, '✓'),
    (0x52, '☑'),
    (0x53, '☒'),
    (0x54, '☒'),
    (0xa3, '☐'),
];

impl SymbolFont {
    /// Recognises a symbol font by its name; `None` if the codes of the font are characters.
    pub(super) fn from_name(name: &str) -> Option<SymbolFont> {
        match name.trim().to_ascii_lowercase().as_str() {
            "symbol" => Some(SymbolFont::Symbol),
            "wingdings" => Some(SymbolFont::Wingdings),
            "wingdings 2" => Some(SymbolFont::Wingdings2),
            "wingdings 3" | "webdings" | "zapfdingbats" | "zapf dingbats" | "marlett"
            | "mt extra" => Some(SymbolFont::Other),
            _ => None,
        }
    }

    /// The character for a code, or U+FFFD if it is unknown.
    pub(super) fn character(self, code: u8) -> char {
        let of = |table: &[(u8, char)]| {
            let found = table.iter().find(|(known, _)| *known == code);
            found.map(|(_, character)| *character)
        };
        let found = match (self, code) {
            (_, 0x20 | 0xa0) if self != SymbolFont::Symbol => Some(' '),
            (_, 0..0x20) => Some(' '),
            (SymbolFont::Symbol, 0x20..=0x7e) => SYMBOL_LOW.chars().nth(usize::from(code) - 0x20),
            (SymbolFont::Symbol, 0xa0..=0xfe) => SYMBOL_HIGH.chars().nth(usize::from(code) - 0xa0),
            (SymbolFont::Wingdings, _) => of(&WINGDINGS),
            (SymbolFont::Wingdings2, _) => of(&WINGDINGS_2),
            _ => None,
        };
        found.unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The code that a character of the private use area stands for in a symbol font; `None` for other characters.
pub(super) fn private_code(character: u32) -> Option<u8> {
    match character {
        0xf020..=0xf0ff => u8::try_from(character - 0xf000).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_character() {
        assert_eq!(SYMBOL_LOW.chars().count(), 0x7f - 0x20);
        assert_eq!(SYMBOL_HIGH.chars().count(), 0xff - 0xa0);
        for (font, code, expected) in [
            (SymbolFont::Symbol, b'a', 'α'),
            (SymbolFont::Symbol, b'W', 'Ω'),
            (SymbolFont::Symbol, 0xb0, '°'),
            (SymbolFont::Symbol, 0xb1, '±'),
            (SymbolFont::Symbol, 0xa3, '≤'),
            (SymbolFont::Symbol, 0xb7, '•'),
            (SymbolFont::Symbol, 0xf2, '∫'),
            (SymbolFont::Symbol, 0xff, '\u{fffd}'),
            (SymbolFont::Wingdings, 0xfe, '☑'),
            (SymbolFont::Wingdings, b'J', '\u{fffd}'),
            (SymbolFont::Wingdings2, 0x50, '✓'),
            (SymbolFont::Other, b'a', '\u{fffd}'),
            (SymbolFont::Other, b' ', ' '),
        ] {
            assert_eq!(font.character(code), expected, "{font:?} {code:x}");
        }
    }
}
