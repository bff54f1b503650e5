//! [`Tree`], the finished tree: nodes in document order, stored in a form that makes the axes of XPath fast.
//!
//! - A node's number is its position in document order. The numbers of its descendants follow its own, up to `end`
//!   (exclusive).
//! - All text is in one string in document order, so the text of an element is a slice.
//! - All attributes are in one list. The attributes of a node end where those of the next node begin.
//!
//! [`crate::freeze`] builds the tree. Afterwards it never changes, except for indexes that are built at first use.

use std::cell::OnceCell;
use std::ops::Range;

use html5ever::LocalName;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::growing::Sizes;

/// The number of a node in document order.
pub(crate) type NodeId = u32;
/// The number of a name in a tree. Elements and attributes share the numbers.
pub(crate) type NameId = u32;

/// The number that stands for names that do not occur in the tree.
pub(crate) const NO_NAME: NameId = u32::MAX;
pub(crate) const ROOT: NodeId = 0;

/// How many names a tree has room for from the beginning. Most pages have no more.
const RESERVED_NAMES: usize = 56;

/// Numbers greater than those of all names. They stand for the kinds of nodes that are not elements.
const TEXT: u32 = u32::MAX - 1;
const COMMENT: u32 = u32::MAX - 2;
const INSTRUCTION: u32 = u32::MAX - 3;
const DOCUMENT: u32 = u32::MAX - 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Document,
    Element(NameId),
    Text,
    Comment,
    Instruction,
}

impl Kind {
    fn to_number(self) -> u32 {
        match self {
            Kind::Document => DOCUMENT,
            Kind::Element(name) => name,
            Kind::Text => TEXT,
            Kind::Comment => COMMENT,
            Kind::Instruction => INSTRUCTION,
        }
    }
}

#[derive(Clone, Copy)]
struct Node {
    kind: u32,
    parent: NodeId,
    end: NodeId,
    /// Where the text of this node begins in the text of all nodes.
    text: u32,
    /// Where the attributes of this node begin in the list of all attributes.
    attributes: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Attribute {
    pub(crate) owner: NodeId,
    pub(crate) name: NameId,
    start: u32,
    end: u32,
}

/// A comment or a processing instruction, with its content.
pub(crate) struct Aside {
    pub(crate) node: NodeId,
    pub(crate) target: Box<str>,
    pub(crate) text: Box<str>,
}

pub(crate) struct Tree {
    nodes: Vec<Node>,
    text: String,
    attributes: Vec<Attribute>,
    attribute_text: String,
    asides: Vec<Aside>,
    names: Names,
    elements_by_name: OnceCell<NameIndex>,
    attributes_by_name: OnceCell<NameIndex>,
}

impl Tree {
    pub(crate) fn with_capacity(sizes: Sizes) -> Self {
        Tree {
            nodes: Vec::with_capacity(sizes.nodes + 1),
            text: String::with_capacity(sizes.text_bytes),
            attributes: Vec::with_capacity(sizes.attributes),
            attribute_text: String::with_capacity(sizes.value_bytes),
            asides: Vec::new(),
            names: Names::with_capacity(RESERVED_NAMES),
            elements_by_name: OnceCell::new(),
            attributes_by_name: OnceCell::new(),
        }
    }

    // The following methods build the tree in document order. Only `freeze` uses them.

    pub(crate) fn begin_node(&mut self, kind: Kind, parent: NodeId) -> NodeId {
        let id = self.nodes.len() as NodeId;
        self.nodes.push(Node {
            kind: kind.to_number(),
            parent,
            end: id + 1,
            text: self.text.len() as u32,
            attributes: self.attributes.len() as u32,
        });
        id
    }

    pub(crate) fn end_node(&mut self, node: NodeId) {
        self.nodes[node as usize].end = self.nodes.len() as NodeId;
    }

    pub(crate) fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(crate) fn push_attribute(&mut self, owner: NodeId, name: NameId, value: &str) {
        let start = self.attribute_text.len() as u32;
        self.attribute_text.push_str(value);
        let end = self.attribute_text.len() as u32;
        self.attributes.push(Attribute {
            owner,
            name,
            start,
            end,
        });
    }

    pub(crate) fn push_aside(&mut self, node: NodeId, target: &str, text: &str) {
        self.asides.push(Aside {
            node,
            target: target.into(),
            text: text.into(),
        });
    }

    pub(crate) fn intern(&mut self, name: &LocalName) -> NameId {
        self.names.intern(name)
    }

    pub(crate) fn attribute_bytes(&self) -> usize {
        self.attribute_text.len()
    }

    pub(crate) fn attribute_count(&self) -> usize {
        self.attributes.len()
    }

    /// The number of bytes of all text, attribute values and comments.
    pub(crate) fn text_bytes(&self) -> usize {
        let asides = self.asides.iter().map(|it| it.target.len() + it.text.len());
        self.text.len() + self.attribute_text.len() + asides.sum::<usize>()
    }

    /// Adds a last node that is not part of the document, so that every node has a next one.
    pub(crate) fn finish(&mut self) {
        self.begin_node(Kind::Document, ROOT);
        self.nodes.shrink_to_fit();
    }

    // The following methods read the finished tree.

    /// The number of nodes in the tree, the document itself included.
    pub(crate) fn len(&self) -> NodeId {
        (self.nodes.len() - 1) as NodeId
    }

    pub(crate) fn kind(&self, node: NodeId) -> Kind {
        match self.nodes[node as usize].kind {
            DOCUMENT => Kind::Document,
            TEXT => Kind::Text,
            COMMENT => Kind::Comment,
            INSTRUCTION => Kind::Instruction,
            name => Kind::Element(name),
        }
    }

    pub(crate) fn is_element(&self, node: NodeId) -> bool {
        self.nodes[node as usize].kind < DOCUMENT
    }

    pub(crate) fn is_named(&self, node: NodeId, name: NameId) -> bool {
        self.nodes[node as usize].kind == name
    }

    pub(crate) fn parent(&self, node: NodeId) -> Option<NodeId> {
        (node != ROOT).then(|| self.nodes[node as usize].parent)
    }

    /// The number after the node's last descendant.
    pub(crate) fn end(&self, node: NodeId) -> NodeId {
        self.nodes[node as usize].end
    }

    pub(crate) fn children(&self, node: NodeId) -> Children<'_> {
        Children {
            tree: self,
            next: node + 1,
            end: self.end(node),
        }
    }

    pub(crate) fn next_sibling(&self, node: NodeId) -> Option<NodeId> {
        let next = self.end(node);
        let parent = self.parent(node)?;
        (next < self.end(parent)).then_some(next)
    }

    /// The previous sibling of a node. The search takes one step for each level between the sibling and its last
    /// descendant.
    pub(crate) fn previous_sibling(&self, node: NodeId) -> Option<NodeId> {
        let parent = self.parent(node)?;
        let mut previous = node - 1;
        if previous == parent {
            return None;
        }
        while self.nodes[previous as usize].parent != parent {
            previous = self.nodes[previous as usize].parent;
        }
        Some(previous)
    }

    /// The text of an element, the document or a text node ("string-value" in XPath).
    pub(crate) fn text(&self, node: NodeId) -> &str {
        let first = &self.nodes[node as usize];
        let start = first.text as usize;
        &self.text[start..self.nodes[first.end as usize].text as usize]
    }

    /// The text of any node ("string-value" in XPath).
    pub(crate) fn string_value(&self, node: NodeId) -> &str {
        match self.aside_of(node) {
            Some(aside) => &aside.text,
            None => self.text(node),
        }
    }

    pub(crate) fn aside_of(&self, node: NodeId) -> Option<&Aside> {
        if self.nodes[node as usize].kind != COMMENT
            && self.nodes[node as usize].kind != INSTRUCTION
        {
            return None;
        }
        let found = self
            .asides
            .binary_search_by_key(&node, |aside| aside.node)
            .ok()?;
        Some(&self.asides[found])
    }

    pub(crate) fn attributes(&self, node: NodeId) -> Range<u32> {
        self.nodes[node as usize].attributes..self.nodes[node as usize + 1].attributes
    }

    pub(crate) fn attribute(&self, index: u32) -> Attribute {
        self.attributes[index as usize]
    }

    pub(crate) fn attribute_value(&self, index: u32) -> &str {
        let Attribute { start, end, .. } = self.attributes[index as usize];
        &self.attribute_text[start as usize..end as usize]
    }

    pub(crate) fn find_attribute(&self, node: NodeId, name: NameId) -> Option<u32> {
        self.attributes(node)
            .find(|index| self.attributes[*index as usize].name == name)
    }

    pub(crate) fn attribute_of(&self, node: NodeId, name: NameId) -> Option<&str> {
        self.find_attribute(node, name)
            .map(|index| self.attribute_value(index))
    }

    pub(crate) fn name(&self, name: NameId) -> &str {
        &self.names.names[name as usize]
    }

    /// All names of the tree, in the order of their numbers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.names.iter().map(|name| &**name)
    }

    pub(crate) fn name_id(&self, name: &LocalName) -> NameId {
        self.names.find(name)
    }

    /// The elements with this name, in document order.
    pub(crate) fn elements_named(&self, name: NameId) -> &[NodeId] {
        let index = self.elements_by_name.get_or_init(|| {
            let elements = (0..self.len()).filter(|node| self.is_element(*node));
            NameIndex::build(self.names.names.len(), elements, |node| {
                self.nodes[node as usize].kind
            })
        });
        index.items_named(name)
    }

    /// The attributes with this name, in document order.
    pub(crate) fn attributes_named(&self, name: NameId) -> &[u32] {
        let index = self.attributes_by_name.get_or_init(|| {
            let all = 0..self.attributes.len() as u32;
            NameIndex::build(self.names.names.len(), all, |index| {
                self.attributes[index as usize].name
            })
        });
        index.items_named(name)
    }
}

pub(crate) struct Children<'t> {
    tree: &'t Tree,
    next: NodeId,
    end: NodeId,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let child = self.next;
        if child >= self.end {
            return None;
        }
        self.next = self.tree.end(child);
        Some(child)
    }
}

struct Names {
    names: Vec<LocalName>,
    numbers: FxHashMap<LocalName, NameId>,
}

impl Names {
    fn with_capacity(names: usize) -> Self {
        Names {
            names: Vec::with_capacity(names),
            numbers: FxHashMap::with_capacity_and_hasher(names, FxBuildHasher),
        }
    }

    fn intern(&mut self, name: &LocalName) -> NameId {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as NameId;
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        number
    }

    fn find(&self, name: &LocalName) -> NameId {
        self.numbers.get(name).copied().unwrap_or(NO_NAME)
    }
}

/// The numbers of nodes or attributes, grouped by their names. Each group keeps its numbers in the order they were
/// added.
struct NameIndex {
    starts: Vec<u32>,
    numbers: Vec<u32>,
}

impl NameIndex {
    fn build(
        names: usize,
        numbers: impl Iterator<Item = u32> + Clone,
        name_of: impl Fn(u32) -> NameId,
    ) -> Self {
        let mut starts = vec![0_u32; names + 1];
        for number in numbers.clone() {
            starts[name_of(number) as usize + 1] += 1;
        }
        for name in 0..names {
            starts[name + 1] += starts[name];
        }
        let mut places = starts.clone();
        let mut grouped = vec![0; starts[names] as usize];
        for number in numbers {
            let place = &mut places[name_of(number) as usize];
            grouped[*place as usize] = number;
            *place += 1;
        }
        NameIndex {
            starts,
            numbers: grouped,
        }
    }

    fn items_named(&self, name: NameId) -> &[u32] {
        if name == NO_NAME {
            return &[];
        }
        let (start, end) = (self.starts[name as usize], self.starts[name as usize + 1]);
        &self.numbers[start as usize..end as usize]
    }
}
