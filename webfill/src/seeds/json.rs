//! A seed as a JSON object: a record, a crawl request, or `{"url": ...}` with no other key, which is
//! a plain URL of the command's own crawl.

use serde_json::{Map, Value};
use webfill_api::{RequestParser, nearest_known_name, request_keys};

use super::request::SeedRequest;
use super::{LineContent, SeedFault, exported};

/// The keys of a record. `url` is a short form of `urls` with one URL, as in CSV.
const RECORD_KEYS: [&str; 5] = ["id", "url", "urls", "fields", "want"];

/// The keys that only records have. Any of them makes an object a record.
const ONLY_OF_RECORDS: [&str; 4] = ["id", "urls", "fields", "want"];

/// The error about an unknown key suggests a known key that is at most this many edits away.
const NEAR: usize = 2;

/// Reads a JSON line as a seed.
pub(super) fn read_seed(text: &[u8], parser: &mut RequestParser) -> Result<LineContent, SeedFault> {
    let fault = |reason: String| SeedFault::new(0, reason, text);
    let parsed = webfill_api::parse(text).map_err(|refusal| fault(refusal.message))?;
    let Value::Object(object) = parsed else {
        return Err(fault(String::from("expected a JSON object")));
    };
    if let Some(found) = exported::read_exported_object(&object) {
        return found.map_err(fault);
    }
    if ONLY_OF_RECORDS.iter().any(|key| object.contains_key(*key)) {
        return read_record(object).map_err(fault);
    }
    if let (1, Some(Value::String(url))) = (object.len(), object.get("url")) {
        return Ok(LineContent {
            urls: vec![url.clone()],
            ..LineContent::default()
        });
    }
    if let Some(reason) = misspelling_fault(&object) {
        return Err(fault(reason));
    }
    let (url, request) = SeedRequest::parse(object, text.len(), parser)
        .map_err(|refusal| SeedFault::from_refusal(0, refusal, text))?;
    Ok(LineContent {
        urls: vec![url],
        request: Some(Box::new(request)),
        ..LineContent::default()
    })
}

/// The error for an object that seems to be a record with a misspelt key. An unknown key is then more similar to a
/// record's key than to any key of crawl requests. An object that names an application or a crawl is not a record.
fn misspelling_fault(object: &Map<String, Value>) -> Option<String> {
    if object.contains_key("appid") || object.contains_key("crawlid") {
        return None;
    }
    let known = || request_keys().chain(ONLY_OF_RECORDS);
    object.keys().find_map(|key| {
        let nearest = nearest_known_name(key, known(), NEAR)?;
        let is_record = nearest != key && ONLY_OF_RECORDS.contains(&nearest);
        is_record.then(|| unknown_key_message(key, Some(nearest), &RECORD_KEYS))
    })
}

fn read_record(mut object: Map<String, Value>) -> Result<LineContent, String> {
    refuse_unknown_keys(&object, &RECORD_KEYS)?;
    let urls = take_urls(&mut object)?;
    let fields = match object.remove("fields") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(String::from("`fields`: expected an object, {name: value}")),
    };
    let want = object.remove("want");
    let lists_want = want.as_ref().is_some_and(|want| !want.is_null());
    let want = match want {
        None | Some(Value::Null) => {
            let missing = fields.iter().filter(|(_, value)| value.is_null());
            missing.map(|(name, _)| name.clone()).collect()
        }
        Some(want) => parse_texts("want", want)?,
    };
    let id = match object.remove("id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) if id.is_empty() => return Err(String::from("`id` is empty")),
        Some(Value::String(id)) => Some(id),
        Some(Value::Number(id)) if id.is_i64() || id.is_u64() => Some(id.to_string()),
        // The number was parsed as a float. It may have lost digits, so it could match the id of another record.
        Some(Value::Number(_)) => {
            return Err(String::from(
                "`id` is a number that would lose digits: write it as a text",
            ));
        }
        Some(_) => return Err(String::from("`id`: expected a text or a number")),
    };
    Ok(LineContent {
        id,
        urls,
        fields,
        want,
        lists_want,
        request: None,
    })
}

fn take_urls(object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let mut urls = match object.remove("urls") {
        None => Vec::new(),
        Some(urls) => parse_texts("urls", urls)?,
    };
    match object.remove("url") {
        None => {}
        Some(Value::String(url)) => urls.push(url),
        Some(_) => return Err(String::from("`url`: expected a text")),
    }
    if urls.is_empty() {
        return Err(String::from("no URL: `urls` is missing or empty"));
    }
    Ok(urls)
}

/// Parses the value of `key` as a list of texts. A single text counts as a list of one.
pub(super) fn parse_texts(key: &str, value: Value) -> Result<Vec<String>, String> {
    let texts = match value {
        Value::String(text) => return Ok(vec![text]),
        Value::Array(texts) => texts,
        _ => return Err(format!("`{key}`: expected a list of texts")),
    };
    let text = |(number, value)| match value {
        Value::String(text) => Ok(text),
        _ => Err(format!("`{key}[{number}]`: expected a text")),
    };
    texts.into_iter().enumerate().map(text).collect()
}

fn refuse_unknown_keys(object: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    let unknown = object.keys().find(|key| !known.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| {
        let nearest = nearest_known_name(key, known.iter().copied(), NEAR);
        Err(unknown_key_message(key, nearest, known))
    })
}

fn unknown_key_message(key: &str, nearest: Option<&str>, known: &[&str]) -> String {
    let shown: String = key.chars().take(40).collect();
    match nearest {
        Some(nearest) => format!("unknown key `{shown}`: did you mean `{nearest}`?"),
        None => format!("unknown key `{shown}`: known are {}", known.join(", ")),
    }
}
