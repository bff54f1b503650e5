//! Queries of links on pages that are not in UTF-8. By the URL Standard, a query is sent in the encoding of the page
//! ("percent-encode after encoding"). All other parts of a URL are always in UTF-8.

use std::fmt::Write;

use encoding_rs::{EncoderResult, Encoding, UTF_8};

/// The link with its query escaped in the encoding of its page; `None` if UTF-8 would give the same.
pub(crate) fn escape_query(text: &str, encoding: &'static Encoding) -> Option<String> {
    let encoding = encoding.output_encoding();
    let end = text.find('#').unwrap_or(text.len());
    let start = text[..end].find('?')? + 1;
    if encoding == UTF_8 || text[start..end].is_ascii() {
        return None;
    }
    let mut escaped = String::with_capacity(2 * text.len());
    escaped.push_str(&text[..start]);
    escape(&text[start..end], encoding, &mut escaped);
    escaped.push_str(&text[end..]);
    Some(escaped)
}

/// Escapes the characters whose bytes depend on the encoding, and leaves the rest to the URL parser.
fn escape(query: &str, encoding: &'static Encoding, escaped: &mut String) {
    let mut encoder = encoding.new_encoder();
    let mut rest = query;
    let mut bytes = [0; 512];
    loop {
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        for byte in &bytes[..written] {
            match byte {
                // The URL parser drops tabs and line breaks anywhere in a URL.
                b'\t' | b'\n' | b'\r' => escaped.push(char::from(*byte)),
                0..=b' ' | b'"' | b'#' | b'<' | b'>' | b'\'' | 0x7f.. => {
                    // Writing to a string cannot fail.
                    let _ = write!(escaped, "%{byte:02X}");
                }
                _ => escaped.push(char::from(*byte)),
            }
        }
        match result {
            EncoderResult::InputEmpty => return,
            EncoderResult::OutputFull => {}
            // The encoding has no such character: browsers send its HTML character reference instead.
            EncoderResult::Unmappable(character) => {
                let _ = write!(escaped, "%26%23{}%3B", u32::from(character));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{
        EUC_JP, GB18030, ISO_2022_JP, SHIFT_JIS, UTF_16LE, WINDOWS_1251, WINDOWS_1252,
    };

    use super::*;

    #[test]
    fn the_query_is_in_the_encoding_of_its_page() {
        for (text, encoding, expected) in [
            ("/a?q=é", WINDOWS_1252, Some("/a?q=%E9")),
            ("/é?q=é#é", WINDOWS_1252, Some("/é?q=%E9#é")),
            ("?q=привет", WINDOWS_1251, Some("?q=%EF%F0%E8%E2%E5%F2")),
            ("?q=日本", SHIFT_JIS, Some("?q=%93%FA%96{")),
            ("?q=日本", EUC_JP, Some("?q=%C6%FC%CB%DC")),
            ("?q=日本", ISO_2022_JP, Some("?q=%1B$BF|K\\%1B(B")),
            ("?q=中文", GB18030, Some("?q=%D6%D0%CE%C4")),
            ("?q=日&r=é", WINDOWS_1252, Some("?q=%26%2326085%3B&r=%E9")),
            ("?q=é \"x\"\tb", WINDOWS_1252, Some("?q=%E9%20%22x%22\tb")),
            ("?a?é", WINDOWS_1252, Some("?a?%E9")),
            ("/é", WINDOWS_1252, None),
            ("/é?q=e", WINDOWS_1252, None),
            ("#?é", WINDOWS_1252, None),
            ("?q=é", UTF_8, None),
            ("?q=é", UTF_16LE, None),
        ] {
            assert_eq!(escape_query(text, encoding).as_deref(), expected, "{text}");
        }
        let long = format!("?{}", "é".repeat(2_000));
        let expected = format!("?{}", "%E9".repeat(2_000));
        assert_eq!(escape_query(&long, WINDOWS_1252), Some(expected));
    }
}
