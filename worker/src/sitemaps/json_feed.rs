//! Reads a JSON Feed (jsonfeed.org): an object with the version of the format, and a list of items, each with its URL.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::FoundEntries;

/// The beginning of the version. The format is recognised by it. In the JSON text, the slashes may be escaped.
const VERSION: &str = "jsonfeed.org/version/";

/// The error that ends reading when no more entries are taken.
const FULL: &str = "no more entries are taken";

pub(super) fn is_sitemap(beginning: &str) -> bool {
    let beginning = beginning.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
    let Some(object) = beginning.strip_prefix('{') else {
        return false;
    };
    object.contains("\"version\"") && object.replace("\\/", "/").contains(VERSION)
}

/// Reads one item after another, so that the items before a fault are found.
pub(super) fn read(text: &str, found: &mut FoundEntries<'_>) {
    let text = text.trim_start_matches('\u{feff}');
    let mut json = serde_json::Deserializer::from_str(text);
    if let Err(error) = (&mut json).deserialize_map(Feed(found))
        && found.sitemap.cut.is_none()
    {
        found.sitemap.cut = Some(format!("broken JSON: {error}"));
    }
}

struct Feed<'f, 'u>(&'f mut FoundEntries<'u>);

impl<'de> Visitor<'de> for Feed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a feed")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            match name.as_str() {
                "items" => members.next_value_seed(Items(self.0))?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Items<'f, 'u>(&'f mut FoundEntries<'u>);

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, items: D) -> Result<(), D::Error> {
        items.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Item>()? {
            let has_room = match item {
                Item::Object { url: Some(url) } => self.0.add(&url),
                _ => self.0.count_invalid(),
            };
            if !has_room {
                return Err(A::Error::custom(FULL));
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Object { url: Option<String> },
    Other(IgnoredAny),
}
