//! Converts a part of a page to readable text.

use std::borrow::Cow;

use webfill_document::NodeRef;

/// The text of a node as a reader sees it, up to about `max_bytes`. Hidden elements count only if nothing else is in the
/// node.
pub(crate) fn readable_text(node: NodeRef<'_>, max_bytes: usize) -> String {
    let visible = written_text(node, false, max_bytes);
    match webfill_values::is_blank(&visible) {
        true => written_text(node, true, max_bytes),
        false => visible,
    }
}

fn written_text(node: NodeRef<'_>, shows_hidden: bool, max_bytes: usize) -> String {
    let mut writer = Writer {
        shows_hidden,
        ..Writer::default()
    };
    if node.is_text() {
        writer.write_flowing(node.text());
    }
    let in_pre = node.tag() == Some("pre");
    node.children()
        .for_each(|child| write_node(child, &mut writer, in_pre, max_bytes));
    writer.text
}

/// The text of a value, with spaces where the page shows a gap, and before and after raised, lowered or struck digits.
/// Without them, `12<br>34` would be one number, and `19<sup>99</sup>` another. Hidden elements count only if nothing
/// else is in the node.
pub fn value_text(node: NodeRef<'_>) -> Cow<'_, str> {
    if !node.children().any(NodeRef::is_element) {
        return Cow::Borrowed(node.text());
    }
    let text_of = |shows_hidden: bool| {
        let mut value = ValueText {
            shows_hidden,
            ..ValueText::default()
        };
        value.write(node);
        value.text
    };
    let visible = text_of(false);
    Cow::Owned(match webfill_values::is_blank(&visible) {
        true => text_of(true),
        false => visible,
    })
}

/// Whether an element is hidden by its own markup. Style sheets are not read.
fn is_hidden(node: NodeRef<'_>) -> bool {
    let is_hidden_by_style = |style: &str| {
        let mut declarations = style.split(';').filter_map(|one| one.split_once(':'));
        declarations.any(|(name, value)| {
            let name = name.trim();
            let begins = |hidden: &str| {
                let start = value.trim().get(..hidden.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(hidden))
            };
            (name.eq_ignore_ascii_case("display") && begins("none"))
                || (name.eq_ignore_ascii_case("visibility") && begins("hidden"))
        })
    };
    node.attribute("hidden").is_some() || node.attribute("style").is_some_and(is_hidden_by_style)
}

#[derive(Default)]
struct ValueText {
    text: String,
    /// Whether raised, lowered or struck text begins here, or has just ended.
    is_apart: bool,
    shows_hidden: bool,
}

impl ValueText {
    /// Writes the text of a node. Recursive, because the depth of documents is limited.
    fn write(&mut self, node: NodeRef<'_>) {
        for child in node.children() {
            if child.is_text() {
                self.push(child.text());
                continue;
            }
            match child.tag() {
                None => {}
                Some(tag) if is_invisible(tag) => {}
                Some(_) if !self.shows_hidden && is_hidden(child) => {}
                Some("br") => self.push_gap(),
                Some("sup" | "sub" | "del" | "s" | "strike") => {
                    self.is_apart = true;
                    self.write(child);
                    self.is_apart = true;
                }
                Some(tag) if gap_around(tag) > 0 || matches!(tag, "td" | "th") => {
                    self.push_gap();
                    self.write(child);
                    self.push_gap();
                }
                Some(_) => self.write(child),
            }
        }
    }

    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let is_apart = std::mem::take(&mut self.is_apart);
        let is_between_digits =
            self.text.ends_with(char::is_numeric) && text.starts_with(char::is_numeric);
        if is_apart && is_between_digits {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    fn push_gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
    }
}

fn is_invisible(tag: &str) -> bool {
    matches!(
        tag,
        "script"
            | "style"
            | "template"
            | "head"
            | "noscript"
            | "iframe"
            | "object"
            | "svg"
            | "datalist"
            | "noembed"
            | "noframes"
            | "canvas"
            | "audio"
            | "video"
    )
}

/// Writes the text of a node. Recursive, because the depth of documents is limited.
fn write_node(node: NodeRef<'_>, writer: &mut Writer, in_pre: bool, max_bytes: usize) {
    if writer.text.len() > max_bytes {
        return;
    }
    if node.is_text() {
        return match in_pre {
            true => writer.write_preformatted(node.text()),
            false => writer.write_flowing(node.text()),
        };
    }
    let Some(tag) = node.tag() else {
        // A node without a tag that has children is the document itself.
        node.children()
            .for_each(|child| write_node(child, writer, in_pre, max_bytes));
        return;
    };
    let gap = match tag {
        unseen if is_invisible(unseen) => return,
        _ if !writer.shows_hidden && is_hidden(node) => return,
        "br" => return writer.add_line_break(),
        "td" | "th" => return write_cell(node, writer, max_bytes),
        _ => gap_around(tag),
    };
    writer.add_gap(gap);
    let in_pre = in_pre || tag == "pre";
    node.children()
        .for_each(|child| write_node(child, writer, in_pre, max_bytes));
    writer.add_gap(gap);
}

fn write_cell(node: NodeRef<'_>, writer: &mut Writer, max_bytes: usize) {
    writer.add_space();
    node.children()
        .for_each(|child| write_node(child, writer, false, max_bytes));
    writer.add_space();
}

/// The number of line breaks before and after an element.
fn gap_around(tag: &str) -> usize {
    match tag {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "dl" | "table" | "pre"
        | "blockquote" | "figure" | "hr" | "section" | "article" => 2,
        "div" | "li" | "dt" | "dd" | "tr" | "header" | "footer" | "main" | "nav" | "aside"
        | "address" | "form" | "fieldset" | "figcaption" | "caption" | "details" | "summary"
        | "body" | "html" | "center" | "legend" | "hgroup" | "search" | "dialog" => 1,
        _ => 0,
    }
}

/// Text whose white space at the end is pending: it is written only before the next word.
#[derive(Default)]
struct Writer {
    text: String,
    breaks: usize,
    space: bool,
    shows_hidden: bool,
}

impl Writer {
    fn add_gap(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    fn add_line_break(&mut self) {
        self.breaks = (self.breaks + 1).min(2);
    }

    fn add_space(&mut self) {
        self.space = true;
    }

    fn write_flowing(&mut self, text: &str) {
        let is_space = |c: char| c.is_whitespace() && c != '\u{a0}';
        self.space |= text.starts_with(is_space);
        let mut words = text
            .split(is_space)
            .filter(|word| !word.is_empty())
            .peekable();
        while let Some(word) = words.next() {
            self.write_pending_space();
            self.text.push_str(word);
            self.space = words.peek().is_some() || text.ends_with(is_space);
        }
    }

    fn write_preformatted(&mut self, text: &str) {
        let text = match self.breaks {
            0 => text,
            _ => text.trim_start_matches('\n'),
        };
        if !text.is_empty() {
            self.write_pending_space();
            self.text.push_str(text);
        }
    }

    fn write_pending_space(&mut self) {
        let at_start = self.text.is_empty();
        if self.breaks > 0 && !at_start {
            let end = self.text.trim_end_matches([' ', '\n']).len();
            self.text.truncate(end);
            self.text
                .push_str(if self.breaks == 1 { "\n" } else { "\n\n" });
        } else if self.space && !at_start {
            self.text.push(' ');
        }
        self.breaks = 0;
        self.space = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webfill_document::{Document, Limits};

    fn text(html: &str) -> String {
        let document = Document::parse_html(html, &Limits::default());
        readable_text(document.root(), 10_000)
    }

    #[test]
    fn readable_text_has_the_white_space_that_a_reader_sees() {
        for (html, expected) in [
            ("a<b>b</b> c\n\n <i> d</i>", "ab c d"),
            ("<p>one</p>\n\n<p>two<p>three", "one\n\ntwo\n\nthree"),
            ("<div>a</div><div>b</div>c", "a\nb\nc"),
            ("a<br>b<br><br>c<br><br><br>d", "a\nb\n\nc\n\nd"),
            ("<table><tr><td>a<td>b<tr><th>c</table>", "a b\nc"),
            (
                "x<pre>\n  if a:\n    b\n</pre>y",
                "x\n\n  if a:\n    b\n\ny",
            ),
            (
                "<title>t</title><style>s</style>b<noscript>n</noscript>",
                "b",
            ),
            (
                "a<p hidden>h</p><i style='display:none'>d</i><i style='color:red; VISIBILITY : hidden'>v</i>\
                 <template>t</template><video>old browser</video>b<b style='display:block'>c</b>",
                "abc",
            ),
            ("<p hidden>only<b>this</b></p>", "onlythis"),
            ("a&nbsp;b", "a\u{a0}b"),
            ("  ", ""),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }

    #[test]
    fn values_have_neither_hidden_nor_joined_digits() {
        for (html, expected) in [
            (
                "<p>5<i style='color: red; Display: NONE !important'>7</i>",
                "5",
            ),
            ("<p><i hidden>7</i>5<b>0</b>", "50"),
            ("<p><i hidden>7</i> ", "7 "),
            ("<p><s>199</s><b>149</b>", "199 149"),
            ("<p>5<del>$7</del>", "5$7"),
        ] {
            let document = Document::parse_html(html, &Limits::default());
            let node = document.elements_by_tag("p").next().unwrap();
            assert_eq!(value_text(node), expected, "{html}");
        }
    }

    #[test]
    fn readable_text_stops_at_the_limit() {
        let html = "<p>word</p>".repeat(10_000);
        let document = Document::parse_html(&html, &Limits::default());
        assert!(readable_text(document.root(), 1000).len() < 1100);
    }
}
