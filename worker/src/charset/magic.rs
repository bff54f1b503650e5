//! Recognises well-known binary formats by their first bytes.

/// The offset and the bytes of each format. Ordinary text does not have these bytes at these offsets.
const FORMATS: [(usize, &[u8]); 46] = [
    // Images
    (0, b"\x89PNG\r\n\x1a\n"),
    (0, b"GIF87a"),
    (0, b"GIF89a"),
    (0, b"\xff\xd8\xff"),
    (8, b"WEBPVP8"),
    (0, b"II*\0"),
    (0, b"MM\0*"),
    (0, b"\0\0\x01\0"),
    (0, b"8BPS\0"),
    // Sound and film
    (4, b"ftyp"),
    (8, b"AVI LIST"),
    (8, b"WAVEfmt "),
    (0, b"OggS\0"),
    (0, b"fLaC\0"),
    (0, b"ID3\x02"),
    (0, b"ID3\x03"),
    (0, b"ID3\x04"),
    (0, b"\x1a\x45\xdf\xa3"),
    (0, b"FLV\x01"),
    (0, b"\0\0\x01\xba"),
    (0, b"\0\0\x01\xb3"),
    // Documents
    (0, b"%PDF-"),
    (0, b"%!PS-Adobe-"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    // Archives
    (0, b"PK\x03\x04"),
    (0, b"PK\x05\x06"),
    (0, b"\x1f\x8b\x08"),
    (0, b"\xfd7zXZ\0"),
    (0, b"\x28\xb5\x2f\xfd"),
    (0, b"7z\xbc\xaf\x27\x1c"),
    (0, b"Rar!\x1a\x07"),
    (4, b"1AY&SY"),
    (257, b"ustar"),
    // Programs
    (0, b"\x7fELF"),
    (0, b"MZ\x90\0"),
    (0, b"\xcf\xfa\xed\xfe"),
    (0, b"\xfe\xed\xfa\xce"),
    (0, b"\xfe\xed\xfa\xcf"),
    (0, b"\xca\xfe\xba\xbe"),
    (0, b"\0asm"),
    // Fonts
    (0, b"wOFF\0"),
    (0, b"wOF2\0"),
    (0, b"OTTO\0"),
    (0, b"\0\x01\0\0\0"),
    // Data
    (0, b"SQLite format 3\0"),
    (0, b"PAR1\x15"),
];

/// Whether a body is in one of the formats.
pub(super) fn is_binary_format(body: &[u8]) -> bool {
    FORMATS
        .iter()
        .any(|(at, bytes)| body.get(*at..).is_some_and(|rest| rest.starts_with(bytes)))
}
