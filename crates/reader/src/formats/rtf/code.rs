//! Character codes of an RTF: the code of the document, and the codes of its fonts.

use encoding_rs::{Encoding, WINDOWS_1252};

use crate::formats::symbols::SymbolFont;

/// A character code, which maps bytes to characters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Code {
    Of(&'static Encoding),
    /// ASCII, with these characters for the bytes from 0x80 on.
    Upper(&'static str),
    Symbols(SymbolFont),
    /// ASCII. The characters for the bytes from 0x80 on are unknown.
    Unknown,
}

/// The characters for the bytes from 0x80 on in code page 437, that of the IBM PC. Code pages 850 and 852 are
/// those of DOS in western and central Europe.
const PAGE_437: &str = concat!(
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ",
    "áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐",
    "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀",
    "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
);
const PAGE_850: &str = concat!(
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ",
    "áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐",
    "└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀",
    "ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
);
const PAGE_852: &str = concat!(
    "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×č",
    "áíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐",
    "└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀",
    "ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}",
);

pub(super) const ANSI: Code = Code::Of(WINDOWS_1252);
pub(super) const MAC: Code = Code::Of(encoding_rs::MACINTOSH);
pub(super) const PC: Code = Code::Upper(PAGE_437);
pub(super) const PC_850: Code = Code::Upper(PAGE_850);

impl Code {
    pub(super) fn decode(self, bytes: &[u8]) -> String {
        let each = |character: &dyn Fn(u8) -> char| -> String {
            bytes.iter().map(|byte| character(*byte)).collect()
        };
        let upper = |byte: u8, table: &str| match byte {
            0..0x80 => char::from(byte),
            _ => {
                let found = table.chars().nth(usize::from(byte) - 0x80);
                found.unwrap_or(char::REPLACEMENT_CHARACTER)
            }
        };
        match self {
            Code::Of(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
            Code::Upper(table) => each(&|byte| upper(byte, table)),
            Code::Unknown => each(&|byte| upper(byte, "")),
            Code::Symbols(font) => each(&|byte| font.character(byte)),
        }
    }
}

/// The code with the number of a Windows or DOS code page; `None` if the number means the system's own code page.
pub(super) fn from_code_page(page: i32) -> Option<Code> {
    let label = match page {
        0 | 1 => return None,
        437 => return Some(PC),
        850 => return Some(PC_850),
        852 => return Some(Code::Upper(PAGE_852)),
        866 => "ibm866".to_owned(),
        932 | 10001 => "shift_jis".to_owned(),
        936 | 10008 => "gbk".to_owned(),
        949 | 10003 | 51949 => "euc-kr".to_owned(),
        950 | 10002 => "big5".to_owned(),
        10000 => "macintosh".to_owned(),
        10007 | 10017 => "x-mac-cyrillic".to_owned(),
        20866 => "koi8-r".to_owned(),
        21866 => "koi8-u".to_owned(),
        28591..=28606 => format!("iso-8859-{}", page - 28590),
        51932 => "euc-jp".to_owned(),
        54936 => "gb18030".to_owned(),
        65001 => "utf-8".to_owned(),
        page => format!("windows-{page}"),
    };
    let encoding = Encoding::for_label(label.as_bytes());
    Some(encoding.map_or(Code::Unknown, Code::Of))
}

/// The code of a font, by the number that Windows uses for its script. 0 and 1 mean the document's own code, so they
/// give `None`.
pub(super) fn from_charset(charset: i32) -> Option<Code> {
    let page = match charset {
        0 | 1 => return None,
        2 => return Some(Code::Symbols(SymbolFont::Other)),
        77 => 10000,
        78 => 10001,
        79 => 10003,
        80 => 10008,
        81 => 10002,
        89 => 10007,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 | 181 => 1255,
        178..=180 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        254 => 437,
        _ => return Some(Code::Unknown),
    };
    from_code_page(page)
}

/// The code of a font by its name, such as `Arial CYR`. It is for fonts without other information, because old programs
/// had a font for each script.
pub(super) fn from_font_name(name: &str) -> Option<Code> {
    if let Some(font) = SymbolFont::from_name(name) {
        return Some(Code::Symbols(font));
    }
    let page = match name.trim().rsplit(' ').next()? {
        "CE" => 1250,
        "CYR" | "Cyr" => 1251,
        "Greek" => 1253,
        "TUR" | "Tur" => 1254,
        "(Hebrew)" => 1255,
        "(Arabic)" => 1256,
        "Baltic" => 1257,
        "(Vietnamese)" => 1258,
        _ => return None,
    };
    from_code_page(page)
}
