//! References to the nodes and attributes of a document.

use crate::document::Document;
use crate::tree::{Kind, NodeId};

/// An element, text, comment, processing instruction, or the document itself.
///
/// Cheap to copy; nodes of one document compare by document order.
#[derive(Clone, Copy)]
pub struct NodeRef<'d> {
    pub(crate) document: &'d Document,
    pub(crate) id: NodeId,
}

/// An attribute of an element.
#[derive(Clone, Copy)]
pub struct AttributeRef<'d> {
    pub(crate) document: &'d Document,
    pub(crate) index: u32,
}

impl<'d> NodeRef<'d> {
    pub(crate) fn new(document: &'d Document, id: NodeId) -> Self {
        NodeRef { document, id }
    }

    /// The document that the node is part of.
    pub fn document(self) -> &'d Document {
        self.document
    }

    /// The element's name, in lower case for HTML. `None` for any other node.
    pub fn tag(self) -> Option<&'d str> {
        match self.document.tree.kind(self.id) {
            Kind::Element(name) => Some(self.document.tree.name(name)),
            _ => None,
        }
    }

    pub fn is_element(self) -> bool {
        self.document.tree.is_element(self.id)
    }

    pub fn is_text(self) -> bool {
        self.document.tree.kind(self.id) == Kind::Text
    }

    pub fn is_comment(self) -> bool {
        self.document.tree.kind(self.id) == Kind::Comment
    }

    /// The value of an attribute of this element.
    pub fn attribute(self, name: &str) -> Option<&'d str> {
        self.attributes()
            .find(|attribute| attribute.name() == name)
            .map(AttributeRef::value)
    }

    /// The attributes in the order of the page.
    pub fn attributes(self) -> impl Iterator<Item = AttributeRef<'d>> {
        let document = self.document;
        document
            .tree
            .attributes(self.id)
            .map(move |index| AttributeRef { document, index })
    }

    /// XPath's string-value: all text within an element, or the content of a comment. Borrowed from the document.
    pub fn text(self) -> &'d str {
        self.document.tree.string_value(self.id)
    }

    /// The element or document that contains this node.
    pub fn parent(self) -> Option<NodeRef<'d>> {
        self.document
            .tree
            .parent(self.id)
            .map(|id| NodeRef { id, ..self })
    }

    pub fn next_sibling(self) -> Option<NodeRef<'d>> {
        self.document
            .tree
            .next_sibling(self.id)
            .map(|id| NodeRef { id, ..self })
    }

    pub fn children(self) -> impl Iterator<Item = NodeRef<'d>> {
        self.document
            .tree
            .children(self.id)
            .map(move |id| NodeRef { id, ..self })
    }

    /// The node's number in the order of the document.
    pub fn position(self) -> usize {
        self.id as usize
    }

    /// The nodes below this one, in document order.
    pub fn descendants(self) -> impl Iterator<Item = NodeRef<'d>> {
        (self.id + 1..self.document.tree.end(self.id)).map(move |id| NodeRef { id, ..self })
    }

    /// Whether `other` is this node or is within it.
    pub fn contains(self, other: NodeRef<'_>) -> bool {
        std::ptr::eq(self.document, other.document)
            && (self.id..self.document.tree.end(self.id)).contains(&other.id)
    }
}

impl<'d> AttributeRef<'d> {
    /// The name, with its prefix where it has one, as in `xlink:href`.
    pub fn name(self) -> &'d str {
        self.document
            .tree
            .name(self.document.tree.attribute(self.index).name)
    }

    pub fn value(self) -> &'d str {
        self.document.tree.attribute_value(self.index)
    }

    /// The element that has the attribute.
    pub fn owner(self) -> NodeRef<'d> {
        NodeRef::new(
            self.document,
            self.document.tree.attribute(self.index).owner,
        )
    }
}

impl PartialEq for NodeRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && std::ptr::eq(self.document, other.document)
    }
}

impl Eq for NodeRef<'_> {}

impl std::fmt::Debug for NodeRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{} #{}>", self.tag().unwrap_or("text"), self.id)
    }
}

impl std::fmt::Debug for AttributeRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "@{}={:?}", self.name(), self.value())
    }
}
