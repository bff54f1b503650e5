//! Rebuilds the cross-reference table of a damaged PDF from the objects found in it, wherever they are. In a quarter of
//! the files that cannot be read, only the positions in this table are wrong, because line ends were changed, bytes
//! were inserted in front, or the end is missing.

use std::collections::BTreeMap;

use pdf_extract::{Dictionary, Document, Object, ObjectId, dictionary};

/// Writes the document again, with correct stream lengths and a matching cross-reference table.
pub(super) fn rebuild(bytes: &[u8]) -> Vec<u8> {
    let mut objects = BTreeMap::new();
    let mut trailers = Vec::new();
    let mut at = 0;
    while let Some(place) = next_place(bytes, at) {
        match place {
            Place::Trailer(begin) => {
                let end = find_bytes(bytes, b"startxref", begin).unwrap_or(bytes.len());
                trailers.push(&bytes[begin..end]);
                at = begin;
            }
            Place::Object { number, begin } => {
                let object = PdfObject::parse_at(bytes, begin);
                at = object.end;
                if object.is_cross_reference() {
                    trailers.push(object.dictionary);
                } else {
                    // If several objects have the same number, the later one is the newer version.
                    objects.insert(number, object);
                }
            }
        }
    }
    write_file(&objects, &trailers)
}

enum Place {
    /// A trailer; the position is after the word `trailer`.
    Trailer(usize),
    /// An object. `begin` is after the word `obj`, which a number and a generation precede.
    Object { number: (u32, u16), begin: usize },
}

fn next_place(bytes: &[u8], from: usize) -> Option<Place> {
    let mut at = from;
    loop {
        let rest = bytes.get(at..)?;
        let next = rest
            .windows(3)
            .position(|three| three == b"obj" || three == b"tra")?;
        let found = at + next;
        if bytes[found..].starts_with(b"trailer") {
            return Some(Place::Trailer(found + b"trailer".len()));
        }
        if bytes[found..].starts_with(b"obj")
            && let Some(number) = parse_object_number(&bytes[..found])
        {
            let begin = found + b"obj".len();
            return Some(Place::Object { number, begin });
        }
        at = found + 3;
    }
}

/// The number and the generation of an object, which are before the word `obj`: the last two numbers in `bytes`.
fn parse_object_number(bytes: &[u8]) -> Option<(u32, u16)> {
    let last_number = |bytes: &[u8]| {
        let bytes = bytes.trim_ascii_end();
        let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit());
        let begin = bytes.len() - digits.take(10).count();
        let number: u64 = std::str::from_utf8(&bytes[begin..]).ok()?.parse().ok()?;
        Some((begin, number))
    };
    let (begin, generation) = last_number(bytes)?;
    let has_gap = bytes[..begin].last().is_some_and(u8::is_ascii_whitespace);
    let (_, number) = last_number(&bytes[..begin]).filter(|_| has_gap)?;
    Some((u32::try_from(number).ok()?, u16::try_from(generation).ok()?))
}

/// An object found in the bytes of the file.
struct PdfObject<'b> {
    /// For a stream, the bytes of its dictionary (`<< ... >>`); for any other object, all of its bytes.
    dictionary: &'b [u8],
    stream: Option<&'b [u8]>,
    end: usize,
}

impl<'b> PdfObject<'b> {
    fn parse_at(bytes: &'b [u8], begin: usize) -> PdfObject<'b> {
        let next = next_object(bytes, begin).unwrap_or(bytes.len());
        let end = find_bytes(&bytes[..next], b"endobj", begin).unwrap_or(next);
        match find_stream_data(bytes, begin, end) {
            Some((dictionary_end, data, end)) => PdfObject {
                dictionary: &bytes[begin..dictionary_end],
                stream: Some(data),
                end,
            },
            None => PdfObject {
                dictionary: &bytes[begin..end],
                stream: None,
                end,
            },
        }
    }

    fn is_cross_reference(&self) -> bool {
        self.stream.is_some() && has_type(self.dictionary, b"XRef")
    }

    fn write(&self, (number, generation): (u32, u16), output: &mut Vec<u8>) {
        output.extend_from_slice(format!("{number} {generation} obj\n").as_bytes());
        output.extend_from_slice(self.dictionary);
        if let Some(data) = self.stream {
            // The correct length is written last, because the last of two entries takes precedence.
            output.extend_from_slice(format!(" /Length {} >>\nstream\n", data.len()).as_bytes());
            output.extend_from_slice(data);
            output.extend_from_slice(b"\nendstream");
        }
        output.extend_from_slice(b"\nendobj\n");
    }
}

/// The position of the next object whose header is at the beginning of a line.
fn next_object(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let found = find_bytes(bytes, b" obj", at)?;
        let header = &bytes[found.saturating_sub(LONGEST_HEADER).max(from)..found];
        let digits = header.iter().rev();
        let length = digits
            .take_while(|byte| byte.is_ascii_digit() || **byte == b' ')
            .count();
        let line = found - length;
        let begins_line = line > from && matches!(bytes[line - 1], b'\n' | b'\r');
        if begins_line && parse_object_number(&bytes[line..found]).is_some() {
            return Some(line);
        }
        at = found + 1;
    }
}

/// The length limit of an object's header, in bytes: two numbers and the text between them.
const LONGEST_HEADER: usize = 24;

/// Finds the data of a stream. Returns the end of its dictionary, the data, and the position where the search
/// continues.
fn find_stream_data(bytes: &[u8], begin: usize, end: usize) -> Option<(usize, &[u8], usize)> {
    let mut at = begin;
    let (dictionary_end, data) = loop {
        let word = find_bytes(&bytes[..end], b"stream", at)?;
        let before = bytes[begin..word].trim_ascii_end();
        if before.ends_with(b">>") {
            break (begin + before.len() - 2, word + b"stream".len());
        }
        at = word + 1;
    };
    let rest = &bytes[data..];
    let line_end = match rest {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => 0,
    };
    let data = data + line_end;
    // The length given in the dictionary is right if the word `endstream` follows after that many bytes.
    let given =
        find_length(&bytes[begin..dictionary_end]).and_then(|length| data.checked_add(length));
    let ends_there = |end: &usize| {
        let behind = bytes.get(*end..).unwrap_or_default();
        behind[..behind.len().min(20)]
            .trim_ascii_start()
            .starts_with(b"endstream")
    };
    let data_end = given.filter(ends_there).unwrap_or_else(|| {
        let next = next_object(bytes, data).unwrap_or(bytes.len());
        let words = [&b"endstream"[..], b"endobj"];
        let end = words
            .iter()
            .find_map(|word| find_bytes(&bytes[..next], word, data));
        data + without_line_end(&bytes[data..end.unwrap_or(next)]).len()
    });
    Some((dictionary_end, &bytes[data..data_end], data_end))
}

fn without_line_end(data: &[u8]) -> &[u8] {
    let data = data.strip_suffix(b"\n").unwrap_or(data);
    data.strip_suffix(b"\r").unwrap_or(data)
}

/// The length in a dictionary; `None` if it is missing, or only a reference to another object.
fn find_length(dictionary: &[u8]) -> Option<usize> {
    let value = find_value(dictionary, b"/Length")?;
    let digits = value
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let is_reference = value[digits..]
        .trim_ascii_start()
        .first()
        .is_some_and(u8::is_ascii_digit);
    let number = std::str::from_utf8(&value[..digits]).ok()?.parse().ok()?;
    (!is_reference).then_some(number)
}

/// The bytes after a key in a dictionary, which begin with its value.
fn find_value<'d>(dictionary: &'d [u8], key: &[u8]) -> Option<&'d [u8]> {
    let mut at = 0;
    loop {
        let behind = find_bytes(dictionary, key, at)? + key.len();
        let rest = &dictionary[behind..];
        if rest
            .first()
            .is_some_and(|byte| !byte.is_ascii_alphanumeric())
        {
            return Some(rest.trim_ascii_start());
        }
        at = behind;
    }
}

fn has_type(dictionary: &[u8], name: &[u8]) -> bool {
    let value = find_value(dictionary, b"/Type");
    value
        .and_then(|value| value.strip_prefix(b"/"))
        .is_some_and(|value| value.starts_with(name))
}

fn find_bytes(bytes: &[u8], word: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let found = rest.windows(word.len()).position(|window| window == word)?;
    Some(from + found)
}

fn write_file(objects: &BTreeMap<(u32, u16), PdfObject<'_>>, trailers: &[&[u8]]) -> Vec<u8> {
    let mut output = b"%PDF-1.7\n".to_vec();
    let mut table = String::new();
    let mut size = 1;
    for (number, object) in objects {
        table += &format!("{} 1\n{:010} {:05} n \n", number.0, output.len(), number.1);
        object.write(*number, &mut output);
        size = size.max(number.0.saturating_add(1));
    }
    let begin = output.len();
    output.extend_from_slice(b"xref\n0 1\n0000000000 65535 f \n");
    output.extend_from_slice(table.as_bytes());
    output.extend_from_slice(format!("trailer\n<< /Size {size}").as_bytes());
    for key in [&b"/Root"[..], b"/Info", b"/Encrypt"] {
        let last = trailers
            .iter()
            .rev()
            .find_map(|trailer| parse_reference(trailer, key));
        if let Some(last) = last {
            let entry = format!(" {} {} {} R", String::from_utf8_lossy(key), last.0, last.1);
            output.extend_from_slice(entry.as_bytes());
        }
    }
    if let Some(id) = trailers.iter().rev().find_map(|trailer| file_id(trailer)) {
        output.extend_from_slice(b" /ID ");
        output.extend_from_slice(id);
    }
    output.extend_from_slice(format!(" >>\nstartxref\n{begin}\n%%EOF\n").as_bytes());
    output
}

fn parse_reference(trailer: &[u8], key: &[u8]) -> Option<(u32, u16)> {
    let value = find_value(trailer, key)?;
    let end = value.iter().position(|byte| *byte == b'R')?;
    let words = std::str::from_utf8(&value[..end]).ok()?;
    let (number, generation) = words.trim().split_once(char::is_whitespace)?;
    Some((number.parse().ok()?, generation.trim().parse().ok()?))
}

/// The file's id, which is needed to read encrypted files: two strings in the trailer, in hexadecimal digits. Strings
/// in parentheses are rare, and are not read.
fn file_id(trailer: &[u8]) -> Option<&[u8]> {
    let value = find_value(trailer, b"/ID")?;
    let end = value.iter().position(|byte| *byte == b']')?;
    let id = &value[..=end];
    let is_hexadecimal = |byte: &u8| byte.is_ascii_hexdigit() || b"[]<> \r\n".contains(byte);
    id.iter().all(is_hexadecimal).then_some(id)
}

/// Adds a page tree to a document that has lost its own, with the pages in the order of their numbers.
pub(super) fn rebuild_page_tree(document: &mut Document) {
    if document.page_iter().next().is_some() {
        return;
    }
    let of_type = |document: &Document, name: &[u8]| {
        let objects = document.objects.iter();
        let is_one = |object: &Object| object.as_dict().is_ok_and(|dict| dict.has_type(name));
        let found = objects
            .filter(|(_, object)| is_one(object))
            .map(|(id, _)| *id);
        found.collect::<Vec<ObjectId>>()
    };
    if let Some(catalog) = of_type(document, b"Catalog").last() {
        document.trailer.set("Root", *catalog);
        if document.page_iter().next().is_some() {
            return;
        }
    }
    let pages = of_type(document, b"Page");
    if pages.is_empty() {
        return;
    }
    let kids: Vec<Object> = pages.iter().map(|id| (*id).into()).collect();
    let count = i64::try_from(kids.len()).unwrap_or(i64::MAX);
    let tree =
        document.add_object(dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count });
    for page in pages {
        reparent_orphan_page(document, page, tree);
    }
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
}

/// Moves a page whose parent is lost to the new tree. If the page has no size of its own, it gets the default size,
/// because the inherited one is lost, too.
fn reparent_orphan_page(document: &mut Document, page: ObjectId, tree: ObjectId) {
    let dictionary = document.get_dictionary(page);
    let parent = dictionary
        .and_then(|page| page.get(b"Parent"))
        .and_then(Object::as_reference);
    if parent.is_ok_and(|parent| document.get_dictionary(parent).is_ok()) {
        return;
    }
    if let Ok(page) = document.get_dictionary_mut(page) {
        let page: &mut Dictionary = page;
        page.set("Parent", tree);
        if !page.has(b"MediaBox") {
            page.set("MediaBox", US_LETTER.map(Object::from).to_vec());
        }
    }
}

/// The size of a page without a size of its own, in points, as in other PDF readers.
const US_LETTER: [i64; 4] = [0, 0, 612, 792];

#[cfg(test)]
mod tests;
