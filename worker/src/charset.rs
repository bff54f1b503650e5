//! Turns the bytes of a body into text: detects the kind of page and the
//! character encoding. Guesses if the server does not declare them; never fails.

mod content_type;
mod entities;
mod magic;
mod media_type;
mod prescan;
mod xhtml;

use std::borrow::Cow;

use chardetng::EncodingDetector;
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

pub use media_type::{Kind, content_kind, declared_kind, is_supported_type};

/// How many bytes the HTML Standard searches for a declared encoding.
const PRESCAN_BYTES: usize = 1024;

/// How many bytes are searched if the first [`PRESCAN_BYTES`] declare no encoding. Only then is an encoding guessed.
const LATE_PRESCAN_BYTES: usize = 64 << 10;

/// How many damaged characters, for each valid one outside ASCII, a page in UTF-8 may have.
const DAMAGED_PER_VALID: usize = 4;

/// How many bytes outside ASCII a guess needs.
const LEAST_FOREIGN_BYTES: usize = 10;

/// The text of a body. Invalid bytes become U+FFFD. Borrowed from the body if
/// that is valid UTF-8 already.
pub fn decode<'a>(body: &'a [u8], content_type: Option<&str>, kind: Kind) -> Cow<'a, str> {
    let encoding = encoding_of(body, content_type, kind);
    page_text(body, content_type, kind, encoding)
}

/// The text of a body in this encoding, as [`decode`] returns it. XHTML is written as HTML.
pub fn page_text<'a>(
    body: &'a [u8],
    content_type: Option<&str>,
    kind: Kind,
    encoding: &'static Encoding,
) -> Cow<'a, str> {
    let text = decode_from(body, encoding);
    match kind {
        Kind::Html if xhtml::is_xhtml(content_type) => xhtml::as_html(entities::expand(text)),
        Kind::Xml => entities::expand(text),
        _ => text,
    }
}

/// Decodes a body in the given encoding, without its byte order mark.
fn decode_from<'a>(body: &'a [u8], encoding: &'static Encoding) -> Cow<'a, str> {
    let mark = Encoding::for_bom(body).map_or(0, |(_, length)| length);
    encoding.decode_without_bom_handling(&body[mark..]).0
}

/// The encoding of a body, by the first of these that gives one (HTML Standard, 13.2.3):
///
/// 1. byte order mark
/// 2. `Content-Type`
/// 3. declaration in the first 1024 bytes of the page
/// 4. UTF-8, if the body has non-ASCII characters and is valid as a whole: other encodings are not valid UTF-8 by
///    chance
/// 5. later declaration, where a browser restarts parsing; a body of ASCII bytes alone may be in ISO-2022-JP
/// 6. UTF-8 for ASCII; for all others, the encoding whose letters fit best, as in Firefox
///
/// A browser would follow a declaration that the body refutes, and show wrong characters. Two such declarations are not
/// followed here: windows-1252 (or ISO-8859-1) for a body that is valid UTF-8 with non-ASCII characters, and UTF-8 for
/// a body with hardly any valid non-ASCII character, whose encoding is then guessed.
///
/// UTF-16 shows by its zero bytes, whatever is declared. Declared UTF-16 does not count for a body without them.
///
/// JSON is always UTF-8 (RFC 8259, 8.1), except for a body that refutes it and whose header declares another encoding.
pub fn encoding_of(body: &[u8], content_type: Option<&str>, kind: Kind) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    if let Some(encoding) = webfill_urls::utf16_without_mark(body) {
        return encoding;
    }
    let of_header = content_type
        .and_then(content_type::extract)
        .and_then(|declared| webfill_urls::encoding_of_label(declared.charset?.as_bytes()))
        .filter(|declared| !is_utf_16(declared) || is_not_ascii_compatible(body));
    if kind == Kind::Json {
        let is_utf_8 = Encoding::utf8_valid_up_to(body) == body.len() || has_utf_8(body);
        return of_header.filter(|_| !is_utf_8).unwrap_or(UTF_8);
    }
    of_header
        .or_else(|| declared_encoding_within(body, kind, PRESCAN_BYTES))
        .map(|declared| correct_declared(declared, body))
        .unwrap_or_else(|| guess_encoding(body, kind))
}

fn is_utf_16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// Whether a body can be in UTF-16: it has zero bytes, or it is not UTF-8.
fn is_not_ascii_compatible(body: &[u8]) -> bool {
    body.contains(&0) || Encoding::utf8_valid_up_to(body) < body.len()
}

/// The declared encoding. If the body refutes it, the result is a guess for UTF-8, and UTF-8 for windows-1252.
fn correct_declared(declared: &'static Encoding, body: &[u8]) -> &'static Encoding {
    let valid = Encoding::utf8_valid_up_to(body);
    let is_utf_8 = || valid == body.len() && !body.is_ascii();
    if declared == WINDOWS_1252 && is_utf_8() {
        return UTF_8;
    }
    if declared == UTF_8 && valid < body.len() && !has_utf_8(body) {
        return guess_by_letters(body);
    }
    declared
}

/// Whether a body is UTF-8 with a few damaged bytes. In another encoding, only a few characters happen to be valid
/// UTF-8.
fn has_utf_8(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let count = |is_damaged: bool| {
        let foreign = text.chars().filter(|c| !c.is_ascii());
        foreign
            .filter(|c| (*c == char::REPLACEMENT_CHARACTER) == is_damaged)
            .count()
    };
    count(true) <= count(false) * DAMAGED_PER_VALID
}

fn guess_encoding(body: &[u8], kind: Kind) -> &'static Encoding {
    let is_ascii = body.is_ascii();
    // The decoder's own check is faster than the standard library's.
    if !is_ascii && Encoding::utf8_valid_up_to(body) == body.len() {
        return UTF_8;
    }
    declared_encoding_within(body, kind, LATE_PRESCAN_BYTES)
        // `REPLACEMENT` stands for encodings that browsers refuse to read. Decoding with it would leave nothing of the
        // page.
        .filter(|declared| *declared != REPLACEMENT)
        .unwrap_or_else(|| match is_ascii {
            true => UTF_8,
            false => guess_by_letters(body),
        })
}

/// The encoding, other than UTF-8, whose letters and words fit the body best. A few bytes show nothing; for them it is
/// windows-1252, by far the most frequent one.
fn guess_by_letters(body: &[u8]) -> &'static Encoding {
    let foreign = body.iter().filter(|byte| !byte.is_ascii());
    if foreign.take(LEAST_FOREIGN_BYTES).count() < LEAST_FOREIGN_BYTES {
        return WINDOWS_1252;
    }
    let mut detector = EncodingDetector::new();
    detector.feed(body, true);
    detector.guess(None, false)
}

fn declared_encoding_within(body: &[u8], kind: Kind, bytes: usize) -> Option<&'static Encoding> {
    match kind {
        Kind::Html | Kind::Xml => prescan::declared_encoding(&body[..body.len().min(bytes)]),
        Kind::Json | Kind::Text | Kind::Unsupported => None,
    }
}

#[cfg(test)]
mod tests;
