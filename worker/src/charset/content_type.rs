//! Reads a `Content-Type` header as browsers do: the Fetch Standard's "extract a MIME type" from the
//! list of its values, each parsed by the MIME Sniffing Standard (4.4).

/// The content of a `Content-Type` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContentType {
    /// Type and subtype, in lower case: `text/html`.
    pub(super) essence: String,
    pub(super) charset: Option<String>,
}

/// Reads a header, which may be a list of values. The last value that is a MIME type decides. Without a charset of its
/// own, it takes the charset of the previous value if both have the same essence. `None` if no value is a MIME type.
pub(super) fn extract(header: &str) -> Option<ContentType> {
    let mut extracted: Option<ContentType> = None;
    for value in split_values(header) {
        let Some(mut found) = parse(value).filter(|found| found.essence != "*/*") else {
            continue;
        };
        if found.charset.is_none()
            && let Some(before) = extracted.filter(|before| before.essence == found.essence)
        {
            found.charset = before.charset;
        }
        extracted = Some(found);
    }
    extracted
}

/// The values of the header, separated by commas outside quoted strings.
fn split_values(header: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    header.split(move |c| {
        let is_escaped = std::mem::take(&mut escaped);
        match c {
            '\\' if quoted => escaped = !is_escaped,
            '"' if !is_escaped => quoted = !quoted,
            _ => {}
        }
        c == ',' && !quoted
    })
}

fn parse(value: &str) -> Option<ContentType> {
    let (essence, mut parameters) = value.split_once(';').unwrap_or((value, ""));
    let (kind, subtype) = essence.trim_matches(is_space).split_once('/')?;
    if !is_token(kind) || !is_token(subtype) {
        return None;
    }
    let mut charset = None;
    while !parameters.is_empty() {
        let (parameter, behind) = parse_parameter(parameters);
        parameters = behind;
        if let Some((name, value)) = parameter
            && name.eq_ignore_ascii_case("charset")
        {
            charset = charset.or(Some(value));
        }
    }
    Some(ContentType {
        essence: format!("{kind}/{subtype}").to_ascii_lowercase(),
        charset,
    })
}

/// Parses the first parameter of `text` (`None` if it is invalid), and returns it with the text after its semicolon.
fn parse_parameter(text: &str) -> (Option<(&str, String)>, &str) {
    let text = text.trim_start_matches(is_space);
    let name_end = text.find([';', '=']).unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    let Some(rest) = rest.strip_prefix('=') else {
        return (None, rest.get(1..).unwrap_or_default());
    };
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => unquote(quoted),
        None => {
            let end = rest.find(';').unwrap_or(rest.len());
            let value = rest[..end].trim_end_matches(is_space);
            (value.to_owned(), &rest[end..])
        }
    };
    let was_quoted = text[name_end..].starts_with("=\"");
    let behind = rest.split_once(';').map_or("", |(_, behind)| behind);
    let counts =
        is_token(name) && value.chars().all(is_quotable) && (was_quoted || !value.is_empty());
    (counts.then_some((name, value)), behind)
}

/// Removes the quotes of a quoted string. `text` begins after the opening quote, and the closing quote may be missing.
/// Returns the text within the quotes, and the rest.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(characters.next().map_or('\\', |(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

/// Whether a character is white space by the HTTP standard.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn is_token(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Characters allowed in a quoted string. The header has been decoded, so all non-ASCII characters are allowed.
fn is_quotable(c: char) -> bool {
    c == '\t' || !c.is_ascii() || matches!(c, ' '..='~')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract_charset(header: &str) -> Option<(String, Option<String>)> {
        extract(header).map(|found| (found.essence, found.charset))
    }

    /// The expected results are those of the Web Platform Tests (fetch/content-type).
    #[test]
    fn the_last_mime_type_of_a_list_decides() {
        for (header, essence, charset) in [
            (", text/plain", "text/plain", None),
            ("text/plain, ", "text/plain", None),
            ("text/html, text/plain", "text/plain", None),
            ("text/plain;charset=gbk, text/html", "text/html", None),
            (
                "text/plain;charset=gbk, text/html;charset=cp1254",
                "text/html",
                Some("cp1254"),
            ),
            (
                "text/plain;charset=gbk, text/plain",
                "text/plain",
                Some("gbk"),
            ),
            (
                "text/plain;charset=gbk,text/plain;charset=a",
                "text/plain",
                Some("a"),
            ),
            (
                "text/html;charset=gbk, text/html;x=\",text/plain",
                "text/html",
                Some("gbk"),
            ),
            (
                "text/html;charset=gbk, text/plain, text/html",
                "text/html",
                None,
            ),
            ("text/plain, */*", "text/plain", None),
            ("*/*, text/html", "text/html", None),
            ("text/html, */*;charset=gbk", "text/html", None),
            ("text/html;x=\", text/plain", "text/html", None),
            ("text/html;\", text/plain", "text/html", None),
            ("text/html;charset=a, nonsense", "text/html", Some("a")),
            (
                "text/html; x=\"a\\\",b\"; charset=gbk",
                "text/html",
                Some("gbk"),
            ),
        ] {
            let expected = (essence.to_owned(), charset.map(str::to_owned));
            assert_eq!(extract_charset(header), Some(expected), "{header}");
        }
        for header in [
            "",
            ",",
            "html",
            "*/*",
            "; charset=gbk",
            "charset=a, b",
            "te xt/html",
            "/x",
        ] {
            assert_eq!(extract_charset(header), None, "{header}");
        }
    }

    /// The cases are based on those of the Web Platform Tests (mimesniff/mime-types).
    #[test]
    fn parameters_are_read_by_the_standard() {
        for (parameters, charset) in [
            (";charset=gbk", Some("gbk")),
            (";\tCHARSET=GBK ; x=y", Some("GBK")),
            (";charset=\"gbk\"", Some("gbk")),
            (";charset=\"gbk", Some("gbk")),
            (";charset=\"\\ gbk\"x;charset=a", Some(" gbk")),
            (";charset=;charset=gbk", Some("gbk")),
            (";charset=\"\";charset=gbk", Some("")),
            (";charset=gbk;charset=windows-1255", Some("gbk")),
            (";charset= gbk", Some(" gbk")),
            (";charset='gbk'", Some("'gbk'")),
            (";charset =gbk", None),
            (";x=\"bar;charset=gbk", None),
            (";x=bar;charset=gbk", Some("gbk")),
            (";test;charset=gbk", Some("gbk")),
            (";;;;charset=gbk", Some("gbk")),
            (";charset=\u{7f};charset=gbk", Some("gbk")),
            (";=;charset=gbk", Some("gbk")),
            (";charset", None),
            (";charset=", None),
        ] {
            let header = format!("text/html{parameters}");
            let expected = (String::from("text/html"), charset.map(str::to_owned));
            assert_eq!(extract_charset(&header), Some(expected), "{header}");
        }
    }
}
