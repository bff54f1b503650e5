//! The anchors that a rule may depend on: the parts of a page that lead it to a value, such as an id or a label. For a
//! value on a page, finds rules with each kind of anchor.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use webfill_bench::sites::normalise_spaces;
use webfill_document::{Document, Limits, NodeRef, check_xpath};

/// The number of elements that are tried as anchors: the one with the value, and its ancestors.
const LEVELS: usize = 6;

/// The number of texts before a value that are tried as its label.
const LABELS: usize = 3;

/// The most characters of a label.
const LONGEST_LABEL: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Heading,
    Label,
    Data,
    ClassToken,
    WholeClass,
    Id,
    AbsolutePath,
    Itemprop,
    Meta,
    JsonLd,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Heading,
        Kind::Label,
        Kind::Data,
        Kind::ClassToken,
        Kind::WholeClass,
        Kind::Id,
        Kind::AbsolutePath,
        Kind::Itemprop,
        Kind::Meta,
        Kind::JsonLd,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Heading => "h1 or title",
            Kind::Label => "label text, then value",
            Kind::Data => "data-*",
            Kind::ClassToken => "class token",
            Kind::WholeClass => "whole class",
            Kind::Id => "id",
            Kind::AbsolutePath => "absolute path",
            Kind::Itemprop => "itemprop",
            Kind::Meta => "meta",
            Kind::JsonLd => "JSON-LD",
        }
    }
}

/// A rule that finds a value, with the kind of its anchor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Anchor {
    pub kind: Kind,
    /// The processors as JSON, in the form of a mapping.
    pub processors: String,
}

impl Anchor {
    fn xpath(kind: Kind, expression: &str) -> Anchor {
        let chain = json!([{"type": "xpath", "parameters": {"expression": expression}}]);
        Anchor {
            kind,
            processors: chain.to_string(),
        }
    }

    /// Whether the rule's expression is valid. Some pages have names that XPath does not allow.
    fn is_valid(&self) -> bool {
        let chain = self.chain();
        let expression = &chain[0]["parameters"]["expression"];
        self.kind == Kind::JsonLd
            || expression
                .as_str()
                .is_some_and(|text| check_xpath(text).is_ok())
    }

    pub fn chain(&self) -> Value {
        serde_json::from_str(&self.processors).unwrap_or_default()
    }
}

/// All rules that find one of the values on the page. `common` contains the texts that most pages of the site have;
/// only these can be labels.
pub fn find_anchors(html: &str, values: &[String], common: &BTreeSet<String>) -> BTreeSet<Anchor> {
    let document = Document::parse_html(html, &Limits::default());
    let mut found = BTreeSet::new();
    let is_value = |text: &str| values.contains(&normalise_spaces(text));
    let unseen = ["script", "style", "noscript", "template", "html", "head"];
    for node in document.root().descendants() {
        let Some(tag) = node.tag() else { continue };
        match tag {
            "meta" => found.extend(meta_anchor(node, &is_value)),
            "script" => found.extend(json_ld_anchors(node, &is_value)),
            "title" if is_value(node.text()) => {
                found.insert(Anchor::xpath(Kind::Heading, "//title"));
            }
            _ if unseen.contains(&tag) || node.text().len() > 10_000 => {}
            _ => {
                if let Some(suffix) = place_of_value(node, &is_value) {
                    found.extend(element_anchors(node, &suffix));
                    found.extend(label_anchors(&document, node, &suffix, common));
                }
            }
        }
    }
    found.retain(Anchor::is_valid);
    found
}

/// The position of the value in an element, as the end of an XPath. It is empty if the whole text of the element, but
/// of none of its children, is the value. It is the step to a text node if that text is the value.
fn place_of_value(node: NodeRef<'_>, is_value: &impl Fn(&str) -> bool) -> Option<String> {
    if is_value(node.text()) {
        let is_deeper = |child: NodeRef<'_>| child.is_element() && is_value(child.text());
        return (!node.children().any(is_deeper)).then(String::new);
    }
    let mut texts = node.children().filter(|child| child.is_text());
    let at = texts.position(|text| is_value(text.text()))?;
    Some(format!("/text()[{}]", at + 1))
}

fn meta_anchor(node: NodeRef<'_>, is_value: &impl Fn(&str) -> bool) -> Option<Anchor> {
    node.attribute("content")
        .filter(|content| is_value(content))?;
    let key = ["property", "name", "itemprop"]
        .into_iter()
        .find(|key| node.attribute(key).is_some())?;
    let name = quote_for_xpath(node.attribute(key)?)?;
    Some(Anchor::xpath(
        Kind::Meta,
        &format!("//meta[@{key}={name}]/@content"),
    ))
}

/// Rules for members of JSON-LD objects that have a type. The anchor is the member's name.
fn json_ld_anchors(node: NodeRef<'_>, is_value: &impl Fn(&str) -> bool) -> Vec<Anchor> {
    let mut found = Vec::new();
    if node.attribute("type") != Some("application/ld+json") {
        return found;
    }
    let mut waiting: Vec<Value> = serde_json::from_str(node.text()).into_iter().collect();
    while let Some(value) = waiting.pop() {
        if let (Some(object), Some(kind)) = (value.as_object(), value["@type"].as_str()) {
            for (name, member) in object {
                if member.as_str().is_some_and(is_value) {
                    let expression = format!("$['{}']", name.replace('\'', ""));
                    let chain = json!([{"type": "json_ld", "parameters": {"type": kind, "expression": expression}}]);
                    found.push(Anchor {
                        kind: Kind::JsonLd,
                        processors: chain.to_string(),
                    });
                }
            }
        }
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(members) => waiting.extend(members.into_iter().map(|(_, member)| member)),
            _ => {}
        }
    }
    found
}

/// Rules whose anchor is the element or one of its ancestors.
fn element_anchors(node: NodeRef<'_>, suffix: &str) -> Vec<Anchor> {
    let path = absolute_path(node) + suffix;
    let mut found = vec![Anchor::xpath(Kind::AbsolutePath, &path)];
    let (mut above, mut by_place, mut by_tag) = (Some(node), suffix.to_owned(), suffix.to_owned());
    for _ in 0..LEVELS {
        let Some(element) = above.filter(|element| element.tag().is_some()) else {
            break;
        };
        for (kind, start) in rule_beginnings(element) {
            found.push(Anchor::xpath(kind, &format!("{start}{by_place}")));
            found.push(Anchor::xpath(kind, &format!("{start}{by_tag}")));
        }
        by_place = format!("/{}{by_place}", path_step(element));
        by_tag = format!("/{}{by_tag}", element.tag().unwrap_or("*"));
        above = element.parent();
    }
    found
}

/// The beginnings of XPath expressions that find the element by its tag, id, class or another attribute.
fn rule_beginnings(element: NodeRef<'_>) -> Vec<(Kind, String)> {
    let tag = element.tag().unwrap_or("*");
    let mut found = Vec::new();
    if tag == "h1" {
        found.push((Kind::Heading, "//h1".to_owned()));
    }
    for attribute in element.attributes() {
        let (name, value) = (attribute.name(), attribute.value());
        let Some(literal) = quote_for_xpath(value) else {
            continue;
        };
        match name {
            "id" => found.push((Kind::Id, format!("//*[@id={literal}]"))),
            "itemprop" => found.push((Kind::Itemprop, format!("//*[@itemprop={literal}]"))),
            "class" => {
                found.push((Kind::WholeClass, format!("//{tag}[@class={literal}]")));
                found.extend(value.split_whitespace().map(|token| {
                    let tokens = "concat(' ', normalize-space(@class), ' ')";
                    (
                        Kind::ClassToken,
                        format!("//*[contains({tokens}, ' {token} ')]"),
                    )
                }));
            }
            _ if name.starts_with("data-") => {
                found.push((Kind::Data, format!("//*[@{name}={literal}]")));
                found.push((Kind::Data, format!("//*[@{name}]")));
            }
            _ => {}
        }
    }
    found
}

/// Rules whose anchor is the label of the value, which is a text before it.
fn label_anchors(
    document: &Document,
    node: NodeRef<'_>,
    suffix: &str,
    common: &BTreeSet<String>,
) -> Vec<Anchor> {
    let is_own = |text: NodeRef<'_>| match suffix {
        "" => node.contains(text),
        _ => text.parent() == Some(node) && !common.contains(&normalise_spaces(text.text())),
    };
    let mut before: Vec<String> = Vec::new();
    for text in document.root().descendants().filter(|text| text.is_text()) {
        if is_own(text) && !text.text().trim().is_empty() {
            break;
        }
        let hidden = text
            .parent()
            .and_then(NodeRef::tag)
            .is_some_and(|tag| matches!(tag, "script" | "style"));
        if !hidden && !text.text().trim().is_empty() {
            before.push(normalise_spaces(text.text()));
        }
    }
    let mut found = Vec::new();
    for (distance, label) in before.iter().rev().take(LABELS).enumerate() {
        let Some(literal) = quote_for_xpath(label).filter(|_| common.contains(label)) else {
            continue;
        };
        let texts = format!("//text()[normalize-space()={literal}]");
        let nth = distance + 1;
        found.push(Anchor::xpath(
            Kind::Label,
            &format!("{texts}/following::text()[normalize-space()][{nth}]"),
        ));
        let above = format!("//*[normalize-space()={literal}]");
        found.push(Anchor::xpath(
            Kind::Label,
            &format!("{above}/following-sibling::*[1]"),
        ));
        found.push(Anchor::xpath(
            Kind::Label,
            &format!("{above}/../following-sibling::*[1]"),
        ));
    }
    found
}

fn absolute_path(node: NodeRef<'_>) -> String {
    let (mut path, mut above) = (String::new(), Some(node));
    while let Some(element) = above.filter(|element| element.tag().is_some()) {
        path = format!("/{}{path}", path_step(element));
        above = element.parent();
    }
    path
}

/// The XPath step to an element: its tag, and its position among siblings with the same tag.
fn path_step(element: NodeRef<'_>) -> String {
    let tag = element.tag().unwrap_or("*");
    let siblings = element.parent().into_iter().flat_map(NodeRef::children);
    let before = siblings
        .take_while(|one| *one != element)
        .filter(|one| one.tag() == Some(tag));
    format!("{tag}[{}]", before.count() + 1)
}

fn quote_for_xpath(text: &str) -> Option<String> {
    match (text.contains('\''), text.contains('"')) {
        _ if text.len() > 200 => None,
        (false, _) => Some(format!("'{text}'")),
        (_, false) => Some(format!("\"{text}\"")),
        _ => None,
    }
}

/// Short texts that at least 60 % of the pages have.
pub fn common_texts<'a>(pages: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = 0;
    for html in pages {
        all += 1;
        let document = Document::parse_html(html, &Limits::default());
        let texts = document.root().descendants().filter(|node| node.is_text());
        let short: BTreeSet<String> = texts
            .map(|node| normalise_spaces(node.text()))
            .filter(|text| !text.is_empty() && text.chars().count() <= LONGEST_LABEL)
            .collect();
        for text in short {
            *counts.entry(text).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count * 10 >= all * 6);
    counts.into_keys().collect()
}
