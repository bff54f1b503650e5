//! Builds the text of a document, up to a size limit.

use crate::formats::Trouble;

/// A growing text, with single blanks between words and at most one empty line between paragraphs. A row of a table is
/// one line. A tab follows each cell, except at the end of a row.
pub(crate) struct TextWriter {
    text: String,
    max_bytes: usize,
    breaks: usize,
    space: bool,
    /// How many cells are around this position. Tables may be nested.
    in_cells: usize,
    /// How many cells of this row have ended since the last visible character.
    tabs: usize,
}

impl TextWriter {
    pub(crate) fn new(max_bytes: u64) -> TextWriter {
        TextWriter {
            text: String::new(),
            max_bytes: usize::try_from(max_bytes).unwrap_or(usize::MAX),
            breaks: 0,
            space: false,
            in_cells: 0,
            tabs: 0,
        }
    }

    /// Adds running text. Line breaks in it end the line. Other white space becomes one blank, except for no-break
    /// spaces, which are kept.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), Trouble> {
        for character in text.chars() {
            match character {
                '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                    self.push_line_break();
                }
                _ if character.is_whitespace() && character != '\u{a0}' => self.space = true,
                // A soft hyphen marks where a word may be divided, and is not shown.
                '\u{ad}' => {}
                _ if character.is_control() || character == '\u{feff}' => {}
                _ => self.push_visible(character)?,
            }
        }
        Ok(())
    }

    /// Adds text that another writer has built, with its tabs and line breaks.
    pub(crate) fn push_written(&mut self, text: &str) -> Result<(), Trouble> {
        for character in text.chars() {
            match character {
                // Within a cell, the tabs of a nested table become blanks.
                '\t' if self.in_cells > 0 => self.push_space(),
                '\t' => self.skip_cells(1),
                '\n' => self.push_line_break(),
                ' ' => self.push_space(),
                _ => self.push_visible(character)?,
            }
        }
        Ok(())
    }

    fn push_visible(&mut self, character: char) -> Result<(), Trouble> {
        let breaks = if self.text.is_empty() { 0 } else { self.breaks };
        let blanks =
            usize::from(self.space && breaks == 0 && self.tabs == 0 && !self.text.is_empty());
        let added = breaks
            .saturating_add(blanks)
            .saturating_add(self.tabs)
            .saturating_add(character.len_utf8());
        if self.text.len().saturating_add(added) > self.max_bytes {
            return Err(Trouble::TooLarge(format!(
                "its text is longer than {} bytes",
                self.max_bytes
            )));
        }
        let between = [('\n', breaks), (' ', blanks), ('\t', self.tabs)];
        for (separator, times) in between {
            self.text.extend(std::iter::repeat_n(separator, times));
        }
        (self.breaks, self.space, self.tabs) = (0, false, 0);
        self.text.push(character);
        Ok(())
    }

    pub(crate) fn push_space(&mut self) {
        self.space = true;
    }

    pub(crate) fn push_line_break(&mut self) {
        self.end_line(self.breaks + 1);
    }

    pub(crate) fn end_paragraph(&mut self) {
        self.end_line(self.breaks.max(1));
    }

    /// Ends a line. Within a cell, the text stays on the line of its row.
    fn end_line(&mut self, breaks: usize) {
        if self.in_cells > 0 {
            self.space = true;
        } else {
            self.breaks = breaks.min(2);
            self.tabs = 0;
        }
    }

    pub(crate) fn begin_cell(&mut self) {
        self.in_cells += 1;
    }

    pub(crate) fn end_cell(&mut self) {
        self.in_cells = self.in_cells.saturating_sub(1);
        match self.in_cells {
            0 => self.skip_cells(1),
            _ => self.space = true,
        }
    }

    /// Adds empty cells. They are left out if no other cell follows them in the row.
    pub(crate) fn skip_cells(&mut self, cells: usize) {
        self.tabs = self.tabs.saturating_add(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes as u64
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_parts(parts: &[&str]) -> String {
        let mut writer = TextWriter::new(1000);
        for part in parts {
            writer.push(part).unwrap();
            writer.end_paragraph();
        }
        writer.finish()
    }

    #[test]
    fn readable_text_has_the_white_space_that_a_reader_sees() {
        assert_eq!(write_parts(&["  a \t b\u{0}c ", "", "d"]), "a bc\nd");
        assert_eq!(write_parts(&["a\n\n\n\nb\r\n"]), "a\n\nb");
    }

    #[test]
    fn cells_keep_their_place_in_the_row() {
        let rows: [&[&str]; 5] = [
            &["a", "", "b\nc"],
            &["", ""],
            &["", " d "],
            &["e", "", ""],
            &["f"],
        ];
        let mut writer = TextWriter::new(1000);
        for row in rows {
            for cell in row {
                writer.begin_cell();
                writer.push(cell).unwrap();
                writer.end_cell();
            }
            writer.end_paragraph();
        }
        assert_eq!(writer.finish(), "a\t\tb c\n\td\ne\nf");
    }

    #[test]
    fn tabs_count_for_the_limit() {
        let mut writer = TextWriter::new(3);
        writer.skip_cells(usize::MAX);
        assert!(writer.push("a").is_err());
        let mut writer = TextWriter::new(3);
        writer.skip_cells(2);
        assert!(writer.push("a").is_ok());
        assert_eq!(writer.finish(), "\t\ta");
    }

    #[test]
    fn a_text_over_the_limit_is_refused() {
        let mut writer = TextWriter::new(3);
        assert!(writer.push("abc").is_ok());
        assert!(writer.push("d").is_err());
    }
}
