//! Reads ODT and ODS documents. They differ in their cells: in a text, cells have paragraphs; in a sheet, they have
//! values ([`super::opendocument_sheets`]).

use std::collections::BTreeSet;

use super::flow::{Frames, read_metadata};
use super::opendocument_sheets::Sheets;
use super::package::Package;
use super::xml::{self, Attributes, Token};
use super::{Content, Trouble};
use crate::kind::Kind;
use crate::text::TextWriter;

pub(super) fn read(kind: Kind, bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut package = Package::open(bytes)?;
    if package
        .read_small_part("META-INF/manifest.xml")?
        .contains("encryption-data")
    {
        return Err(Trouble::Encrypted);
    }
    let mut content = match kind {
        Kind::Ods => read_sheets(&mut package, max_text_bytes)?,
        _ => read_text(&mut package, max_text_bytes)?,
    };
    let sheets = content.metadata.pages.take();
    read_metadata(&mut package, "meta.xml", &mut content.metadata);
    content.metadata.pages = sheets.or(content.metadata.pages);
    Ok(content)
}

fn read_sheets(package: &mut Package<'_>, max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut writer = TextWriter::new(max_text_bytes);
    let mut sheets = Sheets::default();
    for_each_token(package, |token| sheets.write(token, &mut writer))?;
    let mut content = Content {
        text: writer.finish(),
        ..Content::default()
    };
    content.metadata.pages = Some(sheets.count);
    Ok(content)
}

fn read_text(package: &mut Package<'_>, max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut hidden = HiddenStyles::default();
    let mut margins = Margins::default();
    if let Some(part) = package.open_part("styles.xml")? {
        xml::for_each_token(part, |token| {
            hidden.handle_token(&token);
            margins.handle_token(&token, &hidden, max_text_bytes)
        })?;
    }
    let mut story = Story::new(max_text_bytes);
    for_each_token(package, |token| {
        hidden.handle_token(token);
        story.write(token, &hidden)
    })?;
    let [headers, footers] = margins.texts.map(|texts| texts.join("\n"));
    let [text, notes] = story.finish()?;
    let mut writer = TextWriter::new(max_text_bytes);
    for part in [headers, text, footers, notes] {
        writer.push_written(&part)?;
        writer.end_paragraph();
    }
    Ok(Content {
        text: writer.finish(),
        ..Content::default()
    })
}

fn for_each_token(
    package: &mut Package<'_>,
    mut each: impl FnMut(&Token<'_>) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let part = package.open_part("content.xml")?;
    let part = part.ok_or_else(|| Trouble::broken("content.xml is missing"))?;
    xml::for_each_token(part, |token| each(&token))
}

/// The headers and footers of a text, which are defined in its styles. Different pages often have the same header, so
/// each text is written once.
#[derive(Default)]
struct Margins {
    texts: [Vec<String>; 2],
    here: Option<Story>,
}

impl Margins {
    fn handle_token(
        &mut self,
        token: &Token<'_>,
        hidden: &HiddenStyles,
        max_text_bytes: u64,
    ) -> Result<(), Trouble> {
        let which = match token {
            Token::Begin(name, _) | Token::End(name) => margin_index(name),
            Token::Text(_) => None,
        };
        match (which, token, &mut self.here) {
            (Some(_), Token::Begin(..), None) => self.here = Some(Story::new(max_text_bytes)),
            (Some(which), Token::End(_), Some(_)) => {
                let story = self.here.take().map(Story::finish).transpose()?;
                let text = story.map(|[text, _]| text);
                let is_new = |text: &String| !self.texts[which].contains(text);
                let text = text.filter(is_new);
                self.texts[which].extend(text);
            }
            (_, _, Some(story)) => story.write(token, hidden)?,
            _ => {}
        }
        Ok(())
    }
}

/// The index of a margin element in [`Margins`]: 0 for a header, 1 for a footer.
fn margin_index(element: &str) -> Option<usize> {
    match element {
        "header" | "header-left" | "header-first" => Some(0),
        "footer" | "footer-left" | "footer-first" => Some(1),
        _ => None,
    }
}

/// The names of the paragraph and character styles that hide their text.
#[derive(Default)]
struct HiddenStyles {
    names: BTreeSet<String>,
    /// The name of the style that is being read.
    here: Option<String>,
}

impl HiddenStyles {
    fn handle_token(&mut self, token: &Token<'_>) {
        match (token, &self.here) {
            (Token::Begin("style", attributes), _) => self.here = attributes.get("name"),
            (Token::End("style"), _) => self.here = None,
            (Token::Begin("text-properties", attributes), Some(name))
                if attributes.get("display").as_deref() == Some("none") =>
            {
                self.names.insert(name.clone());
            }
            _ => {}
        }
    }

    fn is_hidden(&self, attributes: &Attributes<'_>) -> bool {
        if attributes.get("display").as_deref() == Some("none") {
            return true;
        }
        let style = || attributes.get("style-name");
        !self.names.is_empty() && style().is_some_and(|style| self.names.contains(&style))
    }
}

/// Writes the running text of a document. It has the position of the reader and the text so far.
struct Story {
    frames: Frames,
    /// For each frame around the current position: whether it is a note, and how many paragraphs outside it are open.
    outer: Vec<(bool, usize)>,
    in_paragraphs: usize,
    /// How many elements around the current position are not part of the text.
    in_aside: usize,
    /// For each cell around the current position: how many times it is repeated.
    repeated: Vec<usize>,
    notes: TextWriter,
}

/// Elements that are not part of the text: deleted passages, comments, pronunciation, descriptions of pictures,
/// programs, the marks of notes, and forms.
const ASIDES: [&str; 7] = [
    "tracked-changes",
    "annotation",
    "ruby-text",
    "desc",
    "script",
    "note-citation",
    "forms",
];

/// Elements that are anchored within a paragraph and contain paragraphs of their own.
const FRAMES: [&str; 14] = [
    "note-body",
    "text-box",
    "custom-shape",
    "rect",
    "line",
    "circle",
    "ellipse",
    "polygon",
    "polyline",
    "path",
    "connector",
    "caption",
    "regular-polygon",
    "measure",
];

/// How many times the text of a repeated cell is written at most.
const MAX_REPEATED: usize = 1000;

impl Story {
    fn new(max_text_bytes: u64) -> Story {
        Story {
            frames: Frames::new(max_text_bytes),
            outer: Vec::new(),
            in_paragraphs: 0,
            in_aside: 0,
            repeated: Vec::new(),
            notes: TextWriter::new(max_text_bytes),
        }
    }

    fn write(&mut self, token: &Token<'_>, hidden: &HiddenStyles) -> Result<(), Trouble> {
        match token {
            Token::Begin(name, attributes) => {
                let is_aside = self.in_aside > 0
                    || ASIDES.contains(name)
                    || (*name == "title" && attributes.has_prefix("svg"))
                    || hidden.is_hidden(attributes);
                if is_aside {
                    self.in_aside += 1;
                } else {
                    self.begin_element(name, attributes);
                }
            }
            Token::End(_) if self.in_aside > 0 => self.in_aside -= 1,
            Token::End(name) => self.end_element(name)?,
            Token::Text(text) if self.in_paragraphs > 0 && self.in_aside == 0 => {
                let text = text.replace(['\n', '\r'], " ");
                self.frames.writer().push(&text)?;
            }
            Token::Text(_) => {}
        }
        Ok(())
    }

    fn begin_element(&mut self, name: &str, attributes: &Attributes<'_>) {
        match name {
            "p" | "h" => self.in_paragraphs += 1,
            "table-cell" | "covered-table-cell" => {
                let repeated = attributes.get("number-columns-repeated");
                let repeated = repeated.and_then(|times| times.parse().ok()).unwrap_or(1);
                self.repeated.push(repeated.clamp(1, MAX_REPEATED));
                self.frames.writer().begin_cell();
            }
            "s" | "tab" => self.frames.writer().push_space(),
            "line-break" => self.frames.writer().push_line_break(),
            _ if FRAMES.contains(&name) => {
                self.outer.push((name == "note-body", self.in_paragraphs));
                self.in_paragraphs = 0;
                self.frames.begin_frame();
            }
            _ => {}
        }
    }

    fn end_element(&mut self, name: &str) -> Result<(), Trouble> {
        match name {
            "p" | "h" => {
                self.in_paragraphs = self.in_paragraphs.saturating_sub(1);
                self.frames.end_paragraph(true)?;
            }
            "table-cell" | "covered-table-cell" => {
                let repeated = self.repeated.pop().unwrap_or(1);
                let writer = self.frames.writer();
                writer.end_cell();
                if self.repeated.is_empty() {
                    writer.skip_cells(repeated - 1);
                }
            }
            "table-row" => self.frames.end_paragraph(true)?,
            // The number of a heading or of a list item, which was generated by the program that wrote the file.
            "number" => self.frames.writer().push_space(),
            _ if FRAMES.contains(&name) => self.end_frame()?,
            _ => {}
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<(), Trouble> {
        let Some((is_note, in_paragraphs)) = self.outer.pop() else {
            return Ok(());
        };
        self.in_paragraphs = in_paragraphs;
        if !is_note {
            return self.frames.end_frame();
        }
        let note = self.frames.take_frame()?;
        self.notes.push_written(&note)?;
        self.notes.end_paragraph();
        Ok(())
    }

    /// Ends all open frames. Returns the text, and the notes.
    fn finish(mut self) -> Result<[String; 2], Trouble> {
        while !self.outer.is_empty() {
            self.end_frame()?;
        }
        Ok([self.frames.finish()?, self.notes.finish()])
    }
}

#[cfg(test)]
mod tests;
