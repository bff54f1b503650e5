//! Names of character encodings as servers and pages write them.

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, KOI8_R, KOI8_U, MACINTOSH, SHIFT_JIS, UTF_8,
    UTF_16BE, UTF_16LE,
};

/// The encoding that a label names: a label of the Encoding Standard, or a name that programs use in its place, such as
/// `cp932`, `utf8mb4`, `latin-1` or `iso8859_1`. `None` for unknown names, and for names in quotes, which browsers do not
/// accept either.
pub fn encoding_of_label(label: &[u8]) -> Option<&'static Encoding> {
    if let Some(encoding) = Encoding::for_label(label) {
        return Some(encoding);
    }
    if label.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        return None;
    }
    let letters = label.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let plain: String = letters
        .map(|byte| byte.to_ascii_lowercase() as char)
        .collect();
    let plain = plain.strip_prefix("charset").unwrap_or(&plain);
    by_family(plain).or_else(|| by_code_page(plain))
}

/// The encoding of a name without its marks, if it is a name of these families: `iso88591`, `latin9`, `utf8mb4`.
fn by_family(plain: &str) -> Option<&'static Encoding> {
    const PARTS_OF_LATIN: [&str; 10] = ["1", "2", "3", "4", "9", "10", "13", "14", "15", "16"];
    const FAMILIES: [(&str, &Encoding); 19] = [
        ("utf8", UTF_8),
        ("uft8", UTF_8),
        ("utf16be", UTF_16BE),
        ("utf16", UTF_16LE),
        ("shiftjis", SHIFT_JIS),
        ("sjis", SHIFT_JIS),
        ("xsjis", SHIFT_JIS),
        ("mskanji", SHIFT_JIS),
        ("eucjp", EUC_JP),
        ("ujis", EUC_JP),
        ("euckr", EUC_KR),
        ("uhc", EUC_KR),
        ("ksc5601", EUC_KR),
        ("gb18030", GB18030),
        ("gb2312", GBK),
        ("gbk", GBK),
        ("euccn", GBK),
        ("big5", BIG5),
        ("macroman", MACINTOSH),
    ];
    let latin = plain.strip_prefix("iso").unwrap_or(plain);
    let latin = latin
        .strip_prefix("latin")
        .and_then(|number| number.parse::<usize>().ok());
    let part = match latin {
        Some(number) => PARTS_OF_LATIN.get(number.checked_sub(1)?).copied(),
        None => plain
            .strip_prefix("iso")
            .unwrap_or(plain)
            .strip_prefix("8859"),
    };
    if let Some(part) = part {
        return Encoding::for_label(format!("iso-8859-{part}").as_bytes());
    }
    match plain {
        "koi8r" => return Some(KOI8_R),
        "koi8u" => return Some(KOI8_U),
        _ => {}
    }
    let family = FAMILIES.iter().find(|(name, _)| plain.starts_with(name));
    family.map(|(_, encoding)| *encoding)
}

/// The encoding of a code page: `cp932`, `ms932`, `win1251`, `windows31j`, `1252`.
fn by_code_page(plain: &str) -> Option<&'static Encoding> {
    let digits_at = plain.find(|c: char| c.is_ascii_digit())?;
    let (family, page) = plain.split_at(digits_at);
    if !matches!(
        family,
        "" | "cp"
            | "xcp"
            | "ms"
            | "msansi"
            | "win"
            | "windows"
            | "xwindows"
            | "ansi"
            | "ibm"
            | "codepage"
    ) {
        return None;
    }
    match page {
        "932" | "31j" | "943" | "943c" => Some(SHIFT_JIS),
        "936" | "1386" => Some(GBK),
        "54936" => Some(GB18030),
        "949" | "51949" => Some(EUC_KR),
        "950" => Some(BIG5),
        "51932" | "20932" => Some(EUC_JP),
        "65001" => Some(UTF_8),
        "1200" => Some(UTF_16LE),
        "1201" => Some(UTF_16BE),
        "866" => Encoding::for_label(b"ibm866"),
        "20866" => Some(KOI8_R),
        "21866" => Some(KOI8_U),
        _ => Encoding::for_label(format!("windows-{page}").as_bytes()),
    }
}

/// The byte order of UTF-16 text that has no byte order mark. One of the two bytes of each ASCII character is zero, and
/// its position shows the order. `None` if the text is in another encoding. Only the beginning of a text is examined.
pub fn utf16_without_mark(text: &[u8]) -> Option<&'static Encoding> {
    const SAMPLE_BYTES: usize = 4096;
    let sample = &text[..text.len().min(SAMPLE_BYTES) / 2 * 2];
    if !sample.contains(&0) {
        return None;
    }
    let zeros = |parity: usize| {
        let bytes = sample.iter().skip(parity).step_by(2);
        bytes.filter(|byte| **byte == 0).count()
    };
    let (even, odd, pairs) = (zeros(0), zeros(1), sample.len() / 2);
    // Eight zeros, because a short text of another encoding may contain a few.
    let is_it = |zeros: usize, others: usize| zeros > (pairs / 4).max(7) && others <= zeros / 20;
    if is_it(odd, even) {
        return Some(UTF_16LE);
    }
    is_it(even, odd).then_some(UTF_16BE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_programs_use_are_known() {
        for (labels, name) in [
            (
                "cp932 CP-932 ms932 windows-932 windows_31j Windows-31J MS_Kanji SJIS-win x-sjis-cp932 shift-jis Shift_JIS-2004",
                "Shift_JIS",
            ),
            (
                "cp936 ms936 windows-936 gb-2312 GB_2312-80 gbk-2312 EUC_CN",
                "GBK",
            ),
            ("cp949 ms949 uhc euc_kr windows-949 KS_C_5601", "EUC-KR"),
            ("cp950 ms950 big-5 Big5_HKSCS", "Big5"),
            ("euc_jp eucJP-ms cp51932 ujis", "EUC-JP"),
            (
                "utf8mb4 utf_8 UTF8 utf-8-sig utf8_general_ci cp65001 UFT-8",
                "UTF-8",
            ),
            (
                "iso8859_1 ISO-8859_1 8859-1 latin-1 Latin_1 cp1252 win-1252 Windows_1252 ansi-1252 1252 ISO_Latin-1",
                "windows-1252",
            ),
            ("latin-2 iso8859_2", "ISO-8859-2"),
            ("latin-9 iso8859_15", "ISO-8859-15"),
            ("latin-5 iso8859_9 win1254", "windows-1254"),
            ("win1251 windows1251 cp-1251 WIN-1251", "windows-1251"),
            ("koi8r koi8-r KOI8_R cp20866", "KOI8-R"),
            ("cp866 ibm-866", "IBM866"),
            ("tis-620 cp874", "windows-874"),
            ("utf_16 utf16le", "UTF-16LE"),
            ("utf_16be UTF16-BE", "UTF-16BE"),
        ] {
            for label in labels.split(' ') {
                let found = encoding_of_label(label.as_bytes()).map(Encoding::name);
                assert_eq!(found, Some(name), "{label}");
            }
        }
        for unknown in [
            "", "x", "text", "cp437", "latin-0", "latin-99", "8859-99", "gzip", "12", "utf",
            "none", "'utf-8'",
        ] {
            assert_eq!(encoding_of_label(unknown.as_bytes()), None, "{unknown}");
        }
    }

    #[test]
    fn utf16_without_a_mark_shows_by_its_zeros() {
        let bytes = |text: &str, big: bool| -> Vec<u8> {
            let units = text.encode_utf16();
            units
                .flat_map(|unit| {
                    if big {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                })
                .collect()
        };
        let text = "<html><head><title>価格</title></head>価格は千円です。";
        assert_eq!(utf16_without_mark(&bytes(text, false)), Some(UTF_16LE));
        assert_eq!(utf16_without_mark(&bytes(text, true)), Some(UTF_16BE));
        for other in [
            text.as_bytes(),
            b"",
            b"a\0b\0",
            &[0; 4096],
            &[1, 0, 0, 0].repeat(99),
        ] {
            assert_eq!(utf16_without_mark(other), None);
        }
    }
}
