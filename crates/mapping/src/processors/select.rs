//! `xpath` and `css`: select parts of the page, or of the elements that an earlier processor found.

use serde_json::Number;
use webfill_document::{
    Document, EvaluateError, NameUnlikeHtml, NodeRef, XValue, names_unlike_html,
};

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::fault::quote;
use crate::item::Item;
use crate::reading::Reading;
use crate::run::{OutOfTime, Output, Processor, Run};
use crate::selectors::{SelectorId, XPathId};

pub(crate) const XPATH: Entry = Entry {
    name: "xpath",
    family: Family::Find,
    summary: "Yields the results of an XPath 1.0 expression: in the page, from each element of the previous processor, or in values that are HTML. Elements of HTML are named in lower case, without namespaces. In XML an element in the namespace of the root has no prefix, whatever the page writes: `//entry` finds `atom:entry` below `atom:feed`. Others have the usual one (`media:title`, `dc:creator`, `g:price`); find one with another prefix by `*[local-name() = 'price']`.",
    parameters: &[Parameter {
        name: "expression",
        kind: Kind::Text,
        presence: Presence::Required,
        meaning: "the XPath; begin with .// to search within earlier elements",
    }],
    examples: &[
        Example {
            parameters: r#"{"expression": "//ul[@class='sites']//a/@href"}"#,
            input: Input::Page(
                r#"<ul class="sites"><li><a href="/ada">Ada</a><li><a href="/mary">Mary</a></ul>"#,
            ),
            output: &["/ada", "/mary"],
        },
        Example {
            parameters: r#"{"expression": "normalize-space(//h1)"}"#,
            input: Input::Page("<h1> Ada\n Lovelace</h1>"),
            output: &["Ada Lovelace"],
        },
        Example {
            parameters: r#"{"expression": "//b/text()"}"#,
            input: Input::Values(&["born in <b>London</b>"]),
            output: &["London"],
        },
    ],
    build: |parameters, selectors| {
        let expression = parameters.text("expression");
        match selectors.add_xpath(expression) {
            Ok(id) => {
                for unlike in names_unlike_html(expression) {
                    selectors.warn("expression", unlike_name_warning(&unlike));
                }
                Ok(Box::new(ByXPath(id)))
            }
            Err(reason) => {
                let message = format!("invalid XPath {}: {reason}", quote(expression));
                Err(refusal("expression", message))
            }
        }
    },
};

pub(crate) const CSS: Entry = Entry {
    name: "css",
    family: Family::Find,
    summary: "Yields the matches of a CSS selector: in the page, within each element of the previous processor, or in values that are HTML. At the end of a selector, `::attr(name)` takes an attribute and `::text` the texts directly within the element. Names of elements and attributes match in any case on HTML pages; `:scope` is the element that is searched.",
    parameters: &[Parameter {
        name: "selector",
        kind: Kind::Text,
        presence: Presence::Required,
        meaning: "the selector, or several separated by commas",
    }],
    examples: &[
        Example {
            parameters: r#"{"selector": "ul.sites > li:first-child"}"#,
            input: Input::Page(r#"<ul class="sites"><li>Ada</li><li>Mary</li></ul>"#),
            output: &["Ada"],
        },
        Example {
            parameters: r#"{"selector": "a[rel=me]::attr(href)"}"#,
            input: Input::Page(r#"<a rel="me" href="/ada">Ada</a><a href="/about">About</a>"#),
            output: &["/ada"],
        },
    ],
    build: |parameters, selectors| {
        let selector = parameters.text("selector");
        match selectors.add_selector(selector) {
            Ok(id) => Ok(Box::new(ByCss(id))),
            Err(reason) => {
                let message = format!("invalid CSS selector {}: {reason}", quote(selector));
                Err(refusal("selector", message))
            }
        }
    },
};

fn unlike_name_warning(unlike: &NameUnlikeHtml) -> String {
    let NameUnlikeHtml {
        name,
        offset,
        spellings,
    } = unlike;
    let meant = match spellings.as_slice() {
        [lower, in_svg, ..] => format!("`{in_svg}` within SVG or MathML, `{lower}` elsewhere"),
        _ => format!("`{}`", spellings.join("")),
    };
    format!(
        "`{name}` at offset {offset} finds nothing on HTML pages: write {meant}; only XML has capitals"
    )
}

struct ByXPath(XPathId);

impl Processor for ByXPath {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let xpath = run.selectors.xpath(self.0);
        select(items, run, |place| place.evaluate(xpath))
    }

    fn sees_markup(&self) -> bool {
        true
    }

    fn reading<'p>(&self, input: &[Item<'p>], run: &Run<'p>) -> Reading {
        Reading::from_xpath(run.selectors.xpath(self.0), &search_roots(input, run))
    }
}

struct ByCss(SelectorId);

impl Processor for ByCss {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let selector = run.selectors.selector(self.0);
        select(items, run, |place| place.select(selector))
    }

    fn sees_markup(&self) -> bool {
        true
    }

    fn reading<'p>(&self, input: &[Item<'p>], run: &Run<'p>) -> Reading {
        Reading::from_selector(run.selectors.selector(self.0), &search_roots(input, run))
    }
}

fn select<'p>(
    items: Vec<Item<'p>>,
    run: &Run<'p>,
    search: impl Fn(NodeRef<'p>) -> Result<Vec<XValue<'p>>, EvaluateError>,
) -> Result<Vec<Item<'p>>, OutOfTime> {
    let mut output = run.new_output();
    for item in items {
        run.check_time()?;
        let Some(place) = search_root(&item, run) else {
            continue;
        };
        match search(place) {
            Ok(values) => {
                if !values
                    .into_iter()
                    .all(|value| push_value(value, &mut output))
                {
                    break;
                }
            }
            Err(error) => run.warn(error),
        }
    }
    run.check_time()?;
    output.finish()
}

/// The nodes where an XPath or selector starts to search, for a trace.
fn search_roots<'p>(items: &[Item<'p>], run: &Run<'p>) -> Vec<NodeRef<'p>> {
    const MOST: usize = 20;
    let items = items.iter().take(MOST);
    items.filter_map(|item| search_root(item, run)).collect()
}

/// The node where an XPath or selector starts to search.
pub(super) fn search_root<'p>(item: &Item<'p>, run: &Run<'p>) -> Option<NodeRef<'p>> {
    match item {
        Item::Page => run.page.document_or_warn(run).map(Document::root),
        Item::Node(node) => Some(*node),
        text => Some(run.page.parse_fragment(&run.text(text)).root()),
    }
}

fn push_value<'p>(value: XValue<'p>, output: &mut Output<'_, 'p>) -> bool {
    match value {
        XValue::Node(node) if node.is_element() => output.push(Item::Node(node)),
        XValue::Node(node) => output.push_str(node.text()),
        XValue::Attribute(attribute) => output.push_str(attribute.value()),
        XValue::Number(number) => match json_number(number) {
            Some(number) => output.push(Item::Number(number)),
            None => true,
        },
        XValue::Text(text) => output.push_text(text),
        XValue::Boolean(boolean) => output.push_text(boolean.to_string()),
    }
}

/// Converts an XPath number to JSON; `None` if it is not finite.
fn json_number(number: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.fract() == 0.0 && number.abs() <= EXACT {
        true => Some(Number::from(number as i64)),
        false => Number::from_f64(number),
    }
}
