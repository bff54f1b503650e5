//! Microsoft's compound files, which hold old office documents and encrypted new ones.

use crate::kind::Kind;

/// By the names of streams in its directory, which are in UTF-16 and at multiples of their 128 bytes.
pub(super) fn kind(bytes: &[u8]) -> Option<Kind> {
    const STREAMS: [(&str, Kind); 3] = [
        ("EncryptedPackage", Kind::Office),
        ("Workbook", Kind::Xls),
        ("Book", Kind::Xls),
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
        .map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with(stream: &str) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        let name: Vec<u8> = stream.encode_utf16().flat_map(u16::to_le_bytes).collect();
        bytes[512..512 + name.len()].copy_from_slice(&name);
        bytes
    }

    #[test]
    fn a_compound_file_is_what_its_streams_are_called() {
        for (stream, expected) in [
            ("Workbook", Some(Kind::Xls)),
            ("EncryptedPackage", Some(Kind::Office)),
            ("WordDocument", None),
        ] {
            assert_eq!(kind(&file_with(stream)), expected, "{stream}");
        }
    }
}
