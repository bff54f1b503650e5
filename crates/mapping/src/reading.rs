//! The reading of a step: the nodes that a path or selector finds, or the matches of an expression.

mod css_cures;
mod near_miss;
mod similar_names;
mod written;
mod xpath_cures;

use std::borrow::Cow;

use serde::Serialize;
use webfill_document::{
    EvaluateError, NodeRef, Selector, XPath, XValue, check_selector, check_xpath,
};

use self::near_miss::Search;
use self::written::{WrittenPath, text_of};
use crate::pattern::Pattern;

const SHOWN_CHARS: usize = 300;
const SHOWN_NODES: usize = 5;
const SHOWN_MATCHES: usize = 5;
/// How many branches of a union, or selectors of a list, get a hint.
const MOST_HINTS: usize = 3;

/// What a step has read of its input, for traces. Empty for most processors, because their output shows enough.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Reading {
    /// The first nodes that an XPath or selector has found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<FoundNode>,
    /// The first matches of a regular expression.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<FoundMatch>,
    /// If nothing was found: how far the expression matches, and a similar expression that finds something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A node, its position in the page, and its text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundNode {
    pub path: String,
    pub text: String,
}

/// One match of a regular expression.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundMatch {
    /// The number of the input value, from 1.
    pub value: usize,
    /// The offset of the match in this value, in characters from 0.
    pub at: usize,
    /// The whole match.
    pub text: String,
}

impl Reading {
    /// The nodes that an XPath finds from the nodes in `places`. If the XPath is a function call, the nodes that its
    /// value is computed from.
    pub(crate) fn from_xpath(xpath: &XPath, places: &[NodeRef<'_>]) -> Reading {
        if places.is_empty() {
            return Reading::default();
        }
        let probe = |text: &str| match XPath::compile(text) {
            Ok(xpath) => keep_nodes(values_at(places, |place| place.evaluate(&xpath))),
            Err(_) => Vec::new(),
        };
        let values = values_at(places, |place| place.evaluate(xpath));
        let is_empty = values
            .iter()
            .all(|value| webfill_values::is_blank(&value.text()));
        let mut paths = written::parse_paths(xpath.source());
        paths.retain(|path| path.prefixes().all(|text| check_xpath(&text).is_ok()));
        let mut nodes = keep_nodes(values);
        if nodes.is_empty() {
            let of_paths = paths.iter().flat_map(|path| probe(&text_of(&path.pieces)));
            nodes = of_paths.collect();
        }
        let search = Search::new(&probe, places, xpath_cures::propose_xpath_cures);
        let hint = (is_empty && nodes.is_empty()).then(|| join_hints(&paths, &search));
        Reading::from_nodes(&nodes, hint.flatten())
    }

    /// The nodes that a CSS selector finds within the nodes in `places`.
    pub(crate) fn from_selector(selector: &Selector, places: &[NodeRef<'_>]) -> Reading {
        if places.is_empty() {
            return Reading::default();
        }
        let probe = |text: &str| match Selector::compile(text) {
            Ok(selector) => keep_nodes(values_at(places, |place| place.select(&selector))),
            Err(_) => Vec::new(),
        };
        let nodes = probe(selector.source());
        let mut selectors = written::parse_selectors(selector.source());
        selectors.retain(|one| one.prefixes().all(|text| check_selector(&text).is_ok()));
        let search = Search::new(&probe, places, css_cures::propose_css_cures);
        let hint = nodes.is_empty().then(|| join_hints(&selectors, &search));
        Reading::from_nodes(&nodes, hint.flatten())
    }

    fn from_nodes(nodes: &[XValue<'_>], hint: Option<String>) -> Reading {
        Reading {
            nodes: nodes
                .iter()
                .take(SHOWN_NODES)
                .filter_map(found_node)
                .collect(),
            hint,
            ..Reading::default()
        }
    }

    /// The matches of a regular expression in texts, for traces.
    pub(crate) fn from_pattern(pattern: &Pattern, texts: &[Cow<'_, str>]) -> Reading {
        let mut matches = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            // A match that takes too many steps is ignored here, because the step itself reports it.
            let _ = pattern.for_each_match(text, |groups| {
                let range = groups.range();
                matches.push(FoundMatch {
                    value: index + 1,
                    at: text[..range.start].chars().count(),
                    text: shorten(&text[range]).into_owned(),
                });
                matches.len() < SHOWN_MATCHES
            });
            if matches.len() >= SHOWN_MATCHES {
                break;
            }
        }
        Reading {
            matches,
            ..Reading::default()
        }
    }
}

fn join_hints(written: &[WrittenPath], search: &Search<'_, '_>) -> Option<String> {
    let written = written.iter().take(MOST_HINTS);
    let hints: Vec<String> = written.filter_map(|written| search.hint(written)).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

fn values_at<'p>(
    places: &[NodeRef<'p>],
    search: impl Fn(NodeRef<'p>) -> Result<Vec<XValue<'p>>, EvaluateError>,
) -> Vec<XValue<'p>> {
    let found = places.iter().map(|place| search(*place));
    found.flat_map(Result::unwrap_or_default).collect()
}

fn keep_nodes(values: Vec<XValue<'_>>) -> Vec<XValue<'_>> {
    let is_node = |value: &XValue<'_>| matches!(value, XValue::Node(_) | XValue::Attribute(_));
    values.into_iter().filter(is_node).collect()
}

fn found_node(value: &XValue<'_>) -> Option<FoundNode> {
    let path = match value {
        XValue::Node(node) => xpath_of_node(*node),
        XValue::Attribute(attribute) => {
            format!("{}/@{}", xpath_of_node(attribute.owner()), attribute.name())
        }
        XValue::Text(_) | XValue::Number(_) | XValue::Boolean(_) => return None,
    };
    let text = shorten(&value.text()).into_owned();
    Some(FoundNode { path, text })
}

/// The XPath of a node, such as `/html/body/p[2]/text()`.
fn xpath_of_node(node: NodeRef<'_>) -> String {
    let Some(parent) = node.parent() else {
        return String::new();
    };
    let mut path = xpath_of_node(parent);
    path.push('/');
    path.push_str(step_to(node));
    let alike = |other: &NodeRef<'_>| step_to(*other) == step_to(node);
    let before = parent.children().take_while(|other| *other != node);
    let position = before.filter(alike).count() + 1;
    if position > 1 || parent.children().filter(alike).nth(1).is_some() {
        path.push_str(&format!("[{position}]"));
    }
    path
}

fn step_to(node: NodeRef<'_>) -> &str {
    match node.tag() {
        Some(tag) => tag,
        None if node.is_text() => "text()",
        None if node.is_comment() => "comment()",
        None => "node()",
    }
}

pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
