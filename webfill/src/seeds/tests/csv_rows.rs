//! Tests rows, cells and quotes of CSV.

use super::*;

#[test]
fn csv_columns_are_id_urls_and_fields() {
    let content = "\u{feff}id, Name ,URL,city\n7,\"Ada, Countess\nof Lovelace\",https://a.example/ https://b.example/,\n";
    let seed = read_single_seed("people.csv", content);
    assert_eq!((seed.line, seed.id.as_deref()), (2, Some("7")));
    assert_eq!(seed.urls, ["https://a.example/", "https://b.example/"]);
    let fields = json!({"Name": "Ada, Countess\nof Lovelace", "city": null});
    assert_eq!(Value::Object(seed.fields.unwrap()), fields);
    assert_eq!(seed.want, ["city"]);
}

#[test]
fn blank_cells_are_empty_and_blanks_around_ids_and_urls_are_removed() {
    let content = "id, url, name, city\n 1, http://a.example/a, , \u{a0}\u{200b}\n2,http://b.example/,\" \", Bonn\n";
    for (seed, (id, url, want)) in read_seeds("people.csv", content.as_bytes())
        .into_iter()
        .zip([
            ("1", "http://a.example/a", vec!["name", "city"]),
            ("2", "http://b.example/", vec!["name"]),
        ])
    {
        let seed = seed.unwrap();
        assert_eq!(seed.id.as_deref(), Some(id));
        assert_eq!(
            (seed.urls, seed.want),
            (
                vec![url.to_owned()],
                want.into_iter().map(String::from).collect()
            )
        );
    }
}

#[test]
fn a_blank_within_one_url_belongs_to_it() {
    for (cell, urls) in [
        ("http://a.example/a b", vec!["http://a.example/a%20b"]),
        (" http://a.example/a  b ", vec!["http://a.example/a%20%20b"]),
        (
            "http://a.example/?q=x y http://b.example/",
            vec!["http://a.example/?q=x%20y", "http://b.example/"],
        ),
    ] {
        let seed = read_single_seed("s.csv", &format!("id,url,name\n1,{cell},\n"));
        assert_eq!(seed.urls, urls, "{cell}");
    }
    let seed = read_single_seed(
        "s.csv",
        "id,urls,name\n1,http://a.example/1 http://a.example/2,\n",
    );
    assert_eq!(seed.urls.len(), 2);
}

#[test]
fn only_an_exported_table_has_cells_that_are_json() {
    let typed = read_single_seed("s.csv", "id,url,a,b,c\n1,http://a.example/,null,[],NaN\n");
    let fields = json!({"a": "null", "b": "[]", "c": "NaN"});
    assert_eq!(
        (Value::Object(typed.fields.unwrap()), typed.want.len()),
        (fields, 0)
    );
    let written = "id,a,b,c,d,missing,resolved_at,dataset,urls\n1,[],\"\"\"[]\"\"\",null,\"[\"\"x\"\"]\",[],,d,http://a.example/\n";
    let exported = read_single_seed("s.csv", written);
    let fields = json!({"a": [], "b": "[]", "c": "null", "d": ["x"]});
    assert_eq!(Value::Object(exported.fields.unwrap()), fields);
}

#[test]
fn csv_cells_equal_those_that_the_csv_crate_reads() {
    let rows = [
        "a,b",
        "a,,",
        ",",
        "\"a\"\"b\",\"c,d\"",
        "a\"b,\"c\"d",
        "\"\",x",
        "é,\"ü\"",
        "\"a\nb\",c",
    ];
    for row in rows {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(row.as_bytes());
        let record = reader.records().next().unwrap().unwrap();
        let expected: Vec<&str> = record.iter().collect();
        assert_eq!(
            table::parse_cells(row.as_bytes()).unwrap(),
            expected,
            "{row}"
        );
    }
}

#[test]
fn a_broken_csv_row_does_not_affect_other_rows() {
    let content = "id,url,name\n1,https://a.example/\n2,https://b.example/,\n3,,x\n4,\"https://c.example/,\n5,https://d.example/,x\n6,\"https://e.example/\",\"a\"\"b\"\n7,https://f.example/,x,y\n";
    let seeds = read_seeds("s.csv", content.as_bytes());
    assert_eq!(fault_lines(&seeds), [2, 4, 5, 8]);
    let expected = [
        (3, "https://b.example/"),
        (6, "https://d.example/"),
        (7, "https://e.example/"),
    ];
    assert_eq!(urls(&seeds), expected);
    let reasons: Vec<&str> = seeds
        .iter()
        .filter_map(|seed| seed.as_ref().err())
        .map(|f| f.reason.as_str())
        .collect();
    assert_eq!(reasons[0], "the row has 2 cells, but the header 3 columns");
    assert_eq!(reasons[1], "no URL: the cell is empty");
    let quoted = seeds.iter().flatten().last().unwrap();
    assert_eq!(quoted.fields.as_ref().unwrap()["name"], "a\"b");
}

#[test]
fn a_quote_that_is_never_closed_breaks_only_one_row() {
    let rows: String = (0..5_000)
        .map(|n| format!("https://a.example/{n},x\n"))
        .collect();
    let content = format!("url,name\nhttps://a.example/,\"open\n{rows}");
    let seeds = read_seeds("s.csv", content.as_bytes());
    assert_eq!(fault_lines(&seeds), [2]);
    assert_eq!(seeds[0].as_ref().unwrap_err().reason, "unclosed quote");
    assert_eq!(urls(&seeds).len(), 5_000);
}

#[test]
fn an_unclosed_quote_does_not_swallow_quoted_rows_after_it() {
    let content =
        "url,name\nhttps://a.example/,\"open\nhttps://b.example/,\"x\"\nhttps://c.example/,\n";
    let seeds = read_seeds("s.csv", content.as_bytes());
    assert_eq!(fault_lines(&seeds), [2]);
    assert_eq!(
        urls(&seeds),
        [(3, "https://b.example/"), (4, "https://c.example/")]
    );
}
