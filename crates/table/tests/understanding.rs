//! Tests the inferred structure of tables: the id, the links, the fields, the kept columns.

use crate::common::table;
use webfill_table::{ColumnChoices, Sample, Understanding};

/// The lines about the id, the links and the fields, as they are shown to users.
fn described_lines(understanding: &Understanding) -> Vec<String> {
    let text = understanding.to_string();
    assert_eq!(text.lines().count(), 5, "{text}");
    let behind = |line: &str| line.split_once(':').unwrap().1.trim().to_owned();
    text.lines().skip(1).map(behind).collect()
}

fn assert_description(name: &str, text: &str, expected: [&str; 4]) {
    let understanding = table(name, text).understand();
    assert_eq!(described_lines(&understanding), expected, "{text}");
}

#[test]
fn id_links_and_fields_are_found() {
    assert_description(
        "books.csv",
        "isbn,title,url,pages,shop\n\
         9780000000017,Emma,http://a.example/1,,x\n\
         9780000000024,,http://a.example/2,300,x\n\
         9780000000031,Dune,http://a.example/3,NA,x\n",
        [
            "isbn (no value twice in 3 rows)",
            "url",
            "title (text, 1 gap), pages (integer, 2 gaps, counting `NA`)",
            "shop",
        ],
    );
    assert_description(
        "rows.csv",
        "name;links;price\n\
         a;http://a.example/1 http://b.example/1;1.50\n\
         a;http://a.example/2;-\n\
         b;http://a.example/3 http://b.example/3;2\n",
        [
            "the number of the row",
            "links (several in a cell, with blanks between)",
            "price (number, 1 gap, counting `-`)",
            "name",
        ],
    );
    assert_description(
        "rows.csv",
        "id,page,image,born\n\
         7,https://a.example/1,https://a.example/1.jpg,1815-12-10\n\
         7,https://a.example/2,https://a.example/2.jpg,\n",
        [
            "the number of the row (`id` holds `7` twice)",
            "page",
            "born (date, 1 gap)",
            "id, image",
        ],
    );
    assert_description(
        "rows.csv",
        "n,word,web,tags\n\
         1,a,https://a.example/1,x; y\n1,b,https://a.example/2,y; z\n\
         2,c,https://a.example/3,x; z\n2,d,https://a.example/4,\n3,e,https://a.example/5,x\n",
        [
            "word (the first column with no value twice in 5 rows)",
            "web",
            "tags (list with `; `, 1 gap)",
            "n",
        ],
    );
    assert_description(
        "rows.jsonl",
        "{\"_id\":1,\"urls\":[\"http://a.example/1\",\"http://b.example/1\"],\"price\":2,\"tags\":[\"a\"],\"o\":{}}\n\
         {\"_id\":2,\"urls\":[\"http://a.example/2\"],\"price\":null,\"tags\":[],\"o\":{}}\n",
        [
            "_id (no value twice in 2 rows)",
            "urls",
            "price (integer, 1 gap), tags (list of text, 1 gap)",
            "o (holds objects)",
        ],
    );
}

#[test]
fn odd_columns_are_kept() {
    assert_description(
        "rows.csv",
        "id,a,a,,b\n1,,,,\n2,x,,,\n",
        [
            "id (no value twice in 2 rows)",
            "none found: name their column with --url",
            "b (text, 2 gaps)",
            "a (shares its name with another column), a (shares its name with another column), column 4 (has no name)",
        ],
    );
    assert_description(
        "rows.csv",
        "id,name\n",
        [
            "the number of the row (`id` has no values)",
            "none found: name their column with --url",
            "none: no column has gaps",
            "id, name",
        ],
    );
}

#[test]
fn columns_that_link_all_rows_to_one_page_are_not_link_columns() {
    let mut text = String::from("id,shop,page\n");
    for number in 0..30 {
        text.push_str(&format!(
            "{number},http://shop.example/,http://shop.example/{number}\n"
        ));
    }
    assert_description(
        "rows.csv",
        &text,
        [
            "id (no value twice in 30 rows)",
            "page",
            "none: no column has gaps",
            "shop",
        ],
    );
}

#[test]
fn choices_of_the_user_override_the_inference() {
    let written = table(
        "books.csv",
        "id,SKU,title,price,url\n1,a,x,,a.example/1\n2,b,,,a.example/2\n",
    );
    let sample = Sample::read(&written.path).unwrap();
    let wishes = ColumnChoices {
        id: Some("sku".into()),
        urls: vec!["url".into()],
        fields: Vec::new(),
        keep: vec!["price".into()],
    };
    let understanding = webfill_table::infer_structure(&sample, &wishes).unwrap();
    assert_eq!(
        described_lines(&understanding),
        ["SKU (as wished)", "url", "title (text, 1 gap)", "id, price"]
    );
    let links = understanding.urls[0].links(&sample.rows[0].cells[4]);
    assert_eq!(links, ["https://a.example/1"]);
    let only = ColumnChoices {
        fields: vec!["price".into()],
        ..ColumnChoices::default()
    };
    let understanding = webfill_table::infer_structure(&sample, &only).unwrap();
    assert_eq!(described_lines(&understanding)[2], "price (text, 2 gaps)");
}

#[test]
fn an_unknown_column_is_an_error_with_the_nearest_name() {
    let written = table("books.csv", "id,title,Title,Price\n1,x,y,z\n");
    let sample = Sample::read(&written.path).unwrap();
    let table = [
        ("pric", "no column is named `pric`: did you mean `Price`?"),
        (
            "nothing",
            "no column is named `nothing`: the table has `id`, `title`, `Title`, `Price`",
        ),
        ("TITLE", "several columns are named `TITLE`"),
    ];
    for (wish, expected) in table {
        let wishes = ColumnChoices {
            id: Some(wish.into()),
            ..ColumnChoices::default()
        };
        let error = webfill_table::infer_structure(&sample, &wishes)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    for wish in ["title", "Title", " price "] {
        let wishes = ColumnChoices {
            keep: vec![wish.into()],
            ..ColumnChoices::default()
        };
        assert!(
            webfill_table::infer_structure(&sample, &wishes).is_ok(),
            "{wish}"
        );
    }
}
