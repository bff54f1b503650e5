//! Rewrites XHTML as HTML, because one parser reads both. Browsers read `application/xhtml+xml` as XML, where every
//! element may be empty (`<script src="x"/>`) and text may be in CDATA sections. For HTML, such an element would be
//! open, and could swallow the rest of the page.

use std::borrow::Cow;

use memchr::memchr;
use memchr::memmem::find;

use super::content_type;

/// The elements that have no end tag in HTML either.
const VOID_ELEMENTS: [&str; 18] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "image", "img",
    "input", "link", "meta", "param", "source", "track", "wbr",
];

/// The elements whose content is text for HTML, and is left as it is.
const RAW_ELEMENTS: [&str; 2] = ["script", "style"];

pub(super) fn is_xhtml(content_type: Option<&str>) -> bool {
    content_type
        .and_then(content_type::extract)
        .is_some_and(|declared| declared.essence == "application/xhtml+xml")
}

/// The page with end tags for its empty elements, and with escapes instead of CDATA sections.
pub(super) fn as_html(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut html = String::new();
    // Everything before `copied` is in `html`.
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + found;
        let rest = &text[start..];
        at = start + length_of_markup(rest);
        let replacement = if let Some(section) = rest.strip_prefix("<![CDATA[") {
            let content = section.split("]]>").next().unwrap_or_default();
            Some(content.replace('&', "&amp;").replace('<', "&lt;"))
        } else {
            empty_element(&text[start..at])
        };
        if let Some(replacement) = replacement {
            html.push_str(&text[copied..start]);
            html.push_str(&replacement);
            copied = at;
        } else {
            at += length_of_raw_text(&text[start..at], &text[at..]);
        }
    }
    if copied == 0 {
        return text;
    }
    html.push_str(&text[copied..]);
    Cow::Owned(html)
}

/// The length of the comment, CDATA section, tag or other markup at the beginning of `text`, which begins with `<`.
fn length_of_markup(text: &str) -> usize {
    let until = |end: &str, from: usize| {
        let found = find(&text.as_bytes()[from..], end.as_bytes());
        found.map_or(text.len(), |found| from + found + end.len())
    };
    if text.starts_with("<!--") {
        until("-->", 4)
    } else if text.starts_with("<![CDATA[") {
        until("]]>", 9)
    } else if text.starts_with("<?") {
        until("?>", 2)
    } else if text[1..].starts_with(|c: char| c.is_ascii_alphabetic()) {
        length_of_tag(text)
    } else {
        1
    }
}

/// The length of a start tag. An angle bracket within quotes does not end it.
fn length_of_tag(text: &str) -> usize {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return at + 1,
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    text.len()
}

/// The name of the element that a tag opens.
fn name_of_tag(tag: &str) -> Option<&str> {
    let name = tag.strip_prefix('<')?;
    let end = name.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'))?;
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some(&name[..end])
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The tag of an empty element as a start tag with its end tag. `None` if the markup is anything else.
fn empty_element(tag: &str) -> Option<String> {
    let name = name_of_tag(tag)?;
    let start = tag.strip_suffix("/>")?;
    // Without quotes, the slash belongs to the value, which only HTML allows.
    let last = start.rsplit(|c: char| c.is_ascii_whitespace()).next()?;
    let is_bare_value = last.contains('=') && !last.ends_with(['"', '\'']);
    (!is_bare_value && !is_one_of(&VOID_ELEMENTS, name)).then(|| format!("{start}></{name}>"))
}

/// The length of the text of a script or style sheet whose start tag is `tag`; 0 for other elements.
fn length_of_raw_text(tag: &str, content: &str) -> usize {
    let raw = name_of_tag(tag).filter(|name| is_one_of(&RAW_ELEMENTS, name));
    let Some(name) = raw else {
        return 0;
    };
    let ends = |end: &usize| {
        let behind = &content.as_bytes()[end + 2..];
        behind
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    memchr::memmem::find_iter(content.as_bytes(), b"</")
        .find(ends)
        .unwrap_or(content.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_elements_and_sections_are_written_as_html() {
        let table = [
            ("<title/><p>x", "<title></title><p>x"),
            (
                "<script src=\"a>b\" /><a id='x'/>",
                "<script src=\"a>b\" ></script><a id='x'></a>",
            ),
            ("<br/><img alt='/'/>", "<br/><img alt='/'/>"),
            ("<a href=/x/>", "<a href=/x/>"),
            ("<p><![CDATA[a < b & c]]></p>", "<p>a &lt; b &amp; c</p>"),
            ("<!-- <a/> --><b/>", "<!-- <a/> --><b></b>"),
            (
                "<script>//<![CDATA[\nw('<a/>')//]]></script><i/>",
                "<script>//<![CDATA[\nw('<a/>')//]]></script><i></i>",
            ),
            (
                "<?xml version='1.0'?>a < b <",
                "<?xml version='1.0'?>a < b <",
            ),
            ("<![CDATA[open", "open"),
            ("<p", "<p"),
        ];
        for (xhtml, html) in table {
            assert_eq!(as_html(xhtml.into()), html, "{xhtml}");
        }
        assert!(matches!(as_html("<p>x</p>".into()), Cow::Borrowed(_)));
    }
}
