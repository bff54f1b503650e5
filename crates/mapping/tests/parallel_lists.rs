//! Parallel lists are recognised where rows are meant, and the suggested rows read the page without a shift. Lists that
//! are independent of each other are left alone.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

/// Fields with their chains of processors, as `NAME PARAMETER`; a `|` separates processors.
type Lists = &'static [(&'static str, &'static str)];

struct Meant {
    what: &'static str,
    lists: Lists,
    page: &'static str,
    /// The rows that the suggested rule extracts, each as the values of its fields.
    rows: &'static [&'static [&'static str]],
}

const ITEMS: &str = "<ul><li class=rating><a href=/1>A</a><b class=stars>4</b><i>x</i>\
    <li class=rating><a href=/2>B</a><li class=rating><a href=/3>C</a><b class=stars>1</b></ul>";
const ITEM_ROWS: &[&[&str]] = &[&["A", "4"], &["B", ""], &["C", "1"]];
const TABLE: &str =
    "<table class=t><tr><th>Name<th>Score<tr><td>A<td>4<tr><td>B<td><tr><td>C<td>1</table>";
const ARTICLES: &str = "<article class=card><h2>A</h2><p class=price>4</p></article>\
    <article class=card><h2>B</h2></article><article class=card><h2>C</h2><p class=price>1</p></article>";
const ANSWER: &str = r#"{"data": {"items": [{"n": "A", "s": 4, "tags": ["x", "y"]}, {"n": "B"}, {"n": "C", "s": 1}]}}"#;
const LINKED: &str = r#"<script type="application/ld+json">[{"@type": "Product", "name": "A", "offers": {"price": 4}},
    {"@type": "Product", "name": "B"}, {"@type": "Product", "name": "C", "offers": {"price": 1}}]</script>"#;

const MEANT: &[Meant] = &[
    Meant {
        what: "items of a list, by CSS",
        lists: &[
            ("names", "css li.rating a"),
            ("stars", "css li.rating .stars"),
        ],
        page: ITEMS,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "children of items",
        lists: &[("names", "css ul > li > a"), ("stars", "css ul > li > b")],
        page: ITEMS,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "items of a list, by XPath",
        lists: &[
            ("names", "xpath //li[@class='rating']/a"),
            (
                "stars",
                "xpath //li[@class='rating']//b[@class='stars']/text()",
            ),
        ],
        page: ITEMS,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "a step to the items before those to their parts",
        lists: &[
            ("names", "css li.rating|xpath ./a"),
            ("stars", "css li.rating|css .stars|trim"),
        ],
        page: ITEMS,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "texts and addresses of the same links",
        lists: &[
            ("names", "css ul a::text"),
            ("links", "css ul a::attr(href)"),
        ],
        page: ITEMS,
        rows: &[&["A", "/1"], &["B", "/2"], &["C", "/3"]],
    },
    Meant {
        what: "columns of a table, by their numbers",
        lists: &[
            ("names", "css td:nth-child(1)"),
            ("scores", "css td:nth-child(2)"),
        ],
        page: TABLE,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "columns of a table, by XPath",
        lists: &[
            ("names", "xpath //table[@class='t']//td[1]"),
            ("scores", "xpath //table[@class='t']//td[2]"),
        ],
        page: TABLE,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "columns of a table, below their headers",
        lists: &[
            ("names", "css table.t|cell Name"),
            ("scores", "css table.t|cell Score|trim"),
        ],
        page: TABLE,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "columns of any table",
        lists: &[("names", "cell Name"), ("scores", "cell Score")],
        page: TABLE,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "cards",
        lists: &[
            ("names", "css article.card h2"),
            ("prices", "css article.card .price"),
        ],
        page: ARTICLES,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "cards of a class with several words, and an own list in each",
        lists: &[
            ("names", "css .product-card h2"),
            ("prices", "css .product-card .price"),
            ("tags", "css .product-card .tags a"),
        ],
        page: "<div class=product-card><h2>A</h2><p class=price>4</p><p class=tags><a>x</a><a>y</a></p></div>\
            <div class=product-card><h2>B</h2></div>",
        rows: &[&["A", "4", r#"["x","y"]"#], &["B", "", ""]],
    },
    Meant {
        what: "objects of an API's answer",
        lists: &[
            ("names", "jsonpath $.data.items[*].n"),
            ("scores", "jsonpath $.data.items[*].s"),
        ],
        page: ANSWER,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "objects with lists of their own",
        lists: &[
            ("names", "jsonpath $.data.items[*].n"),
            ("tags", "jsonpath $['data'].items[*].tags[*]"),
        ],
        page: ANSWER,
        rows: &[],
    },
    Meant {
        what: "objects of linked data",
        lists: &[
            ("names", "json_ld Product $.name"),
            ("prices", "json_ld Product $.offers.price"),
        ],
        page: LINKED,
        rows: ITEM_ROWS,
    },
    Meant {
        what: "terms and their descriptions",
        lists: &[
            ("terms", "css dl.facts dt"),
            ("meanings", "css dl.facts dd|trim"),
        ],
        page: "<dl class=facts><dt>A<dd>4<dt>B<dd> <dt>C<dd>1</dl>",
        rows: ITEM_ROWS,
    },
    Meant {
        what: "entries of a feed",
        lists: &[
            ("names", "xpath //item/title"),
            ("dates", "xpath //item/pubDate"),
        ],
        page: "<?xml version='1.0'?><rss><channel><item><title>A</title><pubDate>4</pubDate></item>\
            <item><title>B</title></item><item><title>C</title><pubDate>1</pubDate></item></channel></rss>",
        rows: ITEM_ROWS,
    },
];

/// Lists that are independent of each other, so none is reported as parallel.
const HONEST: &[(&str, Lists)] = &[
    (
        "tags and authors",
        &[("tags", "css .tags a"), ("authors", "css .authors a")],
    ),
    (
        "two lists in one article",
        &[
            ("tags", "css article .tags a"),
            ("authors", "css article .authors a"),
        ],
    ),
    (
        "two lists of items",
        &[("tags", "css ul.tags li"), ("authors", "css ul.authors li")],
    ),
    (
        "two lists by id",
        &[("tags", "css #tags li a"), ("authors", "css #authors li a")],
    ),
    (
        "two lists, by XPath",
        &[
            ("tags", "xpath //ul[@id='tags']/li/a"),
            ("authors", "xpath //ul[@id='authors']/li/a"),
        ],
    ),
    (
        "two rows of a box of facts",
        &[
            ("tags", "xpath //tr[th='Tags']/td/a"),
            ("authors", "xpath //tr[th='Authors']/td/a"),
        ],
    ),
    (
        "two rows by their numbers",
        &[
            ("tags", "css tr:nth-child(2) td a"),
            ("authors", "css tr:nth-child(3) td a"),
        ],
    ),
    (
        "lists in two cells of one row",
        &[
            ("tags", "css tr.meta .tags a"),
            ("authors", "css tr.meta .authors a"),
        ],
    ),
    (
        "headings and paragraphs",
        &[
            ("headings", "css article h2"),
            ("paragraphs", "css article p"),
        ],
    ),
    (
        "lists of one object",
        &[
            ("tags", "jsonpath $.tags[*]"),
            ("authors", "jsonpath $.authors[*].name"),
        ],
    ),
    (
        "lists of one object of linked data",
        &[
            ("tags", "json_ld Article $.keywords[*]"),
            ("authors", "json_ld Article $.author[*].name"),
        ],
    ),
    (
        "kinds of linked data",
        &[
            ("authors", "json_ld Person $.name"),
            ("books", "json_ld Book $.name"),
        ],
    ),
    (
        "images and downloads",
        &[
            ("images", "css img::attr(src)"),
            ("downloads", "css a[download]::attr(href)"),
        ],
    ),
    (
        "columns of two tables",
        &[
            ("names", "css table.a|cell Name"),
            ("prices", "css table.b|cell Price"),
        ],
    ),
    (
        "two parts of a page's text",
        &[("years", "regex \\d{4}"), ("names", "regex [A-Z]\\w+")],
    ),
    ("one list", &[("names", "css li.rating a")]),
];

fn parse_processor(text: &str) -> Value {
    let (kind, parameter) = text.split_once(' ').unwrap_or((text, ""));
    let parameters = match kind {
        "css" => json!({"selector": parameter}),
        "xpath" | "jsonpath" => json!({"expression": parameter}),
        "json_ld" => {
            let (kind, expression) = parameter.split_once(' ').unwrap();
            json!({"type": kind, "expression": expression})
        }
        "cell" => json!({"header": parameter}),
        "regex" => json!({"pattern": parameter}),
        _ => return json!({"type": kind}),
    };
    json!({"type": kind, "parameters": parameters})
}

fn mapping_json(lists: Lists) -> Value {
    let fields = lists.iter().map(|(name, chain)| {
        let chain: Vec<Value> = chain.split('|').map(parse_processor).collect();
        json!({"name": name, "multiple": true, "processors": chain})
    });
    json!({
        "name": "listed",
        "url_patterns": [{"type": "host", "pattern": "listed.example"}],
        "fields": fields.collect::<Vec<_>>(),
    })
}

fn load(mapping: &Value) -> MappingSet {
    let source = Source {
        name: "listed.json".into(),
        text: mapping.to_string(),
    };
    MappingSet::from_sources(vec![source]).unwrap_or_else(|errors| panic!("{errors}\n{mapping:#}"))
}

/// The values of all rows that a mapping extracts from a page, as texts.
fn extract_rows(mapping: &Value, page: &str) -> Vec<Vec<String>> {
    let url = Url::parse("https://listed.example/").unwrap();
    let kind = match page.as_bytes()[0] {
        b'{' => PageKind::Json,
        _ if page.starts_with("<?xml") => PageKind::Xml,
        _ => PageKind::Html,
    };
    let page = PageInput {
        url: &url,
        kind,
        text: page,
    };
    let engine = Engine::new(Arc::new(load(mapping)), Limits::default());
    let found = engine.extract(page, RequestedParts::default()).unwrap();
    let values = |row: &Map<String, Value>| {
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        row.values().map(text).collect()
    };
    let rows = found.listings[0].rows.iter();
    rows.map(|row| values(&row.fields)).collect()
}

#[test]
fn parallel_lists_are_found_and_their_rows_do_not_shift_values() {
    for meant in MEANT {
        let what = meant.what;
        let mut mapping = mapping_json(meant.lists);
        let set = load(&mapping);
        let found = set.parallel_lists(set.find_by_name("listed").unwrap());
        assert_eq!(found.len(), 1, "{what}");
        let names: Vec<&str> = meant.lists.iter().map(|(name, _)| *name).collect();
        assert_eq!(found[0].fields, names, "{what}");
        mapping.as_object_mut().unwrap().remove("fields");
        mapping["rows"] = found[0].rewrite["rows"].clone();
        let rows = extract_rows(&mapping, meant.page);
        if !meant.rows.is_empty() {
            assert_eq!(rows, meant.rows, "{what}: {:#}", mapping["rows"]);
        }
    }
    assert!(MEANT.len() >= 12);
}

#[test]
fn independent_lists_are_not_reported() {
    for (what, lists) in HONEST {
        let set = load(&mapping_json(lists));
        let found = set.parallel_lists(set.find_by_name("listed").unwrap());
        assert_eq!(found, [], "{what}");
    }
    assert!(HONEST.len() >= 12);
}

#[test]
fn lists_with_keep_empty_are_not_reported() {
    let mut mapping = mapping_json(&[
        ("names", "css li.rating a"),
        ("stars", "css li.rating .stars"),
    ]);
    for field in mapping["fields"].as_array_mut().unwrap() {
        field["keep_empty"] = json!(true);
    }
    let set = load(&mapping);
    assert_eq!(set.parallel_lists(set.find_by_name("listed").unwrap()), []);
}
