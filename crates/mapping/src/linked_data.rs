//! Reads linked data as search engines do. A value with a language or a type becomes the plain value. Character
//! references in texts are resolved: authors use them, although scripts are not HTML.

use serde_json::Value;

use crate::entities;

/// Converts a value of linked data to its plain form. Recursive, because the parser limits the depth.
pub(crate) fn to_plain_form(value: Value) -> Value {
    match value {
        Value::String(text) if has_reference(&text) => {
            Value::String(entities::decode_references(&text))
        }
        Value::Array(entries) => entries.into_iter().map(to_plain_form).collect(),
        Value::Object(mut members) => match members.get_mut("@value") {
            Some(inner) if !inner.is_object() && !inner.is_array() => to_plain_form(inner.take()),
            _ => {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(name, value)| (name, to_plain_form(value)))
                        .collect(),
                )
            }
        },
        other => other,
    }
}

/// Whether a text has a complete character reference, such as `&amp;` or `&#8217;`. A single `&` is not one.
fn has_reference(text: &str) -> bool {
    text.match_indices('&').any(|(at, _)| {
        let name = &text.as_bytes()[at + 1..];
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'#';
        let length = name.iter().take(32).take_while(is_part).count();
        length > 1 && name.get(length) == Some(&b';')
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_and_texts_are_plain() {
        for (value, expected) in [
            (json!("A &amp; B"), json!("A & B")),
            (json!("Ada&#8217;s"), json!("Ada’s")),
            (json!("&quot;x&quot;"), json!("\"x\"")),
            (json!("caf&eacute;"), json!("café")),
            (json!("&nbsp;"), json!("\u{a0}")),
            (json!("&#x1F600;"), json!("😀")),
            (json!("A & B"), json!("A & B")),
            (json!("AT&T; more"), json!("AT&T; more")),
            (json!("?a=1&copy=2"), json!("?a=1&copy=2")),
            (json!("?a=1&b=2;c"), json!("?a=1&b=2;c")),
            (json!("&nosuchthing;"), json!("&nosuchthing;")),
            (json!({"@value": "A", "@language": "en"}), json!("A")),
            (json!({"@value": 5, "@type": "xsd:integer"}), json!(5)),
            (
                json!({"@type": "Product", "name": [{"@value": "A"}, {"@value": "B"}]}),
                json!({"@type": "Product", "name": ["A", "B"]}),
            ),
            (json!({"@value": {"a": 1}}), json!({"@value": {"a": 1}})),
            (json!({"@list": [1, 2]}), json!({"@list": [1, 2]})),
            (json!(1.5), json!(1.5)),
            (json!(null), json!(null)),
        ] {
            assert_eq!(to_plain_form(value.clone()), expected, "{value}");
        }
    }
}
