//! Functions that several tests use: they parse a page and evaluate expressions on it.
#![allow(dead_code, reason = "each test binary uses its part")]

use webfill_document::{Document, Limits, Selector, XPath, XValue};

pub(crate) fn parse_html(page: &str) -> Document {
    Document::parse_html(page, &Limits::default())
}

pub(crate) fn evaluate<'d>(document: &'d Document, expression: &str) -> Vec<XValue<'d>> {
    let xpath = XPath::compile(expression).unwrap_or_else(|error| panic!("{error}"));
    document
        .evaluate(&xpath)
        .unwrap_or_else(|error| panic!("{expression}: {error}"))
}

pub(crate) fn texts(document: &Document, expression: &str) -> Vec<String> {
    evaluate(document, expression)
        .iter()
        .map(|value| value.text().into_owned())
        .collect()
}

pub(crate) fn select(document: &Document, selector: &str) -> Vec<String> {
    let selector = Selector::compile(selector).unwrap_or_else(|error| panic!("{error}"));
    let found = document.select(&selector).unwrap();
    found
        .iter()
        .map(|value| value.text().into_owned())
        .collect()
}
