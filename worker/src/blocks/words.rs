//! Splits text into words.

/// The words of a text, which white space separates. Most text is ASCII, which is searched by bytes: that takes a
/// fraction of the time that characters take.
pub fn words(text: &str) -> Words<'_> {
    Words {
        rest: text,
        is_ascii: text.is_ascii(),
    }
}

#[derive(Debug, Clone)]
pub struct Words<'t> {
    rest: &'t str,
    is_ascii: bool,
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if !self.is_ascii {
            let word = self.rest.split_whitespace().next();
            let length = word.map_or(0, str::len);
            let rest = self.rest.trim_start();
            self.rest = &rest[length..];
            return word;
        }
        let bytes = self.rest.as_bytes();
        let start = bytes.iter().position(|byte| !is_space(*byte))?;
        let length = bytes[start..].iter().position(|byte| is_space(*byte));
        let end = length.map_or(bytes.len(), |length| start + length);
        let word = &self.rest[start..end];
        self.rest = &self.rest[end..];
        Some(word)
    }
}

/// The ASCII characters among those of [`char::is_whitespace`].
fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_between_white_space_of_any_kind() {
        for text in [
            "",
            "  ",
            "one",
            " one two\tthree\u{b}four\r\n",
            "ein\u{a0}Wörtchen \u{2003}mehr ",
            "\u{1c}no space\u{1f}",
        ] {
            let expected: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(words(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
        assert!((0..128).all(|byte| is_space(byte) == char::from(byte).is_whitespace()));
    }
}
