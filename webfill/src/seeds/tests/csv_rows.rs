//! Rows, cells and quotes of CSV.

use super::*;

#[test]
fn csv_columns_are_id_urls_and_fields() {
    let content = "\u{feff}id, Name ,URL,city\n7,\"Ada, Countess\nof Lovelace\",https://a.example/ https://b.example/,\n";
    let seed = seed("people.csv", content);
    assert_eq!((seed.line, seed.id.as_deref()), (2, Some("7")));
    assert_eq!(seed.urls, ["https://a.example/", "https://b.example/"]);
    let fields = json!({"Name": "Ada, Countess\nof Lovelace", "city": null});
    assert_eq!(Value::Object(seed.fields.unwrap()), fields);
    assert_eq!(seed.want, ["city"]);
}

#[test]
fn csv_cells_are_those_that_the_csv_crate_reads() {
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
        assert_eq!(table::cells(row.as_bytes()).unwrap(), expected, "{row}");
    }
}

#[test]
fn a_broken_csv_row_costs_no_other_row() {
    let content = "id,url,name\n1,https://a.example/\n2,https://b.example/,\n3,,x\n4,\"https://c.example/,\n5,https://d.example/,x\n6,\"https://e.example/\",\"a\"\"b\"\n7,https://f.example/,x,y\n";
    let seeds = read("s.csv", content.as_bytes());
    assert_eq!(faults(&seeds), [2, 4, 5, 8]);
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
    assert_eq!(reasons[1], "it names no URL: the cell is empty");
    let quoted = seeds.iter().flatten().last().unwrap();
    assert_eq!(quoted.fields.as_ref().unwrap()["name"], "a\"b");
}

#[test]
fn a_quote_that_is_never_closed_costs_one_row() {
    let rows: String = (0..5_000)
        .map(|n| format!("https://a.example/{n},x\n"))
        .collect();
    let content = format!("url,name\nhttps://a.example/,\"open\n{rows}");
    let seeds = read("s.csv", content.as_bytes());
    assert_eq!(faults(&seeds), [2]);
    assert_eq!(
        seeds[0].as_ref().unwrap_err().reason,
        "a quote is opened and not closed"
    );
    assert_eq!(urls(&seeds).len(), 5_000);
}

#[test]
fn a_quote_that_is_not_closed_swallows_no_quoted_row() {
    let content =
        "url,name\nhttps://a.example/,\"open\nhttps://b.example/,\"x\"\nhttps://c.example/,\n";
    let seeds = read("s.csv", content.as_bytes());
    assert_eq!(faults(&seeds), [2]);
    assert_eq!(
        urls(&seeds),
        [(3, "https://b.example/"), (4, "https://c.example/")]
    );
}
