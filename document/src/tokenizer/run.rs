//! A run of text that is taken from the input as it stands, but for what a character reference or
//! a NUL replaces.

use html5ever::tendril::StrTendril;

use super::input::Input;

/// What a NUL becomes nearly everywhere.
pub(super) const REPLACEMENT: &str = "\u{fffd}";

pub(super) struct Run<'i> {
    input: &'i Input,
    /// What came before the last replacement, and the replacement.
    replaced: StrTendril,
    /// From here on the run is the input itself.
    from: usize,
}

impl<'i> Run<'i> {
    pub(super) fn new(input: &'i Input, from: usize) -> Self {
        Run {
            input,
            replaced: StrTendril::new(),
            from,
        }
    }

    /// Reads `by` in place of the input between `from` and `to`.
    pub(super) fn replace(&mut self, from: usize, to: usize, by: &str) {
        self.replaced
            .push_slice(&self.input.text()[self.from..from]);
        self.replaced.push_slice(by);
        self.from = to;
    }

    /// Ends the run before `to`.
    pub(super) fn finish(mut self, to: usize) -> StrTendril {
        if self.replaced.is_empty() {
            return self.input.part(self.from, to);
        }
        self.replaced.push_slice(&self.input.text()[self.from..to]);
        self.replaced
    }
}

/// The input between two places, with each NUL replaced.
pub(super) fn without_nul(input: &Input, from: usize, to: usize) -> StrTendril {
    let mut run = Run::new(input, from);
    for found in memchr::memchr_iter(0, &input.text().as_bytes()[from..to]) {
        run.replace(from + found, from + found + 1, REPLACEMENT);
    }
    run.finish(to)
}
