//! Reads start and end tags.

use html5ever::tokenizer::{Tag, TagKind};

use super::names::Name;
use super::{Audience, Tokenizer, class};

/// After this many dropped attributes of a tag, the audience checks the clock. To find a repeated name, it is compared
/// with all others of its tag, which takes quadratic time.
const LOST_BETWEEN_CHECKS: usize = 1 << 10;

impl<'i, A: Audience> Tokenizer<'i, A> {
    /// Reads the tag whose name begins at `name`. A tag that the end of the page cuts off is dropped.
    pub(super) fn read_tag(&mut self, kind: TagKind, name: usize) {
        self.at = name;
        let name = self.read_name(class::ENDS_TAG_NAME, 0);
        let mut tag = Tag {
            kind,
            name: self.names.get(name),
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
                    if lost % LOST_BETWEEN_CHECKS == 0 && self.audience.has_left_by_now() {
                        return;
                    }
                }
                None => return,
            }
        }
        self.at += 1;
        self.emit_tag(tag);
    }

    /// Reads a name up to the first byte of a class in `ends`, not counting its first `exempt` bytes.
    pub(super) fn read_name(&mut self, ends: u8, exempt: usize) -> Name<'i> {
        let from = self.at;
        let (length, classes) = class::find(&self.bytes[from + exempt..], ends);
        self.at = from + exempt + length;
        Name {
            written: &self.text[from..self.at],
            classes: classes | class::of(self.bytes[from]),
        }
    }
}
