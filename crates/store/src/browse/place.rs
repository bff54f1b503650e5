//! Places: where lists continue.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;

/// A place in a list: the key of the last checked row. Its text can be used in a URL unescaped. Untrusted clients send
/// it back, so it is looked up like any key and need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The order of the list.
    order: ListOrder,
    key: Vec<String>,
}

/// The order of a list. A list continues in the order it began in, even if an index has been created meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListOrder {
    /// The latest first, by the time when something was stored or happened.
    Newest,
    /// Ascending by key.
    Key,
}

/// An invalid place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no place in a list: begin at its beginning")]
pub struct ListCursorError(String);

/// The longest text of a place. The longest key of a record holds its id and its dataset, in Base64.
const MAX_TEXT: usize = 4 << 10;

impl Place {
    pub(crate) fn newest_first(key: impl IntoIterator<Item = String>) -> Place {
        Place {
            order: ListOrder::Newest,
            key: key.into_iter().collect(),
        }
    }

    /// The place after the record with this [key](crate::record_key).
    pub fn by_key(key: impl Into<String>) -> Place {
        Place {
            order: ListOrder::Key,
            key: vec![key.into()],
        }
    }

    pub(crate) fn order(&self) -> ListOrder {
        self.order
    }

    /// A part of the key; empty if there is none.
    pub(crate) fn part(&self, index: usize) -> &str {
        self.key.get(index).map_or("", String::as_str)
    }

    /// A part of the key as a number; 0 if it is not a number.
    pub(crate) fn number(&self, index: usize) -> i64 {
        self.part(index).parse().unwrap_or_default()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.order {
            ListOrder::Newest => "n",
            ListOrder::Key => "k",
        })?;
        self.key
            .iter()
            .try_for_each(|part| write!(f, ".{}", BASE64.encode(part)))
    }
}

impl FromStr for Place {
    type Err = ListCursorError;

    fn from_str(text: &str) -> Result<Place, ListCursorError> {
        let shown =
            || ListCursorError(text.chars().take(80).flat_map(char::escape_debug).collect());
        if text.len() > MAX_TEXT {
            return Err(shown());
        }
        let mut parts = text.split('.');
        let order = match parts.next() {
            Some("n") => ListOrder::Newest,
            Some("k") => ListOrder::Key,
            _ => return Err(shown()),
        };
        let decode = |part: &str| {
            let bytes = BASE64.decode(part).map_err(|_| shown())?;
            String::from_utf8(bytes).map_err(|_| shown())
        };
        let key = parts.map(decode).collect::<Result<_, _>>()?;
        Ok(Place { order, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_parsed_from_its_text() {
        for place in [
            Place::newest_first([
                String::from("2026-01-01T12:00:00.000Z"),
                String::from("a/b/\0ä"),
            ]),
            Place::newest_first([]),
            Place::by_key("people/Ada Lovelace & Co?#%"),
            Place::by_key(""),
            Place::by_key("ä".repeat(1_200)),
        ] {
            let text = place.to_string();
            let is_of_urls =
                |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            assert!(text.chars().all(is_of_urls), "{text}");
            assert_eq!(text.parse(), Ok(place));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let long = format!("k.{}", "A".repeat(MAX_TEXT));
        for text in [
            "",
            "k.ä",
            "x.AA",
            "k.A",
            "k._w",
            "n.AA==",
            " k.AA",
            long.as_str(),
        ] {
            let refusal = text.parse::<Place>().unwrap_err().to_string();
            assert!(refusal.len() < 600, "{refusal}");
        }
    }
}
