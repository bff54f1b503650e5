//! A stored page as a result on the firehose, with the keys of Scrapy Cluster.

use http::StatusCode;
use serde_json::{Map, Value, json};

/// The maximum size of a result in bytes. The queue of a slow subscriber is limited by its number of messages, so this
/// limit also bounds its bytes.
pub(crate) const MAX_RESULT_BYTES: usize = 256 << 10;

/// The keys that are left out of a result that is too large, in this order, until it fits.
const LEFT_OUT_FIRST: [&str; 5] = ["body", "links", "fields", "headers", "attrs"];

/// The message of a page, ready to be sent. Keys that were left out are empty, and named in
/// `omitted`; the store has their values.
pub(crate) fn result_message(page: Value, wants_body: bool) -> Vec<u8> {
    let mut result = to_result(page, wants_body);
    let mut frame = Value::to_string(&result);
    let mut omitted = Vec::new();
    for name in LEFT_OUT_FIRST {
        if frame.len() <= MAX_RESULT_BYTES {
            break;
        }
        let is_there = result[name]
            .as_str()
            .map(|body| !body.is_empty())
            .or(result[name].as_array().map(|links| !links.is_empty()))
            .or(result[name].as_object().map(|object| !object.is_empty()));
        if is_there != Some(true) {
            continue;
        }
        result[name] = match name {
            "body" => Value::Null,
            "links" => json!([]),
            _ => json!({}),
        };
        omitted.push(name);
        result["omitted"] = json!(omitted);
        frame = result.to_string();
    }
    frame.into_bytes()
}

/// The result with the keys that applications know.
fn to_result(mut page: Value, wants_body: bool) -> Value {
    let mut take = |name: &str| page.get_mut(name).map(Value::take).unwrap_or_default();
    let url = take("url");
    let response_url = match take("final_url") {
        Value::Null => url.clone(),
        other => other,
    };
    let outcome = take("outcome");
    let status_code = take("status_code");
    let mut result = json!({
        "status_msg": status_message(&status_code, &outcome),
        "url": url,
        "response_url": response_url,
        "status_code": status_code,
        "appid": take("app_id"),
        "crawlid": take("crawl_id"),
        "links": take("links"),
        "headers": object_or_empty(take("headers")),
        "attrs": object_or_empty(take("attrs")),
        "timestamp": take("started_at"),
        "fields": take("fields"),
        "mapping": take("mapping"),
        "outcome": outcome,
    });
    let document = take("document");
    if !document.is_null() {
        result["document"] = document;
    }
    if wants_body {
        result["body"] = take("body");
    }
    result
}

fn object_or_empty(value: Value) -> Value {
    match value {
        Value::Null => Value::Object(Map::new()),
        other => other,
    }
}

/// The standard phrase of the HTTP status. If there was no answer, the outcome of the task.
fn status_message(status_code: &Value, outcome: &Value) -> Value {
    let Some(code) = status_code.as_u64() else {
        return outcome.clone();
    };
    let code = u16::try_from(code).ok();
    let status = code.and_then(|code| StatusCode::from_u16(code).ok());
    let words = status.and_then(|status| status.canonical_reason());
    json!(words.unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Value {
        json!({
            "_id": "c1/1", "app_id": "a", "crawl_id": "c1", "url": "https://example.com/",
            "final_url": null, "site": "example.com", "depth": 0, "parent": null,
            "outcome": "ok", "status_code": 200, "mapping": "people", "fields": {"name": "Ada"},
            "links": ["https://example.com/b"], "content_type": "text/html", "bytes": 9,
            "content_hash": "x", "started_at": "2026-01-01T12:00:00.000Z", "elapsed_ms": 1,
            "attempts": 1, "worker": "w", "attrs": {"k": 1}, "tries": [],
            "headers": {"Server": ["x"]}, "body": "<p>Ada",
        })
    }

    fn result_of(page: Value, wants_body: bool) -> Value {
        serde_json::from_slice(&result_message(page, wants_body)).unwrap()
    }

    #[test]
    fn a_result_has_the_keys_that_applications_know_and_no_other() {
        let expected = json!({
            "url": "https://example.com/", "response_url": "https://example.com/",
            "status_code": 200, "status_msg": "OK", "appid": "a", "crawlid": "c1",
            "links": ["https://example.com/b"], "headers": {"Server": ["x"]}, "attrs": {"k": 1},
            "timestamp": "2026-01-01T12:00:00.000Z", "fields": {"name": "Ada"},
            "mapping": "people", "outcome": "ok", "body": "<p>Ada",
        });
        assert_eq!(result_of(page(), true), expected);
        let without = result_of(page(), false);
        assert_eq!(without.get("body"), None, "only when asked for");
        assert_eq!(without.as_object().unwrap().len(), 13);
    }

    #[test]
    fn results_of_documents_have_their_metadata() {
        let mut page = page();
        let document = json!({"status": "text", "type": "pdf", "title": "A paper", "pages": 3});
        page["document"] = document.clone();
        page["body"] = json!("Contract number 4711");
        let result = result_of(page, true);
        assert_eq!(result["document"], document);
        assert_eq!(result["body"], "Contract number 4711");
    }

    #[test]
    fn missing_values_are_empty() {
        let mut page = page();
        for name in ["status_code", "headers", "attrs", "body", "mapping"] {
            page[name] = Value::Null;
        }
        page["outcome"] = json!("timeout");
        page["final_url"] = json!("https://example.com/end");
        let result = result_of(page, true);
        assert_eq!(result["status_code"], Value::Null);
        assert_eq!(result["status_msg"], "timeout");
        assert_eq!(
            (&result["headers"], &result["attrs"]),
            (&json!({}), &json!({}))
        );
        assert_eq!(result.get("body"), Some(&Value::Null));
        assert_eq!(result["response_url"], "https://example.com/end");
    }

    #[test]
    fn statuses_without_a_name_have_an_empty_message() {
        let mut page = page();
        for (code, words) in [(404, "Not Found"), (599, ""), (999, "")] {
            page["status_code"] = json!(code);
            assert_eq!(result_of(page.clone(), false)["status_msg"], words);
        }
    }

    #[test]
    fn a_large_result_leaves_out_keys_and_names_them() {
        let large = "x".repeat(MAX_RESULT_BYTES);
        let mut page = page();
        page["body"] = json!(large);
        let result = result_of(page.clone(), true);
        assert_eq!(
            (&result["body"], &result["omitted"]),
            (&Value::Null, &json!(["body"]))
        );
        assert_eq!(result["fields"], json!({"name": "Ada"}));
        assert_eq!(result_of(page.clone(), false).get("omitted"), None);
        page["links"] = json!([large]);
        page["fields"] = json!({"name": large});
        page["headers"] = json!({});
        let frame = result_message(page, true);
        assert!(frame.len() <= MAX_RESULT_BYTES);
        let result: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(result["omitted"], json!(["body", "links", "fields"]));
        assert_eq!(result["url"], "https://example.com/");
    }
}
