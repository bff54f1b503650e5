//! Serialises a part of a document as HTML.
//!
//! Follows the HTML standard (13.3) for void elements, raw text and escaping. If the result is parsed again, the tree
//! may differ.

use crate::node::NodeRef;
use crate::tree::{Kind, NodeId, Tree};

impl NodeRef<'_> {
    /// Serialises this node as HTML.
    pub fn outer_html(self) -> String {
        let mut html = String::new();
        write_nodes(&self.document.tree, self.id, &mut html);
        html
    }
}

/// Writes `top` and its descendants.
fn write_nodes(tree: &Tree, top: NodeId, html: &mut String) {
    let mut open: Vec<NodeId> = Vec::new();
    for node in top..tree.end(top) {
        while open.last().is_some_and(|last| tree.end(*last) <= node) {
            write_end_tag(tree, open.pop(), html);
        }
        match tree.kind(node) {
            Kind::Document => {}
            Kind::Element(name) => {
                write_start_tag(tree, node, tree.name(name), html);
                if !is_void(tree.name(name)) {
                    open.push(node);
                }
            }
            Kind::Text => write_text(tree, node, open.last().copied().unwrap_or(top), html),
            Kind::Comment => {
                html.push_str("<!--");
                html.push_str(tree.string_value(node));
                html.push_str("-->");
            }
            Kind::Instruction => {}
        }
    }
    while let Some(node) = open.pop() {
        write_end_tag(tree, Some(node), html);
    }
}

fn write_start_tag(tree: &Tree, node: NodeId, name: &str, html: &mut String) {
    html.push('<');
    html.push_str(name);
    for index in tree.attributes(node) {
        html.push(' ');
        html.push_str(tree.name(tree.attribute(index).name));
        html.push_str("=\"");
        escape(tree.attribute_value(index), true, html);
        html.push('"');
    }
    html.push('>');
}

fn write_end_tag(tree: &Tree, node: Option<NodeId>, html: &mut String) {
    if let Some(Kind::Element(name)) = node.map(|node| tree.kind(node)) {
        html.push_str("</");
        html.push_str(tree.name(name));
        html.push('>');
    }
}

fn write_text(tree: &Tree, node: NodeId, parent: NodeId, html: &mut String) {
    let raw = match tree.kind(parent) {
        Kind::Element(name) => is_raw_text(tree.name(name)),
        _ => false,
    };
    if raw {
        html.push_str(tree.text(node));
    } else {
        escape(tree.text(node), false, html);
    }
}

fn escape(text: &str, in_attribute: bool, html: &mut String) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '\u{a0}' => html.push_str("&nbsp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' if in_attribute => html.push_str("&quot;"),
            other => html.push(other),
        }
    }
}

fn is_void(tag: &str) -> bool {
    matches!(
        tag,
        "area"
            | "base"
            | "basefont"
            | "bgsound"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "keygen"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

fn is_raw_text(tag: &str) -> bool {
    matches!(
        tag,
        "script" | "style" | "xmp" | "iframe" | "noembed" | "noframes" | "plaintext"
    )
}
