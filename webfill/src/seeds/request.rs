//! A crawl request as a seed: one URL with the settings of the crawl that it names.

use serde_json::{Map, Value};

use super::json::texts;

/// A crawl request without its URL. The seed belongs to the crawl `app_id`/`crawl_id`, whichever
/// crawl the command itself runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedRequest {
    pub app_id: String,
    pub crawl_id: String,
    /// The other keys that it gives, each with a checked value.
    pub settings: Map<String, Value>,
}

/// What a value of a setting must be.
enum Kind {
    Text,
    Texts,
    Object,
    Number { least: u64, most: u64 },
    OneOf(&'static [&'static str]),
}

const ID_KEYS: [&str; 2] = ["appid", "crawlid"];

const SETTINGS: [(&str, Kind); 11] = [
    ("spiderid", Kind::OneOf(&["link", "browser"])),
    (
        "maxdepth",
        Kind::Number {
            least: 0,
            most: 65_535,
        },
    ),
    (
        "priority",
        Kind::Number {
            least: 1,
            most: 100,
        },
    ),
    ("allowed_domains", Kind::Texts),
    ("allow_regex", Kind::Texts),
    ("deny_regex", Kind::Texts),
    ("deny_extensions", Kind::Texts),
    // Seconds since the epoch, which must still fit when counted in milliseconds.
    (
        "expires",
        Kind::Number {
            least: 0,
            most: u64::MAX / 1_000,
        },
    ),
    ("useragent", Kind::Text),
    ("attrs", Kind::Object),
    (
        "domain_max_pages",
        Kind::Number {
            least: 1,
            most: u64::MAX,
        },
    ),
];

impl SeedRequest {
    /// Every key beside `url`.
    pub(super) fn keys() -> impl Iterator<Item = &'static str> {
        let settings = SETTINGS.iter().map(|(key, _)| *key);
        ID_KEYS.into_iter().chain(settings)
    }

    /// Reads the object without its `url`; unknown keys were refused before. A null is as good
    /// as absent.
    pub(super) fn read(mut object: Map<String, Value>) -> Result<SeedRequest, String> {
        let [app_id, crawl_id] = ID_KEYS.map(|key| read_id(key, object.remove(key)));
        object.retain(|_, value| !value.is_null());
        for (key, kind) in &SETTINGS {
            if let Some(value) = object.get_mut(*key) {
                kind.check(key, value)?;
            }
        }
        Ok(SeedRequest {
            app_id: app_id?,
            crawl_id: crawl_id?,
            settings: object,
        })
    }
}

fn read_id(key: &str, value: Option<Value>) -> Result<String, String> {
    match value {
        Some(Value::String(id)) if id.is_empty() => Err(format!("`{key}` is empty")),
        Some(Value::String(id)) if id.contains('/') => Err(format!(
            "`{key}` contains a slash, which separates ids in keys"
        )),
        Some(Value::String(id)) => Ok(id),
        None | Some(Value::Null) => {
            Err(format!("`{key}` is missing, which every crawl request has"))
        }
        Some(_) => Err(format!("`{key}` is a text")),
    }
}

impl Kind {
    /// Checks a value; a text for a list of one becomes that list.
    fn check(&self, key: &str, value: &mut Value) -> Result<(), String> {
        let (fits, expected) = match self {
            Kind::Text => (value.is_string(), String::from("a text")),
            Kind::Texts => {
                *value = texts(key, value.take())?.into();
                return Ok(());
            }
            Kind::Object => (value.is_object(), String::from("an object")),
            Kind::Number { least, most } => (
                value
                    .as_u64()
                    .is_some_and(|number| (*least..=*most).contains(&number)),
                format!("a whole number from {least} to {most}"),
            ),
            Kind::OneOf(names) => (
                value.as_str().is_some_and(|text| names.contains(&text)),
                names.join(" or "),
            ),
        };
        match fits {
            true => Ok(()),
            false => Err(format!("`{key}` is {expected}")),
        }
    }
}
