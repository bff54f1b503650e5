//! An HTML page that can be changed ([`Tree`]). No function is recursive, so pages may be nested deeply.

use std::collections::VecDeque;

use webfill_document::{Document, Limits, NodeRef};

pub(super) type NodeId = usize;

pub(super) const ROOT: NodeId = 0;

/// Elements whose text is not visible.
const UNSEEN: [&str; 5] = ["head", "script", "style", "noscript", "template"];

/// Elements that have no end tag.
const VOID: [&str; 18] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
];

/// Elements whose text is written without escaping.
const RAW: [&str; 6] = ["script", "style", "xmp", "iframe", "noembed", "noframes"];

#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) tag: String,
    pub(super) attributes: Vec<(String, String)>,
}

impl Element {
    pub(super) fn new(tag: &str, attributes: &[(&str, &str)]) -> Element {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Element {
            tag: tag.to_owned(),
            attributes: attributes.iter().map(owned).collect(),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        match self.attributes.iter_mut().find(|(one, _)| one == name) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((name.to_owned(), value)),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.attributes.retain(|(one, _)| one != name);
    }

    /// The kind of an element on all pages of a site: its tag and class, such as `div.price`.
    pub(super) fn signature(&self) -> String {
        format!("{}.{}", self.tag, self.get("class").unwrap_or_default())
    }
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Root,
    Element(Element),
    Text(String),
    Comment(String),
    /// A node that was removed.
    Gone,
}

#[derive(Debug, Clone)]
struct Node {
    kind: Kind,
    parent: NodeId,
    children: Vec<NodeId>,
}

#[derive(Debug, Clone)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub(super) fn parse(html: &str) -> Tree {
        let document = Document::parse_html(html, &Limits::default());
        let mut tree = Tree { nodes: Vec::new() };
        tree.create(Kind::Root);
        let mut waiting: VecDeque<(NodeRef<'_>, NodeId)> =
            VecDeque::from([(document.root(), ROOT)]);
        while let Some((node, id)) = waiting.pop_front() {
            for child in node.children() {
                let Some(kind) = kind_of(child) else { continue };
                let copy = tree.create(kind);
                tree.append(id, copy);
                waiting.push_back((child, copy));
            }
        }
        tree
    }

    /// Creates a node that is not in the tree yet.
    pub(super) fn create(&mut self, kind: Kind) -> NodeId {
        self.nodes.push(Node {
            kind,
            parent: ROOT,
            children: Vec::new(),
        });
        self.nodes.len() - 1
    }

    pub(super) fn create_element(&mut self, tag: &str, attributes: &[(&str, &str)]) -> NodeId {
        self.create(Kind::Element(Element::new(tag, attributes)))
    }

    /// Creates an element that contains one text.
    pub(super) fn create_text_element(
        &mut self,
        tag: &str,
        attributes: &[(&str, &str)],
        text: &str,
    ) -> NodeId {
        let element = self.create_element(tag, attributes);
        let text = self.create(Kind::Text(text.to_owned()));
        self.append(element, text);
        element
    }

    pub(super) fn append(&mut self, parent: NodeId, child: NodeId) {
        self.nodes[child].parent = parent;
        self.nodes[parent].children.push(child);
    }

    pub(super) fn insert_first(&mut self, parent: NodeId, child: NodeId) {
        self.nodes[child].parent = parent;
        self.nodes[parent].children.insert(0, child);
    }

    /// Replaces the children of a node. Children that are not in the new list are removed.
    pub(super) fn set_children(&mut self, parent: NodeId, children: Vec<NodeId>) {
        for child in &children {
            self.nodes[*child].parent = parent;
        }
        self.nodes[parent].children = children;
    }

    /// Removes a node and its descendants.
    pub(super) fn remove(&mut self, node: NodeId) {
        self.nodes[node].kind = Kind::Gone;
        self.nodes[node].children.clear();
    }

    /// Puts a new element around a node. The wrapper takes over the node's number, and the node gets a new one. So the
    /// node need not be searched for among its siblings, which would take too long.
    pub(super) fn wrap(&mut self, node: NodeId, tag: &str, attributes: &[(&str, &str)]) {
        let wrapper = Kind::Element(Element::new(tag, attributes));
        let kind = std::mem::replace(&mut self.nodes[node].kind, wrapper);
        let children = std::mem::take(&mut self.nodes[node].children);
        let within = self.create(kind);
        self.set_children(within, children);
        self.append(node, within);
    }

    /// Replaces a node by one of its children. The other children are removed.
    pub(super) fn unwrap(&mut self, node: NodeId, child: NodeId) {
        let kind = std::mem::replace(&mut self.nodes[child].kind, Kind::Gone);
        let children = std::mem::take(&mut self.nodes[child].children);
        self.nodes[node].kind = kind;
        self.set_children(node, children);
    }

    pub(super) fn children(&self, node: NodeId) -> &[NodeId] {
        &self.nodes[node].children
    }

    pub(super) fn parent(&self, node: NodeId) -> NodeId {
        self.nodes[node].parent
    }

    pub(super) fn element(&self, node: NodeId) -> Option<&Element> {
        match &self.nodes[node].kind {
            Kind::Element(element) => Some(element),
            _ => None,
        }
    }

    pub(super) fn element_mut(&mut self, node: NodeId) -> Option<&mut Element> {
        match &mut self.nodes[node].kind {
            Kind::Element(element) => Some(element),
            _ => None,
        }
    }

    pub(super) fn tag(&self, node: NodeId) -> &str {
        self.element(node).map_or("", |element| &element.tag)
    }

    pub(super) fn text(&self, node: NodeId) -> Option<&str> {
        match &self.nodes[node].kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn set_text(&mut self, node: NodeId, text: String) {
        self.nodes[node].kind = Kind::Text(text);
    }

    /// A node and all its descendants, in document order.
    pub(super) fn subtree(&self, top: NodeId) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut waiting = vec![top];
        while let Some(node) = waiting.pop() {
            found.push(node);
            waiting.extend(self.nodes[node].children.iter().rev());
        }
        found
    }

    /// All nodes in document order.
    pub(super) fn all_nodes(&self) -> Vec<NodeId> {
        self.subtree(ROOT)
    }

    pub(super) fn elements(&self) -> Vec<NodeId> {
        let mut all = self.all_nodes();
        all.retain(|node| self.element(*node).is_some());
        all
    }

    pub(super) fn elements_of(&self, tag: &str) -> Vec<NodeId> {
        let mut all = self.all_nodes();
        all.retain(|node| self.tag(*node) == tag);
        all
    }

    pub(super) fn element_children(&self, node: NodeId) -> Vec<NodeId> {
        let children = self.children(node).iter().copied();
        children
            .filter(|child| self.element(*child).is_some())
            .collect()
    }

    /// The visible texts, in document order.
    pub(super) fn visible_texts(&self) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut waiting = vec![ROOT];
        while let Some(node) = waiting.pop() {
            if self.text(node).is_some() {
                found.push(node);
            }
            if !UNSEEN.contains(&self.tag(node)) {
                waiting.extend(self.nodes[node].children.iter().rev());
            }
        }
        found
    }

    /// The text within a node, with white space normalised.
    pub(super) fn text_within(&self, node: NodeId) -> String {
        let texts = self.subtree(node);
        let joined: String = texts.iter().filter_map(|node| self.text(*node)).collect();
        normalise_spaces(&joined)
    }

    /// The page as HTML. With `in_ascii`, characters outside of ASCII are written as entities.
    pub(super) fn to_html(&self, in_ascii: bool) -> String {
        enum Step {
            Open(NodeId),
            Close(NodeId),
        }
        let mut html = String::from("<!DOCTYPE html>");
        let mut steps = vec![Step::Open(ROOT)];
        while let Some(step) = steps.pop() {
            let node = match step {
                Step::Close(node) => {
                    html.push_str("</");
                    html.push_str(self.tag(node));
                    html.push('>');
                    continue;
                }
                Step::Open(node) => node,
            };
            match &self.nodes[node].kind {
                Kind::Root | Kind::Gone => {}
                Kind::Element(element) => {
                    write_start_tag(element, in_ascii, &mut html);
                    if VOID.contains(&element.tag.as_str()) {
                        continue;
                    }
                    steps.push(Step::Close(node));
                }
                Kind::Text(text) if RAW.contains(&self.tag(self.parent(node))) => {
                    html.push_str(text);
                }
                Kind::Text(text) => self.write_text(node, text, in_ascii, &mut html),
                Kind::Comment(text) => {
                    html.push_str("<!--");
                    html.push_str(text);
                    html.push_str("-->");
                }
            }
            steps.extend(
                self.nodes[node]
                    .children
                    .iter()
                    .rev()
                    .map(|child| Step::Open(*child)),
            );
        }
        html
    }

    fn write_text(&self, node: NodeId, text: &str, in_ascii: bool, html: &mut String) {
        let parent = self.parent(node);
        // An HTML parser drops a line end at the beginning of these elements, so one more is written.
        let drops = matches!(self.tag(parent), "pre" | "textarea" | "listing");
        if drops && text.starts_with('\n') && self.children(parent).first() == Some(&node) {
            html.push('\n');
        }
        write_escaped(text, in_ascii, html);
    }
}

fn kind_of(node: NodeRef<'_>) -> Option<Kind> {
    if let Some(tag) = node.tag() {
        let attributes = node.attributes();
        let owned = attributes.map(|one| (one.name().to_owned(), one.value().to_owned()));
        return Some(Kind::Element(Element {
            tag: tag.to_owned(),
            attributes: owned.collect(),
        }));
    }
    match (node.is_text(), node.is_comment()) {
        (true, _) => Some(Kind::Text(node.text().to_owned())),
        (_, true) => Some(Kind::Comment(node.text().to_owned())),
        _ => None,
    }
}

fn write_start_tag(element: &Element, in_ascii: bool, html: &mut String) {
    html.push('<');
    html.push_str(&element.tag);
    for (name, value) in &element.attributes {
        html.push(' ');
        html.push_str(name);
        html.push_str("=\"");
        write_escaped(value, in_ascii, html);
        html.push('"');
    }
    html.push('>');
}

fn write_escaped(text: &str, in_ascii: bool, html: &mut String) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\u{a0}' => html.push_str("&nbsp;"),
            other if in_ascii && !other.is_ascii() && !other.is_control() => {
                html.push_str(&format!("&#{};", u32::from(other)));
            }
            other => html.push(other),
        }
    }
}

/// Normalises white space, including no-break spaces.
pub(super) fn normalise_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The visible text of a page, with white space normalised.
pub fn visible_text(html: &str) -> String {
    let tree = Tree::parse(html);
    let texts = tree.visible_texts();
    let joined: String = texts.iter().filter_map(|node| tree.text(*node)).collect();
    normalise_spaces(&joined)
}
