//! The text of a page in one buffer. The texts of tokens are slices of the buffer.

use html5ever::tendril::StrTendril;

/// The text of a page without its byte order mark and with line feeds for all line ends (HTML
/// standard, 13.2.3.5).
pub(super) struct Input {
    buffer: StrTendril,
}

impl Input {
    pub(super) fn new(page: &str) -> Self {
        let page = page.strip_prefix('\u{feff}').unwrap_or(page);
        let buffer = match memchr::memchr(b'\r', page.as_bytes()) {
            Some(first) => normalize_line_ends(page, first),
            None => StrTendril::from_slice(page),
        };
        Input { buffer }
    }

    pub(super) fn text(&self) -> &str {
        &self.buffer
    }

    /// A part of the text. It is not copied unless it is very short.
    pub(super) fn part(&self, from: usize, to: usize) -> StrTendril {
        self.buffer.subtendril(from as u32, (to - from) as u32)
    }
}

fn normalize_line_ends(page: &str, first_return: usize) -> StrTendril {
    let mut buffer = StrTendril::with_capacity(page.len() as u32);
    let (mut copied, mut next) = (0, Some(first_return));
    while let Some(place) = next {
        buffer.push_slice(&page[copied..place]);
        buffer.push_slice("\n");
        copied = place + 1;
        if page.as_bytes().get(copied) == Some(&b'\n') {
            copied += 1;
        }
        next = memchr::memchr(b'\r', &page.as_bytes()[copied..]).map(|found| copied + found);
    }
    buffer.push_slice(&page[copied..]);
    buffer
}
