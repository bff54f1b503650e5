//! A copy of a foreign page that a browser may show: it looks a little like the page, and can do nothing.
//!
//! It is safe because it is built from known parts; nothing is copied and then filtered. Every tag comes from the table
//! in [`elements`], every attribute is written here or checked there, and everything else of the page is escaped text.
//! The page's styles, classes, ids, addresses and images are not part of it, so there is nothing in it that a browser
//! could run or load. Elements with a special kind of text (`style`, `textarea`, ...) and elements of other namespaces
//! are never written, so a browser reads the markup as intended.
//!
//! The id of each element is its number in the page's tree (`n12`), which identifies it when a visitor points at it.

mod elements;

use webfill_document::{Document, NodeRef};

use self::elements::{Display, display_of};

/// The limits of a copy. What exceeds them is left out, and the copy says so.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most elements of a copy.
    pub elements: usize,
    /// The most bytes of a copy, approximately.
    pub bytes: usize,
    /// The greatest depth of elements. The text of deeper elements is moved up to the last level.
    pub depth: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            elements: 60_000,
            bytes: 6 << 20,
            depth: 400,
        }
    }
}

/// The copied body of a page as markup, without scripts and addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    pub html: String,
    pub elements: usize,
    /// Whether something was left out because of the limits.
    pub is_cut: bool,
}

/// Copies a page, so that a browser can show it without danger.
pub fn copy(document: &Document, bounds: Bounds) -> Copy {
    let mut writer = Writer {
        copy: Copy {
            html: String::new(),
            elements: 0,
            is_cut: false,
        },
        bounds,
        depth: 0,
        steps: document.root().children().map(Step::Open).collect(),
    };
    writer.steps.reverse();
    while let Some(step) = writer.steps.pop() {
        match step {
            Step::Open(node) => writer.write_node(node),
            Step::Close(tag) => writer.write_end_tag(tag),
        }
    }
    writer.copy
}

/// The copy of a page that has no elements, such as a JSON page: its text.
pub fn copy_of_text(text: &str, bounds: Bounds) -> Copy {
    let most = text.floor_char_boundary(bounds.bytes.min(text.len()));
    let mut html = String::from("<pre>\n");
    escape(&text[..most], &mut html);
    html.push_str("</pre>");
    Copy {
        html,
        elements: 0,
        is_cut: most < text.len(),
    }
}

enum Step<'d> {
    Open(NodeRef<'d>),
    Close(&'static str),
}

struct Writer<'d> {
    copy: Copy,
    bounds: Bounds,
    depth: usize,
    /// The steps that are still to be done, as a stack. The next one is the last.
    steps: Vec<Step<'d>>,
}

impl<'d> Writer<'d> {
    fn write_node(&mut self, node: NodeRef<'d>) {
        if self.copy.html.len() >= self.bounds.bytes {
            self.copy.is_cut = true;
            return;
        }
        if node.is_text() {
            return self.write_text(node.text());
        }
        let Some(name) = node.tag() else {
            return;
        };
        match display_of(name) {
            Display::Nothing => {}
            Display::Inside => self.push_children(node),
            Display::As(tag) => self.write_element(node, tag),
            Display::Void(tag) => {
                self.write_start_tag(node, tag, "");
            }
            Display::Control => self.write_description(node, "control", control_text(node)),
            Display::Image => self.write_description(node, "image", image_text(node)),
            Display::Named => self.write_description(node, "named", name.to_owned()),
            Display::Meta => self.write_meta(node),
            Display::Title => {
                self.write_description(node, "head", format!("title: {}", node.text()))
            }
        }
    }

    fn write_element(&mut self, node: NodeRef<'d>, tag: &'static str) {
        if self.depth >= self.bounds.depth {
            self.copy.is_cut = true;
            return self.push_children(node);
        }
        if self.write_start_tag(node, tag, style_class(node)) {
            self.depth += 1;
            self.steps.push(Step::Close(tag));
            self.push_children(node);
        }
    }

    /// Pushes the children of an element onto the stack of steps, so that the first child is handled next.
    fn push_children(&mut self, node: NodeRef<'d>) {
        let first = self.steps.len();
        self.steps.extend(node.children().map(Step::Open));
        self.steps[first..].reverse();
    }

    /// Writes a text in place of an element's content, for example the alternative text of an image.
    fn write_description(&mut self, node: NodeRef<'d>, class: &'static str, text: String) {
        if self.write_start_tag(node, "span", class) {
            self.write_text(&text);
            self.copy.html.push_str("</span>");
        }
    }

    fn write_meta(&mut self, node: NodeRef<'d>) {
        let names = ["name", "property", "itemprop"];
        let name = names.iter().find_map(|name| node.attribute(name));
        if let (Some(name), Some(content)) = (name, node.attribute("content")) {
            self.write_description(node, "head", format!("{name}: {content}"));
        }
    }

    /// Writes a start tag, unless the copy is full. Returns whether it was written.
    fn write_start_tag(
        &mut self,
        node: NodeRef<'d>,
        tag: &'static str,
        class: &'static str,
    ) -> bool {
        if self.copy.elements >= self.bounds.elements {
            self.copy.is_cut = true;
            return false;
        }
        self.copy.elements += 1;
        let html = &mut self.copy.html;
        html.push('<');
        html.push_str(tag);
        html.push_str(&format!(" id=\"n{}\"", node.position()));
        if !class.is_empty() {
            html.push_str(&format!(" class=\"{class}\""));
        }
        for attribute in node.attributes() {
            if let Some(written) =
                elements::sanitize_attribute(tag, attribute.name(), attribute.value())
            {
                html.push_str(&written);
            }
        }
        html.push('>');
        true
    }

    fn write_end_tag(&mut self, tag: &'static str) {
        self.depth -= 1;
        self.copy.html.push_str("</");
        self.copy.html.push_str(tag);
        self.copy.html.push('>');
    }

    fn write_text(&mut self, text: &str) {
        let room = self.bounds.bytes.saturating_sub(self.copy.html.len());
        let most = text.floor_char_boundary(room.min(text.len()));
        self.copy.is_cut |= most < text.len();
        escape(&text[..most], &mut self.copy.html);
    }
}

/// The style class of an element. Content that browsers would hide is shown dimmed, because mappings can read it.
fn style_class(node: NodeRef<'_>) -> &'static str {
    let style = node.attribute("style").unwrap_or_default();
    let hides = |rule: &str| {
        rule.split_once(':').is_some_and(|(name, value)| {
            name.trim().eq_ignore_ascii_case("display") && value.trim_start().starts_with("none")
        })
    };
    if node.attribute("hidden").is_some() || style.split(';').take(100).any(hides) {
        return "hidden";
    }
    match node.tag() {
        Some("a") if node.attribute("href").is_some() => "link",
        Some("noscript") => "hidden",
        _ => "",
    }
}

fn control_text(node: NodeRef<'_>) -> String {
    let said = ["value", "placeholder", "aria-label", "name"];
    let said = said.iter().find_map(|name| node.attribute(name));
    said.filter(|text| !text.is_empty())
        .or(node.tag())
        .unwrap_or_default()
        .to_owned()
}

fn image_text(node: NodeRef<'_>) -> String {
    match node.attribute("alt").filter(|alt| !alt.trim().is_empty()) {
        Some(alt) => format!("image: {alt}"),
        None => "image".to_owned(),
    }
}

/// Writes a text of the page as escaped markup. Characters that browsers may misinterpret are left out.
fn escape(text: &str, html: &mut String) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\t' | '\n' => html.push(character),
            control if control.is_control() => {}
            other => html.push(other),
        }
    }
}

#[cfg(test)]
mod tests;
