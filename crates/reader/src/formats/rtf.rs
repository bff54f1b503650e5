//! Reads RTF: groups in braces, control words after backslashes, and text. It is read in one pass without recursion, so
//! groups may be nested as deeply as memory allows.

mod code;
mod date;
mod fonts;
mod group;
mod parts;
mod scanner;
#[cfg(test)]
mod tests;

use self::code::Code;
use self::date::Date;
use self::fonts::Fonts;
use self::group::{Destination, Group, Part};
use self::parts::Parts;
use self::scanner::{Control, Scanner, character_of};
use super::symbols::private_code;
use super::{Content, Trouble};
use crate::report::Metadata;
use crate::text::TextWriter;

/// The size limit of one metadata value, in bytes, before it is cleaned.
const MAX_METADATUM_BYTES: usize = 10_000;

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut reader = RtfReader {
        scanner: Scanner::new(bytes),
        outer: Vec::new(),
        group: Group::outermost_group(),
        code: code::ANSI,
        fonts: Fonts::default(),
        encoded: Vec::new(),
        surrogate: None,
        to_skip: 0,
        created: Date::default(),
        modified: Date::default(),
        parts: Parts::new(max_text_bytes),
        metadata: Metadata::default(),
    };
    reader.parse()?;
    let text = reader.parts.finish(max_text_bytes)?;
    let mut metadata = reader.metadata;
    metadata.created = reader.created.to_iso();
    metadata.modified = reader.modified.to_iso();
    Ok(Content {
        text,
        metadata,
        unread: 0,
    })
}

struct RtfReader<'b> {
    scanner: Scanner<'b>,
    /// The states of the groups around the current one.
    outer: Vec<Group>,
    group: Group,
    /// The character code of the document. Its fonts may have codes of their own.
    code: Code,
    fonts: Fonts,
    /// Bytes of text that are not decoded yet, because a character may consist of two bytes.
    encoded: Vec<u8>,
    /// The first half of a surrogate pair, until the second half is read.
    surrogate: Option<u16>,
    to_skip: u8,
    created: Date,
    modified: Date,
    parts: Parts,
    metadata: Metadata,
}

impl RtfReader<'_> {
    fn parse(&mut self) -> Result<(), Trouble> {
        while let Some(byte) = self.scanner.next() {
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
        self.parts.write_frames()
    }

    fn end_group(&mut self, mut outer: Group) -> Result<(), Trouble> {
        if self.group.is_bracketed {
            self.write_text(")")?;
        }
        if self.group.is_in_fonts() {
            self.fonts.end_name();
        }
        if self.group.is_in_fonts() && !outer.is_in_fonts() {
            let font = self.fonts.default_font();
            let code = font.and_then(|font| self.fonts.code_of(font));
            outer.code = code.unwrap_or(outer.code);
        }
        if outer.part != self.group.part {
            self.parts.end_piece(self.group.part)?;
        }
        self.group = outer;
        Ok(())
    }

    /// The writer of the current part.
    fn writer(&mut self) -> &mut TextWriter {
        self.parts.writer(self.group.part)
    }

    /// Handles a byte of text.
    fn push_byte(&mut self, byte: u8) {
        match self.to_skip {
            0 => self.encoded.push(byte),
            _ => self.to_skip -= 1,
        }
    }

    /// Decodes and writes the collected bytes.
    fn flush(&mut self) -> Result<(), Trouble> {
        if self.encoded.is_empty() {
            return Ok(());
        }
        if self.surrogate.take().is_some() {
            self.write_text("\u{fffd}")?;
        }
        let bytes = std::mem::take(&mut self.encoded);
        let text = self.group.code.decode(&bytes);
        self.write_text(&text)
    }

    fn write_text(&mut self, text: &str) -> Result<(), Trouble> {
        let metadatum = match self.group.here {
            Destination::Text if self.group.is_invisible() => return Ok(()),
            Destination::Text if self.group.is_label => {
                let text = text.replace(char::REPLACEMENT_CHARACTER, "\u{2022}");
                return self.writer().push(&text);
            }
            Destination::Text => return self.writer().push(text),
            Destination::Title => &mut self.metadata.title,
            Destination::Author => &mut self.metadata.author,
            Destination::Fonts => {
                self.fonts.read_names(text);
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

    fn read_control(&mut self) -> Result<(), Trouble> {
        let symbol = match self.scanner.next_control() {
            None => return Ok(()),
            Some(Control::Word(word, number)) => return self.handle_word(word, number),
            Some(Control::Symbol(symbol)) => symbol,
        };
        match symbol {
            b'\'' => {
                let byte = self.scanner.read_hex();
                self.push_byte(byte);
            }
            b'\\' | b'{' | b'}' => self.push_byte(symbol),
            b'~' | b'_' | b'-' if self.to_skip > 0 => self.to_skip -= 1,
            b'~' => self.write_symbol("\u{a0}")?,
            b'_' => self.write_symbol("-")?,
            b'\t' => self.write_symbol(" ")?,
            b'\r' | b'\n' => self.write_line_break()?,
            // `\*` marks a destination that old readers should ignore.
            b'*' => self.close_destination()?,
            _ => {}
        }
        Ok(())
    }

    fn handle_word(&mut self, word: &str, number: Option<i32>) -> Result<(), Trouble> {
        let value = number.unwrap_or(1);
        let stands_in = std::mem::take(&mut self.to_skip);
        self.to_skip = stands_in.saturating_sub(1);
        match word {
            // The control word is a fallback for the preceding `\u`, so it is skipped.
            _ if stands_in > 0 && character_of(word).is_some() => Ok(()),
            // In a table, the text of a cell stays on the line of its row.
            "par" | "line" | "column" | "nestrow" if self.group.is_row => self.write_symbol(" "),
            // The text after a hidden paragraph mark continues the same paragraph.
            "par" if self.group.is_invisible() => self.flush(),
            "par" | "line" | "column" | "sect" | "page" | "row" => self.write_line_break(),
            "intbl" => {
                self.group.is_row = true;
                Ok(())
            }
            "pard" => {
                self.group.is_row = false;
                Ok(())
            }
            "cell" => self.end_cell(),
            "tab" | "nestcell" => self.write_symbol(" "),
            "u" => self.write_unicode(value),
            "uc" => {
                self.group.replaced_by = u8::try_from(value).unwrap_or(0).min(16);
                Ok(())
            }
            "bin" => {
                self.scanner.skip(usize::try_from(value).unwrap_or(0));
                Ok(())
            }
            "ansicpg" => self.set_code(code::from_code_page(value)),
            "mac" => self.set_code(Some(code::MAC)),
            "pc" => self.set_code(Some(code::PC)),
            "pca" => self.set_code(Some(code::PC_850)),
            "deff" => {
                self.fonts.set_default_font(number);
                Ok(())
            }
            "f" => self.set_font(value),
            "fcharset" | "cpg" => {
                let code = match word {
                    "cpg" => code::from_code_page(value),
                    _ => code::from_charset(value),
                };
                if let Some(code) = code.filter(|_| self.group.is_in_fonts()) {
                    self.fonts.set_code_of_entry(code);
                }
                Ok(())
            }
            "plain" => {
                self.flush()?;
                self.group.is_hidden = false;
                self.group.is_deleted = false;
                self.set_font(self.fonts.default_font().unwrap_or(-1))
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
                match self.group.here {
                    Destination::Created => self.created.set_part(word, value),
                    Destination::Modified => self.modified.set_part(word, value),
                    _ => {}
                }
                Ok(())
            }
            other => match character_of(other) {
                Some(text) => self.write_symbol(text),
                None => self.begin_destination(other),
            },
        }
    }

    /// Handles a control word that may begin a destination: a group whose text is treated in another way.
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
        let begun = Destination::from_control_word(word, self.group.part);
        let Some((destination, part)) = begun else {
            return Ok(());
        };
        self.flush()?;
        self.group.here = destination;
        self.group.part = part.unwrap_or(self.group.part);
        if destination == Destination::Text && word != "result" {
            self.writer().end_paragraph();
            self.group.is_row = false;
        }
        Ok(())
    }

    /// Handles a control word of a formula, which is written on one line.
    fn write_formula_word(&mut self, word: &str) -> Result<(), Trouble> {
        match word {
            "mf" => self.write_symbol(" "),
            "mden" => self.write_symbol("/"),
            "msup" => self.write_symbol("^"),
            "msub" => self.write_symbol("_"),
            "mrad" => self.write_symbol("\u{221a}"),
            "md" => {
                self.write_symbol("(")?;
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

    /// Sets the font. The following bytes are in the font's own character code.
    fn set_font(&mut self, font: i32) -> Result<(), Trouble> {
        self.flush()?;
        if self.group.is_in_fonts() {
            self.fonts.begin_entry(font);
        } else {
            self.group.code = self.fonts.code_of(font).unwrap_or(self.code);
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

    fn write_symbol(&mut self, text: &str) -> Result<(), Trouble> {
        self.flush()?;
        self.write_text(text)
    }

    fn write_line_break(&mut self) -> Result<(), Trouble> {
        self.flush()?;
        if self.group.here == Destination::Text {
            self.writer().push_line_break();
            if self.group.part == Part::Body {
                self.parts.write_frames()?;
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

    /// Writes the character with this number, which `\u` gives as a signed integer of 16 bits.
    fn write_unicode(&mut self, number: i32) -> Result<(), Trouble> {
        self.flush()?;
        self.to_skip = self.group.replaced_by;
        let code = u32::try_from(number).unwrap_or(u32::from(number as u16));
        let unit = u16::try_from(code).ok();
        if let Some(symbol) = private_code(code) {
            let character = match self.group.code {
                Code::Symbols(font) => font.character(symbol),
                _ => char::REPLACEMENT_CHARACTER,
            };
            return self.write_text(character.encode_utf8(&mut [0; 4]));
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
            // Some programs write the number of a character that exceeds 16 bits without splitting it.
            (None, Some(character)) => units.extend(character.encode_utf16(&mut [0; 2]).iter()),
            (None, None) => units.push(0xfffd),
        }
        self.write_text(&String::from_utf16_lossy(&units))
    }
}
