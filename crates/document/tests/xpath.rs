//! Tests XPath 1.0 expressions against the standard, on pages parsed as in browsers.

mod common;

use common::{evaluate, parse_html, texts};
use webfill_document::{Document, Limits, XPath, XValue};

const PAGE: &str = r##"<!DOCTYPE html><html lang="en-GB"><head><title>A page</title>
<noscript><link rel=stylesheet href=n.css></noscript></head><body>
<div id="one" class="a b"><p>first</p><p class="x">second <b>bold</b></p><!-- note --></div>
<div id="two" class="b"><p class="y">third</p><span lang="de">vier</span></div>
<ul><li>1</li><li>2</li><li>3</li><li>10</li></ul>
<table><tr><td>5</td><td>+5</td></tr></table>
<a href="/1">one</a><a href="/2" class="x">two</a><a href="/3" class="z">three</a><a name="n">none</a>
<noscript><img src="pixel.gif"></noscript>
<svg viewBox="0 0 1 1"><use xlink:href="#icon" href="plain"></use><path d="M0"/></svg>
</body></html>"##;

/// Checks the texts of the values that each expression yields.
fn assert_values(cases: &[(&str, &[&str])]) {
    let document = parse_html(PAGE);
    for (expression, expected) in cases {
        assert_eq!(texts(&document, expression), *expected, "{expression}");
    }
}

#[test]
fn paths_select_in_document_order() {
    assert_values(&[
        ("//p", &["first", "second bold", "third"]),
        ("/html/body/div/p", &["first", "second bold", "third"]),
        (
            "//div//text()[normalize-space()]",
            &["first", "second ", "bold", "third", "vier"],
        ),
        ("//li/text()", &["1", "2", "3", "10"]),
        ("//comment()", &[" note "]),
        ("//a/@href", &["/1", "/2", "/3"]),
        ("//@class[. = 'x']/..", &["second bold", "two"]),
        ("id('two one')/@id", &["one", "two"]),
        (
            "//li | //p | //li",
            &["first", "second bold", "third", "1", "2", "3", "10"],
        ),
        ("//b/ancestor::*[@id]/@id", &["one"]),
        ("//b/ancestor-or-self::p", &["second bold"]),
        ("//ul/preceding-sibling::div/@id", &["one", "two"]),
        ("//ul/preceding-sibling::div[1]/@id", &["two"]),
        ("(//ul/preceding-sibling::div)[1]/@id", &["one"]),
        ("//ul/following::a/@href", &["/1", "/2", "/3"]),
        ("//ul/preceding::p[1]", &["third"]),
        ("//li[3]/following-sibling::li", &["10"]),
        ("//a/self::a[@name]", &["none"]),
        ("//@href/self::href", &[]),
        ("//div/@*", &["one", "a b", "two", "b"]),
        ("//namespace::*", &[]),
        ("/", &[parse_html(PAGE).root().text()]),
    ]);
}

#[test]
fn a_predicate_counts_within_its_own_step() {
    assert_values(&[
        ("//p[1]", &["first", "third"]),
        ("(//p)[1]", &["first"]),
        ("(//p)[last()]", &["third"]),
        ("//div/p[last()]", &["second bold", "third"]),
        ("//div//p[2]", &["second bold"]),
        ("//li[position() mod 2 = 0]", &["2", "10"]),
        ("//li[position() > 1][2]", &["3"]),
        ("//li[last() - 1]", &["3"]),
        ("//li[. > 2][last()]", &["10"]),
        ("//p[@class][1]", &["second bold", "third"]),
        ("//li[1.5]", &[]),
        ("//li[0]", &[]),
        ("//li[-1]", &[]),
        ("//li[position() = last()]", &["10"]),
        ("//ul/li[not(position() = 2)]", &["1", "3", "10"]),
        ("//li[count(//p)]", &["3"]),
        ("//b/ancestor::*[2]/@id", &["one"]),
    ]);
}

#[test]
fn sets_of_nodes_compare_by_any_of_their_nodes() {
    assert_values(&[
        ("//a[@class != 'x']", &["three"]),
        ("//a[not(@class = 'x')]", &["one", "three", "none"]),
        ("//li[. < 3]", &["1", "2"]),
        ("//li[3 <= .]", &["3", "10"]),
        ("//ul[li > 9]/li[1]", &["1"]),
        ("//ul[li < 0]", &[]),
        ("//li = '3'", &["true"]),
        ("//li != '3'", &["true"]),
        ("//li[. = 3] != '3'", &["false"]),
        ("//li = //td", &["false"]),
        ("//a/@class = //p/@class", &["true"]),
        ("//li > //td", &["true"]),
        ("//li >= 10", &["true"]),
        ("//nothing = ''", &["false"]),
        ("//nothing != ''", &["false"]),
        ("//nothing = false()", &["true"]),
        ("//p = true()", &["true"]),
        ("//li[1] = //li[1]", &["true"]),
        ("//li[1] != //li[1]", &["false"]),
        ("//td[2] = 5", &["false"]),
    ]);
}

#[test]
fn functions_are_those_of_the_core_library() {
    assert_values(&[
        ("string(//p)", &["first"]),
        ("string(//nothing)", &[""]),
        ("normalize-space('  a \n b  ')", &["a b"]),
        ("concat(//p, '-', 1 + 1, true())", &["first-2true"]),
        ("starts-with(//p, 'fi')", &["true"]),
        ("contains(//p[2], 'bold')", &["true"]),
        ("substring-before('1999/04', '/')", &["1999"]),
        ("substring-after('1999/04', '/')", &["04"]),
        ("substring('12345', 2, 3)", &["234"]),
        ("substring('12345', 1.5, 2.6)", &["234"]),
        ("substring('12345', 0 div 0, 3)", &[""]),
        ("substring('12345', -42, 1 div 0)", &["12345"]),
        ("string-length('größe')", &["5"]),
        ("//p[string-length() > 6]", &["second bold"]),
        ("translate('bar', 'abc', 'AB')", &["BAr"]),
        ("count(//li)", &["4"]),
        ("sum(//li)", &["16"]),
        ("sum(//td)", &["NaN"]),
        ("number('+5')", &["NaN"]),
        ("number(' 5 ')", &["5"]),
        ("'+5' + 1", &["NaN"]),
        ("'1e3' = 1000", &["false"]),
        ("number(//td)", &["5"]),
        ("floor(-1.5)", &["-2"]),
        ("ceiling(1.2)", &["2"]),
        ("round(2.5)", &["3"]),
        ("round(-2.5)", &["-2"]),
        ("-0", &["0"]),
        ("string(0 div -5)", &["0"]),
        ("5 mod -2", &["1"]),
        ("-5 mod 2", &["-1"]),
        ("1 div 0", &["Infinity"]),
        ("2 * 3 - 4 div 2", &["4"]),
        ("- - 2", &["2"]),
        ("name(//*[@viewBox])", &["svg"]),
        ("local-name(//@xlink:href)", &["href"]),
        ("name(//@xlink:href)", &["xlink:href"]),
        ("namespace-uri(//svg)", &[""]),
        ("//*[name() = 'b']", &["bold"]),
        ("//span[lang('de')]", &["vier"]),
        ("count(//p[lang('en')])", &["3"]),
        ("//span[lang('d')]", &[]),
        ("boolean(//p) and not(//nothing)", &["true"]),
        ("true() = 'x'", &["true"]),
        ("not(1 = 2) or 1 < 'x'", &["true"]),
        ("'a' < 'b'", &["false"]),
    ]);
}

#[test]
fn classes_are_found_by_the_usual_idioms() {
    assert_values(&[
        (
            "//div[contains(concat(' ', normalize-space(@class), ' '), ' b ')]/@id",
            &["one", "two"],
        ),
        (
            "//div[contains(concat(' ', @class, ' '), ' a ')]/@id",
            &["one"],
        ),
        ("//div[contains(@class, 'a')]/@id", &["one"]),
        (
            "//a[contains(@class, '')]",
            &["one", "two", "three", "none"],
        ),
        ("//a[starts-with(@href, '/')][2]", &["two"]),
        ("//*[@id='two']/p", &["third"]),
        (
            "//p[contains(translate(text(), 'SECOND', 'second'), 'second')]",
            &["second bold"],
        ),
        ("//p[text()='first']", &["first"]),
        ("//p[contains(text(), 'sec')]/b", &["bold"]),
    ]);
}

#[test]
fn the_tree_is_that_of_html5_without_scripting_and_namespaces() {
    assert_values(&[
        ("count(//table/tbody/tr/td)", &["2"]),
        ("count(//table/tr)", &["0"]),
        ("//noscript/img/@src", &["pixel.gif"]),
        ("//head/noscript/link/@href", &["n.css"]),
        ("//svg/path/@d", &["M0"]),
        ("//svg/@viewBox", &["0 0 1 1"]),
        ("//use/@href", &["plain"]),
        ("//use/@xlink:href", &["#icon"]),
        ("count(//use/@*)", &["2"]),
    ]);
}

#[test]
fn relative_expressions_start_at_their_node() {
    let document = parse_html(PAGE);
    let [XValue::Node(list)] = evaluate(&document, "//ul")[..] else {
        panic!("one list")
    };
    let from_list = |expression: &str| -> Vec<String> {
        let values = list.evaluate(&XPath::compile(expression).unwrap()).unwrap();
        values
            .iter()
            .map(|value| value.text().into_owned())
            .collect()
    };
    assert_eq!(from_list(".//li[2]"), ["2"]);
    assert_eq!(from_list("li[last()]"), ["10"]);
    assert_eq!(from_list("count(.//text())"), ["4"]);
    assert_eq!(from_list("preceding-sibling::div[1]/@id"), ["two"]);
    assert_eq!(from_list("//title"), ["A page"]);
    assert_eq!(from_list("string-length(.)"), ["5"]);
    assert_eq!(from_list("."), ["12310"]);
    assert_eq!(from_list("concat(name(), '/', name(..))"), ["ul/body"]);
}

#[test]
fn feeds_are_read_with_their_prefixes() {
    let feed = r#"<?xml version="1.0"?><rss xmlns:media="http://search.yahoo.com/mrss/"
        xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><item><title>One</title>
        <media:title>Other</media:title><media:content url="a.jpg"/><dc:creator>Ada</dc:creator>
        <pubDate>Mon</pubDate><description><![CDATA[<b>bold</b>]]></description></item></channel></rss>"#;
    let document = Document::parse_xml(feed, &Limits::default());
    assert_eq!(texts(&document, "/rss/channel/item/title"), ["One"]);
    assert_eq!(texts(&document, "//item/media:title"), ["Other"]);
    assert_eq!(texts(&document, "//media:content/@url"), ["a.jpg"]);
    assert_eq!(texts(&document, "//*[local-name() = 'creator']"), ["Ada"]);
    assert_eq!(texts(&document, "//pubDate"), ["Mon"]);
    assert_eq!(texts(&document, "//description"), ["<b>bold</b>"]);
}

#[test]
fn elements_of_the_namespace_of_the_root_are_found_whatever_their_prefix() {
    let atom = "http://www.w3.org/2005/Atom";
    let entries = |feed: &str, open: &str, prefix: &str| {
        format!(
            "<{feed} {open} xmlns:m='http://search.yahoo.com/mrss/'><{prefix}entry><{prefix}title>One</{prefix}title>\
             <m:title>Other</m:title></{prefix}entry></{feed}>"
        )
    };
    for page in [
        entries("feed", &format!("xmlns='{atom}'"), ""),
        entries("atom:feed", &format!("xmlns:atom='{atom}'"), "atom:"),
        entries("a:feed", &format!("xmlns:a='{atom}'"), "a:"),
    ] {
        let document = Document::parse_xml(&page, &Limits::default());
        for expression in [
            "//entry/title",
            "/feed/entry/title",
            "//atom:entry/atom:title",
            "//*[name() = 'title']",
        ] {
            assert_eq!(
                texts(&document, expression),
                ["One"],
                "{expression}: {page}"
            );
        }
        assert_eq!(texts(&document, "//media:title"), ["Other"], "{page}");
        let titles = texts(&document, "//*[local-name() = 'title']");
        assert_eq!(titles, ["One", "Other"], "{page}");
    }
}

#[test]
fn elements_of_other_namespaces_are_not_taken_for_those_of_the_root() {
    let rss = "<rss xmlns:atom='http://www.w3.org/2005/Atom' xmlns:shop='http://base.google.com/ns/1.0' xmlns:x='urn:x'>\
        <channel><atom:link href='self'/><link>home</link><item><title>One</title><shop:title>Other</shop:title>\
        <x:title>Third</x:title><y:title>undeclared</y:title></item></channel></rss>";
    let document = Document::parse_xml(rss, &Limits::default());
    assert_eq!(texts(&document, "//link"), ["home"]);
    assert_eq!(texts(&document, "//atom:link/@href"), ["self"]);
    assert_eq!(texts(&document, "//item/title"), ["One"]);
    assert_eq!(texts(&document, "//g:title"), ["Other"]);
    let soap = "<s:Envelope xmlns:s='urn:soap' xmlns:m='urn:m'><s:Body><m:price>5</m:price></s:Body></s:Envelope>";
    let document = Document::parse_xml(soap, &Limits::default());
    assert_eq!(texts(&document, "/Envelope/Body/*"), ["5"]);
    assert_eq!(texts(&document, "//price"), [""; 0]);
    assert_eq!(texts(&document, "//*[local-name() = 'price']"), ["5"]);
}

#[test]
fn xhtml_has_the_same_names_as_html() {
    let page = r#"<html xmlns="http://www.w3.org/1999/xhtml"><body><h:p xmlns:h="http://www.w3.org/1999/xhtml">x&nbsp;y</h:p><br/></body></html>"#;
    let document = Document::parse_xml(page, &Limits::default());
    assert_eq!(texts(&document, "/html/body/p"), ["x\u{a0}y"]);
    assert_eq!(texts(&document, "count(//br)"), ["1"]);
}
