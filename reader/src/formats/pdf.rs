//! PDF, by `pdf-extract` and the parser below it. Page by page, because that reader panics on a page
//! that it cannot cope with: the other pages are read all the same, and how many are missing is told.

use std::panic::{self, AssertUnwindSafe};

use pdf_extract::{Dictionary, Document, Object, PlainTextOutput, output_doc_page};

use super::pdf_date::to_iso;
use super::{Content, Trouble};
use crate::report::Metadata;
use crate::text::TextWriter;

pub(super) fn read(bytes: &[u8], max_text_bytes: u64) -> Result<Content, Trouble> {
    let mut document = Document::load_mem(bytes).map_err(trouble)?;
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err(Trouble::Encrypted);
    }
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    if pages.is_empty() {
        return Err(Trouble::broken("it has no pages"));
    }
    let mut writer = TextWriter::new(max_text_bytes);
    let mut unread = 0;
    for page in &pages {
        match page_text(&document, *page) {
            Some(text) => writer.push(&text)?,
            None => unread += 1,
        }
        writer.paragraph();
    }
    let text = writer.finish();
    if unread > 0 && text.is_empty() {
        return Err(Trouble::broken("none of its pages can be read"));
    }
    let mut metadata = metadata(&document);
    metadata.pages = u32::try_from(pages.len()).ok();
    Ok(Content {
        text,
        metadata,
        unread,
    })
}

fn page_text(document: &Document, page: u32) -> Option<String> {
    let read = AssertUnwindSafe(|| {
        let mut text = String::new();
        let read = output_doc_page(document, &mut PlainTextOutput::new(&mut text), page);
        read.ok().map(|()| text)
    });
    panic::catch_unwind(read).ok().flatten()
}

fn trouble(error: pdf_extract::Error) -> Trouble {
    match error {
        pdf_extract::Error::Decryption(_) | pdf_extract::Error::InvalidPassword => {
            Trouble::Encrypted
        }
        other => Trouble::broken(other),
    }
}

fn metadata(document: &Document) -> Metadata {
    let Some(info) = info(document) else {
        return Metadata::default();
    };
    let entry = |key: &[u8]| text_of(document, info.get(key).ok()?);
    let date = |key: &[u8]| to_iso(&entry(key)?);
    Metadata {
        title: entry(b"Title"),
        author: entry(b"Author"),
        created: date(b"CreationDate"),
        modified: date(b"ModDate"),
        pages: None,
    }
}

fn info(document: &Document) -> Option<&Dictionary> {
    match document.trailer.get(b"Info").ok()? {
        Object::Reference(id) => document.get_object(*id).ok()?.as_dict().ok(),
        Object::Dictionary(info) => Some(info),
        _ => None,
    }
}

/// A text string, which is in UTF-16 or UTF-8 with a mark, or else in a code of one byte that is
/// Latin-1 but for a few signs. Many are in UTF-8 without a mark, as which no other code passes.
fn text_of(document: &Document, object: &Object) -> Option<String> {
    let object = match object {
        Object::Reference(id) => document.get_object(*id).ok()?,
        other => other,
    };
    let bytes = object.as_str().ok()?;
    let text = match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) => encoding.decode_without_bom_handling(&bytes[mark..]).0,
        None if std::str::from_utf8(bytes).is_ok() => String::from_utf8_lossy(bytes),
        None => {
            encoding_rs::WINDOWS_1252
                .decode_without_bom_handling(bytes)
                .0
        }
    };
    Some(text.into_owned())
}
