//! Recognises Microsoft's compound files, which contain old office documents, and new ones that are encrypted.

use crate::kind::Kind;

/// Recognises the kind of a document by the names of the streams in the file's directory. They are in UTF-16, at
/// multiples of 128 bytes.
pub(super) fn detect_kind(bytes: &[u8]) -> Option<Kind> {
    // The order matters, because text documents and slide shows may contain spreadsheets.
    const STREAMS: [(&str, Option<Kind>); 5] = [
        ("EncryptedPackage", Some(Kind::Office)),
        ("WordDocument", None),
        ("PowerPoint Document", None),
        ("Workbook", Some(Kind::Xls)),
        ("Book", Some(Kind::Xls)),
    ];
    let is_named = |entry: &[u8], name: &str| {
        let name: Vec<u8> = format!("{name}\0")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        entry.starts_with(&name)
    };
    let entries = || bytes.chunks_exact(128);
    STREAMS
        .into_iter()
        .find(|(name, _)| entries().any(|entry| is_named(entry, name)))
        .and_then(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with(streams: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        for (number, stream) in streams.iter().enumerate() {
            let name: Vec<u8> = stream.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let at = 512 + number * 128;
            bytes[at..at + name.len()].copy_from_slice(&name);
        }
        bytes
    }

    #[test]
    fn the_streams_of_a_compound_file_determine_its_kind() {
        for (streams, expected) in [
            (&["Workbook"][..], Some(Kind::Xls)),
            (&["Book"], Some(Kind::Xls)),
            (&["EncryptedPackage"], Some(Kind::Office)),
            (&["WordDocument"], None),
            (&["Workbook", "WordDocument"], None),
            (&["Workbook", "PowerPoint Document"], None),
        ] {
            assert_eq!(detect_kind(&file_with(streams)), expected, "{streams:?}");
        }
    }
}
