//! A seed as a JSON object: a record, a crawl request, or a bare `{"url": ...}`.

use serde_json::{Map, Value};

use super::request::SeedRequest;
use super::{Found, SeedFault, utf8};

/// The keys of a record. `url` stands for one of `urls`, as in CSV.
const RECORD_KEYS: [&str; 5] = ["id", "url", "urls", "fields", "want"];

/// An unknown key this near to a known one is told with it.
const NEAR: usize = 2;

/// Reads a line.
pub(super) fn read_seed(text: &[u8]) -> Result<Found, SeedFault> {
    let fault = |reason| SeedFault::new(0, reason, text);
    let parsed = serde_json::from_str(utf8(text)?).map_err(|error| {
        // Each line is a document of its own, so its "line 1" would mislead.
        fault(format!("invalid JSON: {error}").replace(" at line 1 column", " at column"))
    })?;
    let Value::Object(object) = parsed else {
        return Err(fault(String::from("a seed is a JSON object")));
    };
    let is_record = ["id", "urls", "fields", "want"]
        .iter()
        .any(|key| object.contains_key(*key));
    let found = if is_record {
        read_record(object)
    } else {
        read_request(object)
    };
    found.map_err(fault)
}

fn read_record(mut object: Map<String, Value>) -> Result<Found, String> {
    refuse_unknown_keys(&object, &RECORD_KEYS)?;
    let urls = urls(&mut object)?;
    let fields = match object.remove("fields") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(String::from("`fields` is an object: {name: value}")),
    };
    let want = match object.remove("want") {
        None | Some(Value::Null) => {
            let missing = fields.iter().filter(|(_, value)| value.is_null());
            missing.map(|(name, _)| name.clone()).collect()
        }
        Some(want) => texts("want", want)?,
    };
    let id = match object.remove("id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) if !id.is_empty() => Some(id),
        Some(Value::Number(id)) => Some(id.to_string()),
        Some(_) => return Err(String::from("`id` is a text or a number")),
    };
    Ok(Found {
        id,
        urls,
        fields,
        want,
        request: None,
    })
}

fn urls(object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let mut urls = match object.remove("urls") {
        None => Vec::new(),
        Some(urls) => texts("urls", urls)?,
    };
    match object.remove("url") {
        None => {}
        Some(Value::String(url)) => urls.push(url),
        Some(_) => return Err(String::from("`url` is a text")),
    }
    if urls.is_empty() {
        return Err(String::from("it names no URL: `urls` is missing or empty"));
    }
    Ok(urls)
}

fn read_request(mut object: Map<String, Value>) -> Result<Found, String> {
    let mut known = vec!["url", "urls", "id", "fields", "want"];
    known.extend(SeedRequest::keys());
    refuse_unknown_keys(&object, &known)?;
    let url = match object.remove("url") {
        Some(Value::String(url)) => url,
        Some(_) => return Err(String::from("`url` is a text")),
        None => return Err(String::from("it names no URL: `url` is missing")),
    };
    let request = match object.is_empty() {
        true => None,
        false => Some(Box::new(SeedRequest::read(object)?)),
    };
    Ok(Found {
        urls: vec![url],
        request,
        ..Found::default()
    })
}

/// A list of texts, or one text for a list of one.
pub(super) fn texts(key: &str, value: Value) -> Result<Vec<String>, String> {
    let texts = match value {
        Value::String(text) => return Ok(vec![text]),
        Value::Array(texts) => texts,
        _ => return Err(format!("`{key}` is a list of texts")),
    };
    let text = |(number, value)| match value {
        Value::String(text) => Ok(text),
        _ => Err(format!("`{key}[{number}]` is a text")),
    };
    texts.into_iter().enumerate().map(text).collect()
}

fn refuse_unknown_keys(object: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    for key in object.keys() {
        if known.contains(&key.as_str()) {
            continue;
        }
        let distance = |known: &&&str| strsim::damerau_levenshtein(key, known);
        let nearest = known.iter().min_by_key(distance);
        let shown: String = key.chars().take(40).collect();
        return Err(match nearest.filter(|nearest| distance(nearest) <= NEAR) {
            Some(nearest) => format!("unknown key `{shown}`: did you mean `{nearest}`?"),
            None => format!("unknown key `{shown}`: known are {}", known.join(", ")),
        });
    }
    Ok(())
}
