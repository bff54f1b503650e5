//! Output for people. Texts from pages, URLs and servers may contain control characters that could make a terminal move
//! its cursor, show false text, or type input. So each control character is printed as a JSON escape (`\u001b`), which
//! keeps JSON valid and its content the same.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Prints a line on standard error, formatted as by `println!`, with control characters escaped.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::terminal::print_on_stderr(format_args!($($text)*)) };
}

/// Prints a line for [`say!`](crate::say). Errors, for example a closed standard error, are ignored.
pub fn print_on_stderr(line: impl Display) {
    let mut text = escape_control_characters(&line.to_string());
    text.push('\n');
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Escapes the control characters in a text, except line breaks and tabs.
pub fn escape_control_characters(text: &str) -> String {
    let mut shown = Vec::with_capacity(text.len());
    let mut writer = Printable::new(&mut shown);
    let written = writer.write_all(text.as_bytes());
    debug_assert!(written.is_ok(), "memory takes everything");
    String::from_utf8(shown).unwrap_or_default()
}

/// Standard output for lines of text and JSON; control characters are escaped.
pub fn printable_stdout() -> Printable<io::StdoutLock<'static>> {
    Printable::new(io::stdout().lock())
}

/// Standard output for data: written unchanged, unless it is a terminal.
pub fn data_stdout() -> Box<dyn Write + Send> {
    match io::stdout().is_terminal() {
        true => Box::new(Printable::new(io::stdout())),
        false => Box::new(io::stdout()),
    }
}

/// A writer that passes on UTF-8 text, and escapes the control characters in it.
pub struct Printable<W> {
    inner: W,
    /// Whether the last byte was 0xC2 and was not written yet. Control characters from U+0080 to U+009F begin with it,
    /// so the next byte decides.
    holds_c2: bool,
}

impl<W: Write> Printable<W> {
    pub fn new(inner: W) -> Printable<W> {
        Printable {
            inner,
            holds_c2: false,
        }
    }
}

const C2: u8 = 0xc2;

fn is_plain(byte: u8) -> bool {
    !(byte.is_ascii_control() || byte == C2) || matches!(byte, b'\n' | b'\t')
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.holds_c2 && bytes.iter().copied().all(is_plain) {
            return self.inner.write(bytes);
        }
        let mut shown = Vec::with_capacity(bytes.len() + 16);
        for &byte in bytes {
            let follows_c2 = std::mem::replace(&mut self.holds_c2, byte == C2);
            match byte {
                0x80..=0x9f if follows_c2 => write!(shown, "\\u{byte:04x}")?,
                _ => {
                    shown.extend(follows_c2.then_some(C2));
                    match byte {
                        C2 => {}
                        _ if is_plain(byte) => shown.push(byte),
                        _ => write!(shown, "\\u{byte:04x}")?,
                    }
                }
            }
        }
        self.inner.write_all(&shown)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: &[(&str, &str)] = &[
        (
            "plain text,\n\ttabs, ä, 語 and 😀",
            "plain text,\n\ttabs, ä, 語 and 😀",
        ),
        ("\u{1b}[31mred", "\\u001b[31mred"),
        ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
        ("a\u{9b}2Jb", "a\\u009b2Jb"),
        ("\u{80}\u{9f}\u{a0}£", "\\u0080\\u009f\u{a0}£"),
        (
            "over\rwritten\u{8}\u{7f}",
            "over\\u000dwritten\\u0008\\u007f",
        ),
        ("\0", "\\u0000"),
    ];

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        for (text, shown) in TEXTS {
            assert_eq!(escape_control_characters(text), *shown);
        }
    }

    #[test]
    fn a_stream_is_the_same_however_it_is_cut() {
        for (text, shown) in TEXTS {
            let mut out = Vec::new();
            let mut writer = Printable::new(&mut out);
            for byte in text.as_bytes() {
                writer.write_all(&[*byte]).unwrap();
            }
            assert_eq!(String::from_utf8(out).unwrap(), *shown);
        }
    }
}
