//! ODT and ODS: paragraphs, in a spreadsheet those of its cells.

use super::flow::read_metadata;
use super::package::Package;
use super::xml::{self, Token};
use super::{Content, Trouble};
use crate::kind::Kind;
use crate::text::TextWriter;

pub(super) fn read(kind: Kind, bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut package = Package::open(bytes)?;
    if package
        .small_part("META-INF/manifest.xml")?
        .contains("encryption-data")
    {
        return Err(Trouble::Encrypted);
    }
    let part = package.part("content.xml")?;
    let part = part.ok_or_else(|| Trouble::broken("content.xml is missing"))?;
    let mut writer = TextWriter::new(max_text_bytes);
    let mut place = Place::default();
    xml::read(part, |token| write(&token, &mut place, &mut writer))?;
    let mut content = Content {
        text: writer.finish(),
        ..Content::default()
    };
    read_metadata(&mut package, "meta.xml", &mut content.metadata);
    if kind == Kind::Ods {
        content.metadata.pages = Some(place.tables);
    }
    Ok(content)
}

/// Where in the document the reader is.
#[derive(Default)]
struct Place {
    in_paragraphs: usize,
    in_cells: usize,
    /// Depth within what is not part of the text: deleted passages, comments.
    in_aside: usize,
    tables: u32,
}

fn write(token: &Token<'_>, place: &mut Place, writer: &mut TextWriter) -> Result<(), Trouble> {
    match token {
        Token::Begin(name, _)
            if place.in_aside > 0 || matches!(*name, "tracked-changes" | "annotation") =>
        {
            place.in_aside += 1;
        }
        Token::End(_) if place.in_aside > 0 => place.in_aside -= 1,
        Token::Begin("p" | "h", _) => place.in_paragraphs += 1,
        Token::End("p" | "h") => {
            place.in_paragraphs = place.in_paragraphs.saturating_sub(1);
            match place.in_cells {
                0 => writer.paragraph(),
                _ => writer.space(),
            }
        }
        Token::Begin("table", _) => place.tables = place.tables.saturating_add(1),
        Token::Begin("table-cell", _) => place.in_cells += 1,
        Token::End("table-cell") => place.in_cells = place.in_cells.saturating_sub(1),
        Token::End("table-row") => writer.paragraph(),
        Token::Begin("s" | "tab", _) => writer.space(),
        Token::Begin("line-break", _) => writer.line_break(),
        Token::Text(text) if place.in_paragraphs > 0 && place.in_aside == 0 => writer.push(text)?,
        _ => {}
    }
    Ok(())
}
