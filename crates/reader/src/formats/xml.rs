//! The XML of packages, as a stream of what readers need: beginnings and ends of elements by their local
//! names, and text. Entities that a document declares are not expanded.

use std::borrow::Cow;
use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::Trouble;
use super::package;

/// One thing in a part.
pub(super) enum Token<'t> {
    Begin(&'t str, Attributes<'t>),
    End(&'t str),
    Text(&'t str),
}

/// The attributes of an element.
pub(super) struct Attributes<'t>(&'t BytesStart<'t>);

impl Attributes<'_> {
    /// The value of the attribute of this local name.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let mut readable = attributes.with_checks(false).flatten();
        let found = readable.find(|attribute| attribute.key.local_name().as_ref() == name)?;
        let value = unescape(&found.value).map(Cow::into_owned);
        Some(value.unwrap_or_else(|_| found.value.to_string()))
    }
}

/// Passes the tokens of a part to `each`. An empty element begins and ends.
pub(super) fn read(
    part: impl BufRead,
    mut each: impl FnMut(Token<'_>) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let mut reader = Reader::from_reader(part);
    reader.config_mut().check_end_names = false;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).map_err(trouble)? {
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
                if let Some(character) = character_of(&entity) {
                    each(Token::Text(character.encode_utf8(&mut [0; 4])))?;
                }
            }
            Event::Eof => return Ok(()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

fn character_of(entity: &BytesRef<'_>) -> Option<char> {
    match &**entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => entity.resolve_char_ref().ok().flatten(),
    }
}

fn trouble(error: quick_xml::Error) -> Trouble {
    match error {
        quick_xml::Error::Io(error) => package::trouble(std::io::Error::from(error.kind())),
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
            read(part.as_bytes(), |token| {
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
