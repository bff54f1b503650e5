//! CSS selectors on pages.

mod common;

use common::{html, selected};
use webfill_document::{Selector, XValue};

const PAGE: &str = r#"<title>t</title>
<div id="main" class="box wide" data-x="Alpha-beta"><p class="lead">one</p><p>two <b>bold</b></p>
<span>s1</span><span>s2</span><p lang="en-GB">three</p></div>
<ul><li>1</li><li>2</li><li class="md:flex">3</li><li>4</li><li>5</li></ul><i></i><i> </i>
<a href="https://example.org/a.pdf">pdf</a><a href="/B.PDF">PDF</a><a>none</a>"#;

fn check(cases: &[(&str, &[&str])]) {
    let document = html(PAGE);
    for (selector, expected) in cases {
        assert_eq!(selected(&document, selector), *expected, "{selector}");
    }
}

#[test]
fn simple_selectors_match_names_classes_ids_and_attributes() {
    check(&[
        ("b", &["bold"]),
        ("p.lead", &["one"]),
        ("#main > .lead", &["one"]),
        (".box.wide p.lead", &["one"]),
        (".bo", &[]),
        (r".md\:flex", &["3"]),
        ("li[class]", &["3"]),
        ("[data-x='Alpha-beta'] b", &["bold"]),
        ("[data-x='alpha-beta'] b", &[]),
        ("[data-x='alpha-beta' i] b", &["bold"]),
        ("[data-x|=Alpha] b", &["bold"]),
        ("p[lang|=en]", &["three"]),
        ("a[href$='.pdf']", &["pdf"]),
        ("a[href$='.pdf' i]", &["pdf", "PDF"]),
        ("a[href^='https:']", &["pdf"]),
        ("a[href*='example.org']", &["pdf"]),
        ("a[href*='']", &[]),
        ("div[class~=wide] > b", &[]),
        ("title, b , i", &["t", "bold", "", " "]),
    ]);
}

#[test]
fn combinators_walk_the_tree() {
    check(&[
        ("div b", &["bold"]),
        ("div > b", &[]),
        ("p + span", &["s1"]),
        ("p ~ span", &["s1", "s2"]),
        ("span + p", &["three"]),
        ("p:has(+ span) b", &["bold"]),
        ("div > p ~ p", &["two bold", "three"]),
    ]);
}

#[test]
fn pseudo_classes_count_and_nest() {
    check(&[
        ("li:first-child, li:last-child", &["1", "5"]),
        ("li:nth-child(2n+1)", &["1", "3", "5"]),
        ("li:nth-child(even)", &["2", "4"]),
        ("li:nth-child( -n + 2 )", &["1", "2"]),
        ("li:nth-child(3)", &["3"]),
        ("li:nth-child(n+4)", &["4", "5"]),
        ("li:nth-last-child(2)", &["4"]),
        ("span:nth-of-type(2)", &["s2"]),
        ("p:last-of-type", &["three"]),
        ("p:first-child:not(.x)", &["one"]),
        ("b:only-child", &["bold"]),
        ("div :not(p):not(span)", &["bold"]),
        ("li:not(:nth-child(2), .md\\:flex)", &["1", "4", "5"]),
        ("p:not(div > .lead)", &["two bold", "three"]),
        (":is(p, li):has(b)", &["two bold"]),
        ("div:has(> b)", &[]),
        ("div:has(p b) > .lead", &["one"]),
        ("i:empty", &[""]),
        ("li:contains('4')", &["4"]),
        (":root > head > title", &["t"]),
    ]);
}

#[test]
fn pseudo_elements_take_text_and_attributes() {
    check(&[
        ("a::attr(href)", &["https://example.org/a.pdf", "/B.PDF"]),
        ("p:nth-of-type(2)::text", &["two "]),
        ("p:nth-of-type(2) ::text", &["bold"]),
    ]);
}

#[test]
fn a_selector_within_a_node_sees_only_that_node() {
    let document = html(PAGE);
    let found = document.select(&Selector::compile("div").unwrap()).unwrap();
    let [XValue::Node(division)] = found[..] else {
        panic!("one division")
    };
    let within = |selector: &str| {
        division
            .select(&Selector::compile(selector).unwrap())
            .unwrap()
            .len()
    };
    assert_eq!(within("p"), 3);
    assert_eq!(within("> p"), 3);
    assert_eq!(within("> b"), 0);
    assert_eq!(within("li"), 0);
    assert_eq!(within("div p"), 0);
}
