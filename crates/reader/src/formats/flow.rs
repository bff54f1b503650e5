//! The metadata that the office formats have in common: a part with an element for each.

use super::Trouble;
use super::package::Package;
use super::xml::{self, Token};
use crate::report::Metadata;

/// Reads the metadata of a part. Broken metadata are no reason to leave the text unread.
pub(super) fn read_metadata(package: &mut Package<'_>, name: &str, metadata: &mut Metadata) {
    let mut element = String::new();
    let mut value = String::new();
    let Ok(Some(part)) = package.part(name) else {
        return;
    };
    let _: Result<(), Trouble> = xml::read(part, |token| {
        match token {
            Token::Begin(name, attributes) => {
                value.clear();
                name.clone_into(&mut element);
                if let Some(pages) = attributes.get("page-count") {
                    metadata.pages = pages.parse().ok();
                }
            }
            Token::Text(text) if value.len() < 10_000 => value.push_str(text),
            Token::Text(_) => {}
            Token::End(name) => {
                if name == element {
                    note(name, std::mem::take(&mut value), metadata);
                }
                element.clear();
            }
        }
        Ok(())
    });
}

/// Dublin Core's names, and those of the two formats.
fn note(element: &str, value: String, metadata: &mut Metadata) {
    if value.trim().is_empty() {
        return;
    }
    match element {
        "title" => metadata.title = Some(value),
        "creator" => {
            metadata.author.get_or_insert(value);
        }
        "initial-creator" => metadata.author = Some(value),
        "created" | "creation-date" => metadata.created = Some(value),
        "modified" | "date" => metadata.modified = Some(value),
        "Pages" => metadata.pages = value.trim().parse().ok(),
        _ => {}
    }
}
