//! Reads start and end tags, and their attributes.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Tag, TagKind};
use html5ever::{Attribute, QualName, ns};
use memchr::memchr3;

use super::names::Name;
use super::run::Run;
use super::{Audience, Tokenizer, class};

/// After this many dropped attributes of a tag, the receiver checks its time limit. The name of each attribute is
/// compared with those of all attributes that were kept, which takes long if a tag has very many.
const LOST_BETWEEN_CHECKS: usize = 1 << 10;

impl<'i, A: Audience> Tokenizer<'i, A> {
    /// Reads a tag; its name begins at `name`. A tag without an end, at the end of the page, is dropped.
    pub(super) fn read_tag(&mut self, kind: TagKind, name: usize) {
        self.at = name;
        let name = self.read_name(class::ENDS_TAG_NAME, 0);
        let mut tag = Tag {
            kind,
            name: self.names.intern_normalized(name),
            self_closing: false,
            attrs: Vec::new(),
            had_duplicate_attributes: false,
        };
        let mut lost = 0;
        loop {
            self.skip_whitespace();
            match self.peek() {
                Some(b'>') => break,
                Some(b'/') => {
                    self.at += 1;
                    tag.self_closing = self.peek() == Some(b'>');
                }
                Some(_) if self.read_attribute(&mut tag) => {}
                Some(_) => {
                    lost += 1;
                    if lost % LOST_BETWEEN_CHECKS == 0 && self.audience.should_stop_now() {
                        return;
                    }
                }
                None => return,
            }
        }
        self.at += 1;
        self.emit_tag(tag);
    }

    /// Reads a name up to the first byte that is of a class in `ends`. The first `exempt` bytes belong to the name in
    /// any case.
    pub(super) fn read_name(&mut self, ends: u8, exempt: usize) -> Name<'i> {
        let from = self.at;
        let (length, classes) = class::find(&self.bytes[from + exempt..], ends);
        self.at = from + exempt + length;
        Name {
            written: &self.text[from..self.at],
            classes: classes | class::classes_of(self.bytes[from]),
        }
    }
}

impl<A: Audience> Tokenizer<'_, A> {
    /// Reads the attribute at the current position, which is neither space nor the end of a tag. Returns whether it was
    /// added: repeated attributes, and attributes beyond the cap, are not.
    pub(super) fn read_attribute(&mut self, tag: &mut Tag) -> bool {
        // An `=` ends a name, except as its first character.
        let name = self.read_name(class::ENDS_ATTRIBUTE_NAME, 1);
        self.skip_whitespace();
        let value = match self.peek() {
            Some(b'=') => {
                self.at += 1;
                self.read_value()
            }
            _ => StrTendril::new(),
        };
        if tag.attrs.len() >= self.attribute_cap {
            return false;
        }
        let name = self.names.intern_normalized(name);
        if tag.attrs.iter().any(|known| known.name.local == name) {
            tag.had_duplicate_attributes = true;
            return false;
        }
        let name = QualName::new(None, ns!(), name);
        tag.attrs.push(Attribute { name, value });
        true
    }

    fn read_value(&mut self) -> StrTendril {
        self.skip_whitespace();
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.read_quoted_value(quote),
            Some(b'>') | None => StrTendril::new(),
            Some(_) => self.read_unquoted_value(),
        }
    }

    fn read_quoted_value(&mut self, quote: u8) -> StrTendril {
        self.at += 1;
        let mut run = Run::new(self.input, self.at);
        while let Some(found) = memchr3(quote, b'&', 0, &self.bytes[self.at..]) {
            self.at += found;
            match self.bytes[self.at] {
                b'&' => self.read_reference(&mut run, true),
                0 => self.replace_nul(&mut run),
                _ => {
                    let value = run.finish(self.at);
                    self.at += 1;
                    return value;
                }
            }
        }
        // The page ends within the tag, which is dropped, so the value does not matter.
        self.skip_to_end();
        StrTendril::new()
    }

    fn read_unquoted_value(&mut self) -> StrTendril {
        let mut run = Run::new(self.input, self.at);
        loop {
            let (found, _) = class::find(&self.bytes[self.at..], class::STOPS_BARE_VALUE);
            self.at += found;
            match self.peek() {
                Some(b'&') => self.read_reference(&mut run, true),
                Some(0) => self.replace_nul(&mut run),
                _ => return run.finish(self.at),
            }
        }
    }
}
