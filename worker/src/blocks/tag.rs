//! The part of HTML's syntax needed to find a tag's end and its attributes without a tree.

use memchr::memchr3;

/// The number of bytes that are searched one by one, before the vectorised search begins. Most tags are too short for it.
const SHORT: usize = 16;

/// The end of the tag that begins at `start` (its `<`): the position after its `>`. A tag that is never closed reaches
/// to the end of the text.
pub fn end_of_tag(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = find_end_or_quote(&text[at..]) {
        let here = at + found;
        if text[here] == b'>' {
            return here + 1;
        }
        at = here + 1;
        // A quote opens a value only after `=`; elsewhere it is a character like any other.
        if text[start..here].trim_ascii_end().last() == Some(&b'=') {
            match memchr::memchr(text[here], &text[at..]) {
                Some(length) => at += length + 1,
                None => break,
            }
        }
    }
    text.len()
}

/// The first `>` or quote.
fn find_end_or_quote(text: &[u8]) -> Option<usize> {
    let (near, far) = text.split_at(text.len().min(SHORT));
    let found = near
        .iter()
        .position(|byte| matches!(byte, b'>' | b'"' | b'\''));
    found.or_else(|| Some(near.len() + memchr3(b'>', b'"', b'\'', far)?))
}

/// The name of the tag that begins at `start`, in its original case; empty if the `<` is not followed by a letter.
pub fn tag_name(text: &str, start: usize) -> &str {
    let rest = &text[start + 1..];
    let length = rest
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        .count();
    match rest.as_bytes().first() {
        Some(first) if first.is_ascii_alphabetic() => &rest[..length],
        _ => "",
    }
}

/// The value of an attribute within a tag (from its `<` to its `>`), as written; the first of several counts. An
/// attribute without a value has an empty one.
pub fn attribute<'t>(tag: &'t str, wanted: &str) -> Option<&'t str> {
    let name_length = tag_name(tag, 0).len();
    let mut rest = tag[1 + name_length..].trim_end_matches('>');
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        let (name, after) = rest.split_at(length_of_name(rest));
        let (value, after) = split_value(after);
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = after;
    }
}

/// The length of the attribute name that `rest` begins with. An `=` at its very beginning is part of the name.
fn length_of_name(rest: &str) -> usize {
    let is_end = |c: char| c.is_ascii_whitespace() || c == '=' || c == '/';
    let mut characters = rest.char_indices().skip(1);
    let end = characters.find(|(_, character)| is_end(*character));
    end.map_or(rest.len(), |(at, _)| at)
}

fn split_value(rest: &str) -> (&str, &str) {
    let Some(value) = rest.trim_ascii_start().strip_prefix('=') else {
        return ("", rest);
    };
    let value = value.trim_ascii_start();
    let quote = match value.as_bytes().first() {
        Some(quote @ (b'"' | b'\'')) => *quote as char,
        _ => {
            let end = value.find(|c: char| c.is_ascii_whitespace());
            return value.split_at(end.unwrap_or(value.len()));
        }
    };
    match value[1..].split_once(quote) {
        Some((inner, after)) => (inner, after),
        None => (&value[1..], ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_ends_at_the_first_angle_bracket_outside_quoted_values() {
        for (text, end) in [
            ("<p>x", 3),
            ("<a title='>'>x", 13),
            ("<a title = \">\">x", 15),
            ("<a title=it's>x", 14),
            ("<a \"'>x", 6),
            ("<a title='never closed>x", 24),
            ("<a", 2),
        ] {
            assert_eq!(end_of_tag(text.as_bytes(), 0), end, "{text}");
        }
    }

    #[test]
    fn attributes_are_found_however_they_are_quoted() {
        let tag = "<META/HTTP-EQUIV=refresh content = '0; url=\"/x\"' checked é=ü>";
        assert_eq!(attribute(tag, "http-equiv"), Some("refresh"));
        assert_eq!(attribute(tag, "content"), Some("0; url=\"/x\""));
        assert_eq!(attribute(tag, "checked"), Some(""));
        assert_eq!(attribute(tag, "é"), Some("ü"));
        assert_eq!(attribute(tag, "url"), None);
        assert_eq!(attribute("<é>", "x"), None);
        assert_eq!(
            attribute("<a href='never closed>", "href"),
            Some("never closed")
        );
    }
}
