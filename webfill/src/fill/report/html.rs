//! Converts foreign texts to HTML. They are escaped, shortened, and isolated, so that they cannot affect the text
//! beside them.

/// The most characters of a value or an excerpt that are shown.
const MOST: usize = 400;

/// Escapes a text: nothing in it can be a tag, an attribute or an entity, and control characters become visible.
pub fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' | '\t' => html.push(' '),
            c if c.is_control() => html.push('\u{FFFD}'),
            c => html.push(c),
        }
    }
    html
}

fn truncate_with_mark(text: &str) -> (&str, &str) {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => (&text[..end], "..."),
        None => (text, ""),
    }
}

/// Formats a value, shortened if it is long. Its writing direction does not affect the text around it.
pub fn shorten(text: &str) -> String {
    let (text, more) = truncate_with_mark(text);
    format!("<bdi>{}{more}</bdi>", escape(text))
}

/// The text around a value, with the value highlighted.
pub fn excerpt(around: &str, value: &str) -> String {
    let (around, more) = truncate_with_mark(around);
    let value = webfill_values::collapse_white_space(value);
    let marked = match around.split_once(value.as_str()) {
        Some((before, after)) if !value.is_empty() => format!(
            "{}<mark>{}</mark>{}",
            escape(before),
            escape(&value),
            escape(after)
        ),
        _ => escape(around),
    };
    format!("<bdi>{marked}{more}</bdi>")
}

/// A link if the URL leads to the web, otherwise plain text.
pub fn link(url: &str) -> String {
    let is_of_web = url.starts_with("https://") || url.starts_with("http://");
    match is_of_web {
        true => format!(
            "<a href=\"{}\" rel=\"noopener noreferrer\">{}</a>",
            escape(url),
            shorten(url)
        ),
        false => shorten(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_pages_and_tables_are_escaped() {
        let evil = "<img src=x onerror=\"alert('1')\">&amp;\u{0}\n";
        let safe = "&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;amp;\u{FFFD} ";
        assert_eq!(escape(evil), safe);
        assert_eq!(shorten(evil), format!("<bdi>{safe}</bdi>"));
        assert_eq!(
            excerpt("a <b> c", "<b>"),
            "<bdi>a <mark>&lt;b&gt;</mark> c</bdi>"
        );
        assert_eq!(excerpt("a <b>", ""), "<bdi>a &lt;b&gt;</bdi>");
        assert_eq!(
            link("javascript:alert(1)"),
            "<bdi>javascript:alert(1)</bdi>"
        );
        assert!(!link("https://a.example/\"onclick=\"x").contains("\"onclick"));
        assert_eq!(shorten(&"é".repeat(1_000)).chars().count(), MOST + 14);
    }
}
