//! Reads the attributes of tags.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::Tag;
use html5ever::{Attribute, QualName, ns};
use memchr::memchr3;

use super::run::Run;
use super::{Audience, Tokenizer, class};

impl<A: Audience> Tokenizer<'_, A> {
    /// Reads the attribute at the current position, which is neither space nor the end of a tag. Returns whether it was
    /// added: repeated attributes, and attributes beyond the cap, are not.
    pub(super) fn read_attribute(&mut self, tag: &mut Tag) -> bool {
        // `=` ends a name, but a name may begin with it.
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
        let name = self.names.get(name);
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
                0 => self.read_nul(&mut run),
                _ => {
                    let value = run.finish(self.at);
                    self.at += 1;
                    return value;
                }
            }
        }
        // The end of the page cuts off the tag. It is dropped, whatever the value.
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
                Some(0) => self.read_nul(&mut run),
                _ => return run.finish(self.at),
            }
        }
    }
}
