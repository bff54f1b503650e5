//! Detects the kind of a body by its `Content-Type`, or by its first bytes if
//! the header is missing or wrong.

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::{content_type, magic};

/// How a body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Html,
    Xml,
    Json,
    Text,
    /// Images, archives, programs and other binary formats.
    Unsupported,
}

/// How many bytes the MIME Sniffing Standard inspects.
const SNIFFED_BYTES: usize = 1445;

/// The kind that a `Content-Type` header declares; `None` if it declares none (such as `html` or `*/*`), so that the
/// body must be inspected.
pub fn declared_kind(content_type: &str) -> Option<Kind> {
    let essence = content_type::extract(content_type)?.essence;
    let kind = match essence.as_str() {
        "unknown/unknown" | "application/unknown" => return None,
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "text/xml" | "application/xml" => Kind::Xml,
        "text/json" | "application/json" => Kind::Json,
        other if other.ends_with("+xml") => Kind::Xml,
        other if other.ends_with("+json") => Kind::Json,
        other if other.starts_with("text/") => Kind::Text,
        // Scripts may be data: JSON in a call or in an assignment.
        "application/javascript" | "application/x-javascript" | "application/ecmascript" => {
            Kind::Text
        }
        _ => Kind::Unsupported,
    };
    Some(kind)
}

/// Whether a body is worth reading, judged by its `Content-Type` header alone.
pub fn is_supported_type(content_type: &str) -> bool {
    declared_kind(content_type) != Some(Kind::Unsupported)
}

/// The kind of a body. A well-known binary format is unsupported even if the server calls it a page; without a useful
/// header, the body decides.
pub fn content_kind(content_type: Option<&str>, body: &[u8]) -> Kind {
    if magic::is_binary_format(body) {
        return Kind::Unsupported;
    }
    content_type
        .and_then(declared_kind)
        .unwrap_or_else(|| sniffed_kind(body))
}

/// Guesses the kind of a body by its first bytes. Follows the MIME Sniffing Standard (7.1), which does not cover JSON.
fn sniffed_kind(body: &[u8]) -> Kind {
    let head = &body[..body.len().min(SNIFFED_BYTES)];
    let text = match Encoding::for_bom(head) {
        Some((encoding, mark)) => {
            let (text, _) = encoding.decode_without_bom_handling(&head[mark..]);
            Cow::Owned(text.into_owned().into_bytes())
        }
        None => match webfill_urls::utf16_without_mark(head) {
            Some(encoding) => {
                let (text, _) = encoding.decode_without_bom_handling(head);
                Cow::Owned(text.into_owned().into_bytes())
            }
            None => Cow::Borrowed(head),
        },
    };
    let text = text.trim_ascii_start();
    if text.starts_with(b"<?xml") {
        Kind::Xml
    } else if begins_as_html(text) {
        Kind::Html
    } else if begins_as_json(text) {
        Kind::Json
    } else if text.iter().any(|b| is_binary_byte(*b)) {
        Kind::Unsupported
    } else {
        Kind::Text
    }
}

fn begins_as_html(text: &[u8]) -> bool {
    const TAGS: [&str; 17] = [
        "<!doctype html",
        "<html",
        "<head",
        "<script",
        "<iframe",
        "<h1",
        "<div",
        "<font",
        "<table",
        "<a",
        "<style",
        "<title",
        "<b",
        "<body",
        "<br",
        "<p",
        "<meta",
    ];
    let begins_with = |tag: &&str| {
        let (Some(start), Some(end)) = (text.get(..tag.len()), text.get(tag.len())) else {
            return false;
        };
        start.eq_ignore_ascii_case(tag.as_bytes()) && (end.is_ascii_whitespace() || *end == b'>')
    };
    text.starts_with(b"<!--") || TAGS.iter().any(begins_with)
}

fn begins_as_json(text: &[u8]) -> bool {
    let Some((first, rest)) = text.split_first() else {
        return false;
    };
    let next = rest.trim_ascii_start().first().copied().unwrap_or_default();
    match first {
        b'{' => matches!(next, b'"' | b'}'),
        b'[' => matches!(next, b'{' | b'[' | b'"' | b']' | b'-' | b'0'..=b'9'),
        _ => false,
    }
}

/// Whether a byte is a "binary data byte" of the MIME Sniffing Standard (3), which does not occur in text.
fn is_binary_byte(byte: u8) -> bool {
    matches!(byte, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}
