//! Tests the data that a crawler needs of every page (links, metadata, scripts), and serialisation as HTML.

mod common;

use common::{evaluate, parse_html};
use webfill_document::{Document, Limits, NodeRef, XPath};

#[test]
fn links_are_listed_as_written_in_document_order() {
    let document = parse_html(
        "<base target=x><base href=/base/><base href=/other/><a href=1>x</a><map><area href=' 2 '>\
         </map><a name=n>no link</a><a href=''>empty</a><link href=l><area href=3><svg><a xlink:href=4 href=5>",
    );
    assert_eq!(
        document.links().collect::<Vec<_>>(),
        ["1", " 2 ", "", "3", "5"]
    );
    assert_eq!(document.base_href(), Some("/base/"));
    assert_eq!(parse_html("<p>").base_href(), None);
}

#[test]
fn the_head_describes_the_page() {
    let document = parse_html(
        "<title> A\n title </title><meta name=Robots content='noindex, nofollow'>\
         <meta property=og:image content=1.jpg><meta property='og:image' content=2.jpg>\
         <meta http-equiv=refresh content='0; url=/x'><meta name=empty>",
    );
    assert_eq!(document.title(), Some(" A\n title "));
    assert_eq!(
        document.meta("robots").collect::<Vec<_>>(),
        ["noindex, nofollow"]
    );
    assert_eq!(
        document.meta("og:image").collect::<Vec<_>>(),
        ["1.jpg", "2.jpg"]
    );
    assert_eq!(document.meta("refresh").next(), Some("0; url=/x"));
    assert_eq!(document.meta("empty").next(), None);
}

#[test]
fn data_scripts_are_found_by_their_type() {
    let document = parse_html(
        "<script>let a = 1 < 2;</script><script type='Application/LD+JSON; charset=utf-8'>{\"a\": \"</p>\"}\
         </script><script type=application/json>[1]</script>",
    );
    assert_eq!(
        document.scripts("application/ld+json").collect::<Vec<_>>(),
        ["{\"a\": \"</p>\"}"]
    );
    assert_eq!(
        document.scripts("application/json").collect::<Vec<_>>(),
        ["[1]"]
    );
    assert_eq!(
        document.scripts("text/javascript").collect::<Vec<_>>(),
        ["let a = 1 < 2;"]
    );
}

#[test]
fn nodes_know_their_place_and_content() {
    let document = parse_html("<div id=d class='a b'>one <b>two</b><!--c--> three</div><p>four");
    let division = document.elements_by_tag("div").next().expect("a div");
    assert_eq!(division.tag(), Some("div"));
    assert_eq!(division.attribute("class"), Some("a b"));
    assert_eq!(division.attribute("missing"), None);
    assert_eq!(division.text(), "one two three");
    assert_eq!(division.parent().and_then(NodeRef::tag), Some("body"));
    assert_eq!(division.next_sibling().and_then(NodeRef::tag), Some("p"));
    let children: Vec<_> = division.children().map(|child| child.text()).collect();
    assert_eq!(children, ["one ", "two", "c", " three"]);
    assert_eq!(
        division.descendants().filter(|node| node.is_text()).count(),
        3
    );
    assert!(division.contains(division.children().next().expect("a child")));
    assert!(!division.contains(document.root()));
    assert_eq!(document.elements_by_tag("nothing").count(), 0);
}

#[test]
fn nodes_are_written_as_html_again() {
    let document = parse_html(
        "<div title='a \"b\" &amp; c'>x &lt; y&nbsp;<br><img src=1><!-- c --><script>1 < 2 && 3</script></div><p>after",
    );
    let division = document.elements_by_tag("div").next().expect("a div");
    let inner = "x &lt; y&nbsp;<br><img src=\"1\"><!-- c --><script>1 < 2 && 3</script>";
    assert_eq!(
        division.outer_html(),
        format!("<div title=\"a &quot;b&quot; &amp; c\">{inner}</div>")
    );
    assert_eq!(
        document.root().outer_html(),
        format!(
            "<html><head></head><body>{}<p>after</p></body></html>",
            division.outer_html()
        )
    );
    let text = evaluate(&document, "//p/text()")[0]
        .node()
        .expect("a text node");
    assert_eq!(text.outer_html(), "after");
}

#[test]
fn a_written_page_reads_as_the_same_page() {
    let page = "<ul><li>1<li>2 <b>x</b></ul><table><tr><td>3</table><svg><path d=M0 /></svg>";
    let written = parse_html(page).root().outer_html();
    assert_eq!(parse_html(&written).root().outer_html(), written);
}

#[test]
fn memory_is_given_back_after_every_page() {
    let page: String = (0..40)
        .map(|i| format!("<p id=p{i}><a href=/{i}>link {i}</a>"))
        .collect();
    let xpath = XPath::compile("//a[string-length(@href) > 2]/@href").unwrap();
    let read = |pages: usize| {
        for _ in 0..pages {
            let document = Document::parse_html(&page, &Limits::default());
            assert_eq!(document.evaluate(&xpath).unwrap().len(), 30);
        }
        resident_kilobytes()
    };
    let warm = read(200);
    let after = read(10_000);
    assert!(
        after < warm + 4_096,
        "{warm} kB grew to {after} kB over 10,000 pages"
    );
}

fn resident_kilobytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux describes a process");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("it has memory");
    line.split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("in kilobytes")
}
