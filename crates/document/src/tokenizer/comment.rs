//! Reads markup that begins with `<!`: comments, CDATA sections, document types, and bogus comments.

use html5ever::tokenizer::Token;
use memchr::{memchr, memmem};

use super::run::without_nul;
use super::{Audience, Tokenizer};

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

    /// Reads the comment whose text begins at `from`.
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

    /// The end of a comment's text, and the end of the comment. It ends at `-->`, at `--!>`, or at the end of the page,
    /// which may cut these off.
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

    /// Reads a bogus comment from `from` to the next `>`.
    pub(super) fn read_bogus_comment(&mut self, from: usize) {
        let found = memchr(b'>', &self.bytes[from..]);
        let to = found.map_or(self.bytes.len(), |found| from + found);
        self.at = (to + 1).min(self.bytes.len());
        self.emit(Token::CommentToken(without_nul(self.input, from, to)));
    }

    /// Reads a CDATA section, which is text, up to its end or the next NUL.
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
