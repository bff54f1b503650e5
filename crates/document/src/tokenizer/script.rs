//! Reads the text of a script up to its end tag. Within `<!--`, an end tag may be hidden and does not count.

use memchr::{memchr2, memchr3};

use super::run::Run;
use super::{Audience, Tokenizer, class};

/// Whether the end tag of the script is hidden. After `<!--` (escaped), a further `<script>` hides the next end tag
/// (double escaped).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Escaped,
    Double,
}

impl<A: Audience> Tokenizer<'_, A> {
    /// Reads the text of a script, by the states 13.2.5.4 and 13.2.5.15 to 13.2.5.31 of the HTML standard.
    pub(super) fn read_script_data(&mut self) {
        let mut run = Run::new(self.input, self.at);
        let mut escape = Escape::None;
        loop {
            let rest = &self.bytes[self.at..];
            let found = match escape {
                Escape::None => memchr2(b'<', 0, rest),
                _ => memchr3(b'<', b'-', 0, rest),
            };
            let Some(found) = found else {
                self.skip_to_end();
                return self.emit_text(run.finish(self.at));
            };
            self.at += found;
            match self.bytes[self.at] {
                0 => self.replace_nul(&mut run),
                b'-' => escape = self.read_dashes(escape),
                _ if escape != Escape::Double && self.closes_content(self.at) => {
                    return self.end_content(run);
                }
                _ => escape = self.read_less_than(escape),
            }
        }
    }

    /// Reads dashes. Two or more dashes followed by `>` end the escaped state.
    fn read_dashes(&mut self, escape: Escape) -> Escape {
        let from = self.at;
        while self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.at - from >= 2 && self.peek() == Some(b'>') {
            return Escape::None;
        }
        escape
    }

    /// Reads a `<` that does not end the script. The text after it may begin or end an escaped state.
    fn read_less_than(&mut self, escape: Escape) -> Escape {
        self.at += 1;
        match escape {
            Escape::None if self.bytes[self.at..].starts_with(b"!--") => {
                // Move behind the `!` only, because the two dashes may also be those of `-->`.
                self.at += 1;
                Escape::Escaped
            }
            Escape::None => Escape::None,
            Escape::Escaped if self.read_script_name() => Escape::Double,
            Escape::Double if self.peek() == Some(b'/') => {
                self.at += 1;
                match self.read_script_name() {
                    true => Escape::Escaped,
                    false => Escape::Double,
                }
            }
            unchanged => unchanged,
        }
    }

    /// Reads letters. Returns whether they are exactly the name `script`.
    fn read_script_name(&mut self) -> bool {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            self.at += 1;
        }
        let is_name = self
            .peek()
            .is_some_and(|after| class::classes_of(after) & class::ENDS_TAG_NAME != 0);
        is_name && self.text[from..self.at].eq_ignore_ascii_case("script")
    }
}
