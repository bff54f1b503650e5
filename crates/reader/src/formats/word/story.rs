//! Writes the text of a part of a DOCX: paragraphs, which consist of *runs* of text, tables, frames, fields and
//! formulas.

use super::is_on;
use super::styles::HiddenStyles;
use crate::formats::Trouble;
use crate::formats::flow::Frames;
use crate::formats::symbols::{SymbolFont, private_code};
use crate::formats::word::story::formula::Formula;
use crate::formats::xml::{Attributes, Token};

mod field;
mod formula;

use field::Field;

/// Writes the text of a part of a DOCX. It has the position of the reader and the text so far.
pub(super) struct Story<'s> {
    styles: &'s HiddenStyles,
    frames: Frames,
    /// The positions outside the frames around the current one.
    outer: Vec<Place>,
    place: Place,
    /// How many elements around this position are not part of the text.
    in_aside: usize,
    /// The fields around this position.
    fields: Vec<Field>,
    /// Whether all fields of the part are known to have an end.
    fields_end: bool,
    /// For each content control around this position: whether it contains only placeholder text.
    controls: Vec<bool>,
    /// Whether white space around the text of a run is kept if the run does not declare that it is part of the text.
    keeps_blanks: bool,
    formula: Formula,
}

/// The position within the running text or a frame.
#[derive(Default)]
struct Place {
    /// For each cell around this position: the number of columns that it spans.
    columns: Vec<usize>,
    in_paragraph_properties: bool,
    /// Whether the style of the paragraph hides it.
    is_hidden: bool,
    /// Whether the paragraph mark was deleted or is hidden, so that the next paragraph continues this one.
    has_no_end: bool,
    run: Run,
}

/// The properties of a run: a stretch of text with the same formatting.
#[derive(Default)]
struct Run {
    hides: Option<bool>,
    has_hidden_style: bool,
    symbols: Option<SymbolFont>,
    /// The text of the current element, and whether its white space is kept.
    text: Option<(String, bool)>,
}

/// The largest number of columns of a table in Word.
const MAX_COLUMNS: usize = 63;

/// Elements that are not text: the fallback copy of an element for older programs, the origin of a moved passage,
/// deleted text, and the pronunciation above characters.
const ASIDES: [&str; 4] = ["Fallback", "moveFrom", "del", "rt"];

/// Whether the element is not text: one of [`ASIDES`], or the properties before a tracked change.
fn is_aside(name: &str) -> bool {
    ASIDES.contains(&name) || name.ends_with("PrChange")
}

impl Story<'_> {
    pub(super) fn new(styles: &HiddenStyles, max_text_bytes: u64, fields_end: bool) -> Story<'_> {
        Story {
            styles,
            frames: Frames::new(max_text_bytes),
            outer: Vec::new(),
            place: Place::default(),
            in_aside: 0,
            fields: Vec::new(),
            fields_end,
            controls: Vec::new(),
            keeps_blanks: false,
            formula: Formula::default(),
        }
    }

    /// Returns the text; `None` if a field has no end.
    pub(super) fn finish(mut self) -> Result<Option<String>, Trouble> {
        while !self.outer.is_empty() {
            self.end_frame()?;
        }
        let is_whole = self.fields.is_empty() || !self.fields_end;
        let text = self.frames.finish()?;
        Ok(is_whole.then_some(text))
    }

    pub(super) fn write(&mut self, token: &Token<'_>) -> Result<(), Trouble> {
        if let Token::Begin("del" | "moveFrom" | "vanish", _) = token
            && self.in_aside == 0
            && self.place.in_paragraph_properties
        {
            self.place.has_no_end |= is_on(token);
        }
        match token {
            Token::Begin(name, _) if self.in_aside > 0 || is_aside(name) => self.in_aside += 1,
            Token::End(_) if self.in_aside > 0 => self.in_aside -= 1,
            Token::Begin(name, attributes) => {
                self.begin_element(name, attributes, is_on(token))?;
                self.formula
                    .begin_element(name, attributes, self.frames.writer())?;
            }
            Token::End(name) => {
                self.end_element(name)?;
                self.formula.end_element(name, self.frames.writer())?;
            }
            Token::Text(part) => {
                if let Some((text, _)) = &mut self.place.run.text {
                    text.push_str(part);
                }
            }
        }
        Ok(())
    }

    fn begin_element(
        &mut self,
        name: &str,
        attributes: &Attributes<'_>,
        on: bool,
    ) -> Result<(), Trouble> {
        let value = || attributes.get("val").unwrap_or_default();
        let properties = self.place.in_paragraph_properties;
        match name {
            "document" | "hdr" | "ftr" | "footnotes" | "endnotes" => {
                self.keeps_blanks = attributes.get("space").as_deref() == Some("preserve");
            }
            "p" => {
                self.place.is_hidden = false;
                self.place.has_no_end = false;
            }
            "pPr" => self.place.in_paragraph_properties = true,
            "pStyle" => self.place.is_hidden = self.styles.hides_text(&value()),
            "r" => self.place.run = Run::default(),
            "rStyle" if !properties => {
                self.place.run.has_hidden_style = self.styles.hides_text(&value());
            }
            "vanish" if !properties => self.place.run.hides = Some(on),
            "rFonts" if !properties => {
                let font = ["ascii", "hAnsi"]
                    .into_iter()
                    .find_map(|of| attributes.get(of));
                self.place.run.symbols = font.and_then(|font| SymbolFont::from_name(&font));
            }
            "t" => {
                let keeps = match attributes.get("space") {
                    Some(space) => space == "preserve",
                    None => self.keeps_blanks,
                };
                self.place.run.text = Some((String::new(), keeps));
            }
            "tab" | "ptab" if !properties && self.is_visible() => self.frames.writer().push_space(),
            "br" | "cr" if self.is_visible() => self.frames.writer().push_line_break(),
            "noBreakHyphen" => self.push("-")?,
            "sym" => {
                let character = symbol_character(attributes);
                self.push(character.encode_utf8(&mut [0; 4]))?;
            }
            "txbxContent" => {
                self.outer.push(std::mem::take(&mut self.place));
                self.frames.begin_frame();
            }
            "tbl" => self.frames.writer().end_paragraph(),
            "tc" => {
                self.place.columns.push(1);
                self.frames.writer().begin_cell();
            }
            // A cell that spans several columns occupies all of them.
            "gridSpan" => {
                if let Some(of_cell) = self.place.columns.last_mut() {
                    *of_cell = value().parse().unwrap_or(1).clamp(1, MAX_COLUMNS);
                }
            }
            "gridBefore" if self.place.columns.is_empty() => {
                let columns: usize = value().parse().unwrap_or(0);
                self.frames.writer().skip_cells(columns.min(MAX_COLUMNS));
            }
            "fldChar" => {
                if let Some("begin") = attributes.get("fldCharType").as_deref() {
                    self.fields.push(Field::default());
                } else if let Some("separate") = attributes.get("fldCharType").as_deref() {
                    self.fields
                        .last_mut()
                        .into_iter()
                        .for_each(Field::mark_separated);
                } else if let Some(text) = self.fields.pop().and_then(Field::into_shown_text) {
                    self.push(&text)?;
                }
            }
            "checkBox" | "ddList" | "checked" | "default" | "result" | "listEntry" => {
                if let Some(field) = self.fields.last_mut() {
                    field.note_property(name, &value(), on);
                }
            }
            "sdt" => self.controls.push(false),
            "showingPlcHdr" => {
                if let Some(is_prompt) = self.controls.last_mut() {
                    *is_prompt = on;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end_element(&mut self, name: &str) -> Result<(), Trouble> {
        match name {
            "pPr" => self.place.in_paragraph_properties = false,
            "t" => {
                if let Some((text, keeps_blanks)) = self.place.run.text.take() {
                    let text = if keeps_blanks {
                        &text
                    } else {
                        without_indents(&text)
                    };
                    self.push(&text.replace(['\n', '\r'], " "))?;
                }
            }
            "p" => {
                let has_end = !std::mem::take(&mut self.place.has_no_end);
                self.frames.end_paragraph(has_end)?;
            }
            "txbxContent" => self.end_frame()?,
            "tc" => {
                let columns = self.place.columns.pop().unwrap_or(1);
                let is_outermost = self.place.columns.is_empty();
                let writer = self.frames.writer();
                writer.end_cell();
                if is_outermost {
                    writer.skip_cells(columns - 1);
                }
            }
            "tr" => self.frames.end_paragraph(true)?,
            "sdt" => {
                self.controls.pop();
            }
            _ => {}
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<(), Trouble> {
        if let Some(place) = self.outer.pop() {
            self.place = place;
            self.frames.end_frame()?;
        }
        Ok(())
    }

    /// Whether text at this position is visible.
    fn is_visible(&self) -> bool {
        let run = &self.place.run;
        let is_hidden = run
            .hides
            .unwrap_or(self.place.is_hidden != run.has_hidden_style);
        let in_instruction = self.fields_end && self.fields.iter().any(Field::is_instruction);
        !is_hidden && !in_instruction && !self.controls.contains(&true)
    }

    fn push(&mut self, text: &str) -> Result<(), Trouble> {
        if text.is_empty() || !self.is_visible() {
            return Ok(());
        }
        self.fields
            .last_mut()
            .into_iter()
            .for_each(Field::note_text);
        let symbols = self.place.run.symbols.unwrap_or(SymbolFont::Other);
        let text: String = text
            .chars()
            .map(|character| match private_code(character.into()) {
                Some(code) => symbols.character(code),
                None => character,
            })
            .collect();
        self.formula.write_sign(self.frames.writer())?;
        self.frames.writer().push(&text)
    }
}

/// Removes the white space before or after a text if it contains a line break, because it then only indents the XML.
/// Used for elements that do not declare their white space as part of the text.
fn without_indents(text: &str) -> &str {
    let inner = text.trim_matches([' ', '\t', '\n', '\r']);
    let begin = text.find(inner).unwrap_or_default();
    let (before, after) = (&text[..begin], &text[begin + inner.len()..]);
    let from = if before.contains('\n') { begin } else { 0 };
    let to = match after.contains('\n') {
        true => begin + inner.len(),
        false => text.len(),
    };
    &text[from..to]
}

/// The character that an element `sym` stands for, by its font and its code.
fn symbol_character(attributes: &Attributes<'_>) -> char {
    let font = attributes.get("font").unwrap_or_default();
    let code = attributes.get("char").unwrap_or_default();
    let Ok(code) = u32::from_str_radix(&code, 16) else {
        return char::REPLACEMENT_CHARACTER;
    };
    let known = SymbolFont::from_name(&font);
    let in_font = private_code(code).or(u8::try_from(code).ok().filter(|_| known.is_some()));
    match in_font {
        Some(code) => known.unwrap_or(SymbolFont::Other).character(code),
        None => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}
