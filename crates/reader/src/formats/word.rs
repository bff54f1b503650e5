//! Reads DOCX: the body, and the parts around it, which are headers and footers, footnotes and endnotes.

use super::flow::read_metadata;
use super::package::{Package, Relation};
use super::xml::{self, Token};
use super::{Content, Trouble};
use crate::text::TextWriter;
use story::Story;
use styles::HiddenStyles;

mod story;
mod styles;

/// The kinds of parts that are written before and after the body. The kind of a part is the last word of the type of
/// its relation to the body.
const BEFORE: [&str; 1] = ["header"];
const AFTER: [&str; 3] = ["footer", "footnotes", "endnotes"];

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut package = Package::open(bytes)?;
    let of_package = package.relations("")?;
    let body = package.text_part(&of_package);
    let body = body.ok_or_else(|| Trouble::broken("it has no text part"))?;
    let around = related_parts(&mut package, &body)?;
    let styles = match around.iter().find(|relation| relation.kind == "styles") {
        Some(styles) => HiddenStyles::read(&mut package, &styles.target),
        None => HiddenStyles::default(),
    };
    let of = |kinds: &[&str]| {
        let mut parts: Vec<String> = Vec::new();
        for kind in kinds {
            let same = around.iter().filter(|relation| relation.kind == *kind);
            parts.extend(same.map(|relation| relation.target.clone()));
        }
        parts
    };
    let mut writer = TextWriter::new(max_text_bytes);
    let mut seen = Vec::new();
    for name in of(&BEFORE) {
        write_once(&mut package, &name, &styles, &mut seen, &mut writer)?;
    }
    write_part(&mut package, &body, &styles, &mut writer)?;
    for name in of(&AFTER) {
        write_once(&mut package, &name, &styles, &mut seen, &mut writer)?;
    }
    let mut content = Content {
        text: writer.finish(),
        ..Content::default()
    };
    for (kind, usual) in [
        ("core-properties", "docProps/core.xml"),
        ("extended-properties", "docProps/app.xml"),
    ] {
        let named = of_package.iter().find(|relation| relation.kind == kind);
        let name = named.map_or(usual, |relation| &relation.target);
        read_metadata(&mut package, name, &mut content.metadata);
    }
    Ok(content)
}

/// The parts that the body refers to by its relations. A body without relations gets the parts with the names that Word
/// uses.
fn related_parts(package: &mut Package<'_>, body: &str) -> Result<Vec<Relation>, Trouble> {
    let relations = package.relations(body)?;
    if !relations.is_empty() {
        return Ok(relations);
    }
    let usual = ["styles", "footnotes", "endnotes"].map(|kind| Relation {
        kind: kind.to_owned(),
        target: format!("word/{kind}.xml"),
    });
    Ok(usual.into())
}

fn write_part(
    package: &mut Package<'_>,
    name: &str,
    styles: &HiddenStyles,
    writer: &mut TextWriter,
) -> Result<(), Trouble> {
    // If a field had no end, it would hide all text after it. Such a part is read again, without relying on the ends of
    // fields.
    for fields_end in [true, false] {
        let Some(part) = package.open_part(name)? else {
            return Ok(());
        };
        let mut story = Story::new(styles, writer.max_bytes(), fields_end);
        xml::for_each_token(part, |token| story.write(&token))?;
        if let Some(text) = story.finish()? {
            writer.push_written(&text)?;
            writer.end_paragraph();
            break;
        }
    }
    Ok(())
}

/// Writes the text of a part, unless it has been written already: different sections and first pages often have the
/// same headers.
fn write_once(
    package: &mut Package<'_>,
    name: &str,
    styles: &HiddenStyles,
    seen: &mut Vec<String>,
    writer: &mut TextWriter,
) -> Result<(), Trouble> {
    let mut alone = TextWriter::new(writer.max_bytes());
    write_part(package, name, styles, &mut alone)?;
    let text = alone.finish();
    if !seen.contains(&text) {
        writer.push_written(&text)?;
        writer.end_paragraph();
        seen.push(text);
    }
    Ok(())
}

/// Whether a toggle property such as `vanish` is switched on.
fn is_on(token: &Token<'_>) -> bool {
    match token {
        Token::Begin(_, attributes) => {
            let value = attributes.get("val");
            !matches!(value.as_deref(), Some("0" | "false" | "off"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
