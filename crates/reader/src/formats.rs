//! The readers of documents, one for each kind.

use crate::kind::{Beginning, Kind, detect_beginning};
use crate::limits::Limits;
use crate::report::{Report, Status};

mod compound;
mod content;
mod flow;
mod iso_time;
mod long_numbers;
mod opendocument;
mod opendocument_sheets;
mod package;
mod pdf;
mod pdf_cmaps;
mod pdf_date;
mod pdf_filters;
mod pdf_fonts;
mod pdf_operators;
mod pdf_pages;
mod pdf_rebuild;
mod pdf_tree;
mod rtf;
mod sheets;
mod symbols;
#[cfg(test)]
mod table;
mod word;
mod xml;

pub(crate) use self::content::{Content, Trouble};

/// Recognises the kind of a document by its first bytes. A container, such as a zip file, is recognised by its contents
/// as well.
pub(crate) fn detect_kind(bytes: &[u8]) -> Option<Kind> {
    match detect_beginning(bytes)? {
        Beginning::Pdf => Some(Kind::Pdf),
        Beginning::Rtf => Some(Kind::Rtf),
        Beginning::Zip => package::detect_kind(bytes),
        Beginning::Compound => compound::detect_kind(bytes),
    }
}

/// Reads a document of a known kind.
pub(crate) fn read(kind: Kind, bytes: Vec<u8>, limits: &Limits) -> Report {
    let most = limits.text_bytes;
    let content = match kind {
        Kind::Pdf => pdf::read(&bytes, most),
        Kind::Docx => word::read(&bytes, most),
        Kind::Odt | Kind::Ods => opendocument::read(kind, &bytes, most),
        Kind::Xlsx => sheets::read_xlsx(&bytes, most),
        Kind::Xls => sheets::read_xls(bytes, most),
        Kind::Rtf => rtf::read(&bytes, most),
        // An encrypted compound file. The kind of its content is unknown.
        Kind::Office => Err(Trouble::Encrypted),
        Kind::Text => Err(Trouble::broken("plain text needs no reader")),
    };
    report_from(kind, content)
}

fn report_from(kind: Kind, content: Result<Content, Trouble>) -> Report {
    let content = match content {
        Ok(content) => content,
        Err(Trouble::Encrypted) => {
            return Report::failed(kind, Status::Encrypted, "it asks for a password");
        }
        Err(Trouble::Broken(reason)) => return Report::failed(kind, Status::Broken, reason),
        Err(Trouble::TooLarge(reason)) => return Report::failed(kind, Status::TooLarge, reason),
    };
    let unknown = content.text.matches(char::REPLACEMENT_CHARACTER).count();
    let is_text = |c: char| !c.is_whitespace() && c != char::REPLACEMENT_CHARACTER;
    let has_text = content.text.contains(is_text);
    Report {
        kind,
        status: if has_text {
            Status::Text
        } else {
            Status::NoText
        },
        reason: match (content.unread, unknown) {
            (0, 0) => None,
            (0, unknown) => Some(format!("{unknown} of its characters cannot be read")),
            (pages, _) => Some(format!("{pages} of its pages cannot be read")),
        },
        metadata: content.metadata,
        text: if has_text {
            content.text
        } else {
            String::new()
        },
        landlock: true,
    }
}
