//! Adds character tables to composite fonts, which are used for Chinese, Japanese and Korean texts. In such a font, one
//! or more bytes are the code of a character. The library knows neither the encodings that PDF defines (`90ms-RKSJ-H`,
//! `UniGB-UCS2-H`) nor the characters of Adobe's glyph collections, and misreads encodings that the file defines. So
//! each font gets a table of the codes that the document uses.

use std::collections::{BTreeMap, BTreeSet};

use hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded};
use pdf_extract::content::Content;
use pdf_extract::{Dictionary, Document, Object, ObjectId, Stream};

/// How many codes of a font are read at most.
const MAX_CODES: usize = 50_000;

/// The code of one glyph: its number, and how many bytes it has in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Code {
    bytes: u8,
    number: u32,
}

/// A composite font that needs a table of characters.
struct Font {
    id: ObjectId,
    descendant: Dictionary,
    /// The mapping from codes to glyph numbers; `None` if it is unknown.
    encoding: Option<CMap>,
    /// The name of the encoding; empty if the file itself defines the encoding.
    name: String,
    /// The table of characters in the font itself, which takes precedence.
    own: Option<CMap>,
    /// The characters of the glyphs in Adobe's collection that the font belongs to.
    collection: Option<CMap>,
}

/// Adds tables to composite fonts that need them.
pub(super) fn add_tables(document: &mut Document) {
    let fonts: Vec<Font> = document
        .objects
        .iter()
        .filter_map(|(id, object)| font_without_table(document, *id, object.as_dict().ok()?))
        .collect();
    if fonts.is_empty() {
        return;
    }
    let strings = collect_strings(document);
    for font in fonts {
        rewrite_font(document, font, &strings);
    }
}

fn font_without_table(document: &Document, id: ObjectId, dictionary: &Dictionary) -> Option<Font> {
    if dictionary.get(b"Subtype").and_then(Object::as_name).ok()? != b"Type0" {
        return None;
    }
    let descendants = resolve(document, dictionary.get(b"DescendantFonts").ok()?)?;
    let descendant = resolve(document, descendants.as_array().ok()?.first()?)?;
    let descendant = descendant.as_dict().ok()?;
    let family = cid_family(document, descendant);
    let ucs2 = family.as_ref().and_then(CidFamily::ucs2_cmap);
    let collection = ucs2.and_then(predefined_cmap);
    let own = dictionary.get(b"ToUnicode").ok();
    let own = own.and_then(|own| resolve(document, own)?.as_stream().ok());
    let own = own.and_then(cmap_of_stream);
    let (encoding, name) = match resolve(document, dictionary.get(b"Encoding").ok()?)? {
        Object::Name(name) if matches!(&name[..], b"Identity-H" | b"Identity-V") => {
            // No table is needed if the font has one (`own`), and none can be made without a known collection.
            if own.is_some() || collection.is_none() {
                return None;
            }
            (Some(CMap::identity_h()), String::new())
        }
        Object::Name(name) => {
            let encoding = predefined_cmap(CMapName::from_bytes(name));
            (encoding, String::from_utf8_lossy(name).into_owned())
        }
        Object::Stream(stream) => (cmap_of_stream(stream), String::new()),
        _ => return None,
    };
    Some(Font {
        id,
        descendant: descendant.clone(),
        encoding,
        name,
        own,
        collection,
    })
}

fn resolve<'d>(document: &'d Document, object: &'d Object) -> Option<&'d Object> {
    document.dereference(object).ok().map(|(_, object)| object)
}

fn cid_family(document: &Document, descendant: &Dictionary) -> Option<CidFamily> {
    let info = resolve(document, descendant.get(b"CIDSystemInfo").ok()?)?;
    let info = info.as_dict().ok()?;
    let text = |key: &[u8]| resolve(document, info.get(key).ok()?)?.as_str().ok();
    Some(CidFamily::from_registry_ordering(
        text(b"Registry")?,
        text(b"Ordering")?,
    ))
}

fn predefined_cmap(name: CMapName<'_>) -> Option<CMap> {
    CMap::parse(load_embedded(name)?, load_embedded)
}

fn cmap_of_stream(stream: &Stream) -> Option<CMap> {
    CMap::parse(&stream.get_plain_content().ok()?, load_embedded)
}

/// All strings that pages and forms show, in any font.
fn collect_strings(document: &Document) -> BTreeSet<Vec<u8>> {
    let pages = document.page_iter();
    let mut contents: Vec<Vec<u8>> = pages
        .filter_map(|page| document.get_page_content(page).ok())
        .collect();
    for object in document.objects.values() {
        let Ok(stream) = object.as_stream() else {
            continue;
        };
        let subtype = stream.dict.get(b"Subtype").and_then(Object::as_name);
        if subtype.is_ok_and(|subtype| subtype == b"Form") {
            contents.extend(stream.get_plain_content());
        }
    }
    let mut strings = BTreeSet::new();
    for content in contents {
        let operations = Content::decode(&content).map(|content| content.operations);
        for operation in operations.unwrap_or_default() {
            for operand in operation.operands {
                match operand {
                    Object::String(bytes, _) => {
                        strings.insert(bytes);
                    }
                    Object::Array(parts) => {
                        strings.extend(parts.into_iter().filter_map(|part| match part {
                            Object::String(bytes, _) => Some(bytes),
                            _ => None,
                        }));
                    }
                    _ => {}
                }
            }
        }
    }
    strings
}

fn rewrite_font(document: &mut Document, font: Font, strings: &BTreeSet<Vec<u8>>) {
    let lengths = Lengths::from_encoding(&font.name, font.encoding.as_ref());
    let mut codes = BTreeSet::new();
    for string in strings {
        let mut rest = &string[..];
        while let Some((code, after)) = lengths.next(rest) {
            rest = after;
            if codes.len() < MAX_CODES {
                codes.insert(code);
            }
        }
    }
    let widths = glyph_widths(document, &font.descendant);
    let mut table = Vec::new();
    let mut of_codes = Vec::new();
    for code in codes {
        let glyph = font.glyph(code);
        table.extend(font.text(code, glyph).map(|text| (code, text)));
        if let Some(width) = glyph.and_then(|glyph| widths.get(&glyph)) {
            of_codes.push(Object::Integer(code.number.into()));
            of_codes.push(Object::Array(vec![width.clone()]));
        }
    }
    let mut descendant = font.descendant;
    descendant.set("W", of_codes);
    if !descendant.has(b"FontDescriptor") {
        descendant.set("FontDescriptor", Dictionary::new());
    }
    let descendant = document.add_object(descendant);
    let encoding = document.add_object(Stream::new(Dictionary::new(), lengths.write_cmap()));
    let table = document.add_object(Stream::new(Dictionary::new(), write_unicode_table(&table)));
    if let Ok(dictionary) = document.get_dictionary_mut(font.id) {
        dictionary.set("DescendantFonts", vec![Object::Reference(descendant)]);
        dictionary.set("Encoding", Object::Reference(encoding));
        dictionary.set("ToUnicode", Object::Reference(table));
    }
}

impl Font {
    fn glyph(&self, code: Code) -> Option<u32> {
        let encoding = self.encoding.as_ref()?;
        encoding.lookup_cid_code(code.number, code.bytes)
    }

    fn text(&self, code: Code, glyph: Option<u32>) -> Option<String> {
        let of = |cmap: &CMap, number: u32| match cmap.lookup_bf_string(number)? {
            BfString::Char(character) => Some(character.to_string()),
            BfString::String(text) => Some(text),
        };
        if let Some(text) = self.own.as_ref().and_then(|own| of(own, code.number)) {
            return Some(text);
        }
        // In these encodings, the codes are units of UTF-16.
        if self.name.contains("-UCS2") || self.name.contains("-UTF16") {
            let units = [(code.number >> 16) as u16, code.number as u16];
            let units = if code.bytes == 4 {
                &units[..]
            } else {
                &units[1..]
            };
            return String::from_utf16(units).ok();
        }
        of(self.collection.as_ref()?, glyph?)
    }
}

/// The widths of glyphs by their numbers (ISO 32000-1, 9.7.4.3).
fn glyph_widths(document: &Document, descendant: &Dictionary) -> BTreeMap<u32, Object> {
    let mut widths = BTreeMap::new();
    let list = descendant.get(b"W").ok();
    let list = list.and_then(|list| resolve(document, list)?.as_array().ok());
    let number = |object: &Object| u32::try_from(resolve(document, object)?.as_i64().ok()?).ok();
    let mut entries = list.map_or(&[][..], |list| &list[..]);
    while let [first, second, rest @ ..] = entries {
        let Some(first) = number(first) else { break };
        match (resolve(document, second), rest) {
            (Some(Object::Array(each)), _) => {
                widths.extend((first..).zip(each.iter().cloned()));
                entries = rest;
            }
            (_, [width, rest @ ..]) => {
                let last = number(second)
                    .unwrap_or(first)
                    .min(first.saturating_add(0xffff));
                widths.extend((first..=last).map(|glyph| (glyph, width.clone())));
                entries = rest;
            }
            _ => break,
        }
    }
    widths
}

/// The length of a code in bytes, by the first byte of the code, or by its first two bytes.
struct Lengths([Length; 256]);

#[derive(Clone, PartialEq, Eq)]
enum Length {
    Of(u8),
    /// The code has two bytes if its second byte is marked here, and four otherwise.
    Mixed(Vec<bool>),
}

impl Lengths {
    /// Finds the lengths by the name of the encoding, or else by the codes that have glyphs. In an unknown encoding,
    /// codes have two bytes, the usual length.
    fn from_encoding(name: &str, encoding: Option<&CMap>) -> Lengths {
        let is_two = |first: u32| {
            let encoding = encoding?;
            let is_code =
                |number: u32, bytes: u8| encoding.lookup_cid_code(number, bytes).is_some();
            let has_second = || (0..256).any(|second| is_code((first << 8) | second, 2));
            Some(!is_code(first, 1) && has_second())
        };
        Lengths(std::array::from_fn(|first| {
            let is_four_in_gb_18030 = |second: u8| second.is_ascii_digit();
            match (name, first) {
                (name, _) if name.contains("-UCS2") => Length::Of(2),
                (name, 0xd8..=0xdb) if name.contains("-UTF16") => Length::Of(4),
                (name, _) if name.contains("-UTF16") => Length::Of(2),
                (name, 0x81..=0xfe) if name.starts_with("GBK2K") => {
                    let seconds = 0..=255_u8;
                    Length::Mixed(seconds.map(|second| !is_four_in_gb_18030(second)).collect())
                }
                (name, 0x8e) if name.starts_with("CNS-EUC") => Length::Of(4),
                _ => match is_two(first as u32) {
                    Some(false) => Length::Of(1),
                    Some(true) | None => Length::Of(2),
                },
            }
        }))
    }

    fn next<'b>(&self, bytes: &'b [u8]) -> Option<(Code, &'b [u8])> {
        let length = match &self.0[usize::from(*bytes.first()?)] {
            Length::Of(length) => *length,
            Length::Mixed(seconds) => match seconds[usize::from(*bytes.get(1)?)] {
                true => 2,
                false => 4,
            },
        };
        let (code, rest) = bytes.split_at_checked(length.into())?;
        let number = code
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte));
        let code = Code {
            bytes: length,
            number,
        };
        Some((code, rest))
    }

    /// Writes the encoding as a CMap that maps every code to itself as the glyph number. The library takes two
    /// hexadecimal digits for one byte, so the ends of a range are padded with zeros.
    fn write_cmap(&self) -> Vec<u8> {
        let mut ranges: Vec<(u8, u32, u32)> = Vec::new();
        let mut add = |bytes: u8, begin: u32, end: u32| match ranges.last_mut() {
            Some(last) if last.0 == bytes && last.2.checked_add(1) == Some(begin) => last.2 = end,
            _ => ranges.push((bytes, begin, end)),
        };
        for (first, length) in (0_u32..).zip(&self.0) {
            match length {
                Length::Of(bytes) => {
                    let rest = 8 * (u32::from(*bytes) - 1);
                    add(*bytes, first << rest, first << rest | ((1 << rest) - 1));
                }
                Length::Mixed(seconds) => {
                    for (second, is_two) in (0_u32..).zip(seconds) {
                        let code = first << 8 | second;
                        match is_two {
                            true => add(2, code, code),
                            false => add(4, code << 16, code << 16 | 0xffff),
                        }
                    }
                }
            }
        }
        let mut cmap = format!("{} begincodespacerange\n", ranges.len());
        for (bytes, begin, end) in ranges {
            let digits = usize::from(bytes) * 4;
            cmap += &format!("<{begin:0digits$X}> <{end:0digits$X}>\n");
        }
        cmap += "endcodespacerange\n1 begincidrange\n<00000000> <FFFFFFFF> 0\nendcidrange\n";
        cmap.into_bytes()
    }
}

fn write_unicode_table(table: &[(Code, String)]) -> Vec<u8> {
    let mut text = format!("{} beginbfchar\n", table.len());
    for (code, characters) in table {
        let digits = usize::from(code.bytes) * 2;
        text += &format!("<{:0digits$X}> <", code.number);
        for unit in characters.encode_utf16() {
            text += &format!("{unit:04X}");
        }
        text += ">\n";
    }
    text += "endbfchar\n";
    text.into_bytes()
}

#[cfg(test)]
mod tests;
