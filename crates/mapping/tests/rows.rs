//! Rows of pages: each field belongs to its own row, whatever other rows lack.

mod leading;
mod notation;

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{
    Engine, Extraction, Limits, Listing, MappingSet, PageInput, PageKind, RequestedParts, Source,
};
use webfill_urls::Url;

const URL: &str = "https://ratings.example/users/7?page=2";

fn load(rows: &Value) -> Result<MappingSet, String> {
    let mapping = json!({
        "name": "ratings",
        "url_patterns": [{"type": "host", "pattern": "ratings.example"}],
        "rows": rows,
    });
    let source = Source {
        name: "ratings.json".into(),
        text: mapping.to_string(),
    };
    MappingSet::from_sources(vec![source]).map_err(|errors| errors.to_string())
}

fn extract_with_limits(rows: &Value, kind: PageKind, text: &str, limits: Limits) -> Extraction {
    let engine = Engine::new(Arc::new(load(rows).unwrap()), limits);
    let url = Url::parse(URL).unwrap();
    let page = PageInput {
        url: &url,
        kind,
        text,
    };
    engine.extract(page, RequestedParts::default()).unwrap()
}

fn listing(rows: &Value, kind: PageKind, text: &str) -> Listing {
    let mut found = extract_with_limits(rows, kind, text, Limits::default());
    assert_eq!(found.warnings, Vec::<String>::new());
    found.listings.remove(0)
}

/// The values of the rows as JSON, without their positions.
fn values(listing: &Listing) -> Vec<Value> {
    let rows = listing.rows.iter();
    rows.map(|row| Value::Object(row.fields.clone())).collect()
}

fn css_chain(selector: &str) -> Value {
    json!([{"type": "css", "parameters": {"selector": selector}}])
}

fn cell_chain(header: &str) -> Value {
    json!([{"type": "cell", "parameters": {"header": header}}])
}

fn add_number_step(mut chain: Value) -> Value {
    chain
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "number"}));
    chain
}

#[test]
fn fields_that_a_row_lacks_are_null_and_shift_nothing() {
    let rows = json!({
        "dataset": "ratings",
        "select": css_chain("li.rating"),
        "fields": [
            {"name": "item", "processors": css_chain("a::attr(href)")},
            {"name": "stars", "processors": add_number_step(css_chain(".stars"))},
        ],
        "key": ["item"],
    });
    let page = r#"<ul><li class=rating><a href=/1>A</a><b class=stars>1</b>
        <li class=rating><a href=/2>B</a><b class=stars> </b>
        <li class=rating><a href=/3>C</a>
        <li class=rating><b class=stars>3</b>
        <li class=rating> - <li class=advert><a href=/9>Buy</a>
        <li class=rating><a href=/4>D</a><b class=stars>4</b></ul>"#;
    let found = listing(&rows, PageKind::Html, page);
    assert_eq!(
        values(&found),
        [
            json!({"item": "/1", "stars": 1}),
            json!({"item": "/2", "stars": null}),
            json!({"item": "/3", "stars": null}),
            json!({"item": null, "stars": 3}),
            json!({"item": "/4", "stars": 4}),
        ]
    );
    let positions: Vec<usize> = found.rows.iter().map(|row| row.position).collect();
    assert_eq!(positions, [0, 1, 2, 3, 5], "an empty element is no row");
    assert_eq!((found.dataset.as_str(), found.cut), ("ratings", false));
    assert_eq!(found.key, ["item"]);
}

#[test]
fn a_row_without_a_text_is_read_and_counted() {
    let rows = json!({
        "dataset": "covers",
        "select": css_chain("li.card"),
        "fields": [
            {"name": "book", "processors": css_chain("a::attr(href)")},
            {"name": "cover", "processors": css_chain("img::attr(src)")},
        ],
        "key": ["book"],
    });
    let page = r"<ul><li class=card><a href=/1><img src=1.png></a>
        <li class=card><li class=card><a href=/2><img></a>
        <li class=card>Sold out: <a href=/3>C</a></ul>";
    let found = listing(&rows, PageKind::Html, page);
    assert_eq!(
        values(&found),
        [
            json!({"book": "/1", "cover": "1.png"}),
            json!({"book": "/2", "cover": null}),
            json!({"book": "/3", "cover": null}),
        ]
    );
    let positions: Vec<usize> = found.rows.iter().map(|row| row.position).collect();
    assert_eq!(
        positions,
        [0, 2, 3],
        "the empty card is counted and is no row"
    );
}

#[test]
fn fields_come_from_the_page_its_url_and_its_record_as_well() {
    let rows = json!([{
        "dataset": "ratings",
        "select": css_chain("li"),
        "fields": [
            {"name": "item", "processors": css_chain("a")},
            {"name": "name", "from": "page", "processors": css_chain("h1")},
            {"name": "user", "from": "url", "processors": [
                {"type": "regex", "parameters": {"pattern": "/users/(\\d+)", "group": 1}},
            ]},
            {"name": "owner", "from": "record", "record_field": "_id"},
            {"name": "city", "from": "record"},
        ],
        "key": ["owner", "item"],
    }]);
    let found = listing(
        &rows,
        PageKind::Html,
        "<h1>Ada</h1><ul><li><a>A</a><li><a>B</a></ul>",
    );
    let row =
        |item: &str| json!({"item": item, "name": "Ada", "user": "7", "owner": null, "city": null});
    assert_eq!(values(&found), [row("A"), row("B")]);
    let from_record = Value::Object(found.from_record);
    assert_eq!(from_record, json!({"owner": "_id", "city": "city"}));
}

#[test]
fn cells_are_found_below_their_headers() {
    let tables: [(&str, &str, [&[&str]; 2]); 9] = [
        (
            "plain",
            "<table><tr><th>Title<th>Score<tr><td>A<td>1<tr><td>B<td><tr><td>C<td>3</table>",
            [&["A", "B", "C"], &["1", "", "3"]],
        ),
        (
            "the other way round, with more columns",
            "<table><thead><tr><th>Rank<th>Score<th>Title</thead><tr><td>1<td>9<td>A</table>",
            [&["A"], &["9"]],
        ),
        (
            "headers in other spellings",
            "<table><tr><th> TITLE\n <th>\u{a0}score<tr><td>A<td>1</table>",
            [&["A"], &["1"]],
        ),
        (
            "a cell for several rows",
            "<table><tr><th>Title<th>Score<tr><td rowspan=2>A<td>1<tr><td>2<tr><td>B<td>3</table>",
            [&["A", "A", "B"], &["1", "2", "3"]],
        ),
        (
            "a cell to the end of its group",
            "<table><tr><th>Title<th>Score<tbody><tr><td rowspan=0>A<td>1<tr><td>2<tbody><tr><td>B<td>3</table>",
            [&["A", "A", "B"], &["1", "2", "3"]],
        ),
        (
            "a cell for several columns",
            "<table><tr><th>Rank<th>Title<th>Score<tr><td colspan=2>A<td>1</table>",
            [&["A"], &["1"]],
        ),
        (
            "headers in two rows",
            "<table><thead><tr><th rowspan=2>Title<th colspan=2>Reader<tr><th>Name<th>Score</thead><tr><td>A<td>Ada<td>1</table>",
            [&["A"], &["1"]],
        ),
        (
            "headers at the side as well",
            "<table><tr><th>Title<th>Score<tr><th scope=row>A<td>1<tr><th scope=row>B<td>2</table>",
            [&["A", "B"], &["1", "2"]],
        ),
        (
            "a table in a cell",
            "<table><tr><th>Title<th>Score<tr><td>A<td>1<table><tr><th>Title<th>Score<tr><td>X<td>7</table></table>",
            [&["A", "X"], &["1TitleScoreX7", "7"]],
        ),
    ];
    for (what, page, [titles, scores]) in tables {
        let rows = json!({
            "dataset": "d",
            "select": css_chain("tr"),
            "fields": [
                {"name": "title", "processors": cell_chain("Title")},
                {"name": "score", "processors": cell_chain("score")},
            ],
            "key": ["title"],
        });
        let found = listing(&rows, PageKind::Html, page);
        let column = |name: &str| -> Vec<String> {
            let of = |row: &webfill_mapping::Row| {
                row.fields[name].as_str().unwrap_or_default().to_owned()
            };
            found.rows.iter().map(of).collect()
        };
        assert_eq!(column("title"), titles, "{what}");
        assert_eq!(column("score"), scores, "{what}");
    }
}

#[test]
fn objects_of_json_are_rows() {
    let path =
        |expression: &str| json!([{"type": "jsonpath", "parameters": {"expression": expression}}]);
    let rows = json!({
        "dataset": "d",
        "select": path("$.ratings[*]"),
        "fields": [
            {"name": "item", "processors": path("$.item.id")},
            {"name": "stars", "processors": path("$.stars")},
            {"name": "total", "from": "page", "processors": path("$.total")},
        ],
        "key": ["item"],
    });
    let page = r#"{"total": 3, "ratings": [{"item": {"id": "a"}, "stars": 1}, {"item": {"id": "b"}, "stars": null},
        {"item": {"id": "c"}, "stars": 3.5}]}"#;
    let wanted = [
        json!({"item": "a", "stars": 1, "total": 3}),
        json!({"item": "b", "stars": null, "total": 3}),
        json!({"item": "c", "stars": 3.5, "total": 3}),
    ];
    assert_eq!(values(&listing(&rows, PageKind::Json, page)), wanted);
    let html = format!(r#"<script type="application/json">{page}</script>"#);
    assert_eq!(values(&listing(&rows, PageKind::Html, &html)), wanted);
}

#[test]
fn too_many_and_too_long_rows_are_cut_with_a_warning() {
    let rows = json!({
        "dataset": "d",
        "select": css_chain("li"),
        "fields": [{"name": "item", "processors": css_chain("a")}],
        "key": ["item"],
    });
    let page = format!(
        "<li><a>1</a><li><a>{}</a><li><a>3</a><li><a>4</a>",
        "x".repeat(2_000)
    );
    let few = Limits {
        rows: 3,
        row_bytes: 1_000,
        ..Limits::default()
    };
    let found = extract_with_limits(&rows, PageKind::Html, &page, few);
    assert!(found.listings[0].cut);
    assert_eq!(
        values(&found.listings[0]),
        [json!({"item": "1"}), json!({"item": "3"})]
    );
    assert_eq!(
        found.warnings,
        [
            "rows of d: more than 3 values, the rest was dropped",
            "rows of d: row 1 has more than 1000 bytes and was dropped",
        ]
    );
}

#[test]
fn a_list_with_keep_empty_keeps_the_positions_of_empty_values() {
    let mapping = |keep: bool| {
        let text = json!({
            "name": "ratings",
            "url_patterns": [{"type": "host", "pattern": "ratings.example"}],
            "fields": [{"name": "stars", "multiple": true, "keep_empty": keep, "processors": add_number_step(css_chain("td"))}],
        });
        let source = Source {
            name: "r.json".into(),
            text: text.to_string(),
        };
        let set = MappingSet::from_sources(vec![source]).unwrap();
        let url = Url::parse(URL).unwrap();
        let page = PageInput {
            url: &url,
            kind: PageKind::Html,
            text: "<table><tr><td>1<td> <td>none<td>4</table>",
        };
        let engine = Engine::new(Arc::new(set), Limits::default());
        engine
            .extract(page, RequestedParts::default())
            .unwrap()
            .fields["stars"]
            .clone()
    };
    assert_eq!(mapping(false), json!([1, 4]));
    assert_eq!(mapping(true), json!([1, null, null, 4]));
}

#[test]
fn errors_in_row_rules_are_reported_with_their_path() {
    let right = json!({
        "dataset": "d",
        "select": css_chain("li"),
        "fields": [{"name": "item", "processors": css_chain("a")}, {"name": "tags", "multiple": true, "processors": css_chain("b")}],
        "key": ["item"],
    });
    assert!(load(&right).is_ok());
    let mistakes: [(&str, Value, &str); 13] = [
        ("/key", json!([]), "a key is required"),
        ("/key", json!(["itm"]), "unknown field"),
        ("/key", json!(["tags"]), "a list cannot"),
        ("/dataset", json!("a/b"), "no `/`"),
        ("/dataset", json!(""), "1 to 200 bytes"),
        ("/select", json!([]), "the list of processors is empty"),
        ("/fields/0/from", json!("there"), "is none of"),
        ("/fields/0/from", json!("record"), "remove the processors"),
        ("/fields/0/name", json!("tags"), "duplicate field"),
        (
            "/fields/0/record_field",
            json!("x"),
            "with `from` set to `record`",
        ),
        ("/completely", json!(true), "unknown key"),
        (
            "/links",
            json!([{"processors": css_chain("a")}]),
            "in `want`",
        ),
        ("/want", json!(["year"]), "add `links`"),
    ];
    for (place, value, says) in mistakes {
        let mut wrong = right.clone();
        let (parent, name) = place.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[name] = value;
        let error = load(&wrong).err().expect(place);
        assert!(error.contains(says), "{place}: {error}");
        assert!(error.contains("rows"), "{place}: {error}");
    }
}

#[test]
fn an_xpath_from_the_root_is_refused_where_it_would_read_the_first_row_for_all() {
    let rules = |select: Value, item: Value| {
        load(&json!({
            "dataset": "ratings",
            "select": select,
            "fields": [{"name": "item", "processors": item}],
            "key": ["item"],
        }))
    };
    let xpath =
        |expression: &str| json!([{"type": "xpath", "parameters": {"expression": expression}}]);
    let refused = rules(css_chain("tbody tr"), xpath("//td[1]"))
        .err()
        .unwrap();
    assert!(
        refused.contains(
            "rows.fields[0].processors[0].parameters.expression: `//td[1]` searches the whole page"
        ) || refused.contains("\"//td[1]\" searches the whole page"),
        "{refused}"
    );
    let mut deeper = css_chain("td");
    let step = xpath("string(//td)")[0].clone();
    deeper.as_array_mut().unwrap().push(step);
    assert!(rules(css_chain("tbody tr"), deeper).is_err());
    assert!(rules(css_chain("tbody tr"), xpath(".//td[1]")).is_ok());
    assert!(rules(css_chain("tbody tr"), xpath("td[1]")).is_ok());
    // A text that is parsed as HTML has a root of its own, so an XPath from the root is right.
    let texts = json!([{"type": "jsonpath", "parameters": {"expression": "$.items[*].html"}}]);
    assert!(rules(texts, xpath("//b")).is_ok());
}

#[test]
fn a_row_without_values_is_dropped_even_if_it_was_read_twice() {
    let rows = json!({
        "dataset": "prices",
        "select": css_chain("li"),
        "fields": [{"name": "price", "processors": add_number_step(css_chain("b"))}],
        "key": ["price"],
    });
    let found = extract_with_limits(
        &rows,
        PageKind::Html,
        "<ul><li><b>1,234</b><li><b>5</b></ul>",
        Limits::default(),
    );
    assert_eq!(values(&found.listings[0]), [json!({"price": 5})]);
    assert_eq!(found.listings[0].rows[0].position, 1);
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
}
