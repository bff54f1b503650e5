//! Reads document type declarations, which only determine the quirks mode of old pages.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Doctype, Token};
use memchr::{memchr, memchr2};

use super::run::{REPLACEMENT, without_nul};
use super::{Audience, Tokenizer, class};

/// How the reading of a declaration ends.
enum End {
    /// The declaration ends at its `>`.
    Proper,
    /// The declaration ends at its `>` or at the end of the page, in a way that forces quirks mode.
    Quirks,
    /// The rest of the declaration, up to the next `>`, is ignored.
    Ignored { force_quirks: bool },
}

impl<A: Audience> Tokenizer<'_, A> {
    /// Reads the declaration; `from` is the position after the word `doctype`.
    pub(super) fn read_doctype(&mut self, from: usize) {
        self.at = from;
        let mut doctype = Doctype::default();
        match self.read_doctype_parts(&mut doctype) {
            End::Proper => {}
            End::Quirks => doctype.force_quirks = true,
            End::Ignored { force_quirks } => {
                doctype.force_quirks = force_quirks;
                let found = memchr(b'>', &self.bytes[self.at..]);
                self.at = found.map_or(self.bytes.len(), |found| self.at + found);
            }
        }
        // Move past the `>`, if the page has one.
        self.at = (self.at + 1).min(self.bytes.len());
        self.emit(Token::DoctypeToken(doctype));
    }

    /// Reads up to the `>` of the declaration, or to the position at which it becomes invalid.
    fn read_doctype_parts(&mut self, doctype: &mut Doctype) -> End {
        self.skip_whitespace();
        if matches!(self.peek(), Some(b'>') | None) {
            return End::Quirks;
        }
        doctype.name = Some(self.read_doctype_name());
        self.skip_whitespace();
        match self.peek() {
            Some(b'>') => return End::Proper,
            None => return End::Quirks,
            Some(_) => {}
        }
        let public = self.has_word(self.at, "public");
        if !public && !self.has_word(self.at, "system") {
            return End::Ignored { force_quirks: true };
        }
        self.at += "public".len();
        if public {
            self.read_public_identifier(doctype)
        } else {
            self.read_system_identifier(doctype)
        }
    }

    fn read_doctype_name(&mut self) -> StrTendril {
        let from = self.at;
        let rest = &self.bytes[from..];
        let length = rest
            .iter()
            .position(|byte| *byte == b'>' || class::is_whitespace(*byte));
        self.at = length.map_or(self.bytes.len(), |length| from + length);
        let name = self.text[from..self.at].to_ascii_lowercase();
        StrTendril::from(name.replace('\0', REPLACEMENT))
    }

    fn read_public_identifier(&mut self, doctype: &mut Doctype) -> End {
        match self.read_identifier(&mut doctype.public_id) {
            Some(end) => end,
            None => {
                self.skip_whitespace();
                match self.peek() {
                    Some(b'>') => End::Proper,
                    _ => self.read_system_identifier(doctype),
                }
            }
        }
    }

    fn read_system_identifier(&mut self, doctype: &mut Doctype) -> End {
        if let Some(end) = self.read_identifier(&mut doctype.system_id) {
            return end;
        }
        self.skip_whitespace();
        match self.peek() {
            Some(b'>') => End::Proper,
            Some(_) => End::Ignored {
                force_quirks: false,
            },
            None => End::Quirks,
        }
    }

    /// Reads a quoted identifier. If the declaration ends here, returns how it ends.
    fn read_identifier(&mut self, identifier: &mut Option<StrTendril>) -> Option<End> {
        self.skip_whitespace();
        let quote = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => quote,
            Some(b'>') | None => return Some(End::Quirks),
            Some(_) => return Some(End::Ignored { force_quirks: true }),
        };
        let from = self.at + 1;
        let found = memchr2(quote, b'>', &self.bytes[from..]);
        self.at = found.map_or(self.bytes.len(), |found| from + found);
        *identifier = Some(without_nul(self.input, from, self.at));
        if self.peek() != Some(quote) {
            return Some(End::Quirks);
        }
        self.at += 1;
        None
    }
}
