//! Copies the tree that the parser built ([`Growing`]) into the final tree ([`Tree`]), in one walk in document order.

use html5ever::interface::Attribute;

use crate::growing::{self, Data, Growing, NONE, Sizes};
use crate::limits::{Limits, Truncation};
use crate::tree::{Kind, NodeId, ROOT, Tree};
use crate::vocabulary::{Vocabulary, attribute_name};

/// The limit on the length of all attribute values together, as a multiple of the length of the page; further values
/// are left out. The parser may copy an element with its attributes many times (the "adoption agency algorithm"), so
/// the values can be far longer than the page.
const ATTRIBUTE_BYTES_PER_INPUT_BYTE: usize = 2;
const ATTRIBUTE_BYTES_AT_LEAST: usize = 64 * 1024;

pub(crate) struct Frozen {
    pub(crate) tree: Tree,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) truncation: Option<Truncation>,
}

pub(crate) fn freeze(growing: &Growing, input_bytes: usize, limits: &Limits) -> Frozen {
    let attribute_bytes =
        (input_bytes * ATTRIBUTE_BYTES_PER_INPUT_BYTE).max(ATTRIBUTE_BYTES_AT_LEAST);
    let mut walk = Walk {
        growing,
        tree: Tree::with_capacity(Sizes {
            value_bytes: growing.sizes().value_bytes.min(attribute_bytes),
            ..growing.sizes()
        }),
        open: Vec::with_capacity(64),
        levels: Vec::with_capacity(64),
        depth: limits.depth.max(1),
        attribute_bytes,
        vocabulary: Vocabulary::default(),
        truncation: None,
    };
    walk.run();
    walk.tree.finish();
    Frozen {
        tree: walk.tree,
        vocabulary: walk.vocabulary,
        truncation: walk.truncation,
    }
}

struct Walk<'g> {
    growing: &'g Growing,
    tree: Tree,
    /// The ancestors of the current node that can have children.
    open: Vec<NodeId>,
    /// For each ancestor of the current node, whether it is in `open`.
    levels: Vec<bool>,
    depth: usize,
    attribute_bytes: usize,
    vocabulary: Vocabulary,
    truncation: Option<Truncation>,
}

impl Walk<'_> {
    /// Copies the tree. It does not recurse, because the page decides how deep the tree is.
    fn run(&mut self) {
        let mut place = growing::DOCUMENT;
        loop {
            self.enter(place);
            let first_child = self.growing.nodes[place as usize].first_child;
            if first_child != NONE {
                place = first_child;
                continue;
            }
            loop {
                self.leave();
                let links = &self.growing.nodes[place as usize];
                if links.next != NONE {
                    place = links.next;
                    break;
                }
                if links.parent == NONE {
                    return;
                }
                place = links.parent;
            }
        }
    }

    /// Adds a node. An element at the deepest level keeps the text before its first child element. That child, and all
    /// that comes after it, become following siblings.
    fn enter(&mut self, place: u32) {
        let data = &self.growing.nodes[place as usize].data;
        let opens = matches!(data, Data::Element { .. } | Data::Document);
        if opens
            && self.open.len() > self.depth
            // An element at the deepest level is still open only if it is the parent.
            && let (Some(level), Some(deepest)) = (self.levels.last_mut(), self.open.pop())
        {
            *level = false;
            self.tree.end_node(deepest);
        }
        let parent = self.open.last().copied().unwrap_or(ROOT);
        let node = self.add(data, parent);
        if opens {
            self.open.push(node);
        }
        self.levels.push(opens);
    }

    fn leave(&mut self) {
        let opened = self.levels.pop().expect("every level left was entered");
        if opened {
            let node = self
                .open
                .pop()
                .expect("every opened node is open until it is left");
            self.tree.end_node(node);
        }
    }

    fn add(&mut self, data: &Data, parent: NodeId) -> NodeId {
        match data {
            Data::Document => self.tree.begin_node(Kind::Document, parent),
            Data::Element {
                name, attributes, ..
            } => {
                let name = self.tree.intern(&self.vocabulary.element_name(name));
                let node = self.tree.begin_node(Kind::Element(name), parent);
                self.add_attributes(node, attributes);
                node
            }
            Data::Text(text) => {
                let node = self.tree.begin_node(Kind::Text, parent);
                self.tree.push_text(text);
                node
            }
            Data::Comment(text) => {
                let node = self.tree.begin_node(Kind::Comment, parent);
                self.tree.push_aside(node, "", text);
                node
            }
            Data::Instruction { target, data } => {
                let node = self.tree.begin_node(Kind::Instruction, parent);
                self.tree.push_aside(node, target, data);
                node
            }
        }
    }

    fn add_attributes(&mut self, node: NodeId, attributes: &[Attribute]) {
        for attribute in attributes {
            if self.tree.attribute_bytes() + attribute.value.len() > self.attribute_bytes {
                self.truncation = Some(Truncation::Attributes);
                return;
            }
            let name = self.tree.intern(&attribute_name(&attribute.name));
            self.tree.push_attribute(node, name, &attribute.value);
        }
    }
}
