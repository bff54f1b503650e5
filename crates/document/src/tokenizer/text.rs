//! Reads text between tags, and decides what a `<` in it starts.

use html5ever::tokenizer::{TagKind, Token};
use memchr::{memchr, memchr2, memchr3};

use super::run::{REPLACEMENT, Run};
use super::{Audience, Content, Tokenizer, class};

/// The number of bytes of a text that are searched one by one, before the vectorised search begins. Most texts between
/// tags are a few spaces or words, too short for a vectorised search to be faster.
const SHORT: usize = 16;

impl<A: Audience> Tokenizer<'_, A> {
    /// Reads text between tags ("data state"), and the markup after it.
    pub(super) fn read_data(&mut self) {
        let mut run = Run::new(self.input, self.at);
        while let Some(found) = self.find_special_byte() {
            self.at = found;
            match self.bytes[found] {
                b'&' => self.read_reference(&mut run, false),
                b'<' if !self.begins_markup(found) => self.at += 1,
                b'<' => {
                    self.emit_text(run.finish(found));
                    return self.read_markup();
                }
                // The tree builder decides whether a NUL is dropped or replaced.
                _ => {
                    self.emit_text(run.finish(found));
                    self.at += 1;
                    return self.emit(Token::NullCharacterToken);
                }
            }
        }
        self.skip_to_end();
        self.emit_text(run.finish(self.at));
    }

    fn find_special_byte(&self) -> Option<usize> {
        let rest = &self.bytes[self.at..];
        let near = rest
            .iter()
            .take(SHORT)
            .position(|byte| matches!(byte, b'<' | b'&' | 0));
        let found = near.or_else(|| {
            let far = rest.get(SHORT..)?;
            Some(SHORT + memchr3(b'<', b'&', 0, far)?)
        });
        Some(self.at + found?)
    }

    /// Reads text up to the end tag of its element. With `references`, character references are resolved (RCDATA, as in
    /// `title`); otherwise they are not (RAWTEXT, as in `style`).
    pub(super) fn read_raw_text(&mut self, references: bool) {
        let mut run = Run::new(self.input, self.at);
        loop {
            let rest = &self.bytes[self.at..];
            let found = match references {
                true => memchr3(b'<', b'&', 0, rest),
                false => memchr2(b'<', 0, rest),
            };
            let Some(found) = found.map(|found| self.at + found) else {
                self.skip_to_end();
                return self.emit_text(run.finish(self.at));
            };
            self.at = found;
            match self.bytes[found] {
                b'&' => self.read_reference(&mut run, false),
                b'<' if self.closes_content(found) => {
                    return self.end_content(run);
                }
                b'<' => self.at += 1,
                _ => self.replace_nul(&mut run),
            }
        }
    }

    /// Reads the rest of the page as text ("PLAINTEXT state").
    pub(super) fn read_plain_text(&mut self) {
        let mut run = Run::new(self.input, self.at);
        while let Some(found) = memchr(0, &self.bytes[self.at..]) {
            self.at += found;
            self.replace_nul(&mut run);
        }
        self.skip_to_end();
        self.emit_text(run.finish(self.at));
    }

    /// Replaces the NUL at the current position, and moves past it.
    pub(super) fn replace_nul(&mut self, run: &mut Run<'_>) {
        run.replace(self.at, self.at + 1, REPLACEMENT);
        self.at += 1;
    }

    /// Whether the `<` at `place` begins the end tag that ends the current content.
    pub(super) fn closes_content(&self, place: usize) -> bool {
        let name = &*self.last_start_tag;
        self.byte_at(place + 1) == Some(b'/')
            && self.has_word(place + 2, name)
            && self
                .byte_at(place + 2 + name.len())
                .is_some_and(|after| class::classes_of(after) & class::ENDS_TAG_NAME != 0)
    }

    /// Passes on the text before the end tag at the current position, and then the end tag.
    pub(super) fn end_content(&mut self, text: Run<'_>) {
        self.emit_text(text.finish(self.at));
        self.content = Content::Data;
        self.read_tag(TagKind::EndTag, self.at + 2);
    }

    /// Whether the `<` at `place` begins markup.
    fn begins_markup(&self, place: usize) -> bool {
        match self.byte_at(place + 1) {
            Some(b'/') => place + 2 < self.bytes.len(),
            Some(next) => next == b'!' || next == b'?' || next.is_ascii_alphabetic(),
            None => false,
        }
    }

    /// Reads the markup that begins with the `<` at the current position.
    fn read_markup(&mut self) {
        match self.bytes[self.at + 1] {
            b'/' => match self.bytes[self.at + 2] {
                next if next.is_ascii_alphabetic() => self.read_tag(TagKind::EndTag, self.at + 2),
                b'>' => self.at += 3,
                _ => self.read_bogus_comment(self.at + 2),
            },
            b'!' => self.read_markup_declaration(),
            b'?' => self.read_bogus_comment(self.at + 1),
            _ => self.read_tag(TagKind::StartTag, self.at + 1),
        }
    }
}
