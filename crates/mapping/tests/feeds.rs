//! Feeds as pages of a mapping: oddities of their XML do not change the values.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

fn titles(feed: &str) -> Value {
    let title =
        json!({"type": "xpath", "parameters": {"expression": "//item/title | //entry/title"}});
    let date = json!({"type": "xpath", "parameters": {"expression": "//item/pubDate | //entry/updated | //item/date"}});
    let mapping = json!({
        "name": "feed",
        "url_patterns": [{"type": "host", "pattern": "feed.example"}],
        "fields": [
            {"name": "titles", "multiple": true, "processors": [title, {"type": "collapse_whitespace"}]},
            {"name": "dates", "multiple": true, "processors": [date, {"type": "date"}]},
        ],
    });
    let source = Source {
        name: "feed.json".into(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap();
    let engine = Engine::new(Arc::new(set), Limits::default());
    let url = Url::parse("https://feed.example/").unwrap();
    let page = PageInput {
        url: &url,
        kind: PageKind::Xml,
        text: feed,
    };
    Value::Object(
        engine
            .extract(page, RequestedParts::default())
            .unwrap()
            .fields,
    )
}

fn rss(items: &str) -> String {
    format!("<rss version=\"2.0\"><channel><title>Feed</title>{items}</channel></rss>")
}

#[test]
fn titles_and_dates_are_read_in_spite_of_odd_xml() {
    for (title, expected) in [
        ("One", "One"),
        ("a&nbsp;b", "a b"),
        ("caf&eacute;", "café"),
        ("caf&#233;", "café"),
        ("Tom &amp; Jerry", "Tom & Jerry"),
        ("Tom & Jerry", "Tom & Jerry"),
        ("AT&T", "AT&T"),
        ("<![CDATA[a < b & c]]>", "a < b & c"),
        ("<![CDATA[One]]> two", "One two"),
        ("a\u{8}b", "a b"),
        ("\u{feff}One\u{200b}", "One"),
        ("  One\n two ", "One two"),
    ] {
        for date in [
            "Fri, 01 Mar 2024 10:30:00 GMT",
            "Fri, 01 Mar 24 10:30:00 GMT",
            "2024-03-01T10:30:00Z",
        ] {
            let item = format!("<item><title>{title}</title><pubDate>{date}</pubDate></item>");
            let found = titles(&rss(&item));
            assert_eq!(
                found,
                json!({"titles": [expected], "dates": ["2024-03-01T10:30:00Z"]}),
                "{item}"
            );
        }
    }
}

#[test]
fn forms_of_feeds_are_read() {
    let one = json!({"titles": ["One"]});
    for feed in [
        rss("<item><title>One</title></item>"),
        format!("\u{feff}{}", rss("<item><title>One</title></item>")),
        format!("<?xml version=\"1.0\" encoding=\"utf-16\"?>{}", rss("<item><title>One</title></item>")),
        rss("<item><title>One</title><content:encoded><![CDATA[<title>No</title>]]></content:encoded></item>"),
        rss("<item><title>One</title><media:title>No</media:title></item>").replace("media:title", "media:caption"),
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry><title type=\"html\">One</title></entry></feed>".to_owned(),
        "<feed><entry><title>One</title><content type=\"xhtml\"><div><p>x</p></div></content></entry></feed>".to_owned(),
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\"><item><title>One</title></item></rdf:RDF>".to_owned(),
        "<rss version=\"0.91\"><channel><item><title>One</title></item>".to_owned(),
    ] {
        assert_eq!(titles(&feed), one, "{feed}");
    }
}
