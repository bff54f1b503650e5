//! Processors for values that hold markup: `html_to_text`, `decode_entities`.

use crate::entities::decode_references;
use crate::entry::{Entry, Example, Family, Input};
use crate::item::Item;
use crate::page_text::readable_text;
use crate::run::{EachText, OutOfTime, Processor, Run};

pub(crate) const HTML_TO_TEXT: Entry = Entry {
    name: "html_to_text",
    family: Family::Text,
    summary: "Converts elements or HTML to readable text: blocks on separate lines, an empty line between paragraphs, no scripts, styles and elements that their own markup hides. First in a chain it takes the body of the page.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&[
            "<h2>Ada</h2><p>First\n programmer,<br>of <b>London</b>.</p><script>x()</script><ul><li>a<li>b</ul>",
        ]),
        output: &["Ada\n\nFirst programmer,\nof London.\n\na\nb"],
    }],
    build: |_, _| Ok(Box::new(HtmlToText)),
};

struct HtmlToText;

impl Processor for HtmlToText {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.new_output();
        for item in items {
            let node = match &item {
                Item::Node(node) => Some(*node),
                Item::Page => run
                    .page
                    .document_or_warn(run)
                    .map(|document| document.root()),
                text => Some(run.page.parse_fragment(&run.text(text)).root()),
            };
            let text = node.map(|node| readable_text(node, run.limits.value_bytes));
            if !text.is_none_or(|text| output.push_text(text)) {
                break;
            }
        }
        output.finish()
    }
}

pub(crate) const DECODE_ENTITIES: Entry = Entry {
    name: "decode_entities",
    family: Family::Text,
    summary: "Decodes HTML character references, in texts that were escaped twice or come from JSON.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&["Caf&eacute; &amp; Bar &#x2014; a < b"]),
        output: &["Café & Bar — a < b"],
    }],
    build: |_, _| {
        Ok(Box::new(EachText(|text: &str| {
            Some(decode_references(text))
        })))
    },
};
