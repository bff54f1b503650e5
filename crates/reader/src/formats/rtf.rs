//! RTF: groups in braces, control words behind backslashes, and text. Read in one pass without recursion,
//! so that groups may nest as deep as there is memory for some bytes each.

use std::collections::BTreeMap;

use encoding_rs::{Encoding, WINDOWS_1252};

use super::{Content, Trouble};
use crate::report::Metadata;
use crate::text::TextWriter;

/// What the text of a group belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    Text(Part),
    /// The names of fonts, with the code of each.
    Fonts,
    /// Styles, pictures and what else nobody reads.
    Nothing,
    Title,
    Author,
    Created,
    Modified,
}

/// Where a text stands in the document; in the order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Headers,
    Body,
    /// Footers and notes.
    Behind,
}

/// What a group gives back when it ends.
#[derive(Debug, Clone, Copy)]
struct Group {
    here: Destination,
    /// How many characters stand in for each `\u`, for readers that do not know it.
    replaced_by: u8,
    /// Text that is deleted or not to be seen.
    is_hidden: bool,
    /// Of the font.
    encoding: &'static Encoding,
}

/// The longest metadatum, before it is cleaned.
const MAX_METADATUM_BYTES: usize = 10_000;

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut reader = RtfReader {
        bytes,
        at: 0,
        outer: Vec::new(),
        group: Group {
            here: Destination::Text(Part::Body),
            replaced_by: 1,
            is_hidden: false,
            encoding: WINDOWS_1252,
        },
        encoding: WINDOWS_1252,
        fonts: BTreeMap::new(),
        font: 0,
        default_font: None,
        is_row: false,
        encoded: Vec::new(),
        surrogate: None,
        to_skip: 0,
        dates: [[0; 5]; 2],
        writers: [(); 3].map(|()| TextWriter::new(max_text_bytes)),
        metadata: Metadata::default(),
    };
    reader.read()?;
    let mut metadata = reader.metadata;
    metadata.created = iso(reader.dates[0]);
    metadata.modified = iso(reader.dates[1]);
    let mut writer = TextWriter::new(max_text_bytes);
    for part in reader.writers {
        writer.push_written(&part.finish())?;
        writer.paragraph();
    }
    let text = writer.finish();
    Ok(Content {
        text,
        metadata,
        unread: 0,
    })
}

struct RtfReader<'b> {
    bytes: &'b [u8],
    at: usize,
    /// What is around this group.
    outer: Vec<Group>,
    group: Group,
    /// Of the document, which its fonts may change.
    encoding: &'static Encoding,
    fonts: BTreeMap<i32, &'static Encoding>,
    /// The font in hand in the table of fonts.
    font: i32,
    default_font: Option<i32>,
    /// Whether this paragraph is in a table.
    is_row: bool,
    /// Bytes that were given as numbers; two of them may be one character.
    encoded: Vec<u8>,
    /// The first half of a character beyond 16 bits.
    surrogate: Option<u16>,
    to_skip: u8,
    /// Year, month, day, hour, minute of creation and last change.
    dates: [[i32; 5]; 2],
    /// Of each part.
    writers: [TextWriter; 3],
    metadata: Metadata,
}

impl<'b> RtfReader<'b> {
    fn read(&mut self) -> Result<(), Trouble> {
        while let Some(byte) = self.next() {
            match byte {
                b'{' => {
                    self.flush()?;
                    self.outer.push(self.group);
                }
                b'}' => {
                    self.flush()?;
                    self.to_skip = 0;
                    match self.outer.pop() {
                        Some(outer) => self.end_group(outer),
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

    fn end_group(&mut self, mut outer: Group) {
        if self.is_in_fonts() {
            let font = self.default_font.and_then(|font| self.fonts.get(&font));
            outer.encoding = font.copied().unwrap_or(outer.encoding);
        }
        if let Destination::Text(part) = self.group.here
            && self.group.here != outer.here
        {
            self.writers[part as usize].paragraph();
        }
        self.group = outer;
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
        let (text, _) = self.group.encoding.decode_without_bom_handling(&bytes);
        self.text(&text)
    }

    fn text(&mut self, text: &str) -> Result<(), Trouble> {
        let metadatum = match self.group.here {
            Destination::Text(_) if self.group.is_hidden => return Ok(()),
            Destination::Text(part) => return self.writers[part as usize].push(text),
            Destination::Title => &mut self.metadata.title,
            Destination::Author => &mut self.metadata.author,
            Destination::Fonts
            | Destination::Nothing
            | Destination::Created
            | Destination::Modified => return Ok(()),
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
            // A cell stays on the line of its row.
            "par" | "line" | "nestrow" if self.is_row => self.symbol(" "),
            "par" | "line" | "sect" | "page" | "row" => self.new_line(),
            "intbl" => {
                self.is_row = true;
                Ok(())
            }
            "pard" => {
                self.is_row = false;
                Ok(())
            }
            "cell" => self.end_cell(),
            "tab" | "nestcell" | "emspace" | "enspace" => self.symbol(" "),
            "emdash" => self.symbol("\u{2014}"),
            "endash" => self.symbol("\u{2013}"),
            "lquote" => self.symbol("\u{2018}"),
            "rquote" => self.symbol("\u{2019}"),
            "ldblquote" => self.symbol("\u{201c}"),
            "rdblquote" => self.symbol("\u{201d}"),
            "bullet" => self.symbol("\u{2022}"),
            "u" => self.unicode(value),
            "uc" => {
                self.group.replaced_by = u8::try_from(value).unwrap_or(0).min(16);
                Ok(())
            }
            "bin" => {
                let bytes = usize::try_from(value).unwrap_or(0);
                self.at = self.at.saturating_add(bytes).min(self.bytes.len());
                Ok(())
            }
            "ansicpg" => self.set_encoding(encoding_of_page(value)),
            "mac" => self.set_encoding(Some(encoding_rs::MACINTOSH)),
            "deff" => {
                self.default_font = number;
                Ok(())
            }
            "f" => self.set_font(value),
            "fcharset" | "cpg" => {
                let encoding = match word {
                    "cpg" => encoding_of_page(value),
                    _ => encoding_of_charset(value),
                };
                if let Some(encoding) = encoding.filter(|_| self.is_in_fonts()) {
                    self.fonts.insert(self.font, encoding);
                }
                Ok(())
            }
            "plain" => {
                self.flush()?;
                self.group.is_hidden = false;
                self.set_font(self.default_font.unwrap_or(-1))
            }
            "v" | "deleted" => {
                self.flush()?;
                self.group.is_hidden = value != 0;
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
            "fonttbl" => Destination::Fonts,
            "header" | "headerl" | "headerr" | "headerf" => Destination::Text(Part::Headers),
            "footer" | "footerl" | "footerr" | "footerf" | "footnote" => {
                Destination::Text(Part::Behind)
            }
            // The text of a frame is within what old readers leave out.
            "shptxt" => Destination::Text(Part::Body),
            "colortbl" | "stylesheet" | "pict" | "object" | "info" | "listtable" | "themedata"
            | "datastore" | "fldinst" | "xmlnstbl" | "rsidtbl" | "generator" | "shprslt"
            | "nonshppict" | "xe" | "tc" => Destination::Nothing,
            _ => return Ok(()),
        };
        self.flush()?;
        self.group.here = destination;
        if let Destination::Text(part) = destination {
            self.writers[part as usize].paragraph();
        }
        Ok(())
    }

    fn is_in_fonts(&self) -> bool {
        self.group.here == Destination::Fonts
    }

    /// A font has a code of its own, in which the bytes of its text are.
    fn set_font(&mut self, font: i32) -> Result<(), Trouble> {
        self.flush()?;
        if self.is_in_fonts() {
            self.font = font;
        } else {
            let encoding = self.fonts.get(&font).copied();
            self.group.encoding = encoding.unwrap_or(self.encoding);
        }
        Ok(())
    }

    fn set_encoding(&mut self, encoding: Option<&'static Encoding>) -> Result<(), Trouble> {
        self.flush()?;
        self.encoding = encoding.unwrap_or(self.encoding);
        self.group.encoding = self.encoding;
        Ok(())
    }

    fn leave_out(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        self.group.here = Destination::Nothing;
        Ok(())
    }

    fn symbol(&mut self, text: &str) -> Result<(), Trouble> {
        self.flush()?;
        self.text(text)
    }

    fn new_line(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        if let Destination::Text(part) = self.group.here {
            self.writers[part as usize].line_break();
        }
        Ok(())
    }

    fn end_cell(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        if let Destination::Text(part) = self.group.here {
            self.writers[part as usize].skip_cells(1);
        }
        Ok(())
    }

    /// A character by its number, which is signed and has 16 bits.
    fn unicode(&mut self, number: i32) -> Result<(), Trouble> {
        self.flush()?;
        self.to_skip = self.group.replaced_by;
        let unit = number as u16;
        if (0xd800..0xdc00).contains(&unit) {
            self.surrogate = Some(unit);
            return Ok(());
        }
        let units: Vec<u16> = self.surrogate.take().into_iter().chain([unit]).collect();
        self.text(&String::from_utf16_lossy(&units))
    }

    fn date_part(&mut self, word: &str, value: i32) {
        let date = match self.group.here {
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

fn encoding_of_page(page: i32) -> Option<&'static Encoding> {
    let label = match page {
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        10000 => "macintosh".to_owned(),
        65001 => "utf-8".to_owned(),
        page => format!("windows-{page}"),
    };
    Encoding::for_label(label.as_bytes())
}

/// By the numbers that Windows has for the scripts of fonts. 0 and 1 are the document's own code.
fn encoding_of_charset(charset: i32) -> Option<&'static Encoding> {
    let page = match charset {
        77 => 10000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    };
    encoding_of_page(page)
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
            (r"{\rtf1 a\cell b\cell\row c}", "a\tb\nc"),
            (
                r"{\rtf1\intbl a\cell\cell b\par c\cell\row\pard d}",
                "a\t\tb c\nd",
            ),
            (
                r"{\rtf1{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\'e9{\f1\'cf\'f0}\'e9}",
                "éПрé",
            ),
            (r"{\rtf1\deff1{\fonttbl{\f1\fcharset238 B;}}\'b9}", "ą"),
            (
                r"{\rtf1\deff1{\fonttbl{\f1\fcharset238 B;}}\plain\'b9\f0\'b9}",
                "ą¹",
            ),
            (
                r"{\rtf1{\fonttbl{\f5\fcharset128 B;}}\f5\'93\'fa\'96\'7b}",
                "日本",
            ),
            (r"{\rtf1\ansicpg932 \'93\'fa\'96\'7b}", "日本"),
            (r"{\rtf1\ansicpg936 \'d6\'d0}", "中"),
            (
                r"{\rtf1{\header top}{\footer end}one{\footnote a note} two\par}",
                "top\none two\nend\na note",
            ),
            (r"{\rtf1 a{\v hidden}b{\deleted gone}c\v x\v0 y}", "abcy"),
            (r"{\rtf1 555\_1234 co\-op}", "555-1234 coop"),
            (
                r"{\rtf1 a{\shp{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt framed}}{\shprslt again}}}",
                "a\nframed",
            ),
            (
                r"{\rtf1{\field{\*\fldinst HYPERLINK x}{\fldrslt a link}}}",
                "a link",
            ),
            (r"{\rtf1 a{\xe{index}}{\pict 0102}b}", "ab"),
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
