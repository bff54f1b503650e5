//! Values of XPath expressions and CSS selectors.

use std::borrow::Cow;
use std::time::Duration;

use super::number::number_to_text;
use super::sxd::Single;
use super::walk::Item;
use crate::document::Document;
use crate::node::{AttributeRef, NodeRef};

/// A value of an expression. Nodes and attributes refer to the document.
#[derive(Debug, Clone)]
pub enum XValue<'d> {
    Node(NodeRef<'d>),
    Attribute(AttributeRef<'d>),
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// Why an evaluation has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    #[error("the {} ms for evaluating expressions on one page are used up", budget.as_millis())]
    OutOfTime { budget: Duration },
    #[error("the XPath engine failed: {0}")]
    Engine(String),
}

impl<'d> XValue<'d> {
    pub(crate) fn from_item(document: &'d Document, item: Item) -> Self {
        match item.attribute() {
            Some(index) => XValue::Attribute(AttributeRef { document, index }),
            None => XValue::Node(NodeRef::new(document, item.node)),
        }
    }

    pub(crate) fn from_single(single: Single) -> Self {
        match single {
            Single::Text(text) => XValue::Text(text),
            Single::Number(number) => XValue::Number(number),
            Single::Boolean(boolean) => XValue::Boolean(boolean),
        }
    }

    /// The value as text, as XPath's `string()` gives it. It is not copied if it is part of the page.
    pub fn text(&self) -> Cow<'d, str> {
        match self {
            XValue::Node(node) => Cow::Borrowed(node.text()),
            XValue::Attribute(attribute) => Cow::Borrowed(attribute.value()),
            XValue::Text(text) => Cow::Owned(text.clone()),
            XValue::Number(number) => Cow::Owned(number_to_text(*number)),
            XValue::Boolean(boolean) => Cow::Owned(boolean.to_string()),
        }
    }

    /// The node, if the value is one; further expressions can be evaluated on it.
    pub fn node(&self) -> Option<NodeRef<'d>> {
        match self {
            XValue::Node(node) => Some(*node),
            _ => None,
        }
    }
}
