//! Filters for text of pages and of applications, which may contain anything. It is shown, and never acted on. It is
//! escaped, characters that are invisible or reverse the line are shown by name, and long texts are cut, with their
//! length.
//!
//! | filter | of | is shown as |
//! |---|---|---|
//! | `foreign` | text or any JSON | one line of at most this many characters, by default 200 |
//! | `value` | the value of a field | text, or a list, or JSON |
//! | `lines` | text | all of it, with its line ends |
//! | `page_path` | the key of a page | the path of its view |

use std::fmt::Write as _;

use minijinja::{Environment, Value};
use serde_json::Value as Json;

use super::filters::{format_number, percent_encode};

/// How many characters are shown of a text in a list, and of the value of a field.
const MOST_IN_LINE: usize = 200;
const MOST_IN_VALUE: usize = 2_000;
/// How many items of a list are shown.
const MOST_ITEMS: usize = 20;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("foreign", |value: Value, most: Option<usize>| {
        let text = to_text(&to_json(&value));
        Value::from_safe_string(isolate_text(&text, most.unwrap_or(MOST_IN_LINE)))
    });
    environment.add_filter("value", |value: Value| {
        Value::from_safe_string(value_html(&to_json(&value)))
    });
    environment.add_filter("lines", |value: Value| {
        let text = value.as_str().unwrap_or_default();
        Value::from_safe_string(escape_letters(text.chars(), true))
    });
    environment.add_filter("page_path", |id: Value| {
        page_path(id.as_str().unwrap_or_default())
    });
}

/// The path of the page of the dashboard that shows the page with this key.
pub(crate) fn page_path(id: &str) -> String {
    let parts: Vec<String> = id.split('/').map(percent_encode).collect();
    format!("/dashboard/page/{}", parts.join("/"))
}

fn to_json(value: &Value) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

/// A text as it is, and any other value as JSON.
fn to_text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The value of a field as escaped markup.
fn value_html(value: &Json) -> String {
    match value {
        Json::Null => String::from("<span class=\"quiet\">none</span>"),
        Json::String(text) if text.is_empty() => String::from("<span class=\"quiet\">empty</span>"),
        Json::Array(items)
            if items
                .iter()
                .all(|item| !item.is_object() && !item.is_array()) =>
        {
            list_html(items)
        }
        Json::Array(_) | Json::Object(_) => {
            format!(
                "<code>{}</code>",
                isolate_text(&value.to_string(), MOST_IN_VALUE)
            )
        }
        other => isolate_text(&to_text(other), MOST_IN_VALUE),
    }
}

fn list_html(items: &[Json]) -> String {
    let mut html = String::from("<ul class=\"values\">");
    for item in items.iter().take(MOST_ITEMS) {
        let _ = write!(
            html,
            "<li>{}</li>",
            isolate_text(&to_text(item), MOST_IN_LINE)
        );
    }
    if items.len() > MOST_ITEMS {
        let more = format_number((items.len() - MOST_ITEMS) as f64);
        let _ = write!(html, "<li class=\"quiet\">and {more} more</li>");
    }
    html + "</ul>"
}

/// A foreign text in an element that isolates its direction, so that direction marks in it do not affect other text.
fn isolate_text(text: &str, most: usize) -> String {
    let shown = escape_letters(text.chars().take(most), false);
    let length = text.chars().count();
    match length > most {
        true => format!(
            "<bdi>{shown}…</bdi> <span class=\"quiet\">({}\u{a0}characters)</span>",
            format_number(length as f64)
        ),
        false => format!("<bdi>{shown}</bdi>"),
    }
}

fn escape_letters(text: impl Iterator<Item = char>, has_lines: bool) -> String {
    let mut escaped = String::new();
    for letter in text {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            '\n' | '\t' if has_lines => escaped.push(letter),
            // Unicode has visible symbols for control characters, from U+2400 on.
            '\0'..='\x1f' => escaped.extend(char::from_u32(0x2400 + letter as u32)),
            letter if is_invisible(letter) => {
                let _ = write!(escaped, "[U+{:04X}]", letter as u32);
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Whether a character is invisible and changes how other characters are shown or copied. Joiners are excluded, because
/// some languages need them.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn markup_is_text_and_invisible_characters_are_shown() {
        assert_eq!(
            isolate_text("<img src=x onerror='a'>&\"", 100),
            "<bdi>&lt;img src=x onerror=&#x27;a&#x27;&gt;&amp;&quot;</bdi>"
        );
        assert_eq!(
            isolate_text("a\u{202e}b\u{0}c\nd\u{200b}\u{7f}", 100),
            "<bdi>a[U+202E]b\u{2400}c\u{240a}d[U+200B][U+007F]</bdi>"
        );
        assert_eq!(
            isolate_text("می\u{200c}خواهم", 100),
            "<bdi>می\u{200c}خواهم</bdi>"
        );
        assert_eq!(escape_letters("a\n\tb\r".chars(), true), "a\n\tb\u{240d}");
    }

    #[test]
    fn long_texts_are_cut_with_their_length() {
        let reported = isolate_text(&"ü".repeat(1_234), 10);
        assert_eq!(reported.matches('ü').count(), 10);
        assert!(
            reported.contains("(1\u{a0}234\u{a0}characters)"),
            "{reported}"
        );
        let items: Vec<Json> = (0..50).map(Json::from).collect();
        let reported = value_html(&Json::from(items));
        assert_eq!(reported.matches("<li>").count(), MOST_ITEMS);
        assert!(reported.contains("and 30 more"), "{reported}");
    }

    #[test]
    fn values_are_shown_by_their_kind() {
        for (value, reported) in [
            (json!(null), "<span class=\"quiet\">none</span>"),
            (json!(""), "<span class=\"quiet\">empty</span>"),
            (json!(3.5), "<bdi>3.5</bdi>"),
            (json!(true), "<bdi>true</bdi>"),
            (json!("<b>"), "<bdi>&lt;b&gt;</bdi>"),
            (
                json!(["<b>"]),
                "<ul class=\"values\"><li><bdi>&lt;b&gt;</bdi></li></ul>",
            ),
            (
                json!({"<b>": 1}),
                "<code><bdi>{&quot;&lt;b&gt;&quot;:1}</bdi></code>",
            ),
        ] {
            assert_eq!(value_html(&value), reported);
        }
    }

    #[test]
    fn the_key_of_a_page_gives_the_path_of_its_view() {
        assert_eq!(page_path("a b/c?/0f"), "/dashboard/page/a%20b/c%3F/0f");
    }
}
