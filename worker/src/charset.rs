//! Turns the bytes of a body into text: detects the kind of page and the
//! character encoding. Guesses if the server does not declare them; never fails.

mod magic;
mod media_type;
mod prescan;

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

pub use media_type::{Kind, declared_kind, is_supported_type, media_type};

/// The bytes in which the HTML Standard looks for a declared encoding.
const PRESCAN_BYTES: usize = 1024;

/// The bytes in which a declaration is looked for before windows-1252 is assumed.
const LATE_PRESCAN_BYTES: usize = 64 << 10;

/// The text of a body. Invalid bytes become U+FFFD. Borrowed from the body if
/// that is valid UTF-8 already.
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
