//! What flows through a chain: the page, nodes of it, texts, numbers.

use std::borrow::Cow;

use serde_json::Number;
use webfill_document::NodeRef;

/// One value of a chain. A node stays a node as long as processors leave it alone, so that a later
/// one can go on from there; any other processor sees its text.
#[derive(Debug, Clone)]
pub(crate) enum Item<'p> {
    /// The whole page: what the first processor of a chain is given.
    Page,
    Node(NodeRef<'p>),
    Text(Cow<'p, str>),
    Number(Number),
}

impl Item<'_> {
    /// The text that a processor of texts sees.
    pub(crate) fn text<'i>(&'i self, page_text: &'i str) -> Cow<'i, str> {
        match self {
            Item::Page => Cow::Borrowed(page_text),
            Item::Node(node) => Cow::Borrowed(node.text()),
            Item::Text(text) => Cow::Borrowed(text),
            Item::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

impl From<String> for Item<'_> {
    fn from(text: String) -> Self {
        Item::Text(Cow::Owned(text))
    }
}
