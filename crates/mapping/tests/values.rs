//! `number` and `date` in a mapping: all values of a field together decide how they are read, and a warning counts the
//! dropped ones. How single values are read is in the tables of the crate `values`.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{
    Engine, Extraction, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source,
};
use webfill_urls::Url;

fn extract_values(kind: &str, parameters: Value, kind_of_page: PageKind, page: &str) -> Extraction {
    let find = match kind_of_page {
        PageKind::Json => json!({"type": "jsonpath", "parameters": {"expression": "$.*"}}),
        _ => json!({"type": "css", "parameters": {"selector": "li"}}),
    };
    let mapping = json!({
        "name": "shop",
        "url_patterns": [{"type": "host", "pattern": "shop.example"}],
        "fields": [{"name": "read", "multiple": true,
            "processors": [find, {"type": kind, "parameters": parameters}]}],
    });
    let source = Source {
        name: "shop.json".into(),
        text: mapping.to_string(),
    };
    let engine = Engine::new(
        Arc::new(MappingSet::from_sources(vec![source]).unwrap()),
        Limits::default(),
    );
    let url = Url::parse("https://shop.example/").unwrap();
    let page = PageInput {
        url: &url,
        kind: kind_of_page,
        text: page,
    };
    engine.extract(page, RequestedParts::default()).unwrap()
}

fn read_values(kind: &str, parameters: Value, texts: &[&str]) -> (Value, Vec<String>) {
    let items: String = texts
        .iter()
        .map(|text| format!("<li>{text}</li>"))
        .collect();
    let extraction = extract_values(kind, parameters, PageKind::Html, &items);
    let fields = extraction.fields.get("read").cloned();
    (fields.unwrap_or(Value::Null), extraction.warnings)
}

#[test]
fn a_column_of_prices_shows_its_notation() {
    let (prices, warnings) = read_values("number", json!({}), &["1.299 €", "99,95 €", "12 €"]);
    assert_eq!(prices, json!([1299, 99.95, 12]));
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn ambiguous_values_are_dropped_and_counted() {
    let (read_alone, warnings) = read_values("number", json!({}), &["1,234", "none", "5.678", "7"]);
    assert_eq!(read_alone, json!([7]));
    assert_eq!(
        warnings,
        [
            "field read: number: 2 dropped: readable in two ways, such as \"1,234\"; set `decimal` or `group`"
        ]
    );
    let set = json!({"decimal": ",", "group": "."});
    let (read_set, warnings) = read_values("number", set, &["1.50", "1.500"]);
    assert_eq!(read_set, json!([1500]));
    assert!(
        warnings[0].contains("1 dropped: not numbers in this notation"),
        "{warnings:?}"
    );
}

#[test]
fn a_text_with_several_numbers_has_no_value_unless_it_says_which_is_meant() {
    let texts = ["1h 30min", "+49 30 123456", "10 x 20", "4.7 out of 5"];
    let (read_number, warnings) = read_values("number", json!({"decimal": "."}), &texts);
    assert_eq!(read_number, json!([4.7]));
    assert_eq!(
        warnings,
        [
            "field read: number: 3 dropped: several numbers, such as \"1h 30min\"; cut out the one you mean with `regex`"
        ]
    );
}

/// On the page there is a gap between the numbers, although the text of the elements has no space there.
#[test]
fn adjacent_numbers_are_not_joined() {
    for (html, expected) in [
        ("12<br>34", Value::Null),
        ("<p>12</p><p>34</p>", Value::Null),
        ("<table><tr><td>12<td>34</table>", Value::Null),
        ("19<sup>99</sup> €", json!([19.99])),
        ("19<sup>99</sup>", Value::Null),
        ("<sup>19</sup>99 €", Value::Null),
        ("12<sup>5</sup>", Value::Null),
        ("19,<sup>99</sup> €", json!([19.99])),
        ("19<sup>,99</sup> €", json!([19.99])),
        ("3<sup>1</sup>/<sub>2</sub>", json!([3.5])),
        ("12 m<sup>2</sup>", json!([12])),
        ("<span>1</span><span>2</span>,<b>50</b> €", json!([12.5])),
        ("Price<br>12 €<br>per unit", json!([12])),
        ("<div>Price</div><div>1,234.50</div>", json!([1234.5])),
        ("<script>var x = 7;</script>12", json!([12])),
        ("12<wbr>34", json!([1234])),
        ("<i class=icon></i>12", json!([12])),
    ] {
        let (found, _) = read_values("number", json!({}), &[html]);
        assert_eq!(found, expected, "{html}");
    }
    for (html, expected) in [
        ("1<sup>st</sup> March 2024", json!(["2024-03-01"])),
        ("<b>1</b><br>March<br>2024", json!(["2024-03-01"])),
        ("<div>1 March</div><div>2024</div>", json!(["2024-03-01"])),
        (
            "<time>2024-03-01</time><br>10:30",
            json!(["2024-03-01T10:30:00"]),
        ),
    ] {
        let (found, _) = read_values("date", json!({}), &[html]);
        assert_eq!(found, expected, "{html}");
    }
}

#[test]
fn no_digit_is_lost() {
    let texts = [
        "9007199254740993",
        "18446744073709551616",
        "12345678901234567.89",
        "0.1",
        "5.00",
    ];
    let (numbers, _) = read_values("number", json!({"decimal": "."}), &texts);
    let expected = json!([
        9007199254740993_u64,
        "18446744073709551616",
        "12345678901234567.89",
        0.1,
        5.0
    ]);
    assert_eq!(numbers, expected);
    let page = r#"{"a": 0.00000123, "b": 1e3, "c": 123456789012345678901, "d": "3.8915E8"}"#;
    let found = extract_values("number", json!({}), PageKind::Json, page);
    let expected = json!([0.00000123, 1000.0, "123456789012345678901", 389150000]);
    assert_eq!(found.fields["read"], expected);
}

#[test]
fn a_day_that_does_not_exist_is_dropped_and_counted() {
    let texts = [
        "February 30, 2024",
        "1er mars 2024",
        "Mon 1 Mar 2024",
        "01/02/2024",
    ];
    let (dates, warnings) = read_values("date", json!({}), &texts);
    assert_eq!(dates, json!(["2024-03-01"]));
    assert_eq!(
        warnings,
        [
            "field read: date: 3 dropped: not a day of the calendar, or readable in two ways, such as \"February 30, 2024\"; set `order` or `formats`"
        ]
    );
    let formats = json!({"formats": ["%d.%m.%Y %H:%M"]});
    let (dates, _) = read_values("date", formats, &["31.04.2023 14:00", "30.04.2023 14:00"]);
    assert_eq!(dates, json!(["2023-04-30T14:00:00"]));
    let order = json!({"order": "month_first"});
    let (dates, _) = read_values("date", order, &["01/02/2024"]);
    assert_eq!(dates, json!(["2024-01-02"]));
}

#[test]
fn an_undecided_field_differs_from_an_empty_one() {
    let undecided = |texts: &[&str]| {
        let page = serde_json::to_string(texts).unwrap();
        extract_values("number", json!({}), PageKind::Json, &page).alternatives
    };
    assert_eq!(json!(undecided(&["1,234"])), json!({"read": 0}));
    assert_eq!(json!(undecided(&["none"])), json!({}));
    assert_eq!(json!(undecided(&["12,50"])), json!({}));
}
