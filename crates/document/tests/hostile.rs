//! Parses hostile pages and evaluates expressions on them, each on a stack of 2 MiB and within seconds. The time limits
//! of these tests are much longer than the pages take. Without the limits of the crate, the pages would take much
//! longer still.

mod common;

use std::time::{Duration, Instant};

use common::{parse_html, texts};
use webfill_document::{Document, EvaluateError, Limits, Selector, Truncation, XPath};

/// The expressions that are evaluated on every page.
const QUESTIONS: [&str; 14] = [
    "string(/)",
    "//span[. = 'x']",
    "//*//*//*//*",
    "//div//div//div[last()]",
    "count(//@*)",
    "//*[contains(., 'zz')]",
    "//a[contains(text(), 'Read')]",
    "//*[normalize-space() = 'x']",
    "//a[not(preceding::a/@href = @href)]",
    "//*[string-length(.) > 3][position() mod 2 = 1]",
    "//p[1] | (//p)[1] | //p[last()]",
    "//*[count(ancestor::*) > 600]",
    "//b/following::*/preceding-sibling::*[1]",
    "concat(//body, //body)",
];

/// Parses the page and evaluates all expressions, on a small stack and with a time limit.
fn check_survival(name: &'static str, page: String, limits: Limits) -> Option<Truncation> {
    let run = move || {
        let started = Instant::now();
        let document = Document::parse_html(&page, &limits);
        for question in QUESTIONS {
            let xpath = XPath::compile(question).unwrap();
            match document.evaluate(&xpath) {
                Ok(_) | Err(EvaluateError::OutOfTime { .. }) => {}
                // For this expression, the copy of the page would need more memory than the limit allows.
                Err(EvaluateError::Engine(why)) if why.contains("page is too large") => {}
                Err(error) => panic!("{name}: {question}: {error}"),
            }
        }
        let selector =
            Selector::compile("div > p ~ p:nth-child(odd), :has(b):not(:empty)").unwrap();
        assert!(!matches!(
            document.select(&selector),
            Err(EvaluateError::Engine(_))
        ));
        let _ = (document.links().count(), document.root().outer_html().len());
        assert!(
            document.root().descendants().count() < limits.nodes + 10_000,
            "{name}"
        );
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{name}: {:?}",
            started.elapsed()
        );
        document.truncation()
    };
    let thread = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(run)
        .unwrap();
    thread.join().unwrap_or_else(|_| panic!("{name} panicked"))
}

/// Limits with a short time for expressions, so that the tests are quick. The time for parsing is long, so that even on
/// a busy machine other limits are reached first.
fn brisk_limits() -> Limits {
    let evaluation_time = Duration::from_secs(1);
    Limits {
        parse_time: Duration::from_secs(30),
        evaluation_time,
        ..Limits::default()
    }
}

#[test]
fn deep_nesting_is_cut() {
    let nested = check_survival("div", "<div>".repeat(200_000), brisk_limits());
    assert_eq!(nested, Some(Truncation::OpenElements));
    let options = check_survival("option", "<option><div>".repeat(100_000), brisk_limits());
    assert_eq!(options, Some(Truncation::OpenElements));
    check_survival("svg", "<svg><template>".repeat(50_000), brisk_limits());
    check_survival("table", "<table><tr><td>".repeat(30_000), brisk_limits());
    check_survival("formatting", "<a><b><i>".repeat(50_000), brisk_limits());
    check_survival(
        "font",
        "<font color=red>x</p>".repeat(50_000),
        brisk_limits(),
    );
}

#[test]
fn a_tree_is_never_deeper_than_the_limit() {
    let limits = Limits {
        depth: 20,
        ..Limits::default()
    };
    let page = format!(
        "{}deep{}<p>after",
        "<div>".repeat(100),
        "</div>".repeat(100)
    );
    let document = Document::parse_html(&page, &limits);
    let deepest = document
        .root()
        .descendants()
        .map(|node| std::iter::successors(node.parent(), |node| node.parent()).count());
    assert_eq!(deepest.max(), Some(21));
    assert_eq!(document.truncation(), None);
    assert_eq!(document.root().text(), "deepafter");
    assert_eq!(texts(&document, "count(//div)"), ["100"]);
    assert_eq!(texts(&document, "//body/p"), ["after"]);
}

#[test]
fn elements_beyond_the_deepest_level_keep_their_text() {
    let rows: String = (0..100)
        .map(|row| format!("<div><b>{row}</b><i>of <u>all</u> rows</i>"))
        .collect();
    let limits = Limits {
        depth: 20,
        ..Limits::default()
    };
    let document = Document::parse_html(&rows, &limits);
    let whole = Document::parse_html(&rows, &Limits::default());
    assert_eq!(document.root().text(), whole.root().text());
    let numbers: Vec<String> = (0..100).map(|row| row.to_string()).collect();
    assert_eq!(texts(&document, "//b"), numbers);
    assert_eq!(texts(&document, "count(//u[. = 'all'])"), ["100"]);
}

#[test]
fn the_adoption_agency_cannot_fill_the_memory() {
    let bold: String = (0..8_000).map(|i| format!("<b x={i}>")).collect();
    let reconstructed = format!("<p>{bold}{}", "x<p>".repeat(8_000));
    assert_eq!(
        check_survival("bold", reconstructed, brisk_limits()),
        Some(Truncation::OpenElements)
    );
    let bold: String = (0..1_000).map(|i| format!("<b x={i}>")).collect();
    let reconstructed = format!("<p>{bold}{}", "x<p>".repeat(8_000));
    assert!(check_survival("bold again", reconstructed, brisk_limits()).is_some());
    let long_value = format!("<p><b x={}>{}", "v".repeat(100_000), "x<p>".repeat(20_000));
    assert!(matches!(
        check_survival("copied value", long_value, brisk_limits()),
        Some(Truncation::Attributes | Truncation::Memory)
    ));
    check_survival(
        "misnested",
        "<a><p><b></a></p><i></b>".repeat(30_000),
        brisk_limits(),
    );
}

#[test]
fn many_attributes_are_cut() {
    let attributes: String = (0..50_000).map(|i| format!(" a{i}=v")).collect();
    check_survival(
        "attributes",
        format!("<p>before<div{attributes}><p>behind"),
        brisk_limits(),
    );

    let attributes: String = (0..400).map(|i| format!(" a{i}=v")).collect();
    let document = parse_html(&format!("<div{attributes}>x"));
    assert_eq!(texts(&document, "count(//div/@*)"), ["256"]);
    assert_eq!(texts(&document, "//div"), ["x"]);

    let first: String = (0..255).map(|i| format!(" a{i}=v")).collect();
    for more in [" a0", " a254", " a0=&CounterClockwiseContourIntegra"] {
        let page = format!("<div{first}{}>x", more.repeat((12 << 20) / more.len()));
        let document = parse_html(&page);
        let read = (document.truncation(), texts(&document, "//div"));
        let in_time = (None, vec!["x".to_owned()]);
        let late = (Some(Truncation::ParseTime), vec![]);
        assert!(read == in_time || read == late, "{more}: {read:?}");
    }

    let bodies: String = (0..20_000).map(|i| format!("<body a{i}=v>")).collect();
    check_survival("bodies", bodies, brisk_limits());
}

#[test]
fn long_pages_are_cut() {
    let limits = Limits {
        input_bytes: 1 << 20,
        ..brisk_limits()
    };
    let cut = check_survival("long", "<p>paragraph ü</p>".repeat(100_000), limits);
    assert_eq!(cut, Some(Truncation::InputBytes));
    let many = check_survival("nodes", "<p>x".repeat(500_000), brisk_limits());
    assert_eq!(many, Some(Truncation::Nodes));
}

#[test]
fn parsing_ends_at_its_time_limit() {
    let limits = Limits {
        parse_time: Duration::ZERO,
        ..Limits::default()
    };
    let pages = [
        "<p>x".repeat(10_000),
        format!("<frameset>{}", "a b ".repeat(100_000)),
        format!("<div{}>x", " a".repeat(100_000)),
        format!("<title>{}", "a&amp;".repeat(100_000)),
    ];
    for page in pages {
        let document = Document::parse_html(&page, &limits);
        let start = &page[..10];
        assert_eq!(
            document.truncation(),
            Some(Truncation::ParseTime),
            "{start}"
        );
    }
}

#[test]
fn long_parts_are_read() {
    let attribute = format!("<p x='{}'>after</p>", "value ".repeat(500_000));
    assert_eq!(check_survival("value", attribute, brisk_limits()), None);
    let comment = format!("<!--{}--><p>after</p>", "comment - ".repeat(300_000));
    assert_eq!(check_survival("comment", comment, brisk_limits()), None);
    let script = format!(
        "<script>{}</script><p>after</p>",
        "a < b && c ".repeat(300_000)
    );
    assert_eq!(check_survival("script", script, brisk_limits()), None);
}

#[test]
fn text_in_small_pieces_is_one_text() {
    for piece in [
        "a&amp;b",
        "a < b ",
        "a\0b",
        "&notit; &#x0; &#xD800; &#99999999; ",
    ] {
        check_survival(
            "pieces",
            format!("<p>{}", piece.repeat(150_000)),
            brisk_limits(),
        );
    }
    let document = parse_html("<p>a&amp;b &lt; c\0d &#x0;</p>");
    assert_eq!(texts(&document, "//p/text()"), ["a&b < cd \u{fffd}"]);
}

#[test]
fn foster_parenting_keeps_text_in_order() {
    check_survival(
        "foster",
        format!("<table>{}", "x<tr>y".repeat(20_000)),
        brisk_limits(),
    );
    let document = parse_html("<table><tr><td>in</td>out<b>bold</b></table>");
    assert_eq!(
        texts(&document, "//body/text() | //body/b"),
        ["out", "bold"]
    );
    assert_eq!(document.root().text(), "outboldin");
}

#[test]
fn unfinished_and_broken_markup_is_read_as_far_as_it_goes() {
    let ends = [
        "<p>x<!-- open",
        "<p>x<script>open",
        "<p>x<a href='open",
        "<p>x<",
        "<p>x</",
        "<p>x&",
        "<p>x<![CDATA[ y",
        "<p>x<?php echo ?>",
        "<p>x<!doctype",
        "<p>x\u{fffd}\u{1}\u{b}\u{7f}",
        "\u{feff}<p>x",
        "<p>x<svg><![CDATA[y]]>",
        "<p>x<math><annotation-xml encoding=text/html><p>",
    ];
    for end in ends {
        let document = parse_html(end);
        assert_eq!(texts(&document, "substring(//p, 1, 1)"), ["x"], "{end}");
        assert_eq!(texts(&document, "name(/html/body/p)"), ["p"], "{end}");
    }
    assert_eq!(parse_html("").root().descendants().count(), 3);
}

#[test]
fn characters_that_xml_forbids_reach_the_engine() {
    let document = parse_html("<p id='\u{1}\u{b}'>a\u{1}\u{fffe}b<x\u{1}y z\u{2}=1>c");
    assert_eq!(
        texts(&document, "translate(//p, '\u{1}', '')"),
        ["a\u{fffe}bc"]
    );
    assert_eq!(texts(&document, "//p[string-length(@id) + 0 = 2]").len(), 1);
    assert_eq!(
        texts(
            &document,
            "count(//*[string-length(name()) + count(@*) = 4])"
        ),
        ["4"]
    );
}

#[test]
fn an_expression_ends_when_the_time_of_its_page_is_used_up() {
    let links: String = (0..20_000)
        .map(|i| format!("<a href='/{i}'>l</a> "))
        .collect();
    let evaluation_time = Duration::from_millis(30);
    let limits = Limits {
        evaluation_time,
        ..Limits::default()
    };
    let expensive = [
        "//a[not(preceding::a/@href = @href)]",
        "//a[count(//a) > 3]",
        "//a[count(following::a[@href]) = 1]",
        "//a[sum(//a) = string-length(//a[3])]",
        "//a[contains(concat(//body, //body), 'zzz')]",
        "//a[translate(//body, 'l', 'm') = 'x']",
        "//a[count(preceding-sibling::a[last()]) = 7]",
        "//a[//a = preceding::a]",
    ];
    for expression in expensive {
        let document = Document::parse_html(&links, &limits);
        let started = Instant::now();
        let xpath = XPath::compile(expression).unwrap();
        let result = document.evaluate(&xpath);
        let took = started.elapsed();
        assert!(
            matches!(result, Err(EvaluateError::OutOfTime { .. })),
            "{expression}: {took:?}"
        );
        assert!(took < Duration::from_secs(20), "{expression}: {took:?}");
        assert!(
            document.evaluate(&xpath).is_err(),
            "the budget is that of the page"
        );
    }
    // The expression takes little time, but on a busy machine maybe more than `brisk_limits` allows.
    let document = Document::parse_html(&links, &Limits::default());
    assert_eq!(
        document
            .evaluate(&XPath::compile("//*//*//*//a").unwrap())
            .unwrap()
            .len(),
        0
    );
    assert_eq!(texts(&document, "count(//a)"), ["20000"]);
}

#[test]
fn xml_is_bounded_like_html() {
    let pages = [
        ("<a>".repeat(200_000), Some(Truncation::OpenElements)),
        (
            format!("<r>{}", "<i/>".repeat(600_000)),
            Some(Truncation::Nodes),
        ),
        ("<a></b></></c><".repeat(50_000), None),
        ("\0\0<r>\0</r>text behind<r2/>".to_owned(), None),
        ("text only".to_owned(), None),
        (String::new(), None),
    ];
    for (page, truncation) in pages {
        let started = Instant::now();
        let document = Document::parse_xml(&page, &brisk_limits());
        let start = &page[..page.len().min(20)];
        assert_eq!(document.truncation(), truncation, "{start}");
        assert_eq!(texts(&document, "count(/)"), ["1"], "{start}");
        assert!(started.elapsed() < Duration::from_secs(30), "{start}");
    }
    let attributes: String = (0..400).map(|i| format!("a{i}='v' ")).collect();
    let document = Document::parse_xml(&format!("<r {attributes}>x</r>"), &brisk_limits());
    assert_eq!(texts(&document, "count(//r[. = 'x']/@*)"), ["256"]);
    let entities = "<!DOCTYPE r [<!ENTITY a 'aaaa'>]><r>&a;&lt;&nbsp;</r>";
    let document = Document::parse_xml(entities, &brisk_limits());
    assert_eq!(texts(&document, "string(//r)"), ["&a;<\u{a0}"]);
}
