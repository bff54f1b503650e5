//! Splits an RTF into bytes of text, control words and control symbols.

/// Control words that stand for characters.
const SYMBOLS: [(&str, &str); 12] = [
    ("emspace", " "),
    ("enspace", " "),
    ("qmspace", " "),
    ("emdash", "\u{2014}"),
    ("endash", "\u{2013}"),
    ("lquote", "\u{2018}"),
    ("rquote", "\u{2019}"),
    ("ldblquote", "\u{201c}"),
    ("rdblquote", "\u{201d}"),
    ("bullet", "\u{2022}"),
    ("zwj", "\u{200d}"),
    ("zwnj", "\u{200c}"),
];

pub(super) struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// A control word or symbol, which follows a backslash.
pub(super) enum Control<'b> {
    /// A control word and the number after it, as in `\u8364`.
    Word(&'b str, Option<i32>),
    Symbol(u8),
}

impl<'b> Scanner<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Scanner<'b> {
        Scanner { bytes, at: 0 }
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn next_control(&mut self) -> Option<Control<'b>> {
        let first = self.next()?;
        if !first.is_ascii_alphabetic() {
            return Some(Control::Symbol(first));
        }
        self.at -= 1;
        let (word, number) = self.read_word();
        Some(Control::Word(word, number))
    }

    /// Skips this many bytes of binary data.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.bytes.len());
    }

    /// Reads a control word and the number after it.
    fn read_word(&mut self) -> (&'b str, Option<i32>) {
        let (bytes, begin) = (self.bytes, self.at);
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_alphabetic) && self.at - begin < 40 {
            self.at += 1;
        }
        let end = self.at;
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        let text =
            |from: usize, to: usize| std::str::from_utf8(&bytes[from..to]).unwrap_or_default();
        let (word, number) = (text(begin, end), text(end, self.at).parse().ok());
        if self.bytes.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        (word, number)
    }

    /// Reads two hexadecimal digits as a byte; `?` if they are invalid.
    pub(super) fn read_hex(&mut self) -> u8 {
        let digits = self.bytes.get(self.at..self.at + 2).unwrap_or_default();
        let text = std::str::from_utf8(digits).unwrap_or_default();
        match u8::from_str_radix(text, 16) {
            Ok(byte) if digits[0] != b'+' => {
                self.at += 2;
                byte
            }
            _ => b'?',
        }
    }
}

/// The character that a control word stands for.
pub(super) fn character_of(word: &str) -> Option<&'static str> {
    let mut symbols = SYMBOLS.iter();
    symbols
        .find(|(known, _)| *known == word)
        .map(|(_, text)| *text)
}
