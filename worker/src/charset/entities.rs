//! Replaces references to the entities that an XML page declares in its `DOCTYPE`: `<!ENTITY co "Example Ltd">` and
//! `&co;`. Only entities with their text in the page itself count. Nothing is fetched.
//!
//! The text that is added is limited, so that nested entities cannot fill the memory. A page beyond the limits keeps
//! its references.

use std::borrow::Cow;
use std::collections::HashMap;

/// The most bytes that references may add to a page.
const MOST_ADDED_BYTES: usize = 1 << 20;

/// How deep entities may refer to each other. An entity that refers to itself exceeds it.
const MOST_LEVELS: usize = 16;

/// The most references that are replaced, those to empty entities included.
const MOST_REFERENCES: usize = 100_000;

type Entities<'t> = HashMap<&'t str, String>;

/// Replaces the references in a page.
pub(super) fn expand(text: Cow<'_, str>) -> Cow<'_, str> {
    let expanded = find_subset(&text).and_then(|(subset, content_at)| {
        let entities = read_declarations(subset);
        let writer = Writer::new(&entities);
        (!entities.is_empty()).then(|| writer.expand_content(&text, content_at))?
    });
    expanded.map_or(text, Cow::Owned)
}

/// The internal subset of the page's `DOCTYPE`, and where the content behind the `DOCTYPE` begins.
fn find_subset(text: &str) -> Option<(&str, usize)> {
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let rest = &text[at..];
        if rest.starts_with("<?") || rest.starts_with("<!--") {
            at += length_of_skipped(rest)?;
            continue;
        }
        let declaration = rest.strip_prefix("<!DOCTYPE")?;
        let open = find_outside_quotes(declaration, &['[', '>'])?;
        let subset = declaration[open..].strip_prefix('[')?;
        let end = end_of_subset(subset)?;
        let begin = at + "<!DOCTYPE".len() + open + 1;
        return Some((&text[begin..begin + end], begin + end + 1));
    }
}

/// The length of the comment or processing instruction at the beginning of `text`.
fn length_of_skipped(text: &str) -> Option<usize> {
    let end = if text.starts_with("<!--") {
        "-->"
    } else {
        "?>"
    };
    text.find(end).map(|at| at + end.len())
}

fn find_outside_quotes(text: &str, wanted: &[char]) -> Option<usize> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if wanted.contains(&character) => return Some(at),
            None if matches!(character, '"' | '\'') => quote = Some(character),
            None => {}
        }
    }
    None
}

/// Where the closing bracket of the subset is.
fn end_of_subset(subset: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = subset[at..].find([']', '<'])?;
        at += found;
        let rest = &subset[at..];
        if rest.starts_with(']') {
            return Some(at);
        }
        at += match rest.starts_with("<!--") || rest.starts_with("<?") {
            true => length_of_skipped(rest)?,
            false => find_outside_quotes(rest, &['>'])? + 1,
        };
    }
}

/// The declared entities with their texts. The first declaration of a name counts.
fn read_declarations(subset: &str) -> Entities<'_> {
    let mut entities = Entities::new();
    let mut rest = subset;
    while let Some(found) = rest.find('<') {
        rest = &rest[found..];
        let length = match rest.starts_with("<!--") || rest.starts_with("<?") {
            true => length_of_skipped(rest),
            false => find_outside_quotes(rest, &['>']).map(|end| end + 1),
        };
        let Some(length) = length else { break };
        if let Some((name, value)) = read_entity(&rest[..length]) {
            entities
                .entry(name)
                .or_insert_with(|| resolve_characters(value));
        }
        rest = &rest[length..];
    }
    entities
}

/// Name and text of `<!ENTITY name "text">`; `None` for parameter entities, external entities and other declarations.
fn read_entity(declaration: &str) -> Option<(&str, &str)> {
    let inner = declaration.strip_prefix("<!ENTITY")?;
    let named = inner.trim_start();
    if named.len() == inner.len() {
        return None;
    }
    let (name, value) = named.split_once(char::is_whitespace)?;
    let value = value.trim_start();
    let quote = value
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '\''))?;
    let (value, _) = value[1..].split_once(quote)?;
    (name != "%").then_some((name, value))
}

/// Replaces the numeric references in a declared text, as the declaration itself does (XML 1.0, 4.4.5).
fn resolve_characters(value: &str) -> String {
    let mut resolved = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find("&#") {
        resolved.push_str(&rest[..at]);
        let inner = &rest[at + 2..];
        let character = inner.split_once(';').and_then(|(number, behind)| {
            let code = match number.strip_prefix('x') {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            Some((char::from_u32(code.ok()?)?, behind))
        });
        match character {
            Some((character, behind)) => {
                resolved.push(character);
                rest = behind;
            }
            None => {
                resolved.push_str("&#");
                rest = inner;
            }
        }
    }
    resolved + rest
}

struct Writer<'e> {
    entities: &'e Entities<'e>,
    written: String,
    added_bytes: usize,
    references: usize,
}

impl<'e> Writer<'e> {
    fn new(entities: &'e Entities<'e>) -> Writer<'e> {
        Writer {
            entities,
            written: String::new(),
            added_bytes: 0,
            references: 0,
        }
    }

    /// The page with the references behind `content_at` replaced. `None` if it has none, or if it exceeds a limit.
    fn expand_content(mut self, text: &str, content_at: usize) -> Option<String> {
        self.written.push_str(&text[..content_at]);
        let mut rest = &text[content_at..];
        while let Some(found) = rest.find('<') {
            self.expand_text(&rest[..found], false, 0)?;
            rest = &rest[found..];
            let is_kept = rest.starts_with("<![CDATA[");
            let length = match is_kept {
                true => rest.find("]]>").map(|at| at + 3),
                false if rest.starts_with("<!--") || rest.starts_with("<?") => {
                    length_of_skipped(rest)
                }
                false => find_outside_quotes(rest, &['>']).map(|end| end + 1),
            };
            let (markup, behind) = rest.split_at(length.unwrap_or(rest.len()));
            match is_kept || markup.starts_with("<!") || markup.starts_with("<?") {
                true => self.written.push_str(markup),
                false => self.expand_text(markup, true, 0)?,
            }
            rest = behind;
        }
        self.expand_text(rest, false, 0)?;
        (self.references > 0).then_some(self.written)
    }

    /// Writes a text with its references replaced. Within a tag, characters of markup become references of their own.
    fn expand_text(&mut self, text: &str, is_in_tag: bool, level: usize) -> Option<()> {
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            self.push(&rest[..at], is_in_tag, level)?;
            rest = &rest[at..];
            let name = rest[1..].split_once(';').map(|(name, _)| name);
            let entities = self.entities;
            let known = name.and_then(|name| Some((name, entities.get(name)?)));
            let Some((name, value)) = known else {
                self.push("&", is_in_tag, level)?;
                rest = &rest[1..];
                continue;
            };
            self.references += 1;
            if level >= MOST_LEVELS || self.references > MOST_REFERENCES {
                return None;
            }
            self.expand_text(value, is_in_tag, level + 1)?;
            rest = &rest[name.len() + 2..];
        }
        self.push(rest, is_in_tag, level)
    }

    fn push(&mut self, text: &str, is_in_tag: bool, level: usize) -> Option<()> {
        if level == 0 {
            self.written.push_str(text);
            return Some(());
        }
        self.added_bytes += text.len();
        if self.added_bytes > MOST_ADDED_BYTES {
            return None;
        }
        match is_in_tag {
            true => self.written.push_str(
                &text
                    .replace('<', "&lt;")
                    .replace('"', "&quot;")
                    .replace('\'', "&apos;"),
            ),
            false => self.written.push_str(text),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(subset: &str, content: &str) -> String {
        let page = format!("<?xml version='1.0'?>\n<!-- a --><!DOCTYPE r [{subset}]>{content}");
        let text = expand(Cow::Borrowed(&page)).into_owned();
        text.split_once("]>").unwrap().1.to_owned()
    }

    #[test]
    fn references_to_declared_entities_are_replaced() {
        for (subset, content, expected) in [
            (
                r#"<!ENTITY co "Example &amp; Co">"#,
                "<r>&co; &amp; &other;</r>",
                "<r>Example &amp; Co &amp; &other;</r>",
            ),
            (
                "<!ENTITY a 'one'><!ENTITY b \"&a;, two\">",
                "<r>&b;</r>",
                "<r>one, two</r>",
            ),
            (
                "<!ENTITY a 'first'><!ENTITY a 'second'>",
                "<r>&a;</r>",
                "<r>first</r>",
            ),
            (
                "<!-- <!ENTITY a 'no'> ] --><!ELEMENT r (#PCDATA)><!ENTITY a 'x'>",
                "<r>&a;</r>",
                "<r>x</r>",
            ),
            ("<!ENTITY a '<b>x</b>'>", "<r>&a;</r>", "<r><b>x</b></r>"),
            (
                "<!ENTITY a '&#233;&#xe9;&#38;lt;'>",
                "<r>&a;</r>",
                "<r>éé&lt;</r>",
            ),
            (
                "<!ENTITY a 'x\"y'>",
                "<r t=\"&a;\"/>",
                "<r t=\"x&quot;y\"/>",
            ),
            (
                "<!ENTITY a 'x'>",
                "<r><![CDATA[&a;]]><!-- &a; -->&a;</r>",
                "<r><![CDATA[&a;]]><!-- &a; -->x</r>",
            ),
            (
                "<!ENTITY % a 'x'><!ENTITY b SYSTEM 'file:///etc/passwd'>",
                "<r>&a;&b;</r>",
                "<r>&a;&b;</r>",
            ),
            ("<!ENTITY a '&a;'>", "<r>&a;</r>", "<r>&a;</r>"),
            (
                "<!ENTITY a '&b;'><!ENTITY b '&a;'>",
                "<r>&a;</r>",
                "<r>&a;</r>",
            ),
        ] {
            let found = expanded(subset, content);
            assert!(found.ends_with(expected), "{subset}: {found}");
        }
    }

    #[test]
    fn entities_cannot_fill_the_memory() {
        let mut subset = String::from("<!ENTITY a0 'lollollol'>");
        for level in 1..12 {
            let nested = format!("&a{};", level - 1).repeat(10);
            subset.push_str(&format!("<!ENTITY a{level} '{nested}'>"));
        }
        assert_eq!(expanded(&subset, "<r>&a11;</r>"), "<r>&a11;</r>");
        let empty = subset.replace("lollollol", "");
        assert_eq!(expanded(&empty, "<r>&a11;</r>"), "<r>&a11;</r>");
        let long = format!("<!ENTITY a '{}'>", "x".repeat(2_000));
        let content = format!("<r>{}</r>", "&a;".repeat(2_000));
        assert_eq!(expanded(&long, &content), content);
    }

    #[test]
    fn other_pages_stay_as_they_are() {
        for page in [
            "",
            "<r>&a;</r>",
            "<!DOCTYPE r><r>&a;</r>",
            "<!DOCTYPE r [",
            "<!DOCTYPE r [<!ENTITY a 'x'",
            "<!DOCTYPE r [<!ENTITY",
            "<!DOCTYPE r ['<'",
        ] {
            assert!(
                matches!(expand(Cow::Borrowed(page)), Cow::Borrowed(_)),
                "{page}"
            );
        }
    }
}
