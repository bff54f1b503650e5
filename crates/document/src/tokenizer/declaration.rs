//! Reads markup that begins with `<!`: comments, CDATA sections, document types, and bogus comments. A document type
//! only decides whether the page is parsed in quirks mode.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Doctype, Token};
use memchr::{memchr, memchr2, memmem};

use super::run::{REPLACEMENT, without_nul};
use super::{Audience, Tokenizer, class};

impl<A: Audience> Tokenizer<'_, A> {
    /// Reads the markup that begins with the `<!` at the current position.
    pub(super) fn read_markup_declaration(&mut self) {
        let from = self.at + 2;
        if self.bytes[from..].starts_with(b"--") {
            self.read_comment(from + 2);
        } else if self.has_word(from, "doctype") {
            self.read_doctype(from + "doctype".len());
        } else if self.bytes[from..].starts_with(b"[CDATA[")
            && self
                .audience
                .adjusted_current_node_present_but_not_in_html_namespace()
        {
            self.read_cdata(from + "[CDATA[".len());
        } else {
            self.read_bogus_comment(from);
        }
    }

    /// Reads the comment with the text that begins at `from`.
    fn read_comment(&mut self, from: usize) {
        let rest = &self.bytes[from..];
        let (to, end) = if rest.starts_with(b">") {
            (from, from + 1)
        } else if rest.starts_with(b"->") {
            (from, from + 2)
        } else {
            self.end_of_comment(from)
        };
        self.at = end;
        self.emit(Token::CommentToken(without_nul(self.input, from, to)));
    }

    /// Returns the end of the comment's text, and the end of the comment. A comment ends at `-->`, at `--!>`, or at the
    /// end of the page, where these may be incomplete.
    fn end_of_comment(&self, from: usize) -> (usize, usize) {
        let mut place = from;
        while let Some(found) = memchr(b'-', &self.bytes[place..]) {
            let dashes = place + found;
            place = dashes + 1;
            while self.byte_at(place) == Some(b'-') {
                place += 1;
            }
            let last_two = (place - 2).max(dashes);
            let may_end = place - dashes >= 2;
            match (self.byte_at(place), self.byte_at(place + 1)) {
                (Some(b'>'), _) if may_end => return (last_two, place + 1),
                (Some(b'!'), Some(b'>')) if may_end => return (last_two, place + 2),
                (Some(b'!'), None) if may_end => return (last_two, place + 1),
                (None, _) => return (last_two, place),
                _ => {}
            }
        }
        (self.bytes.len(), self.bytes.len())
    }

    /// Reads a bogus comment (invalid markup that counts as a comment), from `from` to the next `>`.
    pub(super) fn read_bogus_comment(&mut self, from: usize) {
        let found = memchr(b'>', &self.bytes[from..]);
        let to = found.map_or(self.bytes.len(), |found| from + found);
        self.at = (to + 1).min(self.bytes.len());
        self.emit(Token::CommentToken(without_nul(self.input, from, to)));
    }

    /// Reads a CDATA section as text. Each NUL in it becomes a separate token.
    fn read_cdata(&mut self, from: usize) {
        let mut from = from;
        let end = memmem::find(&self.bytes[from..], b"]]>").map(|found| from + found);
        let to = end.unwrap_or(self.bytes.len());
        while let Some(found) = memchr(0, &self.bytes[from..to]) {
            self.emit_text(self.input.part(from, from + found));
            self.emit(Token::NullCharacterToken);
            from += found + 1;
        }
        self.emit_text(self.input.part(from, to));
        self.at = end.map_or(to, |end| end + "]]>".len());
    }
}

/// How a document type declaration ends.
enum End {
    /// The declaration ends at its `>`.
    Proper,
    /// The declaration ends at its `>` or at the end of the page. It is incomplete, which forces quirks mode.
    Quirks,
    /// The rest of the declaration, up to the next `>`, is ignored.
    Ignored { force_quirks: bool },
}

impl<A: Audience> Tokenizer<'_, A> {
    /// Reads a document type declaration; `from` is the position after the word `doctype`.
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

    /// Reads up to the `>` of the declaration, or to the position where it becomes invalid.
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
