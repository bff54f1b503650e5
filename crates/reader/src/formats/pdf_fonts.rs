//! Adds character tables to simple fonts that have glyph names unknown to the library. Some names identify a character
//! (`uni20AC`, `u1F600`, `e.alt`, `f_i`), others only number the glyphs of a font (`g12`, `cid34`). A numbered glyph
//! has no known character unless the font has a table; the library would derive a wrong one from its code.

use pdf_extract::{Dictionary, Document, Object, ObjectId, Stream};

use super::pdf_pages::UNKNOWN;

/// Adds the characters of glyphs to the tables of fonts, or creates the tables. The font's own entries take precedence.
pub(super) fn name_characters(document: &mut Document) {
    let found = document.objects.iter().filter_map(|(id, object)| {
        let font = object.as_dict().ok()?;
        let characters = find_characters(document, font)?;
        Some((*id, write_table(&characters, own_table(document, font)?)))
    });
    let found: Vec<(ObjectId, Vec<u8>)> = found.collect();
    for (id, table) in found {
        let stream = document.add_object(Stream::new(Dictionary::new(), table));
        if let Ok(font) = document.get_object_mut(id).and_then(Object::as_dict_mut) {
            font.set("ToUnicode", Object::Reference(stream));
        }
    }
}

/// The codes of a font, with the texts of their glyphs; `None` if the library knows all of them.
fn find_characters(document: &Document, font: &Dictionary) -> Option<Vec<(u8, String)>> {
    let subtype = font.get(b"Subtype").and_then(Object::as_name).ok()?;
    if !matches!(subtype, b"Type1" | b"MMType1" | b"TrueType" | b"Type3") {
        return None;
    }
    let resolved = |object| document.dereference(object).ok().map(|(_, it)| it);
    let encoding = resolved(font.get(b"Encoding").ok()?)?.as_dict().ok()?;
    let differences = resolved(encoding.get(b"Differences").ok()?)?
        .as_array()
        .ok()?;
    let mut characters = Vec::new();
    let mut code = 0_i64;
    for one in differences {
        match resolved(one)? {
            Object::Integer(next) => code = *next,
            Object::Name(name) => {
                let of_code = u8::try_from(code).ok();
                let text = std::str::from_utf8(name)
                    .ok()
                    .and_then(|name| text_of(name, code));
                characters.extend(of_code.zip(text));
                code += 1;
            }
            _ => return None,
        }
    }
    (!characters.is_empty()).then_some(characters)
}

/// The text of a glyph by its name, which the library does not know.
fn text_of(name: &str, code: i64) -> Option<String> {
    let (base, is_variant) = match name.split_once('.') {
        Some(("", _)) => return None,
        Some((base, _)) => (base, true),
        None => (name, false),
    };
    let parts: Vec<&str> = base.split('_').collect();
    let is_compound = parts.len() > 1;
    let written: Option<String> = parts.iter().map(|part| text_of_code_points(part)).collect();
    if written.is_some() {
        return written;
    }
    if is_variant || is_compound {
        let simple: Option<String> = parts.iter().map(|part| text_of_simple_name(part)).collect();
        return simple;
    }
    is_numbered(base, code).then(|| UNKNOWN.to_string())
}

/// The text of names that contain code points: `u1F600`, or one or several as in `uni20AC`.
fn text_of_code_points(name: &str) -> Option<String> {
    let character = |digits: &str| {
        let is_hexadecimal = digits
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
        let code = u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| is_hexadecimal)?;
        char::from_u32(code)
    };
    if let Some(digits) = name.strip_prefix("uni") {
        let is_whole = !digits.is_empty() && digits.len() % 4 == 0 && digits.is_ascii();
        return is_whole
            .then(|| digits.as_bytes().chunks(4))?
            .map(|four| character(std::str::from_utf8(four).ok()?))
            .collect();
    }
    let digits = name
        .strip_prefix('u')
        .filter(|digits| (4..=6).contains(&digits.len()))?;
    character(digits).map(String::from)
}

/// The text of a name such as `A` or `seven`, which may have a suffix for a variant.
fn text_of_simple_name(name: &str) -> Option<String> {
    const DIGITS: [&str; 10] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ];
    if let Some(digit) = DIGITS.iter().position(|digit| *digit == name) {
        return Some(digit.to_string());
    }
    let is_letter = name.len() == 1 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_letter.then(|| name.to_owned())
}

/// Whether a name only numbers a glyph of the font, as in `g12`, `cid34`, `glyph5` or `C0041`. A number that equals the
/// code does not count.
fn is_numbered(name: &str, code: i64) -> bool {
    const BEFORE: [&str; 14] = [
        "g", "G", "glyph", "gid", "cid", "CID", "c", "C", "cc", "x", "X", "index", "ch", "id",
    ];
    let letters = name.trim_end_matches(|c: char| c.is_ascii_hexdigit() && !c.is_ascii_lowercase());
    let digits = &name[letters.len()..];
    if !BEFORE.contains(&letters) || !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let decimal = digits.parse::<i64>();
    let hexadecimal = i64::from_str_radix(digits, 16);
    decimal != Ok(code) && hexadecimal != Ok(code)
}

/// The table of characters that the font has already; `None` if it cannot be extended.
fn own_table(document: &Document, font: &Dictionary) -> Option<Vec<u8>> {
    let Ok(own) = font.get(b"ToUnicode") else {
        return Some(Vec::new());
    };
    let stream = document.dereference(own).ok()?.1.as_stream().ok()?;
    stream.get_plain_content().ok()
}

/// Writes a table with these characters, followed by the font's own entries. If a code has two entries, the later one
/// takes precedence.
fn write_table(characters: &[(u8, String)], own: Vec<u8>) -> Vec<u8> {
    let mut table = format!("{} beginbfchar\n", characters.len());
    for (code, text) in characters {
        let units: String = text
            .encode_utf16()
            .map(|unit| format!("{unit:04X}"))
            .collect();
        table.push_str(&format!("<{code:02X}> <{units}>\n"));
    }
    table.push_str("endbfchar\n");
    let mut table = table.into_bytes();
    table.extend(own);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_glyphs_yield_characters_or_unknown() {
        for (name, code, expected) in [
            ("uni20AC", 1, Some("€")),
            ("uni00410042", 1, Some("AB")),
            ("u1F600", 1, Some("😀")),
            ("u0041.sc", 1, Some("A")),
            ("f_i", 1, Some("fi")),
            ("e.alt", 1, Some("e")),
            ("seven.oldstyle", 1, Some("7")),
            ("uni0066_uni0069", 1, Some("fi")),
            ("g12", 65, Some("\u{fffd}")),
            ("cid34", 65, Some("\u{fffd}")),
            ("C0041", 65, None),
            ("c65", 65, None),
            ("G41", 65, None),
            ("G40", 65, Some("\u{fffd}")),
            ("A", 65, None),
            ("adieresis", 65, None),
            ("a12", 65, None),
            ("afii10017", 65, None),
            ("universal", 65, None),
            ("uni", 65, None),
            ("uniD800", 65, None),
            (".notdef", 65, None),
            ("Euro.x", 65, None),
            ("", 65, None),
        ] {
            assert_eq!(text_of(name, code).as_deref(), expected, "{name}");
        }
    }
}
