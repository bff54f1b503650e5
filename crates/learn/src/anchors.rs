//! Anchors: what identifies an element on all pages of a site, such as its id, its class or its text, as conditions of
//! XPath expressions.

use webfill_document::NodeRef;

use crate::generated::looks_generated;
use crate::labels::{Labels, Leaks};
use crate::places::Places;
use crate::survival::Anchor;

/// An XPath condition that a node has this text, in the form of this page or of other pages.
pub(crate) fn text_condition(written: &str, text: &str, labels: &Labels) -> Option<String> {
    let normal = match written.contains('\u{a0}') {
        true => "normalize-space(translate(.,'\u{a0}',' '))",
        false => "normalize-space(.)",
    };
    let says = |text: &str| Some(format!("{normal}={}", xpath_literal(text)?));
    let this = says(text)?;
    let other = labels.other_form(text).and_then(|other| says(&other));
    Some(match other {
        Some(other) => format!("{this} or {other}"),
        None => this,
    })
}

/// The text as an XPath literal; `None` if it contains both kinds of quotes.
pub(crate) fn xpath_literal(text: &str) -> Option<String> {
    match (text.contains('\''), text.contains('"')) {
        (false, _) => Some(format!("'{text}'")),
        (true, false) => Some(format!("\"{text}\"")),
        (true, true) => None,
    }
}

/// The longest name of an element, attribute or class that is used as an anchor.
const LONGEST_NAME: usize = 60;
const LONGEST_CLASS: usize = 160;

/// The anchors that an element itself offers, such as its id or its class.
pub(crate) fn own_anchors(
    page: &Places<'_>,
    node: NodeRef<'_>,
    leaks: &Leaks,
) -> Vec<(Anchor, String, f64)> {
    let Some(tag) = node.tag().filter(|tag| is_valid_step_name(tag)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if matches!(tag, "h1" | "title") {
        found.push((Anchor::Heading, format!("//{tag}"), 0.0));
    }
    for attribute in node.attributes().take(24) {
        let (name, value) = (attribute.name(), attribute.value().trim());
        if name == "class" {
            push_class_anchors(page, node, tag, attribute.value(), leaks, &mut found);
            continue;
        }
        if name == "href" && tag == "a" {
            if let Some(start) = first_segment(value).filter(|start| !leaks.occur_in(start)) {
                found.push((
                    Anchor::Link,
                    format!("//a[starts-with(@href,'{start}')]"),
                    0.0,
                ));
            }
            continue;
        }
        let anchor = match name {
            _ if !is_valid_step_name(name) => continue,
            "id" => Anchor::Id,
            "itemprop" | "property" | "rel" | "headers" | "title" | "aria-label" => {
                Anchor::Itemprop
            }
            _ if name.starts_with("data-") => Anchor::Data,
            _ => continue,
        };
        if value.is_empty() || value.len() > 60 || looks_generated(value) || leaks.occur_in(value) {
            continue;
        }
        if let Some(text) = xpath_literal(value) {
            let of = if anchor == Anchor::Id { "*" } else { tag };
            found.push((anchor, format!("//{of}[@{name}={text}]"), 0.0));
        }
    }
    found
}

fn push_class_anchors(
    page: &Places<'_>,
    node: NodeRef<'_>,
    tag: &str,
    class: &str,
    leaks: &Leaks,
    found: &mut Vec<(Anchor, String, f64)>,
) {
    let tokens = class.split_whitespace().take(6);
    let tokens: Vec<&str> = tokens.filter(|token| token.len() <= LONGEST_NAME).collect();
    let is_good = |token: &&str| !looks_generated(token) && !leaks.occur_in(token);
    for token in tokens.iter().copied().filter(|token| is_good(token)) {
        if let (Some(text), true) = (xpath_literal(&format!(" {token} ")), tokens.len() > 1) {
            let test = format!("contains(concat(' ', normalize-space(@class), ' '), {text})");
            found.push((Anchor::ClassToken, format!("//{tag}[{test}]"), 0.0));
        }
    }
    if tokens.is_empty() || !tokens.iter().all(is_good) {
        return;
    }
    if !is_short_class(class) {
        return;
    }
    let Some(text) = xpath_literal(class) else {
        return;
    };
    let whole = format!("//{tag}[@class={text}]");
    let kind = if tokens.len() == 1 {
        Anchor::ClassToken
    } else {
        Anchor::WholeClass
    };
    let equal = page
        .by_class
        .get(&(tag, class))
        .map_or(&[][..], Vec::as_slice);
    let number = equal
        .iter()
        .position(|position| *position == node.position());
    if let Some(number) = number.filter(|_| equal.len() > 1 && equal.len() <= 60) {
        let burden = 0.35 + 0.02 * number as f64;
        found.push((kind, format!("({whole})[{}]", number + 1), burden));
    }
    found.push((kind, whole, 0.0));
}

/// The first segment of a path on the same site: `/name/`.
fn first_segment(href: &str) -> Option<&str> {
    let rest = href.strip_prefix('/')?;
    let end = rest.find('/')?;
    let is_word = end >= 2
        && rest[..end]
            .bytes()
            .all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'_');
    is_word.then(|| &href[..end + 2])
}

/// Whether an XPath can contain this element or attribute name unchanged.
pub(crate) fn is_valid_step_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    name.len() <= LONGEST_NAME
        && name.bytes().all(is_plain)
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Whether a `class` attribute is short enough to be used as a whole as an anchor.
pub(crate) fn is_short_class(class: &str) -> bool {
    !class.trim().is_empty() && class.len() <= LONGEST_CLASS && !looks_generated(class)
}
