//! DOCX: paragraphs of runs of text, tables, and the parts around the body: headers and footers, footnotes
//! and endnotes.

use super::flow::read_metadata;
use super::package::Package;
use super::xml::{self, Token};
use super::{Content, Trouble};
use crate::text::TextWriter;

/// Where the body is, if the package does not say so.
const BODIES: [&str; 2] = ["word/document.xml", "word/document2.xml"];

/// The parts around the body by the last word of their relation to it, in the order of reading.
const BEFORE: [&str; 1] = ["header"];
const AFTER: [&str; 3] = ["footer", "footnotes", "endnotes"];

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut package = Package::open(bytes)?;
    let body = BODIES.into_iter().find(|name| package.has(name));
    let body = body.ok_or_else(|| Trouble::broken("it has no text part"))?;
    let around = parts_around(&mut package, body)?;
    let of = |kinds: &[&str]| {
        let mut parts: Vec<String> = Vec::new();
        for kind in kinds {
            let same = around.iter().filter(|(of, _)| of == kind);
            parts.extend(same.map(|(_, name)| name.clone()));
        }
        parts
    };
    let mut writer = TextWriter::new(max_text_bytes);
    let mut seen = Vec::new();
    for name in of(&BEFORE) {
        write_once(&mut package, &name, &mut seen, &mut writer)?;
    }
    write_part(&mut package, body, &mut writer)?;
    for name in of(&AFTER) {
        write_once(&mut package, &name, &mut seen, &mut writer)?;
    }
    let mut content = Content {
        text: writer.finish(),
        ..Content::default()
    };
    read_metadata(&mut package, "docProps/core.xml", &mut content.metadata);
    read_metadata(&mut package, "docProps/app.xml", &mut content.metadata);
    Ok(content)
}

/// The parts that the body names in its relations: their kind and name. Without relations, those that are
/// called as Word calls them.
fn parts_around(package: &mut Package<'_>, body: &str) -> Result<Vec<(String, String)>, Trouble> {
    let file = body.trim_start_matches("word/");
    let mut parts = Vec::new();
    let relations = format!("word/_rels/{file}.rels");
    if let Some(part) = package.part(&relations)? {
        xml::read(part, |token| {
            if let Token::Begin("Relationship", attributes) = token {
                let kind = attributes.get("Type").unwrap_or_default();
                let kind = kind.rsplit('/').next().unwrap_or_default();
                let target = attributes.get("Target").unwrap_or_default();
                let name = match target.strip_prefix('/') {
                    Some(absolute) => absolute.to_owned(),
                    None => format!("word/{target}"),
                };
                parts.push((kind.to_owned(), name));
            }
            Ok(())
        })?;
    } else {
        for kind in ["footnotes", "endnotes"] {
            parts.push((kind.to_owned(), format!("word/{kind}.xml")));
        }
    }
    Ok(parts)
}

fn write_part(
    package: &mut Package<'_>,
    name: &str,
    writer: &mut TextWriter,
) -> Result<(), Trouble> {
    if let Some(part) = package.part(name)? {
        let mut place = Place::default();
        xml::read(part, |token| write(&token, &mut place, writer))?;
        writer.paragraph();
    }
    Ok(())
}

/// Sections and first pages often have headers of their own that say the same: each text stands once.
fn write_once(
    package: &mut Package<'_>,
    name: &str,
    seen: &mut Vec<String>,
    writer: &mut TextWriter,
) -> Result<(), Trouble> {
    let mut alone = TextWriter::new(writer.max_bytes());
    write_part(package, name, &mut alone)?;
    let text = alone.finish();
    if !seen.contains(&text) {
        writer.push_written(&text)?;
        writer.paragraph();
        seen.push(text);
    }
    Ok(())
}

/// Where in the document the reader is.
#[derive(Default)]
struct Place {
    in_text: bool,
    /// Depth within what is not part of the text.
    in_aside: usize,
    /// Columns of the cells around this place.
    columns: Vec<usize>,
}

/// The most columns of a table in Word.
const MAX_COLUMNS: usize = 63;

/// What is no text: an element of which another one is a copy for newer programs, the place from which a
/// passage was moved, and the pronunciation above characters.
const ASIDES: [&str; 3] = ["Fallback", "moveFrom", "rt"];

fn write(token: &Token<'_>, place: &mut Place, writer: &mut TextWriter) -> Result<(), Trouble> {
    match token {
        Token::Begin(name, _) if place.in_aside > 0 || ASIDES.contains(name) => {
            place.in_aside += 1;
        }
        Token::End(_) if place.in_aside > 0 => place.in_aside -= 1,
        Token::Begin("t", _) => place.in_text = true,
        Token::End("t") => place.in_text = false,
        Token::Begin("tab" | "ptab", _) => writer.space(),
        Token::Begin("br" | "cr", _) => writer.line_break(),
        Token::Begin("noBreakHyphen", _) => writer.push("-")?,
        Token::End("p") => writer.paragraph(),
        Token::Begin("tc", _) => {
            place.columns.push(1);
            writer.begin_cell();
        }
        // A cell over several columns keeps the places of all.
        Token::Begin("gridSpan", attributes) => {
            let columns = attributes
                .get("val")
                .and_then(|columns| columns.parse().ok());
            if let Some(of_cell) = place.columns.last_mut() {
                *of_cell = columns.unwrap_or(1).clamp(1, MAX_COLUMNS);
            }
        }
        Token::End("tc") => {
            writer.end_cell();
            let columns = place.columns.pop().unwrap_or(1);
            if place.columns.is_empty() {
                writer.skip_cells(columns - 1);
            }
        }
        Token::End("tr") => writer.paragraph(),
        Token::Text(text) if place.in_text => writer.push(text)?,
        _ => {}
    }
    Ok(())
}
