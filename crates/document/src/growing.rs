//! [`Growing`], the tree while the parser builds it: nodes that can be moved, linked by index.
//!
//! HTML5 parsing moves nodes to other parents ("foster parenting", "adoption agency"), so the order of creation is not
//! document order; [`crate::freeze`] puts the finished tree in order. The links always form a forest: a node is
//! detached before it is attached elsewhere.

use html5ever::QualName;
use html5ever::interface::Attribute;
use html5ever::tendril::StrTendril;

use crate::limits::{Limits, Truncation};

/// How many bytes of memory a node, an attribute and a byte of text take at most, from the parser to the finished tree.
/// This includes the lists of both trees, which double when they grow, and the names. `crates/document/tests/memory.rs`
/// compares this with actual allocations.
const NODE_BYTES: usize = 210;
const ATTRIBUTE_BYTES: usize = 190;
const BYTES_PER_TEXT_BYTE: usize = 3;

/// A tree reserves a node for as many bytes of its page when it begins. Most pages have more nodes.
const INPUT_BYTES_PER_NODE: usize = 64;
const MOST_RESERVED_NODES: usize = 1_024;

/// Stands for "no node" in a link from one node to another.
pub(crate) const NONE: u32 = u32::MAX;
pub(crate) const DOCUMENT: u32 = 0;

pub(crate) enum Data {
    Document,
    Element {
        name: QualName,
        attributes: Vec<Attribute>,
        integration_point: bool,
    },
    Text(StrTendril),
    Comment(StrTendril),
    Instruction {
        target: StrTendril,
        data: StrTendril,
    },
}

pub(crate) struct Node {
    pub(crate) parent: u32,
    pub(crate) previous: u32,
    pub(crate) next: u32,
    pub(crate) first_child: u32,
    pub(crate) last_child: u32,
    /// How many elements were open when this node was appended.
    open_elements: u32,
    pub(crate) data: Data,
}

/// The sizes of the lists of a tree: as much as they need, or more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) nodes: usize,
    pub(crate) attributes: usize,
    pub(crate) text_bytes: usize,
    pub(crate) value_bytes: usize,
}

/// The nodes of the tree, and the reason why parsing must stop, if there is one.
pub(crate) struct Growing {
    pub(crate) nodes: Vec<Node>,
    attributes: usize,
    /// The bytes of all texts, and of all values of attributes. The finished tree reserves as much.
    text_bytes: usize,
    value_bytes: usize,
    /// The memory used in bytes, never estimated too low; see [`NODE_BYTES`].
    memory_bytes: usize,
    limits: Limits,
    full: Option<Truncation>,
}

impl Growing {
    /// Creates an empty tree. Counts `input_bytes` as used memory, because the parser copies its input.
    pub(crate) fn new(limits: &Limits, input_bytes: usize) -> Self {
        let mut tree = Growing {
            nodes: Vec::with_capacity(
                (input_bytes / INPUT_BYTES_PER_NODE).min(MOST_RESERVED_NODES),
            ),
            attributes: 0,
            text_bytes: 0,
            value_bytes: 0,
            memory_bytes: input_bytes,
            limits: limits.clone(),
            full: None,
        };
        tree.create(Data::Document);
        tree
    }

    /// The limit that was reached, if any. The tree still accepts nodes that the parser has begun.
    pub(crate) fn reached_limit(&self) -> Option<Truncation> {
        self.full
    }

    pub(crate) fn create(&mut self, data: Data) -> u32 {
        match &data {
            Data::Element { attributes, .. } => self.count_attributes(attributes),
            Data::Text(text) => self.count_text(text.len()),
            Data::Comment(text) => self.count_memory(text.len() * BYTES_PER_TEXT_BYTE),
            Data::Instruction { target, data } => {
                self.count_memory((target.len() + data.len()) * BYTES_PER_TEXT_BYTE);
            }
            Data::Document => {}
        }
        self.count_memory(NODE_BYTES);
        if self.nodes.len() >= self.limits.nodes {
            self.full = Some(Truncation::Nodes);
        } else if self.attributes > self.limits.attributes {
            self.full = Some(Truncation::Attributes);
        }
        self.nodes.push(Node {
            parent: NONE,
            previous: NONE,
            next: NONE,
            first_child: NONE,
            last_child: NONE,
            open_elements: 0,
            data,
        });
        (self.nodes.len() - 1) as u32
    }

    /// An upper limit of the memory in bytes that the tree needs while it is built and read.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            nodes: self.nodes.len(),
            attributes: self.attributes,
            text_bytes: self.text_bytes,
            value_bytes: self.value_bytes,
        }
    }

    fn count_text(&mut self, bytes: usize) {
        self.text_bytes += bytes;
        self.count_memory(bytes * BYTES_PER_TEXT_BYTE);
    }

    fn count_attributes(&mut self, attributes: &[Attribute]) {
        let values: usize = attributes.iter().map(|it| it.value.len()).sum();
        self.attributes += attributes.len();
        self.value_bytes += values;
        self.count_memory(attributes.len() * ATTRIBUTE_BYTES + values * BYTES_PER_TEXT_BYTE);
    }

    fn count_memory(&mut self, bytes: usize) {
        self.memory_bytes += bytes;
        if self.memory_bytes > self.limits.memory_bytes {
            self.full = Some(Truncation::Memory);
        }
    }

    pub(crate) fn append(&mut self, parent: u32, child: u32) {
        self.detach(child);
        let last = self.node(parent).last_child;
        self.link(parent, last, child, NONE);
        let open_elements = self.node(parent).open_elements + 1;
        self.node_mut(child).open_elements = open_elements;
        if open_elements as usize > self.limits.open_elements {
            self.full = Some(Truncation::OpenElements);
        }
    }

    pub(crate) fn append_text(&mut self, parent: u32, text: StrTendril) {
        let last = self.node(parent).last_child;
        if let Some(text) = self.merge_into(last, text) {
            let child = self.create(Data::Text(text));
            self.link(parent, last, child, NONE);
        }
    }

    /// Inserts a node before `sibling`. If `sibling` has no parent, the node is dropped.
    pub(crate) fn insert_before(&mut self, sibling: u32, child: u32) {
        self.detach(child);
        let Node {
            parent, previous, ..
        } = *self.node(sibling);
        if parent == NONE {
            return;
        }
        self.link(parent, previous, child, sibling);
        self.node_mut(child).open_elements = self.node(parent).open_elements + 1;
    }

    pub(crate) fn insert_text_before(&mut self, sibling: u32, text: StrTendril) {
        let Node {
            parent, previous, ..
        } = *self.node(sibling);
        if parent == NONE {
            return;
        }
        if let Some(text) = self.merge_into(previous, text) {
            let child = self.create(Data::Text(text));
            self.link(parent, previous, child, sibling);
        }
    }

    pub(crate) fn detach(&mut self, child: u32) {
        let Node {
            parent,
            previous,
            next,
            ..
        } = *self.node(child);
        if parent == NONE {
            return;
        }
        match previous {
            NONE => self.node_mut(parent).first_child = next,
            _ => self.node_mut(previous).next = next,
        }
        match next {
            NONE => self.node_mut(parent).last_child = previous,
            _ => self.node_mut(next).previous = previous,
        }
        let node = self.node_mut(child);
        (node.parent, node.previous, node.next) = (NONE, NONE, NONE);
    }

    pub(crate) fn move_children(&mut self, from: u32, to: u32) {
        let mut child = self.node(from).first_child;
        while child != NONE {
            let next = self.node(child).next;
            self.append(to, child);
            child = next;
        }
    }

    pub(crate) fn add_missing_attributes(&mut self, element: u32, more: Vec<Attribute>) {
        let cap = self.limits.attributes_per_element;
        let Data::Element { attributes, .. } = &mut self.node_mut(element).data else {
            return;
        };
        let before = attributes.len();
        for attribute in more {
            let known = attributes.iter().any(|known| known.name == attribute.name);
            if !known && attributes.len() < cap {
                attributes.push(attribute);
            }
        }
        let added = attributes[before..].to_vec();
        self.count_attributes(&added);
    }

    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        Some(self.node(node).parent).filter(|parent| *parent != NONE)
    }

    pub(crate) fn is_integration_point(&self, node: u32) -> bool {
        matches!(
            self.node(node).data,
            Data::Element {
                integration_point: true,
                ..
            }
        )
    }

    /// Appends the text to the node `neighbour` if that is a text node. Otherwise returns the text.
    fn merge_into(&mut self, neighbour: u32, text: StrTendril) -> Option<StrTendril> {
        if neighbour != NONE
            && let Data::Text(before) = &mut self.node_mut(neighbour).data
        {
            before.push_tendril(&text);
            self.count_text(text.len());
            return None;
        }
        Some(text)
    }

    fn link(&mut self, parent: u32, previous: u32, child: u32, next: u32) {
        let node = self.node_mut(child);
        (node.parent, node.previous, node.next) = (parent, previous, next);
        match previous {
            NONE => self.node_mut(parent).first_child = child,
            _ => self.node_mut(previous).next = child,
        }
        match next {
            NONE => self.node_mut(parent).last_child = child,
            _ => self.node_mut(next).previous = child,
        }
    }

    fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    fn node_mut(&mut self, index: u32) -> &mut Node {
        &mut self.nodes[index as usize]
    }
}
