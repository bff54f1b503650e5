//! The kinds of documents. They are recognised by their first bytes, and containers also by their contents. Names and
//! declared types are ignored, because servers are often wrong about them.

use serde::{Deserialize, Serialize};

/// A kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Pdf,
    Docx,
    Xlsx,
    Xls,
    Odt,
    Ods,
    Rtf,
    /// Plain text, which needs no reader.
    Text,
    /// An office document of unknown kind: it is encrypted, or its reader died while reading it.
    Office,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Pdf => "pdf",
            Kind::Docx => "docx",
            Kind::Xlsx => "xlsx",
            Kind::Xls => "xls",
            Kind::Odt => "odt",
            Kind::Ods => "ods",
            Kind::Rtf => "rtf",
            Kind::Text => "text",
            Kind::Office => "office",
        }
    }
}

/// How many bytes are searched for the beginning of a PDF, as in other readers (ISO 32000-1, annex H).
const PDF_BEGINS_WITHIN: usize = 1024;

const PDF: &[u8] = b"%PDF-";
const ZIP: &[u8] = b"PK\x03\x04";
const RTF: &[u8] = b"{\\rtf";
/// The first bytes of Microsoft's compound files.
pub(crate) const COMPOUND: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// What the first bytes of a body show about its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    Pdf,
    Rtf,
    Zip,
    Compound,
}

pub(crate) fn detect_beginning(bytes: &[u8]) -> Option<Beginning> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let head = &bytes[..bytes.len().min(PDF_BEGINS_WITHIN)];
    let is_markup = head.trim_ascii_start().starts_with(b"<");
    if head.starts_with(ZIP) {
        Some(Beginning::Zip)
    } else if head.starts_with(COMPOUND) {
        Some(Beginning::Compound)
    } else if head.starts_with(RTF) {
        Some(Beginning::Rtf)
    } else if !is_markup && head.windows(PDF.len()).any(|window| window == PDF) {
        Some(Beginning::Pdf)
    } else {
        None
    }
}

/// Whether a body begins as a document at its first byte. Before the beginning of a PDF, a byte order mark and white
/// space are allowed.
pub fn begins_as_document(bytes: &[u8]) -> bool {
    match detect_beginning(bytes) {
        Some(Beginning::Pdf) => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            bytes.trim_ascii_start().starts_with(PDF)
        }
        other => other.is_some(),
    }
}

/// The approximate kind of a document whose reader has died.
pub fn coarse_kind(bytes: &[u8]) -> Kind {
    match detect_beginning(bytes) {
        Some(Beginning::Pdf) => Kind::Pdf,
        Some(Beginning::Rtf) => Kind::Rtf,
        _ => Kind::Office,
    }
}

/// Whether a body may be a document that needs a reader. `None` while there are too few bytes to decide.
pub fn may_need_reader(bytes: &[u8]) -> Option<bool> {
    match detect_beginning(bytes) {
        Some(_) => Some(true),
        None if bytes.len() >= PDF_BEGINS_WITHIN => Some(false),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised_by_their_first_bytes() {
        for (bytes, expected) in [
            (&b"%PDF-1.7"[..], Some(Beginning::Pdf)),
            (b"\xef\xbb\xbf%PDF-1.7", Some(Beginning::Pdf)),
            (b"HTTP leftovers\r\n\r\n%PDF-1.2", Some(Beginning::Pdf)),
            (b"{\\rtf1\\ansi", Some(Beginning::Rtf)),
            (b"PK\x03\x04\x14", Some(Beginning::Zip)),
            (COMPOUND, Some(Beginning::Compound)),
            (b"<p>a page about %PDF-1.7", None),
            (b"plain text", None),
        ] {
            assert_eq!(detect_beginning(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn kinds_are_decided_by_the_first_bytes() {
        assert_eq!(may_need_reader(b"abc"), None);
        assert_eq!(may_need_reader(&[b'a'; 1024]), Some(false));
        assert_eq!(may_need_reader(b"%PDF-"), Some(true));
    }
}
