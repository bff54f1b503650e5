//! Where rows and their pages lead: to pages of each row, and to the further pages of a list.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{
    Continuation, Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source,
};
use webfill_urls::Url;

use super::{URL, css_chain, load};

#[test]
fn rows_lead_to_pages_of_their_own() {
    let rule = json!({
        "dataset": "d",
        "select": css_chain("li"),
        "fields": [{"name": "item", "processors": css_chain("b")}],
        "key": ["item"],
        "links": [
            {"processors": css_chain("a.page::attr(href)")},
            {"processors": css_chain("a.more::attr(href)")},
        ],
        "want": ["year", "year", "publisher"],
    });
    let html = "<a class=page href=/none>x</a><ul>\
        <li><b>a</b><a class=page href=/a>x</a><a class=more href=/a>x</a>\
        <li><b>b</b>\
        <li><b>c</b><a class=page href='?page=1#x'>x</a><a class=more href=http://other.example/c>x</a></ul>";
    let engine = Engine::new(Arc::new(load(&rule).unwrap()), Limits::default());
    let url = Url::parse(URL).unwrap();
    let page = PageInput {
        url: &url,
        kind: PageKind::Html,
        text: html,
    };
    let found = |row_links| {
        let wants = RequestedParts {
            row_links,
            ..RequestedParts::default()
        };
        engine.extract(page, wants).unwrap().listings.remove(0)
    };
    let listing = found(true);
    assert_eq!(listing.want, ["year", "publisher"]);
    let links: Vec<_> = listing
        .rows
        .iter()
        .map(|row| row.links.as_slice())
        .collect();
    let expected: [&[&str]; 3] = [
        &["https://ratings.example/a"],
        &[],
        &[
            "https://ratings.example/users/7?page=1",
            "http://other.example/c",
        ],
    ];
    assert_eq!(links, expected);
    assert_eq!(listing.to_json()["links"][2][1], "http://other.example/c");
    let unasked = found(false);
    assert!(unasked.rows.iter().all(|row| row.links.is_empty()));
    assert!(unasked.to_json().get("links").is_none());
    let mut wrong = rule.clone();
    wrong["links"] =
        json!([{"processors": [{"type": "xpath", "parameters": {"expression": "//a/@href"}}]}]);
    let error = load(&wrong).err().unwrap();
    assert!(error.contains("rows.links[0].processors[0]"), "{error}");
    assert!(error.contains("begin with `.//`"), "{error}");
    for (want, says) in [("Year", "bad name"), ("owner", "no other page fills it")] {
        let mut wrong = rule.clone();
        wrong["want"] = json!([want]);
        wrong["fields"] = json!([
            {"name": "item", "processors": css_chain("b")},
            {"name": "owner", "from": "record", "record_field": "_id"},
        ]);
        let error = load(&wrong).err().expect(want);
        assert!(error.contains(says), "{want}: {error}");
    }
}

/// How the list of a page continues, according to a mapping with these url_parsers.
fn continuation(url_parsers: &Value, url: &str, text: &str) -> Continuation {
    let mapping = json!({
        "name": "ratings",
        "url_patterns": [{"type": "glob", "pattern": "https://ratings.example/users/*"}],
        "rows": {
            "dataset": "ratings",
            "select": css_chain("li"),
            "fields": [{"name": "item", "processors": css_chain("b")}],
            "key": ["item"],
            "complete": true,
        },
        "url_parsers": url_parsers,
    });
    let source = Source {
        name: "ratings.json".into(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap();
    let engine = Engine::new(Arc::new(set), Limits::default());
    let url = Url::parse(url).unwrap();
    let page = PageInput {
        url: &url,
        kind: PageKind::Html,
        text,
    };
    let found = engine.extract(page, RequestedParts::default()).unwrap();
    assert!(found.listings[0].complete);
    assert_eq!(found.links, [""; 0], "nobody has asked for them");
    found.continuation.unwrap()
}

#[test]
fn a_list_continues_where_its_mapping_reads_the_page() {
    let links = json!([{"processors": css_chain("a::attr(href)")}]);
    let page = "<li><b>x</b></li><a href=/users/7?page=2>2</a><a href=/users/7>1</a><a href=/books/1>x</a>";
    let found = continuation(&links, "https://ratings.example/users/7", page);
    assert_eq!(found.next, ["https://ratings.example/users/7?page=2"]);
    assert!(!found.is_counted && !found.is_further && !found.lacks_count && !found.is_cut);
}

#[test]
fn a_list_is_counted_if_its_page_has_the_count_and_lacks_it_if_not() {
    let mut count = css_chain("i");
    let pagination = json!({"type": "pagination", "parameters": {"parameter": "page", "size": 2}});
    count.as_array_mut().unwrap().push(pagination);
    let links = json!([{"processors": count}]);
    let of = |url: &str, text: &str| continuation(&links, url, text);
    let first = of("https://ratings.example/users/7", "<i>5</i><li><b>x</b>");
    assert_eq!(first.next.len(), 2);
    assert!(first.is_counted && !first.is_further && !first.lacks_count);
    let only = of("https://ratings.example/users/7", "<i>1</i><li><b>x</b>");
    assert!(only.next.is_empty() && only.is_counted);
    let further = of(
        "https://ratings.example/users/7?page=2",
        "<i>5</i><li><b>x</b>",
    );
    assert!(further.next.is_empty() && further.is_further && !further.lacks_count);
    let without = of("https://ratings.example/users/7", "<li><b>x</b>");
    assert!(without.lacks_count && !without.is_counted);
    let many = of(
        "https://ratings.example/users/7",
        "<i>90000</i><li><b>x</b>",
    );
    assert!(many.is_cut);
}
