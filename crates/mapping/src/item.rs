//! The values that processors pass on in a chain: the page, its nodes, texts, numbers.

use std::borrow::Cow;

use serde_json::Number;
use webfill_document::NodeRef;
use webfill_values::Decimal;

/// A value in a chain. A node stays a node until a processor changes its text, so that a later `xpath` or `css` can
/// search within it. Other processors see its text.
#[derive(Debug, Clone)]
pub(crate) enum Item<'p> {
    /// The whole page, which the first processor of a chain receives.
    Page,
    Node(NodeRef<'p>),
    Text(Cow<'p, str>),
    Number(Number),
}

impl Item<'_> {
    /// The value as text.
    pub(crate) fn text<'i>(&'i self, page_text: &'i str) -> Cow<'i, str> {
        match self {
            Item::Page => Cow::Borrowed(page_text),
            Item::Node(node) => Cow::Borrowed(node.text()),
            Item::Text(text) => Cow::Borrowed(text),
            Item::Number(number) => Cow::Owned(format_without_exponent(number)),
        }
    }
}

/// Writes a number without an exponent, as people write numbers.
fn format_without_exponent(number: &Number) -> String {
    let json = number.to_string();
    match json.contains('e') {
        true => Decimal::from_number(number).map_or(json, |exact| exact.plain()),
        false => json,
    }
}

impl From<String> for Item<'_> {
    fn from(text: String) -> Self {
        Item::Text(Cow::Owned(text))
    }
}
