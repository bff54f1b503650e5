//! The rows of a page show together how its numbers and dates are written.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

use super::{URL, add_number_step, css_chain, extract_with_limits, values};

#[test]
fn the_rows_of_a_page_together_show_how_numbers_and_dates_are_written() {
    let rows = json!({
        "dataset": "prices",
        "select": css_chain("tbody tr"),
        "fields": [
            {"name": "item", "processors": css_chain("td:nth-child(1)")},
            {"name": "price", "processors": add_number_step(css_chain("td:nth-child(2)"))},
            {"name": "day", "processors": [
                {"type": "css", "parameters": {"selector": "td:nth-child(3)"}}, {"type": "date"},
            ]},
        ],
        "key": ["item"],
    });
    let page = |rows: &[[&str; 3]]| {
        let row = |[item, price, day]: &[&str; 3]| format!("<tr><td>{item}<td>{price}<td>{day}");
        let rows: String = rows.iter().map(row).collect();
        format!("<table><tbody>{rows}</table>")
    };
    for (name, of_page, expected) in [
        (
            "later rows decide for earlier ones",
            &[["a", "1,234", "01/02/2024"], ["b", "12,50", "25/02/2024"]][..],
            json!([["a", 1.234, "2024-02-01"], ["b", 12.5, "2024-02-25"]]),
        ),
        (
            "also against a currency's usual notation",
            &[["a", "£1,299", "01/02/2024"], ["b", "£12,50", "02/25/2024"]],
            json!([["a", 1.299, "2024-01-02"], ["b", 12.5, "2024-02-25"]]),
        ),
        (
            "brackets are a minus where others have none",
            &[["a", "(5)", ""], ["b", "7", ""]],
            json!([["a", -5, null], ["b", 7, null]]),
        ),
        (
            "rows that contradict each other decide nothing",
            &[
                ["a", "1,234", "01/02/2024"],
                ["b", "1.50", "25/02/2024"],
                ["c", "2,50", "02/25/2024"],
            ],
            json!([
                ["a", null, null],
                ["b", 1.5, "2024-02-25"],
                ["c", 2.5, "2024-02-25"]
            ]),
        ),
        (
            "a row that others decide is one",
            &[
                ["", "1.234", ""],
                ["", "", "01/02/2024"],
                ["", "9,99", "13/02/2024"],
            ],
            json!([
                [null, 1234, null],
                [null, null, "2024-02-01"],
                [null, 9.99, "2024-02-13"]
            ]),
        ),
    ] {
        let found = extract_with_limits(&rows, PageKind::Html, &page(of_page), Limits::default());
        let listing = &found.listings[0];
        let values: Vec<Value> = values(listing)
            .into_iter()
            .map(|row| json!([row["item"], row["price"], row["day"]]))
            .collect();
        assert_eq!(Value::Array(values), expected, "{name}");
        let is_undecided = expected.to_string().contains("null,null]") && name.contains("nothing");
        assert_eq!(
            !found.warnings.is_empty(),
            is_undecided,
            "{name}: {:?}",
            found.warnings
        );
    }
}

#[test]
fn values_with_positions_show_together_how_they_are_written() {
    let mapping = json!({
        "name": "ratings",
        "url_patterns": [{"type": "host", "pattern": "ratings.example"}],
        "fields": [{"name": "price", "multiple": true, "keep_empty": true, "processors": add_number_step(css_chain("b"))}],
    });
    let source = Source {
        name: "ratings.json".into(),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap();
    let engine = Engine::new(Arc::new(set), Limits::default());
    let url = Url::parse(URL).unwrap();
    let page = PageInput {
        url: &url,
        kind: PageKind::Html,
        text: "<b>1,234</b><b></b><b>12,50</b>",
    };
    let found = engine.extract(page, RequestedParts::default()).unwrap();
    assert_eq!(found.fields["price"], json!([1.234, null, 12.5]));
    assert_eq!(found.warnings, Vec::<String>::new());
}
