//! RTF: groups in braces, control words after backslashes, and text. It is read in one pass without recursion. So
//! groups may nest as deeply as memory allows; each takes a few bytes.

use std::collections::{BTreeMap, BTreeSet};

use super::symbols::{SymbolFont, private_code};
use super::{Content, Trouble};
use crate::report::Metadata;
use crate::text::TextWriter;
use code::Code;

mod code;
#[cfg(test)]
mod tests;

/// How the text of a group is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// The text belongs to the enclosing part.
    Text,
    /// The text is the names of fonts, with the code of each.
    Fonts,
    /// Styles and other ignored groups. A group within may have text: the frame of a shape.
    Nothing,
    /// Fallbacks for other readers, and repetitions. Nothing in them is read.
    Closed,
    /// The text is dropped, because `\ud` repeats it completely.
    Replaced,
    Title,
    Author,
    Created,
    Modified,
}

/// The part of the document that a text belongs to, in reading order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Body,
    /// The text of a frame, which follows the paragraph that it is anchored to.
    Frame,
    Footer,
    Note,
}

/// The state that is restored when a group ends.
#[derive(Debug, Clone, Copy)]
struct Group {
    here: Destination,
    /// The destination that [`Destination::Replaced`] has replaced.
    replaced: Destination,
    part: Part,
    /// The number of fallback characters after each `\u`. They are for readers that do not know `\u`.
    replaced_by: u8,
    /// Whether the text is hidden.
    is_hidden: bool,
    /// Whether the text was deleted, or moved to another place.
    is_deleted: bool,
    /// Whether the paragraph is in a table.
    is_row: bool,
    /// Whether the text is the number or bullet of an item.
    is_label: bool,
    /// Whether the text is within the brackets of a formula.
    is_bracketed: bool,
    /// The character code of the font.
    code: Code,
}

/// The most bytes of a metadatum before it is cleaned.
const MAX_METADATUM_BYTES: usize = 10_000;

const MAX_FONT_NAME_BYTES: usize = 100;

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

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut reader = RtfReader {
        bytes,
        at: 0,
        outer: Vec::new(),
        group: Group {
            here: Destination::Text,
            replaced: Destination::Nothing,
            part: Part::Body,
            replaced_by: 1,
            is_hidden: false,
            is_deleted: false,
            is_row: false,
            is_label: false,
            is_bracketed: false,
            code: code::ANSI,
        },
        code: code::ANSI,
        fonts: BTreeMap::new(),
        font: 0,
        font_name: String::new(),
        default_font: None,
        encoded: Vec::new(),
        surrogate: None,
        to_skip: 0,
        dates: [[0; 5]; 2],
        writers: [(); 5].map(|()| TextWriter::new(max_text_bytes)),
        margins: [Part::Header, Part::Footer].map(|part| Margin {
            part,
            seen: BTreeSet::new(),
            text: TextWriter::new(max_text_bytes),
        }),
        metadata: Metadata::default(),
    };
    reader.parse()?;
    let mut metadata = reader.metadata;
    metadata.created = iso(reader.dates[0]);
    metadata.modified = iso(reader.dates[1]);
    let mut writer = TextWriter::new(max_text_bytes);
    let [_, body, _, _, notes] = reader.writers;
    let [headers, footers] = reader.margins;
    for part in [headers.text, body, footers.text, notes] {
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

/// The headers or the footers. Different sections often have the same ones, so each text is written once.
struct Margin {
    part: Part,
    seen: BTreeSet<String>,
    text: TextWriter,
}

struct RtfReader<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The groups around this one.
    outer: Vec<Group>,
    group: Group,
    /// The character code of the document. Its fonts may have others.
    code: Code,
    fonts: BTreeMap<i32, Code>,
    /// The font whose entry in the font table is being read.
    font: i32,
    font_name: String,
    default_font: Option<i32>,
    /// Collected bytes of text, whether written plainly or as numbers. Two of them may be one character.
    encoded: Vec<u8>,
    /// The first half of a character that does not fit into 16 bits.
    surrogate: Option<u16>,
    to_skip: u8,
    /// The times of creation and of the last change: year, month, day, hour, minute.
    dates: [[i32; 5]; 2],
    /// The writers, one for each part. For headers and footers, it is the writer of the current one.
    writers: [TextWriter; 5],
    margins: [Margin; 2],
    metadata: Metadata,
}

impl<'b> RtfReader<'b> {
    fn parse(&mut self) -> Result<(), Trouble> {
        while let Some(byte) = self.next() {
            match byte {
                b'{' => {
                    self.flush()?;
                    self.to_skip = 0;
                    self.outer.push(self.group);
                    self.group.is_bracketed = false;
                }
                b'}' => {
                    self.flush()?;
                    self.to_skip = 0;
                    match self.outer.pop() {
                        Some(outer) => self.end_group(outer)?,
                        None => break,
                    }
                    if self.outer.is_empty() {
                        break;
                    }
                }
                b'\\' => self.read_control()?,
                b'\r' | b'\n' | 0 => {}
                other => self.push_byte(other),
            }
        }
        self.flush()?;
        while let Some(outer) = self.outer.pop() {
            self.end_group(outer)?;
        }
        self.write_frames()
    }

    fn end_group(&mut self, mut outer: Group) -> Result<(), Trouble> {
        if self.group.is_bracketed {
            self.text(")")?;
        }
        if self.is_in_fonts() {
            self.end_font_name();
        }
        if self.is_in_fonts() && outer.here != Destination::Fonts {
            let font = self.default_font.and_then(|font| self.fonts.get(&font));
            outer.code = font.copied().unwrap_or(outer.code);
        }
        if outer.part != self.group.part {
            self.writer().paragraph();
            self.end_margin()?;
        }
        self.group = outer;
        Ok(())
    }

    fn end_margin(&mut self) -> Result<(), Trouble> {
        let part = self.group.part;
        let Some(margin) = self.margins.iter_mut().find(|margin| margin.part == part) else {
            return Ok(());
        };
        let fresh = TextWriter::new(margin.text.max_bytes());
        let text = std::mem::replace(&mut self.writers[part as usize], fresh).finish();
        if !margin.seen.contains(&text) {
            margin.text.push_written(&text)?;
            margin.text.paragraph();
            margin.seen.insert(text);
        }
        Ok(())
    }

    /// The writer of the current part.
    fn writer(&mut self) -> &mut TextWriter {
        &mut self.writers[self.group.part as usize]
    }

    /// Writes the frames anchored to the paragraph that has ended.
    fn write_frames(&mut self) -> Result<(), Trouble> {
        let frames = &mut self.writers[Part::Frame as usize];
        let fresh = TextWriter::new(frames.max_bytes());
        let text = std::mem::replace(frames, fresh).finish();
        if !text.is_empty() {
            let body = &mut self.writers[Part::Body as usize];
            body.paragraph();
            body.push_written(&text)?;
            body.paragraph();
        }
        Ok(())
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// Handles a byte of text.
    fn push_byte(&mut self, byte: u8) {
        match self.to_skip {
            0 => self.encoded.push(byte),
            _ => self.to_skip -= 1,
        }
    }

    /// Writes the collected bytes.
    fn flush(&mut self) -> Result<(), Trouble> {
        if self.encoded.is_empty() {
            return Ok(());
        }
        if self.surrogate.take().is_some() {
            self.text("\u{fffd}")?;
        }
        let bytes = std::mem::take(&mut self.encoded);
        let text = self.group.code.decode(&bytes);
        self.text(&text)
    }

    fn text(&mut self, text: &str) -> Result<(), Trouble> {
        let metadatum = match self.group.here {
            Destination::Text if self.is_invisible() => return Ok(()),
            Destination::Text if self.group.is_label => {
                let text = text.replace(char::REPLACEMENT_CHARACTER, "\u{2022}");
                return self.writer().push(&text);
            }
            Destination::Text => return self.writer().push(text),
            Destination::Title => &mut self.metadata.title,
            Destination::Author => &mut self.metadata.author,
            Destination::Fonts => {
                self.read_font_table(text);
                return Ok(());
            }
            Destination::Nothing
            | Destination::Closed
            | Destination::Replaced
            | Destination::Created
            | Destination::Modified => return Ok(()),
        };
        let value = metadatum.get_or_insert_default();
        if value.len() + text.len() <= MAX_METADATUM_BYTES {
            value.push_str(text);
        }
        Ok(())
    }

    fn is_invisible(&self) -> bool {
        self.group.is_hidden || self.group.is_deleted
    }

    /// Reads a piece of the font table: names, each followed by a semicolon.
    fn read_font_table(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                ';' => self.end_font_name(),
                _ if self.font_name.len() < MAX_FONT_NAME_BYTES => self.font_name.push(character),
                _ => {}
            }
        }
    }

    fn end_font_name(&mut self) {
        let name = std::mem::take(&mut self.font_name);
        let known = self.fonts.get(&self.font).copied();
        let by_name = match known {
            None => code::from_font_name(&name),
            Some(Code::Symbols(_)) => SymbolFont::from_name(&name).map(Code::Symbols),
            Some(_) => None,
        };
        if let Some(code) = by_name {
            self.fonts.insert(self.font, code);
        }
    }

    fn read_control(&mut self) -> Result<(), Trouble> {
        let Some(first) = self.next() else {
            return Ok(());
        };
        if first.is_ascii_alphabetic() {
            self.at -= 1;
            let (word, number) = self.read_word();
            return self.handle_word(word, number);
        }
        match first {
            b'\'' => {
                let byte = self.read_hex();
                self.push_byte(byte);
            }
            b'\\' | b'{' | b'}' => self.push_byte(first),
            b'~' | b'_' | b'-' if self.to_skip > 0 => self.to_skip -= 1,
            b'~' => self.symbol("\u{a0}")?,
            b'_' => self.symbol("-")?,
            b'\t' => self.symbol(" ")?,
            b'\r' | b'\n' => self.new_line()?,
            // A destination that old readers ignore follows.
            b'*' => self.close_destination()?,
            _ => {}
        }
        Ok(())
    }

    /// Reads a control word and its number.
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

    fn read_hex(&mut self) -> u8 {
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

    fn handle_word(&mut self, word: &str, number: Option<i32>) -> Result<(), Trouble> {
        let value = number.unwrap_or(1);
        let stands_in = std::mem::take(&mut self.to_skip);
        self.to_skip = stands_in.saturating_sub(1);
        match word {
            // This is a fallback for the preceding `\u`.
            _ if stands_in > 0 && SYMBOLS.iter().any(|(known, _)| *known == word) => Ok(()),
            // The text of a cell stays on the line of its row.
            "par" | "line" | "column" | "nestrow" if self.group.is_row => self.symbol(" "),
            // The text after a hidden paragraph mark continues the same paragraph.
            "par" if self.is_invisible() => self.flush(),
            "par" | "line" | "column" | "sect" | "page" | "row" => self.new_line(),
            "intbl" => {
                self.group.is_row = true;
                Ok(())
            }
            "pard" => {
                self.group.is_row = false;
                Ok(())
            }
            "cell" => self.end_cell(),
            "tab" | "nestcell" => self.symbol(" "),
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
            "ansicpg" => self.set_code(code::from_code_page(value)),
            "mac" => self.set_code(Some(code::MAC)),
            "pc" => self.set_code(Some(code::PC)),
            "pca" => self.set_code(Some(code::PC_850)),
            "deff" => {
                self.default_font = number;
                Ok(())
            }
            "f" => self.set_font(value),
            "fcharset" | "cpg" => {
                let code = match word {
                    "cpg" => code::from_code_page(value),
                    _ => code::from_charset(value),
                };
                if let Some(code) = code.filter(|_| self.is_in_fonts()) {
                    self.fonts.insert(self.font, code);
                }
                Ok(())
            }
            "plain" => {
                self.flush()?;
                self.group.is_hidden = false;
                self.group.is_deleted = false;
                self.set_font(self.default_font.unwrap_or(-1))
            }
            "v" => {
                self.flush()?;
                self.group.is_hidden = value != 0;
                Ok(())
            }
            "deleted" | "mvf" => {
                self.flush()?;
                self.group.is_deleted = value != 0;
                Ok(())
            }
            "nofpages" => {
                self.metadata.pages = u32::try_from(value).ok();
                Ok(())
            }
            "yr" | "mo" | "dy" | "hr" | "min" => {
                self.set_date_part(word, value);
                Ok(())
            }
            other => match SYMBOLS.iter().find(|(known, _)| *known == other) {
                Some((_, text)) => self.symbol(text),
                None => self.begin_destination(other),
            },
        }
    }

    /// Handles a control word that may begin a destination.
    fn begin_destination(&mut self, word: &str) -> Result<(), Trouble> {
        match (self.group.here, word) {
            (Destination::Closed, _) => return Ok(()),
            (Destination::Replaced, "ud") => {
                self.flush()?;
                self.group.here = self.group.replaced;
                return Ok(());
            }
            (Destination::Replaced, _) => return Ok(()),
            (here, "upr") => {
                self.flush()?;
                (self.group.replaced, self.group.here) = (here, Destination::Replaced);
                return Ok(());
            }
            (Destination::Text, "listtext" | "pntext") => {
                self.flush()?;
                self.group.is_label = true;
                return Ok(());
            }
            (_, "moMath" | "moMathPara") => {
                self.flush()?;
                self.group.here = Destination::Text;
                return Ok(());
            }
            (Destination::Text, _) if word.starts_with('m') => {
                return self.write_formula_word(word);
            }
            _ => {}
        }
        let Some((destination, part)) = self.destination_of(word) else {
            return Ok(());
        };
        self.flush()?;
        self.group.here = destination;
        self.group.part = part.unwrap_or(self.group.part);
        if destination == Destination::Text && word != "result" {
            self.writer().paragraph();
            self.group.is_row = false;
        }
        Ok(())
    }

    /// The destination that a control word begins, if any, and the part of the document to which it belongs.
    fn destination_of(&self, word: &str) -> Option<(Destination, Option<Part>)> {
        Some(match word {
            "title" => (Destination::Title, None),
            "author" => (Destination::Author, None),
            "creatim" => (Destination::Created, None),
            "revtim" => (Destination::Modified, None),
            "fonttbl" => (Destination::Fonts, None),
            "header" | "headerl" | "headerr" | "headerf" => (Destination::Text, Some(Part::Header)),
            "footer" | "footerl" | "footerr" | "footerf" => (Destination::Text, Some(Part::Footer)),
            "footnote" => (Destination::Text, Some(Part::Note)),
            // These control words occur within groups that old readers skip.
            "shptxt" | "dptxbxtext" => match self.group.part {
                Part::Body => (Destination::Text, Some(Part::Frame)),
                _ => (Destination::Text, None),
            },
            // The result of an object, which is shown in its place.
            "result" => (Destination::Text, None),
            "colortbl" | "stylesheet" | "object" | "info" | "listtable" | "themedata"
            | "datastore" | "xmlnstbl" | "rsidtbl" | "generator" | "xe" | "tc" => {
                (Destination::Nothing, None)
            }
            "pict" | "fldinst" | "shprslt" | "nonshppict" | "nonesttables" => {
                (Destination::Closed, None)
            }
            _ => return None,
        })
    }

    /// Handles a control word of a formula, which is written on one line.
    fn write_formula_word(&mut self, word: &str) -> Result<(), Trouble> {
        match word {
            "mf" => self.symbol(" "),
            "mden" => self.symbol("/"),
            "msup" => self.symbol("^"),
            "msub" => self.symbol("_"),
            "mrad" => self.symbol("\u{221a}"),
            "md" => {
                self.symbol("(")?;
                self.group.is_bracketed = true;
                Ok(())
            }
            "mmathPict" => {
                self.flush()?;
                self.group.here = Destination::Closed;
                Ok(())
            }
            _ if word.ends_with("Pr") => {
                self.flush()?;
                self.group.here = Destination::Closed;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn is_in_fonts(&self) -> bool {
        self.group.here == Destination::Fonts
    }

    /// Sets the font. Bytes after it are in the font's own character code.
    fn set_font(&mut self, font: i32) -> Result<(), Trouble> {
        self.flush()?;
        if self.is_in_fonts() {
            self.font = font;
            self.font_name.clear();
        } else {
            let code = self.fonts.get(&font).copied();
            self.group.code = code.unwrap_or(self.code);
        }
        Ok(())
    }

    fn set_code(&mut self, code: Option<Code>) -> Result<(), Trouble> {
        self.flush()?;
        self.code = code.unwrap_or(self.code);
        self.group.code = self.code;
        Ok(())
    }

    fn close_destination(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        let is_closed = matches!(self.group.here, Destination::Closed | Destination::Replaced);
        if !is_closed {
            self.group.here = Destination::Nothing;
        }
        Ok(())
    }

    fn symbol(&mut self, text: &str) -> Result<(), Trouble> {
        self.flush()?;
        self.text(text)
    }

    fn new_line(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        if self.group.here == Destination::Text {
            self.writer().line_break();
            if self.group.part == Part::Body {
                self.write_frames()?;
            }
        }
        Ok(())
    }

    fn end_cell(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        if self.group.here == Destination::Text {
            self.writer().skip_cells(1);
        }
        Ok(())
    }

    /// Handles a character by its number, which is signed and has 16 bits.
    fn unicode(&mut self, number: i32) -> Result<(), Trouble> {
        self.flush()?;
        self.to_skip = self.group.replaced_by;
        let code = u32::try_from(number).unwrap_or(u32::from(number as u16));
        let unit = u16::try_from(code).ok();
        if let Some(symbol) = private_code(code) {
            let character = match self.group.code {
                Code::Symbols(font) => font.character(symbol),
                _ => char::REPLACEMENT_CHARACTER,
            };
            return self.text(character.encode_utf8(&mut [0; 4]));
        }
        let first = self.surrogate.take();
        if let Some(unit) = unit
            && (0xd800..0xdc00).contains(&unit)
        {
            self.surrogate = Some(unit);
            return Ok(());
        }
        let mut units: Vec<u16> = first.into_iter().collect();
        match (unit, char::from_u32(code)) {
            (Some(unit), _) => units.push(unit),
            // Some writers give the number of a character beyond 16 bits directly.
            (None, Some(character)) => units.extend(character.encode_utf16(&mut [0; 2]).iter()),
            (None, None) => units.push(0xfffd),
        }
        self.text(&String::from_utf16_lossy(&units))
    }

    fn set_date_part(&mut self, word: &str, value: i32) {
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

fn iso([year, month, day, hour, minute]: [i32; 5]) -> Option<String> {
    let is_date =
        (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute);
    (is_date && is_time).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}"))
}
