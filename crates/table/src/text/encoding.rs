//! Encodes and decodes the characters of a row.

use std::borrow::Cow;

use chardetng::EncodingDetector;
use encoding_rs::{UTF_8, WINDOWS_1252};

use crate::format::Encoding;

/// Decodes bytes that are known to be valid in the encoding.
pub(crate) fn decode(bytes: &[u8], encoding: Encoding) -> Cow<'_, str> {
    match encoding {
        Encoding::Legacy(encoding) => encoding.decode_without_bom_handling(bytes).0,
        _ => String::from_utf8_lossy(bytes),
    }
}

/// Whether bytes are valid in the encoding.
pub(crate) fn is_valid(bytes: &[u8], encoding: Encoding) -> bool {
    match encoding {
        Encoding::Legacy(encoding) => encoding
            .decode_without_bom_handling_and_without_replacement(bytes)
            .is_some(),
        _ => std::str::from_utf8(bytes).is_ok(),
    }
}

/// Decodes a whole file that a spreadsheet may have saved: in UTF-8, in UTF-16 with a byte order mark, or in a legacy
/// encoding. The byte order mark is left out.
pub fn decode_file_text(bytes: &[u8]) -> String {
    let (text, _, is_broken) = UTF_8.decode(bytes);
    match is_broken {
        true => guess_legacy(bytes).decode_without_bom_handling(bytes).0,
        false => text,
    }
    .into_owned()
}

/// Encodes a text. An error names a character that does not exist in the encoding.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Result<Cow<'_, [u8]>, String> {
    let Encoding::Legacy(encoding) = encoding else {
        return Ok(Cow::Borrowed(text.as_bytes()));
    };
    let (bytes, _, has_unmappable) = encoding.encode(text);
    if !has_unmappable {
        return Ok(bytes);
    }
    let is_lacking = |c: &char| encoding.encode(c.encode_utf8(&mut [0; 4])).2;
    let lacking = text.chars().find(is_lacking).unwrap_or_default();
    Err(format!("{} has no `{lacking}`", encoding.name()))
}

/// The encoding, other than UTF-8, whose letters fit a text best. A few bytes show nothing; for them it is windows-1252.
pub(crate) fn guess_legacy(text: &[u8]) -> &'static encoding_rs::Encoding {
    const LEAST_FOREIGN_BYTES: usize = 10;
    let foreign = text.iter().filter(|byte| !byte.is_ascii());
    if foreign.take(LEAST_FOREIGN_BYTES).count() < LEAST_FOREIGN_BYTES {
        return WINDOWS_1252;
    }
    let mut detector = EncodingDetector::new();
    detector.feed(text, false);
    detector.guess(None, false)
}

/// Whether a text without a byte order mark is more likely UTF-8, with some broken rows, than in a legacy encoding. Only
/// the beginning of the text is known.
pub(crate) fn is_utf_8(beginning: &[u8]) -> bool {
    // The sample may end within a character, so the bytes after the last ASCII character are left out if they are few.
    let ascii_end = beginning.iter().rposition(u8::is_ascii);
    let cut_bytes = beginning.len() - ascii_end.map_or(0, |at| at + 1);
    let sample = match cut_bytes {
        0..4 => &beginning[..beginning.len() - cut_bytes],
        _ => beginning,
    };
    let (mut valid, mut invalid) = (0_u64, 0_u64);
    for chunk in sample.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count() as u64;
        invalid += u64::from(!chunk.invalid().is_empty());
    }
    invalid <= valid / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_of_a_whole_file_is_recognised() {
        let utf16: Vec<u8> = "\u{feff}Zoë"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        for bytes in [
            "Zoë".as_bytes(),
            "\u{feff}Zoë".as_bytes(),
            b"Zo\xeb",
            &utf16,
        ] {
            assert_eq!(decode_file_text(bytes), "Zoë", "{bytes:?}");
        }
        assert_eq!(decode_file_text(b""), "");
    }
}
