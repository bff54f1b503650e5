//! ODT and ODS, which differ in what is a cell: in a text it has paragraphs, in a sheet a value
//! ([`super::opendocument_sheets`]).

use super::flow::read_metadata;
use super::opendocument_sheets::Sheets;
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
    read_content(package, |token| sheets.write(token, &mut writer))?;
    let mut content = Content {
        text: writer.finish(),
        ..Content::default()
    };
    content.metadata.pages = Some(sheets.count);
    Ok(content)
}

fn read_text(package: &mut Package<'_>, max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut writer = TextWriter::new(max_text_bytes);
    let [headers, footers] = headers_and_footers(package, max_text_bytes)?;
    writer.push_written(&headers)?;
    writer.paragraph();
    let mut place = Place::default();
    read_content(package, |token| place.write(token, &mut writer))?;
    writer.paragraph();
    writer.push_written(&footers)?;
    Ok(Content {
        text: writer.finish(),
        ..Content::default()
    })
}

fn read_content(
    package: &mut Package<'_>,
    mut each: impl FnMut(&Token<'_>) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let part = package.part("content.xml")?;
    let part = part.ok_or_else(|| Trouble::broken("content.xml is missing"))?;
    xml::read(part, |token| each(&token))
}

/// What is printed on each page is among the styles. Pages often have headers of their own that say the
/// same: each text stands once.
fn headers_and_footers(
    package: &mut Package<'_>,
    max_text_bytes: u64,
) -> Result<[String; 2], Trouble> {
    let mut texts = [Vec::new(), Vec::new()];
    if let Some(part) = package.part("styles.xml")? {
        let mut here: Option<(TextWriter, Place)> = None;
        xml::read(part, |token| {
            let which = match token {
                Token::Begin(name, _) | Token::End(name) => which_margin(name),
                Token::Text(_) => None,
            };
            match (which, &token, &mut here) {
                (Some(_), Token::Begin(..), None) => {
                    here = Some((TextWriter::new(max_text_bytes), Place::default()));
                }
                (Some(which), Token::End(_), Some(_)) => {
                    let text = here.take().map(|(writer, _)| writer.finish());
                    let is_new = |text: &String| !texts[which].contains(text);
                    let text = text.filter(is_new);
                    texts[which].extend(text);
                }
                (_, _, Some((writer, place))) => place.write(&token, writer)?,
                _ => {}
            }
            Ok(())
        })?;
    }
    Ok(texts.map(|texts| texts.join("\n")))
}

/// 0 is a header, 1 a footer.
fn which_margin(element: &str) -> Option<usize> {
    match element {
        "header" | "header-left" | "header-first" => Some(0),
        "footer" | "footer-left" | "footer-first" => Some(1),
        _ => None,
    }
}

/// Where in the text the reader is.
#[derive(Default)]
struct Place {
    in_paragraphs: usize,
    /// Depth within what is not part of the text.
    in_aside: usize,
}

/// Deleted passages, comments, pronunciation, descriptions of pictures.
const ASIDES: [&str; 4] = ["tracked-changes", "annotation", "ruby-text", "desc"];

impl Place {
    fn write(&mut self, token: &Token<'_>, writer: &mut TextWriter) -> Result<(), Trouble> {
        match token {
            Token::Begin(name, _) if self.in_aside > 0 || ASIDES.contains(name) => {
                self.in_aside += 1;
            }
            Token::End(_) if self.in_aside > 0 => self.in_aside -= 1,
            Token::Begin("p" | "h", _) => self.in_paragraphs += 1,
            Token::End("p" | "h") => {
                self.in_paragraphs = self.in_paragraphs.saturating_sub(1);
                writer.paragraph();
            }
            Token::Begin("table-cell" | "covered-table-cell", _) => writer.begin_cell(),
            Token::End("table-cell" | "covered-table-cell") => writer.end_cell(),
            Token::End("table-row") => writer.paragraph(),
            Token::Begin("s" | "tab", _) => writer.space(),
            Token::Begin("line-break", _) => writer.line_break(),
            Token::Text(text) if self.in_paragraphs > 0 => writer.push(text)?,
            _ => {}
        }
        Ok(())
    }
}
