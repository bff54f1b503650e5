//! Posted bodies: the fields of a form, or an unparsed body of another type.

use serde_json::Value;
use webfill_urls::Url;

/// A posted body. Its size was checked before.
#[derive(Debug, Default)]
pub(crate) struct Form {
    fields: Vec<(String, String)>,
    /// The body as it was sent; empty if it was a form.
    pub(crate) raw: Vec<u8>,
}

const FORM: &str = "application/x-www-form-urlencoded";

impl Form {
    pub(crate) fn parse(content_type: Option<&str>, body: Vec<u8>) -> Form {
        let kind = content_type.and_then(|kind| kind.split(';').next());
        match kind.unwrap_or_default().trim().eq_ignore_ascii_case(FORM) {
            true => Form {
                fields: parse_query_pairs(&String::from_utf8_lossy(&body)),
                raw: Vec::new(),
            },
            false => Form {
                fields: Vec::new(),
                raw: body,
            },
        }
    }

    /// The first field with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All fields, in the order of the form.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Parses the body as JSON.
    pub(crate) fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.raw)
    }
}

/// The name-value pairs of a query string. A posted form has the same syntax.
pub(crate) fn parse_query_pairs(query: &str) -> Vec<(String, String)> {
    let mut url = Url::parse("http://localhost/").expect("it is a URL");
    url.set_query(Some(query));
    let pairs = url.query_pairs();
    pairs
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_by_its_type() {
        let body = b"app=a+b&crawl=%C3%BC%26&empty=&app=second".to_vec();
        let form = Form::parse(
            Some("application/x-www-form-urlencoded; charset=utf-8"),
            body,
        );
        assert_eq!(form.get("app"), Some("a b"));
        assert_eq!(form.get("crawl"), Some("ü&"));
        assert_eq!(form.get("empty"), Some(""));
        assert_eq!(form.get("other"), None);
        assert_eq!(form.fields().count(), 4);
        let form = Form::parse(Some("application/json"), b"{\"a\": 1}".to_vec());
        assert_eq!(form.json().unwrap()["a"], 1);
        assert!(Form::parse(None, b"a=1".to_vec()).get("a").is_none());
    }

    #[test]
    fn whatever_is_posted_as_a_form_is_read() {
        for body in [&b"\xff\xfe=%ff&&=&%"[..], b"", b"&&&", b"a#b=c"] {
            Form::parse(Some(FORM), body.to_vec());
        }
        assert_eq!(
            parse_query_pairs("a#b=c"),
            [("a#b".to_owned(), "c".to_owned())]
        );
    }
}
