//! Converts a part of a page to readable text.

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

/// Whether an element is hidden by its own markup. Style sheets are not read.
pub(crate) fn is_hidden(node: NodeRef<'_>) -> bool {
    node.attribute("hidden").is_some()
        || has_style(node, "display", "none")
        || has_style(node, "visibility", "hidden")
}

/// Whether the `style` of an element sets this property to a value that has this word.
pub(crate) fn has_style(node: NodeRef<'_>, property: &str, word: &str) -> bool {
    let sets = |(name, value): (&str, &str)| {
        let is_word = |one: &str| one.eq_ignore_ascii_case(word);
        name.trim().eq_ignore_ascii_case(property)
            && value
                .split(|c: char| c.is_whitespace() || c == '!')
                .any(is_word)
    };
    let Some(style) = node.attribute("style") else {
        return false;
    };
    let mut declarations = style.split(';').filter_map(|one| one.split_once(':'));
    declarations.any(sets)
}

pub(crate) fn is_invisible(tag: &str) -> bool {
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
pub(crate) fn gap_around(tag: &str) -> usize {
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
    fn readable_text_stops_at_the_limit() {
        let html = "<p>word</p>".repeat(10_000);
        let document = Document::parse_html(&html, &Limits::default());
        assert!(readable_text(document.root(), 1000).len() < 1100);
    }
}
