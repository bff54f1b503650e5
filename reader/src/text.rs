//! The text of a document while it is put together, within its limit.

use crate::formats::Trouble;

/// A text that grows, with single blanks between words and at most one empty line between paragraphs.
pub(crate) struct TextWriter {
    text: String,
    max_bytes: usize,
    breaks: usize,
    space: bool,
}

impl TextWriter {
    pub(crate) fn new(max_bytes: u64) -> TextWriter {
        TextWriter {
            text: String::new(),
            max_bytes: usize::try_from(max_bytes).unwrap_or(usize::MAX),
            breaks: 0,
            space: false,
        }
    }

    /// Adds running text; white space in it is as good as one blank.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), Trouble> {
        for character in text.chars() {
            match character {
                '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                    self.line_break();
                }
                _ if character.is_whitespace() && character != '\u{a0}' => self.space = true,
                _ if character.is_control() || character == '\u{feff}' => {}
                _ => self.push_visible(character)?,
            }
        }
        Ok(())
    }

    fn push_visible(&mut self, character: char) -> Result<(), Trouble> {
        if !self.text.is_empty() {
            match (self.breaks, self.space) {
                (0, false) => {}
                (0, true) => self.text.push(' '),
                (1, _) => self.text.push('\n'),
                _ => self.text.push_str("\n\n"),
            }
        }
        (self.breaks, self.space) = (0, false);
        if self.text.len() + character.len_utf8() > self.max_bytes {
            return Err(Trouble::TooLarge(format!(
                "its text is longer than {} bytes",
                self.max_bytes
            )));
        }
        self.text.push(character);
        Ok(())
    }

    pub(crate) fn space(&mut self) {
        self.space = true;
    }

    pub(crate) fn line_break(&mut self) {
        self.breaks = (self.breaks + 1).min(2);
    }

    pub(crate) fn paragraph(&mut self) {
        self.breaks = self.breaks.max(1);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&str]) -> String {
        let mut writer = TextWriter::new(1000);
        for part in parts {
            writer.push(part).unwrap();
            writer.paragraph();
        }
        writer.finish()
    }

    #[test]
    fn white_space_is_what_a_reader_sees() {
        assert_eq!(written(&["  a \t b\u{0}c ", "", "d"]), "a bc\nd");
        assert_eq!(written(&["a\n\n\n\nb\r\n"]), "a\n\nb");
    }

    #[test]
    fn a_text_over_the_limit_is_refused() {
        let mut writer = TextWriter::new(3);
        assert!(writer.push("abc").is_ok());
        assert!(writer.push("d").is_err());
    }
}
