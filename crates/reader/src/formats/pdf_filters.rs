//! Decodes the streams of a PDF whose filters (encodings) the parser does not know or does not find. These are
//! hexadecimal digits, run lengths, abbreviated names, names behind a reference, and parameters in a list. Otherwise
//! the text of these streams would be missing without an error.

use std::cell::Cell;

use pdf_extract::{Dictionary, Document, Object, ObjectId, Stream, dictionary};

/// A filter of a stream, by its full name, with its parameters.
struct Filter {
    name: Vec<u8>,
    parameters: Option<Dictionary>,
}

/// Decodes, as far as possible, the streams that the parser would not decode. After this, only filters of images
/// remain.
pub(super) fn decode_streams(document: &mut Document) {
    let found = document.objects.iter().filter_map(|(id, object)| {
        let stream = object.as_stream().ok()?;
        let filters = filters_of(document, stream)?;
        Some((*id, filters))
    });
    let found: Vec<(ObjectId, Vec<Filter>)> = found.collect();
    for (id, filters) in found {
        if let Ok(stream) = document.get_object_mut(id).and_then(Object::as_stream_mut) {
            decode_stream(stream, &filters);
        }
    }
}

/// The filters of a stream that the parser would not decode by itself.
fn filters_of(document: &Document, stream: &Stream) -> Option<Vec<Filter>> {
    let is_image = stream.dict.get(b"Subtype").and_then(Object::as_name).ok() == Some(b"Image");
    if is_image {
        return None;
    }
    let is_plain = Cell::new(true);
    let expect = |is_so: bool| is_plain.set(is_plain.get() && is_so);
    let resolved = |object: &Object| {
        expect(!matches!(object, Object::Reference(_)));
        document.dereference(object).ok().map(|(_, it)| it.clone())
    };
    let names = match resolved(stream.dict.get(b"Filter").ok()?)? {
        Object::Array(names) => names.iter().filter_map(resolved).collect(),
        name => vec![name],
    };
    let parameters = match stream.dict.get(b"DecodeParms").ok().and_then(resolved) {
        Some(Object::Array(parameters)) => {
            expect(parameters.iter().all(|one| matches!(one, Object::Null)));
            parameters.iter().map(resolved).collect()
        }
        one => vec![one],
    };
    let mut filters = Vec::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        let name = name.as_name().ok()?;
        let full = full_name(name);
        expect(full == name && !is_decoded_here(full));
        expect(full != b"ASCII85Decode" || !begins_with_sign(&stream.content));
        let parameters = parameters.get(at).cloned().flatten();
        filters.push(Filter {
            name: full.to_vec(),
            parameters: parameters.and_then(|one| one.as_dict().ok().cloned()),
        });
    }
    (!is_plain.get()).then_some(filters)
}

/// The full name of a filter. Some programs use the abbreviations, which are meant for inline images, everywhere.
fn full_name(name: &[u8]) -> &[u8] {
    match name {
        b"AHx" => b"ASCIIHexDecode",
        b"A85" => b"ASCII85Decode",
        b"LZW" => b"LZWDecode",
        b"Fl" => b"FlateDecode",
        b"RL" => b"RunLengthDecode",
        other => other,
    }
}

fn is_decoded_here(name: &[u8]) -> bool {
    matches!(name, b"ASCIIHexDecode" | b"RunLengthDecode")
}

/// Whether data in base 85 begin with `<~`. Some programs write this sign, which is not part of PDF.
fn begins_with_sign(content: &[u8]) -> bool {
    content.trim_ascii_start().starts_with(b"<~")
}

fn decode_stream(stream: &mut Stream, filters: &[Filter]) {
    let mut content = std::mem::take(&mut stream.content);
    let mut done = 0;
    for filter in filters {
        let Some(decoded) = decode_data(&content, filter) else {
            break;
        };
        content = decoded;
        done += 1;
    }
    stream.set_content(content);
    stream.dict.remove(b"Filter");
    stream.dict.remove(b"DecodeParms");
    let left = &filters[done..];
    if !left.is_empty() {
        let names = left.iter().map(|filter| Object::Name(filter.name.clone()));
        stream.dict.set("Filter", names.collect::<Vec<Object>>());
    }
}

fn decode_data(content: &[u8], filter: &Filter) -> Option<Vec<u8>> {
    match filter.name.as_slice() {
        b"ASCIIHexDecode" => Some(decode_hexadecimal(content)),
        b"RunLengthDecode" => Some(decode_run_lengths(content)),
        b"ASCII85Decode" | b"FlateDecode" | b"LZWDecode" => decode_by_parser(content, filter),
        _ => None,
    }
}

fn decode_by_parser(content: &[u8], filter: &Filter) -> Option<Vec<u8>> {
    let content = match begins_with_sign(content) && filter.name == b"ASCII85Decode" {
        true => &content.trim_ascii_start()[2..],
        false => content,
    };
    let mut dict = dictionary! { "Filter" => Object::Name(filter.name.clone()) };
    if let Some(parameters) = &filter.parameters {
        dict.set("DecodeParms", parameters.clone());
    }
    Stream::new(dict, content.to_vec())
        .decompressed_content()
        .ok()
}

/// Decodes hexadecimal digits up to `>`. After a single last digit, a 0 is assumed.
fn decode_hexadecimal(content: &[u8]) -> Vec<u8> {
    let digits = content.iter().take_while(|byte| **byte != b'>');
    let digits = digits.filter_map(|byte| char::from(*byte).to_digit(16));
    let digits: Vec<u8> = digits
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    let byte = |pair: &[u8]| pair[0] << 4 | pair.get(1).unwrap_or(&0);
    digits.chunks(2).map(byte).collect()
}

/// Decodes run lengths. After a length below 128 there are (length + 1) literal bytes. After a length above 128, the
/// next byte is repeated (257 - length) times. The length 128 is the end.
fn decode_run_lengths(mut content: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    while let [length, rest @ ..] = content {
        let length = usize::from(*length);
        content = match length {
            0..128 => {
                let (bytes, rest) = rest.split_at(rest.len().min(length + 1));
                output.extend_from_slice(bytes);
                rest
            }
            128 => return output,
            _ => {
                let Some((byte, rest)) = rest.split_first() else {
                    return output;
                };
                output.extend(std::iter::repeat_n(*byte, 257 - length));
                rest
            }
        };
    }
    output
}
