//! Tests CSS selectors on pages.

mod common;

use common::{parse_html, select};
use webfill_document::{Document, Limits, Selector, XValue};

const PAGE: &str = r#"<title>t</title>
<div id="main" class="box wide" data-x="Alpha-beta"><p class="lead">one</p><p>two <b>bold</b></p>
<span>s1</span><span>s2</span><p lang="en-GB">three</p></div>
<ul><li>1</li><li>2</li><li class="md:flex">3</li><li>4</li><li>5</li></ul><i></i><i> </i>
<a href="https://example.org/a.pdf">pdf</a><a href="/B.PDF">PDF</a><a>none</a>"#;

fn assert_selections(cases: &[(&str, &[&str])]) {
    let document = parse_html(PAGE);
    for (selector, expected) in cases {
        assert_eq!(select(&document, selector), *expected, "{selector}");
    }
}

#[test]
fn simple_selectors_match_names_classes_ids_and_attributes() {
    assert_selections(&[
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
    assert_selections(&[
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
    assert_selections(&[
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
    assert_selections(&[
        ("a::attr(href)", &["https://example.org/a.pdf", "/B.PDF"]),
        ("p:nth-of-type(2)::text", &["two "]),
        ("p:nth-of-type(2) ::text", &["bold"]),
    ]);
}

#[test]
fn names_match_in_any_case_on_html_pages() {
    assert_selections(&[
        ("UL > LI:First-Child", &["1"]),
        ("DIV[ID=main] B", &["bold"]),
        (
            "A[HREF]::attr(HREF)",
            &["https://example.org/a.pdf", "/B.PDF"],
        ),
        (".LEAD, #MAIN", &[]),
        ("p[lang|=EN]", &["three"]),
        ("p[lang|=EN s]", &[]),
        ("[DATA-X='alpha-beta']", &[]),
    ]);
    let svg = "<svg viewBox='1'><linearGradient>g</linearGradient><foreignObject>f</foreignObject></svg>\
        <p viewBox=2>p</p>";
    let document = parse_html(svg);
    assert_eq!(select(&document, "linearGradient"), ["g"]);
    assert_eq!(select(&document, "lineargradient"), [""; 0]);
    assert_eq!(select(&document, "[viewBox]::attr(viewBox)"), ["1"]);
    assert_eq!(select(&document, "foreignObject:is(SVG *)"), ["f"]);
    let xml = Document::parse_xml(
        "<a><B Type='X'>1</B><b type='X'>2</b></a>",
        &Limits::default(),
    );
    assert_eq!(select(&xml, "B"), ["1"]);
    assert_eq!(select(&xml, "b[type=X]"), ["2"]);
    assert_eq!(select(&xml, "A, b[TYPE], b[type=x]"), [""; 0]);
}

#[test]
fn comments_in_selectors_are_skipped() {
    assert_selections(&[
        ("/* the first */ p/**/.lead", &["one"]),
        ("div/* > */>/**/p:first-child", &["one"]),
        ("p /**/ b", &["bold"]),
        ("a[ /**/ href /**/ $= /**/ '.pdf' ]/* rest", &["pdf"]),
        ("a[href*='/*']", &[]),
        ("li:nth-child( /* odd */ 2n /**/ + 1 )", &["1", "3", "5"]),
        (":is( /**/ b /**/ , /**/ i:empty)", &["bold", ""]),
    ]);
}

#[test]
fn positions_count_among_the_matching_siblings() {
    assert_selections(&[
        ("p:nth-child(2 of p)", &["two bold"]),
        ("p:nth-last-child(3 of :not([lang]))", &["two bold"]),
        ("li:nth-child(even of li:not(:first-child))", &["3", "5"]),
        ("li:nth-child(1 OF .md\\:flex, :last-child)", &["3"]),
        ("span:nth-child(1 of p)", &[]),
        (":nth-child(-n+2 of span)", &["s1", "s2"]),
    ]);
}

#[test]
fn languages_are_those_of_the_nearest_ancestor_or_the_page() {
    let page = "<meta http-equiv=Content-Language content=fr><p>f</p><div lang=de-Latn-DE><p>d</p>\
        <p lang=''>none</p></div><p lang=en-GB>e</p><p lang=sv-x-de>x</p>";
    let document = parse_html(page);
    for (selector, expected) in [
        ("p:lang(fr)", &["f"][..]),
        ("p:lang(DE)", &["d"]),
        ("p:lang(de-DE)", &["d"]),
        ("p:lang('*-GB', \\*-de)", &["d", "e"]),
        ("p:lang(en, fr)", &["f", "e"]),
        ("p:lang(d)", &[]),
        ("p:lang('')", &["none"]),
        ("p:not(:lang('*'))", &["none"]),
    ] {
        assert_eq!(select(&document, selector), expected, "{selector}");
    }
}

#[test]
fn checked_and_selected_elements_are_found() {
    let page = "<input type=CheckBox checked value=a><input type=radio value=b><input checked value=c>\
        <select><option value=d><option selected value=e></select><p checked>";
    let document = parse_html(page);
    assert_eq!(select(&document, ":checked::attr(value)"), ["a", "e"]);
    let others = "input:not(:checked)::attr(value)";
    assert_eq!(select(&document, others), ["b", "c"]);
}

#[test]
fn a_name_may_be_in_any_namespace() {
    assert_selections(&[
        ("*|b", &["bold"]),
        ("*|UL > *|li:first-child", &["1"]),
        ("div > *|*:first-child", &["one"]),
        ("a[*|href$='.pdf']", &["pdf"]),
        ("a[|href$='.pdf']", &["pdf"]),
    ]);
    let svg = parse_html("<svg><a xlink:href='/x'>l</a></svg><o:p>o</o:p>");
    assert_eq!(select(&svg, "[*|href]"), ["l"]);
    assert_eq!(select(&svg, "*|p, [|href]"), [""; 0]);
    let feed = "<r xmlns:media='m'><media:title>1</media:title><title>2</title></r>";
    let feed = Document::parse_xml(feed, &Limits::default());
    assert_eq!(select(&feed, "*|title"), ["1", "2"]);
    assert_eq!(select(&feed, "title"), ["2"]);
    let feed = "<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:title>1</a:title></a:feed>";
    let feed = Document::parse_xml(feed, &Limits::default());
    assert_eq!(select(&feed, "feed > title"), ["1"]);
}

#[test]
fn an_empty_is_selector_matches_nothing() {
    assert_selections(&[
        ("p:is()", &[]),
        ("b:where( )", &[]),
        ("b:not(:is(), i, p)", &["bold"]),
        ("li:where(.md\\:flex, :first-child)", &["1", "3"]),
    ]);
}

#[test]
fn the_scope_is_the_node_that_is_searched() {
    let document = parse_html(PAGE);
    assert_eq!(select(&document, ":scope > head > title"), ["t"]);
    assert_eq!(
        select(&document, "body:not(:scope) > ul > :first-child"),
        ["1"]
    );
    let found = document.select(&Selector::compile("div").unwrap()).unwrap();
    let [XValue::Node(division)] = found[..] else {
        panic!("one division")
    };
    let within = |selector: &str| {
        let found = division
            .select(&Selector::compile(selector).unwrap())
            .unwrap();
        found
            .iter()
            .map(|value| value.text().into_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(within(":scope > p.lead"), ["one"]);
    assert_eq!(within(":scope > b"), [""; 0]);
    assert_eq!(within("div:scope b"), ["bold"]);
    assert_eq!(within("p:scope b"), [""; 0]);
    assert_eq!(within(":scope::attr(id)"), ["main"]);
    assert_eq!(within(":scope > :not(p), :scope b"), ["bold", "s1", "s2"]);
    assert_eq!(within("b:is(:scope > p > b)"), ["bold"]);
}

#[test]
fn a_selector_within_a_node_sees_only_that_node() {
    let document = parse_html(PAGE);
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
