//! The reading position in a CSS selector. Reads names, strings and numbers.

use super::error::SelectorError;

pub(crate) const SELECTOR_BYTES: usize = 4 * 1024;

pub(crate) struct Cursor<'s> {
    selector: &'s str,
    pub(crate) offset: usize,
}

pub(crate) type CssResult<T> = Result<T, SelectorError>;

impl<'s> Cursor<'s> {
    pub(crate) fn new(selector: &'s str) -> CssResult<Self> {
        let mut cursor = Cursor {
            selector,
            offset: 0,
        };
        if selector.len() > SELECTOR_BYTES {
            cursor.selector = &selector[..selector.floor_char_boundary(100)];
            let length = selector.len();
            let reason = format!("the selector has {length} bytes; the limit is {SELECTOR_BYTES}");
            return Err(cursor.fault(&reason));
        }
        Ok(cursor)
    }

    pub(crate) fn unread_text(&self) -> &'s str {
        &self.selector[self.offset..]
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.unread_text().chars().next()
    }

    pub(crate) fn take(&mut self, literal: &str) -> bool {
        let taken = self.unread_text().starts_with(literal);
        if taken {
            self.offset += literal.len();
        }
        taken
    }

    /// Whether this word follows, ignoring case, and no longer word that begins with it.
    pub(crate) fn is_at_word(&self, word: &str) -> bool {
        let (start, behind) = (
            self.unread_text().get(..word.len()),
            self.unread_text().get(word.len()..),
        );
        start.is_some_and(|start| start.eq_ignore_ascii_case(word))
            && !behind.is_some_and(|behind| behind.starts_with(is_name_part))
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let taken = self.is_at_word(word);
        if taken {
            self.offset += word.len();
        }
        taken
    }

    /// The text from `start` to the current position.
    pub(crate) fn text_since(&self, start: usize) -> &'s str {
        &self.selector[start..self.offset]
    }

    pub(crate) fn expect(&mut self, literal: &str) -> CssResult<()> {
        if self.take(literal) {
            Ok(())
        } else {
            Err(self.expected_error(&format!("`{literal}`")))
        }
    }

    /// Skips white space and comments. Returns whether there was white space.
    pub(crate) fn skip_space(&mut self) -> bool {
        let mut skipped = false;
        loop {
            self.skip_comments();
            let behind = self.unread_text().trim_start_matches(is_space);
            let bytes = self.unread_text().len() - behind.len();
            if bytes == 0 {
                return skipped;
            }
            self.offset += bytes;
            skipped = true;
        }
    }

    /// Skips comments. They do not separate names: `p/* */.x` means `p.x`. An unclosed comment extends to the end.
    pub(crate) fn skip_comments(&mut self) {
        while let Some(comment) = self.unread_text().strip_prefix("/*") {
            let length = comment.find("*/").map_or(comment.len(), |end| end + 2);
            self.offset += 2 + length;
        }
    }

    /// Reads a name, and resolves its escapes.
    pub(crate) fn parse_name(&mut self) -> CssResult<String> {
        let start = self.offset;
        let mut name = String::new();
        while let Some(character) = self.peek() {
            if character == '\\' {
                name.push(self.parse_escape()?);
            } else if is_name_part(character) {
                name.push(character);
                self.offset += character.len_utf8();
            } else {
                break;
            }
        }
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            let escaped = self.selector[start..].starts_with('\\');
            if name.is_empty() || !escaped {
                self.offset = start;
                return Err(self.expected_error("a name"));
            }
        }
        Ok(name)
    }

    /// Reads an escape sequence: `\:` is a colon, and `\31 ` is the character with this hexadecimal number.
    fn parse_escape(&mut self) -> CssResult<char> {
        self.offset += 1;
        let rest = self.unread_text();
        let digits = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_hexdigit())
                .len();
        if digits == 0 {
            let Some(character) = self.peek() else {
                return Err(self.expected_error("a character"));
            };
            self.offset += character.len_utf8();
            return Ok(character);
        }
        let digits = digits.min(6);
        let number = u32::from_str_radix(&rest[..digits], 16).unwrap_or(0);
        self.offset += digits;
        if self.peek().is_some_and(is_space) {
            self.skip_character();
        }
        Ok(char::from_u32(number)
            .filter(|c| *c != '\0')
            .unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn skip_character(&mut self) {
        self.offset += self.peek().map_or(0, char::len_utf8);
    }

    /// Reads a quoted string or a name.
    pub(crate) fn parse_string_or_name(&mut self) -> CssResult<String> {
        let Some(quote) = self.peek().filter(|c| matches!(c, '"' | '\'')) else {
            return self.parse_name();
        };
        let start = self.offset;
        self.offset += 1;
        let mut string = String::new();
        loop {
            match self.peek() {
                None => {
                    self.offset = start;
                    return Err(self.fault("the string has no closing quote"));
                }
                Some('\\') => string.push(self.parse_escape()?),
                Some(character) => {
                    self.skip_character();
                    if character == quote {
                        return Ok(string);
                    }
                    string.push(character);
                }
            }
        }
    }

    pub(crate) fn fault(&self, reason: &str) -> SelectorError {
        self.fault_at(self.offset, reason)
    }

    pub(crate) fn fault_at(&self, offset: usize, reason: &str) -> SelectorError {
        let (selector, reason) = (self.selector.to_owned(), reason.to_owned());
        SelectorError {
            selector,
            offset,
            reason,
        }
    }

    pub(crate) fn expected_error(&self, wanted: &str) -> SelectorError {
        match self.peek() {
            Some(found) => self.fault(&format!("expected {wanted}, found `{found}`")),
            None => self.fault(&format!("expected {wanted}, found the end")),
        }
    }
}

/// Whether a character is white space in CSS. A no-break space is part of a name.
pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

pub(crate) fn is_name_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_') || !character.is_ascii()
}
