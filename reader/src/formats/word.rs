//! DOCX: paragraphs of runs of text.

use super::flow::read_metadata;
use super::package::Package;
use super::xml::{self, Token};
use super::{Content, Trouble};
use crate::text::TextWriter;

/// The parts with text, in the order of reading. A document has one of the first two.
const PARTS: [&str; 4] = [
    "word/document.xml",
    "word/document2.xml",
    "word/footnotes.xml",
    "word/endnotes.xml",
];

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut package = Package::open(bytes)?;
    let mut writer = TextWriter::new(max_text_bytes);
    for name in PARTS {
        if let Some(part) = package.part(name)? {
            let mut place = Place::default();
            xml::read(part, |token| write(&token, &mut place, &mut writer))?;
            writer.paragraph();
        }
    }
    let mut content = Content {
        text: writer.finish(),
        ..Content::default()
    };
    read_metadata(&mut package, "docProps/core.xml", &mut content.metadata);
    read_metadata(&mut package, "docProps/app.xml", &mut content.metadata);
    Ok(content)
}

/// Where in the document the reader is.
#[derive(Default)]
struct Place {
    in_text: bool,
    /// Depth within an element of which another one is a copy for newer programs.
    in_fallback: usize,
}

fn write(token: &Token<'_>, place: &mut Place, writer: &mut TextWriter) -> Result<(), Trouble> {
    match token {
        Token::Begin(name, _) if place.in_fallback > 0 || *name == "Fallback" => {
            place.in_fallback += 1;
        }
        Token::End(_) if place.in_fallback > 0 => place.in_fallback -= 1,
        Token::Begin("t", _) => place.in_text = true,
        Token::End("t") => place.in_text = false,
        Token::Begin("tab", _) => writer.space(),
        Token::Begin("br" | "cr", _) => writer.line_break(),
        Token::End("p") => writer.paragraph(),
        Token::Text(text) if place.in_text && place.in_fallback == 0 => writer.push(text)?,
        _ => {}
    }
    Ok(())
}
