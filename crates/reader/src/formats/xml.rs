//! Reads the XML of office documents as a stream of the tokens that readers need: beginnings and ends of elements by
//! their local names, and text. Entities that a document declares are not expanded.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::Trouble;
use super::package;

/// A token of the XML: the beginning or the end of an element, or text.
pub(super) enum Token<'t> {
    Begin(&'t str, Attributes<'t>),
    End(&'t str),
    Text(&'t str),
}

/// The attributes of an element.
pub(super) struct Attributes<'t>(&'t BytesStart<'t>);

impl Attributes<'_> {
    /// Whether the name of the element has this namespace prefix.
    pub(super) fn has_prefix(&self, prefix: &str) -> bool {
        let name = self.0.name();
        name.prefix().is_some_and(|found| found.as_ref() == prefix)
    }

    /// Returns the value of the attribute with this name, whatever its prefix.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let mut readable = attributes.with_checks(false).flatten();
        let found = readable.find(|attribute| attribute.key.local_name().as_ref() == name)?;
        let value = unescape(&found.value).map(Cow::into_owned);
        Some(value.unwrap_or_else(|_| found.value.to_string()))
    }
}

/// Passes the tokens of a part to `each`. An empty element both begins and ends.
pub(super) fn for_each_token(
    part: impl BufRead,
    mut each: impl FnMut(Token<'_>) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let mut reader = Reader::from_reader(BufReader::new(Utf8Reader::new(part)?));
    reader.config_mut().check_end_names = false;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).map_err(to_trouble)? {
            Event::Start(start) => {
                each(Token::Begin(
                    start.local_name().as_ref(),
                    Attributes(&start),
                ))?;
            }
            Event::Empty(start) => {
                let name = start.local_name();
                each(Token::Begin(name.as_ref(), Attributes(&start)))?;
                each(Token::End(name.as_ref()))?;
            }
            Event::End(end) => each(Token::End(end.local_name().as_ref()))?,
            Event::Text(text) => each(Token::Text(&text.xml10_content()))?,
            Event::CData(text) => each(Token::Text(&text.xml10_content()))?,
            Event::GeneralRef(entity) => {
                if let Some(character) = resolve_entity(&entity) {
                    each(Token::Text(character.encode_utf8(&mut [0; 4])))?;
                }
            }
            Event::Eof => return Ok(()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

/// Converts an XML part to UTF-8, whatever its encoding. Invalid bytes become U+FFFD.
struct Utf8Reader<R> {
    part: R,
    decoder: Decoder,
    text: Vec<u8>,
    read: usize,
    is_over: bool,
}

/// The number of bytes decoded at a time.
const PIECE_BYTES: usize = 8192;

impl<R: BufRead> Utf8Reader<R> {
    fn new(mut part: R) -> Result<Utf8Reader<R>, Trouble> {
        let head = part.fill_buf().map_err(package::to_trouble)?;
        let encoding = detect_encoding(head);
        Ok(Utf8Reader {
            part,
            decoder: encoding.new_decoder(),
            text: Vec::new(),
            read: 0,
            is_over: false,
        })
    }
}

/// The encoding of an XML part by its first bytes, following the XML standard (appendix F). The decoder handles a byte
/// order mark.
fn detect_encoding(head: &[u8]) -> &'static Encoding {
    if head.starts_with(b"<\0") {
        return UTF_16LE;
    }
    if head.starts_with(b"\0<") {
        return UTF_16BE;
    }
    let head = String::from_utf8_lossy(&head[..head.len().min(200)]);
    let declaration = head.split("?>").next().unwrap_or_default();
    let declared = declaration.split_once("encoding").map(|(_, rest)| rest);
    let label = declared.and_then(|rest| rest.split(['"', '\'']).nth(1));
    let declared = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    // The declaration was readable byte by byte, so the encoding cannot have two bytes for each character.
    let declared = declared.filter(|encoding| encoding.is_ascii_compatible());
    declared.unwrap_or(UTF_8)
}

impl<R: BufRead> Read for Utf8Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.text.len() && !self.is_over {
            let bytes = self.part.fill_buf()?;
            let bytes = &bytes[..bytes.len().min(PIECE_BYTES)];
            self.is_over = bytes.is_empty();
            // Each byte may become U+FFFD, which takes three bytes.
            self.text.resize(bytes.len() * 3 + 16, 0);
            let (_, read, written, _) =
                self.decoder
                    .decode_to_utf8(bytes, &mut self.text, self.is_over);
            self.text.truncate(written);
            self.read = 0;
            self.part.consume(read);
        }
        let text = &self.text[self.read..];
        let bytes = text.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&text[..bytes]);
        self.read += bytes;
        Ok(bytes)
    }
}

fn resolve_entity(entity: &BytesRef<'_>) -> Option<char> {
    match &**entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => entity.resolve_char_ref().ok().flatten(),
    }
}

fn to_trouble(error: quick_xml::Error) -> Trouble {
    match error {
        quick_xml::Error::Io(error) => package::to_trouble(std::io::Error::from(error.kind())),
        other => Trouble::broken(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_attributes_are_resolved() {
        for (written, expected) in [
            ("Tab &amp; 1", "Tab & 1"),
            ("&lt;a&gt; &quot;b&quot; &apos;c&apos;", "<a> \"b\" 'c'"),
            ("&#8364; &#x20ac;", "€ €"),
            ("a & b &nosuch; &", "a & b &nosuch; &"),
            ("", ""),
        ] {
            let part = format!("<t table:name=\"{written}\"/>");
            let mut found = None;
            for_each_token(part.as_bytes(), |token| {
                if let Token::Begin(_, attributes) = token {
                    found = attributes.get("name");
                }
                Ok(())
            })
            .unwrap();
            assert_eq!(found.as_deref(), Some(expected), "{written}");
        }
    }
}
