//! From the bytes of a body to text: what kind of page it is, which encoding it
//! is in. Guesses where a server says nothing, and never fails.

mod magic;
mod media_type;
mod prescan;

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

pub use media_type::{Kind, declared_kind, is_supported_type, media_type};

/// How far the HTML Standard looks for a declared encoding, in bytes.
const PRESCAN_BYTES: usize = 1024;

/// How far it is looked for rather than guessed.
const LATE_PRESCAN_BYTES: usize = 64 << 10;

/// The text of a body. Bytes that are wrong in its encoding become U+FFFD.
/// Borrowed from the body where that is UTF-8 already.
pub fn decode<'a>(body: &'a [u8], content_type: Option<&str>, kind: Kind) -> Cow<'a, str> {
    let mark = Encoding::for_bom(body).map_or(0, |(_, length)| length);
    let encoding = encoding_of(body, content_type, kind);
    encoding.decode_without_bom_handling(&body[mark..]).0
}

/// The encoding of a body, by the first of these that says something: byte
/// order mark, `Content-Type`, declaration within the page, UTF-8 if it is
/// valid as such; otherwise windows-1252 (HTML Standard, 13.2.3.2). JSON is
/// UTF-8 whatever else is said (RFC 8259, 8.1).
pub fn encoding_of(body: &[u8], content_type: Option<&str>, kind: Kind) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    if kind == Kind::Json {
        return UTF_8;
    }
    content_type
        .and_then(media_type::charset)
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .or_else(|| declared_within(body, kind, PRESCAN_BYTES))
        .or_else(|| is_utf_8(body).then_some(UTF_8))
        .or_else(|| declared_within(body, kind, LATE_PRESCAN_BYTES))
        .unwrap_or(WINDOWS_1252)
}

/// As the decoder checks it, which is faster than the standard library.
fn is_utf_8(body: &[u8]) -> bool {
    Encoding::utf8_valid_up_to(body) == body.len()
}

fn declared_within(body: &[u8], kind: Kind, bytes: usize) -> Option<&'static Encoding> {
    match kind {
        Kind::Html | Kind::Xml => prescan::declared_encoding(&body[..body.len().min(bytes)]),
        Kind::Json | Kind::Text | Kind::Unsupported => None,
    }
}

#[cfg(test)]
mod tests;
