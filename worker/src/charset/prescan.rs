//! Finds the encoding that a page declares, before the page is parsed. Follows "prescan a byte stream to determine its
//! encoding" of the HTML Standard (13.2.3.2), the declaration of XML included. Unlike the standard, it skips the
//! contents of scripts, titles and the like: what looks like a tag there is text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Elements whose content is always text.
const TEXT_ELEMENTS: [&[u8]; 8] = [
    b"script",
    b"style",
    b"title",
    b"textarea",
    b"xmp",
    b"iframe",
    b"noembed",
    b"noframes",
];

/// The declared encoding, if there is one and it is known.
pub(super) fn declared_encoding(head: &[u8]) -> Option<&'static Encoding> {
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    xml_declared_encoding(head).or_else(|| meta_declared_encoding(head))
}

/// The encoding that a label names. A declaration that is readable as ASCII cannot be in UTF-16, so a declared UTF-16
/// means UTF-8 (HTML Standard).
fn encoding_of_label(label: &[u8]) -> Option<&'static Encoding> {
    match webfill_urls::encoding_of_label(label)? {
        encoding if encoding == UTF_16LE || encoding == UTF_16BE => Some(UTF_8),
        encoding if encoding == X_USER_DEFINED => Some(WINDOWS_1252),
        encoding => Some(encoding),
    }
}

/// The encoding declared by `<?xml version="1.0" encoding="..."?>`.
fn xml_declared_encoding(head: &[u8]) -> Option<&'static Encoding> {
    if !head.starts_with(b"<?xml") {
        return None;
    }
    let declaration = &head[..find_bytes(head, b">")?];
    let behind = &declaration[find_bytes(declaration, b"encoding")? + b"encoding".len()..];
    let value = behind.trim_ascii_start().strip_prefix(b"=")?;
    let (quote, value) = value.trim_ascii_start().split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    encoding_of_label(value.split(|b| b == quote).next()?)
}

/// The encoding declared by `<meta charset>` or `<meta http-equiv=content-type content>`, outside comments, other tags
/// and texts.
fn meta_declared_encoding(head: &[u8]) -> Option<&'static Encoding> {
    let mut rest = head;
    loop {
        rest = &rest[find_bytes(rest, b"<")?..];
        if rest.starts_with(b"<!--") {
            // The dashes of "-->" may be those of "<!--", so the search begins at them.
            rest = &rest[2..];
            rest = &rest[find_bytes(rest, b"-->")? + 3..];
            continue;
        }
        let (tag, behind) = parse_tag(rest);
        if let Some(mut attributes) = tag {
            let is_meta = attributes.name.eq_ignore_ascii_case(b"meta");
            let found = is_meta.then(|| encoding_of_meta(&mut attributes)).flatten();
            if found.is_some() {
                return found;
            }
            // Skip the rest of the tag; an angle bracket within quotes does not end it.
            while attributes.next().is_some() {}
            rest = skip_text_element(attributes.name, attributes.rest)?;
        } else {
            rest = behind;
        }
    }
}

/// Skips the text of an element like `<script>`, whose start tag was just read, and returns the rest after the text;
/// `None` if the text does not end. Elements outside [`TEXT_ELEMENTS`] have no such text.
fn skip_text_element<'a>(name: &[u8], content: &'a [u8]) -> Option<&'a [u8]> {
    let is_name = |known: &&&[u8]| name.eq_ignore_ascii_case(known);
    let Some(name) = TEXT_ELEMENTS.iter().find(is_name) else {
        return Some(content);
    };
    let mut rest = content;
    loop {
        rest = &rest[find_bytes(rest, b"</")?..];
        let tag = &rest[2..];
        let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b'>');
        let is_same = tag
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name));
        if is_same && tag.get(name.len()).is_some_and(ends) {
            return Some(rest);
        }
        rest = tag;
    }
}

/// Parses the start or end tag that a text begins with, and returns it with the rest after it. For other markup, such
/// as `<!DOCTYPE ...>`, returns `None` and the rest.
fn parse_tag(text: &[u8]) -> (Option<Attributes<'_>>, &[u8]) {
    let inner = &text[1..];
    let name = inner.strip_prefix(b"/").unwrap_or(inner);
    if name.first().is_some_and(u8::is_ascii_alphabetic) {
        let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b'>');
        let length = name.iter().position(ends).unwrap_or(name.len());
        let is_end_tag = name.len() < inner.len();
        let attributes = Attributes {
            name: if is_end_tag { b"" } else { &name[..length] },
            rest: &name[length..],
        };
        return (Some(attributes), &[]);
    }
    if matches!(inner.first(), Some(b'!' | b'/' | b'?')) {
        let end = find_bytes(inner, b">").unwrap_or(inner.len());
        return (None, &inner[end..]);
    }
    (None, inner)
}

fn encoding_of_meta(attributes: &mut Attributes<'_>) -> Option<&'static Encoding> {
    let mut charset = None;
    let mut content = None;
    let mut is_content_type = false;
    for (name, value) in attributes {
        match name.to_ascii_lowercase().as_slice() {
            b"charset" => charset = charset.or(Some(value)),
            b"content" => content = content.or_else(|| find_charset_label(value)),
            b"http-equiv" => is_content_type |= value.eq_ignore_ascii_case(b"content-type"),
            _ => {}
        }
    }
    let label = charset.or(content.filter(|_| is_content_type))?;
    encoding_of_label(label)
}

/// The label after `charset=` within the value of a `content` attribute.
fn find_charset_label(content: &[u8]) -> Option<&[u8]> {
    let lower = content.to_ascii_lowercase();
    let mut from = 0;
    loop {
        from += find_bytes(&lower[from..], b"charset")? + b"charset".len();
        let Some(value) = content[from..].trim_ascii_start().strip_prefix(b"=") else {
            continue;
        };
        let value = value.trim_ascii_start();
        return match value.split_first() {
            Some((quote @ (b'"' | b'\''), quoted)) => {
                Some(&quoted[..quoted.iter().position(|b| b == quote)?])
            }
            _ => {
                let ends = |b: &u8| b.is_ascii_whitespace() || *b == b';';
                Some(&value[..value.iter().position(ends).unwrap_or(value.len())])
            }
        };
    }
}

/// Iterates over the attributes of a tag. After the last attribute, `rest` is the text after the tag.
struct Attributes<'a> {
    /// The tag's name; empty for an end tag.
    name: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip(|b| b.is_ascii_whitespace() || b == b'/');
        if matches!(self.rest.first(), None | Some(b'>')) {
            return None;
        }
        // By the HTML Standard, the name of an attribute may begin with "=".
        let name_end = 1 + length_until(&self.rest[1..], |b| {
            b.is_ascii_whitespace() || matches!(b, b'=' | b'/' | b'>')
        });
        let name = self.take(name_end);
        self.skip(|b| b.is_ascii_whitespace());
        let Some(value) = self.rest.strip_prefix(b"=") else {
            return Some((name, b""));
        };
        self.rest = value;
        self.skip(|b| b.is_ascii_whitespace());
        Some((name, self.read_value()))
    }
}

impl<'a> Attributes<'a> {
    fn read_value(&mut self) -> &'a [u8] {
        let quote = match self.rest.first() {
            Some(quote @ (b'"' | b'\'')) => *quote,
            _ => {
                let end = length_until(self.rest, |b| b.is_ascii_whitespace() || b == b'>');
                return self.take(end);
            }
        };
        self.take(1);
        let end = length_until(self.rest, |b| b == quote);
        let value = self.take(end);
        self.take(1);
        value
    }

    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn skip(&mut self, skipped: impl Fn(u8) -> bool) {
        let end = length_until(self.rest, |b| !skipped(b));
        self.take(end);
    }
}

/// The number of bytes before the first one where `ends` holds.
fn length_until(text: &[u8], ends: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|b| ends(*b)).unwrap_or(text.len())
}

fn find_bytes(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}
