//! Learns the links from a listing to its further pages.

use serde_json::{Value, json};
use webfill_document::{NodeRef, XPath};
use webfill_urls::Url;

use super::prepared_page::PreparedPage;
use crate::anchors::xpath_literal;

/// XPaths of links that sites mark as leading to the next page, in the order they are tried.
const BY_NAME: [&str; 4] = [
    "//a[@rel='next' or contains(concat(' ', normalize-space(@rel), ' '), ' next ')]/@href",
    "//link[@rel='next']/@href",
    "//*[contains(concat(' ', normalize-space(@class), ' '), ' next ')]/descendant-or-self::a/@href",
    "//*[contains(concat(' ', normalize-space(@class), ' '), ' pagination ') or contains(concat(' ', normalize-space(@class), ' '), ' pager ')]//a/@href",
];

/// Texts of links to the next page.
const TEXTS: [&str; 22] = [
    "next",
    "next page",
    "next ›",
    "next »",
    "next →",
    "older",
    "older posts",
    "more",
    "more results",
    "›",
    "»",
    "→",
    ">",
    ">>",
    "weiter",
    "nächste seite",
    "nächste",
    "suivant",
    "page suivante",
    "siguiente",
    "successiva",
    "volgende",
];

/// The processors of a `url_parsers` entry that selects the links, and the URLs that it yields on the given pages.
pub(super) struct Paging {
    pub(super) processors: Value,
    pub(super) urls: Vec<Url>,
}

pub(super) fn find(sheets: &[PreparedPage<'_>]) -> Option<Paging> {
    let texts = sheets.iter().filter_map(find_by_text);
    let all = BY_NAME.iter().map(|name| (*name).to_owned()).chain(texts);
    let found = all.filter_map(|expression| check_expression(sheets, expression));
    found.into_iter().next()
}

/// Accepts an XPath if all URLs that it selects are pages of the same listing; otherwise returns `None`. Their paths
/// may differ only in a number at the end; their queries may differ.
fn check_expression(sheets: &[PreparedPage<'_>], expression: String) -> Option<Paging> {
    let xpath = XPath::compile(&expression).ok()?;
    let mut urls: Vec<Url> = Vec::new();
    for sheet in sheets {
        for value in sheet.document.evaluate(&xpath).ok()? {
            let href = value.text();
            if href.starts_with('#') || href.starts_with("javascript:") {
                continue;
            }
            let url = sheet.list.page.url.join(&href).ok()?;
            if !is_of_listing(&sheet.list.page.url, &url) {
                return None;
            }
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
    }
    let own = |url: &Url| sheets.iter().any(|sheet| sheet.list.page.url == *url);
    let leads = sheets.len() > 1 && urls.iter().any(own) || urls.iter().any(|url| !own(url));
    leads.then(|| Paging {
        processors: json!([{"type": "xpath", "parameters": {"expression": expression}}]),
        urls,
    })
}

fn is_of_listing(page: &Url, next: &Url) -> bool {
    if page.host_str() != next.host_str()
        || page.path() == next.path() && page.query() == next.query()
    {
        return page == next;
    }
    let shape = |url: &Url| -> String {
        let path = url.path().trim_end_matches('/');
        let path = path.trim_end_matches(|c: char| c.is_ascii_digit());
        path.trim_end_matches(['/', '-', '_'])
            .trim_end_matches("page")
            .trim_end_matches(['/', '-', '_'])
            .to_owned()
    };
    shape(page) == shape(next)
}

/// An XPath for links with the text of the page's first link whose text is one of [`TEXTS`].
fn find_by_text(sheet: &PreparedPage<'_>) -> Option<String> {
    let links = sheet.document.elements_by_tag("a");
    let is_next = |link: &NodeRef<'_>| {
        let text = crate::fold::collapse_white_space(link.text()).to_lowercase();
        link.attribute("href").is_some() && TEXTS.contains(&text.as_str())
    };
    let mut links = links.filter(is_next);
    let link = links.next()?;
    let text = xpath_literal(&crate::fold::collapse_white_space(link.text()))?;
    Some(format!("//a[normalize-space(.)={text}]/@href"))
}
