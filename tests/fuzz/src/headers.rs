//! Fuzzes response headers and the decoding of bodies. The input is a `Content-Type` value, a line feed, and the body.

use webfill_worker::charset::{
    Kind, content_kind, declared_kind, decode, encoding_of, is_supported_type,
};
use webfill_worker::parse_retry_after;

/// The longest wait in seconds that an answer may require.
const YEAR_S: u64 = 31_536_000;

pub(crate) fn run(input: &[u8]) {
    let (header, body) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &input[input.len()..]),
    };
    let header = String::from_utf8_lossy(header);
    if let Some(wait) = parse_retry_after(&header) {
        assert!(wait.as_secs() <= YEAR_S);
    }
    if is_supported_type(&header) {
        assert_ne!(declared_kind(&header), Some(Kind::Unsupported));
    }
    for content_type in [None, Some(&*header)] {
        let kind = content_kind(content_type, body);
        let encoding = encoding_of(body, content_type, kind);
        let text = decode(body, content_type, kind);
        // Each byte becomes at most one character that takes three bytes in UTF-8, such as U+FFFD. In a section of
        // XHTML, `&` becomes `&amp;`.
        assert!(
            text.len() <= 5 * body.len(),
            "{} bytes became {} in {}",
            body.len(),
            text.len(),
            encoding.name()
        );
    }
}
