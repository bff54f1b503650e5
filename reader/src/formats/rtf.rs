//! RTF: groups in braces, control words behind backslashes, and text. Read in one pass without recursion,
//! so that groups may nest as deep as there is memory for two bytes each.

use encoding_rs::{Encoding, WINDOWS_1252};

use super::{Content, Trouble};
use crate::report::Metadata;
use crate::text::TextWriter;

/// What the text of a group belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    Body,
    /// Fonts, styles, pictures and what else nobody reads.
    Nothing,
    Title,
    Author,
    Created,
    Modified,
}

/// The longest metadatum, before it is cleaned.
const MAX_METADATUM_BYTES: usize = 10_000;

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut reader = RtfReader {
        bytes,
        at: 0,
        outer: Vec::new(),
        here: Destination::Body,
        encoding: WINDOWS_1252,
        encoded: Vec::new(),
        surrogate: None,
        replaced_by: 1,
        to_skip: 0,
        dates: [[0; 5]; 2],
        writer: TextWriter::new(max_text_bytes),
        metadata: Metadata::default(),
    };
    reader.read()?;
    let mut metadata = reader.metadata;
    metadata.created = iso(reader.dates[0]);
    metadata.modified = iso(reader.dates[1]);
    let text = reader.writer.finish();
    Ok(Content {
        text,
        metadata,
        unread: 0,
    })
}

struct RtfReader<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The destinations of the groups around this one, and their [`RtfReader::replaced_by`].
    outer: Vec<(Destination, u8)>,
    here: Destination,
    encoding: &'static Encoding,
    /// Bytes that were given as numbers; two of them may be one character.
    encoded: Vec<u8>,
    /// The first half of a character beyond 16 bits.
    surrogate: Option<u16>,
    /// How many characters stand in for each `\u`, for readers that do not know it.
    replaced_by: u8,
    to_skip: u8,
    /// Year, month, day, hour, minute of creation and last change.
    dates: [[i32; 5]; 2],
    writer: TextWriter,
    metadata: Metadata,
}

impl<'b> RtfReader<'b> {
    fn read(&mut self) -> Result<(), Trouble> {
        while let Some(byte) = self.next() {
            match byte {
                b'{' => {
                    self.flush()?;
                    self.outer.push((self.here, self.replaced_by));
                }
                b'}' => {
                    self.flush()?;
                    self.to_skip = 0;
                    match self.outer.pop() {
                        Some(outer) => (self.here, self.replaced_by) = outer,
                        None => break,
                    }
                    if self.outer.is_empty() {
                        break;
                    }
                }
                b'\\' => self.control()?,
                b'\r' | b'\n' | 0 => {}
                other => self.byte(other),
            }
        }
        self.flush()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// A byte of text.
    fn byte(&mut self, byte: u8) {
        match self.to_skip {
            0 => self.encoded.push(byte),
            _ => self.to_skip -= 1,
        }
    }

    /// Writes the bytes that were collected.
    fn flush(&mut self) -> Result<(), Trouble> {
        if self.encoded.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.encoded);
        let (text, _) = self.encoding.decode_without_bom_handling(&bytes);
        self.text(&text)
    }

    fn text(&mut self, text: &str) -> Result<(), Trouble> {
        let metadatum = match self.here {
            Destination::Body => return self.writer.push(text),
            Destination::Title => &mut self.metadata.title,
            Destination::Author => &mut self.metadata.author,
            Destination::Nothing | Destination::Created | Destination::Modified => return Ok(()),
        };
        let value = metadatum.get_or_insert_default();
        if value.len() + text.len() <= MAX_METADATUM_BYTES {
            value.push_str(text);
        }
        Ok(())
    }

    fn control(&mut self) -> Result<(), Trouble> {
        let Some(first) = self.next() else {
            return Ok(());
        };
        if first.is_ascii_alphabetic() {
            self.at -= 1;
            let (word, number) = self.word();
            return self.word_read(word, number);
        }
        match first {
            b'\'' => {
                let byte = self.hex();
                self.byte(byte);
            }
            b'\\' | b'{' | b'}' => self.byte(first),
            b'~' => self.symbol("\u{a0}")?,
            b'_' => self.symbol("-")?,
            b'\r' | b'\n' => self.new_line()?,
            // A destination that old readers do not know.
            b'*' => self.leave_out()?,
            _ => {}
        }
        Ok(())
    }

    /// A control word and its number.
    fn word(&mut self) -> (&'b str, Option<i32>) {
        let (bytes, begin) = (self.bytes, self.at);
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_alphabetic) && self.at - begin < 40 {
            self.at += 1;
        }
        let end = self.at;
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        let most = self.at + 10;
        while self.at < most && self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
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

    fn hex(&mut self) -> u8 {
        let digits = self.bytes.get(self.at..self.at + 2).unwrap_or_default();
        let text = std::str::from_utf8(digits).unwrap_or_default();
        match u8::from_str_radix(text, 16) {
            Ok(byte) => {
                self.at += 2;
                byte
            }
            Err(_) => b'?',
        }
    }

    fn word_read(&mut self, word: &str, number: Option<i32>) -> Result<(), Trouble> {
        let value = number.unwrap_or(1);
        match word {
            "par" | "line" | "sect" | "page" | "row" => self.new_line(),
            "tab" | "cell" | "emspace" | "enspace" => self.symbol(" "),
            "emdash" => self.symbol("\u{2014}"),
            "endash" => self.symbol("\u{2013}"),
            "lquote" => self.symbol("\u{2018}"),
            "rquote" => self.symbol("\u{2019}"),
            "ldblquote" => self.symbol("\u{201c}"),
            "rdblquote" => self.symbol("\u{201d}"),
            "bullet" => self.symbol("\u{2022}"),
            "u" => self.unicode(value),
            "uc" => {
                self.replaced_by = u8::try_from(value).unwrap_or(0).min(16);
                Ok(())
            }
            "bin" => {
                let bytes = usize::try_from(value).unwrap_or(0);
                self.at = self.at.saturating_add(bytes).min(self.bytes.len());
                Ok(())
            }
            "ansicpg" => {
                let label = format!("windows-{value}");
                self.encoding = Encoding::for_label(label.as_bytes()).unwrap_or(self.encoding);
                Ok(())
            }
            "mac" => {
                self.encoding = encoding_rs::MACINTOSH;
                Ok(())
            }
            "nofpages" => {
                self.metadata.pages = u32::try_from(value).ok();
                Ok(())
            }
            "yr" | "mo" | "dy" | "hr" | "min" => {
                self.date_part(word, value);
                Ok(())
            }
            other => self.enter(other),
        }
    }

    /// A control word that may begin a destination.
    fn enter(&mut self, word: &str) -> Result<(), Trouble> {
        let destination = match word {
            "title" => Destination::Title,
            "author" => Destination::Author,
            "creatim" => Destination::Created,
            "revtim" => Destination::Modified,
            "fonttbl" | "colortbl" | "stylesheet" | "pict" | "object" | "info" | "header"
            | "footer" | "headerl" | "headerr" | "footerl" | "footerr" | "listtable"
            | "themedata" | "datastore" | "fldinst" | "xmlnstbl" | "rsidtbl" | "generator" => {
                Destination::Nothing
            }
            _ => return Ok(()),
        };
        self.flush()?;
        self.here = destination;
        Ok(())
    }

    fn leave_out(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        self.here = Destination::Nothing;
        Ok(())
    }

    fn symbol(&mut self, text: &str) -> Result<(), Trouble> {
        self.flush()?;
        self.text(text)
    }

    fn new_line(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        if self.here == Destination::Body {
            self.writer.line_break();
        }
        Ok(())
    }

    /// A character by its number, which is signed and has 16 bits.
    fn unicode(&mut self, number: i32) -> Result<(), Trouble> {
        self.flush()?;
        self.to_skip = self.replaced_by;
        let unit = number as u16;
        if (0xd800..0xdc00).contains(&unit) {
            self.surrogate = Some(unit);
            return Ok(());
        }
        let units: Vec<u16> = self.surrogate.take().into_iter().chain([unit]).collect();
        self.text(&String::from_utf16_lossy(&units))
    }

    fn date_part(&mut self, word: &str, value: i32) {
        let date = match self.here {
            Destination::Created => &mut self.dates[0],
            Destination::Modified => &mut self.dates[1],
            _ => return,
        };
        let part = ["yr", "mo", "dy", "hr", "min"]
            .iter()
            .position(|known| *known == word);
        if let Some(part) = part {
            date[part] = value;
        }
    }
}

fn iso([year, month, day, hour, minute]: [i32; 5]) -> Option<String> {
    let is_date =
        (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute);
    (is_date && is_time).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rtf: &str) -> String {
        read(rtf.as_bytes(), 10_000).unwrap().text
    }

    #[test]
    fn text_is_what_a_reader_sees() {
        for (rtf, expected) in [
            (
                r"{\rtf1\ansi Hello {\b bold} world\par next}",
                "Hello bold world\nnext",
            ),
            (r"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\*\x secret}x}", "x"),
            (r"{\rtf1\ansi\ansicpg1251 \'cf\'f0\'e8}", "При"),
            (r"{\rtf1\ansi\uc1 \u8364?5 \u-10179?\u-8704?}", "€5 😀"),
            (r"{\rtf1\ansi{\uc0 \u8364 5}\u8364?5}", "€5€5"),
            (r"{\rtf1 \{a\\b\} c\~d}", "{a\\b} c\u{a0}d"),
            ("{\\rtf1 a\\bin3 }}}b}", "ab"),
            (r"{\rtf1 a\cell b\row c}", "a b\nc"),
            (r"{\rtf1 cut", "cut"),
            (r"{\rtf1 x}} after", "x"),
            (r"{\rtf1 \'", "?"),
        ] {
            assert_eq!(text(rtf), expected, "{rtf}");
        }
    }

    #[test]
    fn metadata_are_those_of_the_information_group() {
        let rtf = r"{\rtf1{\info{\title A \'e9t\'e9}{\author Ada}{\creatim\yr2024\mo1\dy31\hr9\min5}{\nofpages7}}text}";
        let content = read(rtf.as_bytes(), 100).unwrap();
        assert_eq!(content.text, "text");
        assert_eq!(content.metadata.title.as_deref(), Some("A été"));
        assert_eq!(content.metadata.author.as_deref(), Some("Ada"));
        assert_eq!(
            content.metadata.created.as_deref(),
            Some("2024-01-31T09:05")
        );
        assert_eq!(content.metadata.pages, Some(7));
    }

    #[test]
    fn groups_may_nest_a_million_deep() {
        let deep = format!("{{\\rtf1 {}deep", "{".repeat(1_000_000));
        assert_eq!(text(&deep), "deep");
        let closing = format!("{{\\rtf1 a{}", "}".repeat(1_000_000));
        assert_eq!(text(&closing), "a");
    }
}
