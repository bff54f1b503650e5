//! A run of text up to the next markup. It is a slice of the input, or a copy if character references or NULs are
//! replaced.

use html5ever::tendril::StrTendril;

use super::input::Input;

/// The text that replaces NUL in most states.
pub(super) const REPLACEMENT: &str = "\u{fffd}";

pub(super) struct Run<'i> {
    input: &'i Input,
    /// The text up to the last replacement, including it.
    replaced: StrTendril,
    /// The position in the input after the last replacement.
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

    /// Replaces the input between `from` and `to` with `by`.
    pub(super) fn replace(&mut self, from: usize, to: usize, by: &str) {
        self.replaced
            .push_slice(&self.input.text()[self.from..from]);
        self.replaced.push_slice(by);
        self.from = to;
    }

    /// Ends the run before `to` and returns its text.
    pub(super) fn finish(mut self, to: usize) -> StrTendril {
        if self.replaced.is_empty() {
            return self.input.part(self.from, to);
        }
        self.replaced.push_slice(&self.input.text()[self.from..to]);
        self.replaced
    }
}

/// The input between two positions, with each NUL replaced.
pub(super) fn without_nul(input: &Input, from: usize, to: usize) -> StrTendril {
    let mut run = Run::new(input, from);
    for found in memchr::memchr_iter(0, &input.text().as_bytes()[from..to]) {
        run.replace(from + found, from + found + 1, REPLACEMENT);
    }
    run.finish(to)
}
