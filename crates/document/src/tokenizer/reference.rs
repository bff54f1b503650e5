//! Reads character references, named and numeric (HTML standard, 13.2.5.72 to 13.2.5.80).

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};

use super::run::Run;
use super::{Audience, Tokenizer};

/// The length in bytes of the longest name of a character reference, without its semicolon.
const LONGEST_NAME: usize = 31;
/// The length in bytes of the longest name that is valid without a semicolon, such as `&copy`.
const LONGEST_BARE_NAME: usize = 6;

/// A character reference: the one or two characters that it stands for, and the position of its end.
struct Reference {
    characters: [Option<char>; 2],
    end: usize,
}

impl<A: Audience> Tokenizer<'_, A> {
    /// Reads the reference at the current position, or only the `&` if there is none.
    pub(super) fn read_reference(&mut self, run: &mut Run<'_>, in_attribute: bool) {
        let found = match self.byte_at(self.at + 1) {
            Some(b'#') => self.parse_numeric_reference(self.at + 2),
            Some(next) if next.is_ascii_alphanumeric() => {
                self.find_named_reference(self.at + 1, in_attribute)
            }
            _ => None,
        };
        let Some(reference) = found else {
            self.at += 1;
            return;
        };
        let mut encoded = [0; 8];
        let mut length = 0;
        for character in reference.characters.into_iter().flatten() {
            length += character.encode_utf8(&mut encoded[length..]).len();
        }
        let text = std::str::from_utf8(&encoded[..length]).expect("characters were encoded");
        run.replace(self.at, reference.end, text);
        self.at = reference.end;
    }

    /// Finds the longest known name of a reference that begins at `from`.
    fn find_named_reference(&self, from: usize, in_attribute: bool) -> Option<Reference> {
        let rest = &self.bytes[from..];
        let letters = rest
            .iter()
            .take(LONGEST_NAME + 1)
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        if rest.get(letters) == Some(&b';')
            && let Some(characters) = self.look_up_entity(from, from + letters + 1)
        {
            let end = from + letters + 1;
            return Some(Reference { characters, end });
        }
        let longest = letters.min(LONGEST_BARE_NAME);
        let (end, characters) = (1..=longest).rev().find_map(|length| {
            let end = from + length;
            Some((end, self.look_up_entity(from, end)?))
        })?;
        let goes_on = |next: u8| next == b'=' || next.is_ascii_alphanumeric();
        // In an attribute, a name before a letter or `=` is not a reference. This keeps `?a=b&copy=c` in a URL
        // unchanged.
        if in_attribute && self.byte_at(end).is_some_and(goes_on) {
            return None;
        }
        Some(Reference { characters, end })
    }

    fn look_up_entity(&self, from: usize, to: usize) -> Option<[Option<char>; 2]> {
        match &self.text[from..to] {
            "amp;" => Some([Some('&'), None]),
            "nbsp;" => Some([Some('\u{a0}'), None]),
            name => match NAMED_ENTITIES.get(name)? {
                // The table also contains beginnings of names, which stand for nothing.
                (0, _) => None,
                (first, 0) => Some([char::from_u32(*first), None]),
                (first, second) => Some([char::from_u32(*first), char::from_u32(*second)]),
            },
        }
    }

    /// Parses a numeric reference, such as `&#65;`. `from` is the position after its `#`.
    fn parse_numeric_reference(&self, from: usize) -> Option<Reference> {
        let (radix, from) = match self.byte_at(from) {
            Some(b'x' | b'X') => (16, from + 1),
            _ => (10, from),
        };
        let digits = self.bytes[from..]
            .iter()
            .map_while(|byte| char::from(*byte).to_digit(radix));
        let (mut number, mut end) = (0_u32, from);
        for digit in digits {
            number = number.saturating_mul(radix).saturating_add(digit);
            end += 1;
        }
        if end == from {
            return None;
        }
        if self.byte_at(end) == Some(b';') {
            end += 1;
        }
        let characters = [Some(char_of_number(number)), None];
        Some(Reference { characters, end })
    }
}

/// The character with this number. As the HTML standard demands, 0x80 to 0x9f are read as windows-1252.
fn char_of_number(number: u32) -> char {
    let replaced = match number {
        0 => None,
        0x80..=0x9f => C1_REPLACEMENTS[number as usize - 0x80].or(char::from_u32(number)),
        _ => char::from_u32(number),
    };
    replaced.unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_the_lengths_of_the_longest_names() {
        let names = || {
            NAMED_ENTITIES
                .entries()
                .filter(|(_, (first, _))| *first != 0)
                .map(|(name, _)| *name)
        };
        let bare = names().filter(|name| !name.ends_with(';'));
        assert_eq!(bare.map(str::len).max(), Some(LONGEST_BARE_NAME));
        assert_eq!(names().map(str::len).max(), Some(LONGEST_NAME + 1));
    }
}
