//! Tests pages and records that disagree: which of them are doubted, and what is learned nevertheless.

use serde_json::json;
use webfill_learn::{Page, learn};

use super::learn_and_read_last;
use crate::made::{NAMES, page, read, task};

#[test]
fn a_list_that_few_pages_show_is_not_cut_to_its_first_value() {
    let names = |number: usize| match number % 4 {
        0 => vec![format!("Ada {number}"), format!("Mary {number}")],
        _ => vec![format!("Emmy {number}")],
    };
    let html = |names: &[String]| {
        let items: String = names
            .iter()
            .map(|name| format!("<li>{name}</li>"))
            .collect();
        format!("<h1>A book</h1><ul class=authors>{items}</ul><p>End</p>")
    };
    let mut pages: Vec<Page> = (0..20)
        .map(|number| {
            let names = names(number);
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            page(
                &format!("book/{number}"),
                html(&names),
                &[("field", &known)],
            )
        })
        .collect();
    let last = ["Grace 1", "Rosa 1", "Hedy 1"].map(str::to_owned);
    pages.push(page("book/99", html(&last), &[]));
    let (value, learned) = learn_and_read_last(&pages);
    assert_eq!(value, Some(json!(last)), "{learned:?}");
    assert_eq!(learned.mappings[0].fields[0].agree.len(), 20);
}

#[test]
fn a_page_of_whose_values_one_is_read_counts_as_one_that_disagrees() {
    // The second author is in another place on each page, so that no chain reads both.
    let places = [
        "<i>V</i>",
        "<table><tr><td>V</table>",
        "<h4>V</h4>",
        "<pre>V</pre>",
        "<b>V</b>",
    ];
    let pages: Vec<Page> = (0..20)
        .map(|number| {
            let (first, second) = (format!("Ada {number}"), format!("Mary {number}"));
            let other = places[number / 4].replace('V', &second);
            let html = format!("<h1>Book</h1><p class=by>{first}</p><div>{other}</div>");
            let known: &[&str] = match number % 4 {
                0 => &[&first, &second],
                _ => &[&first],
            };
            page(&format!("book/{number}"), html, &[("field", known)])
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let field = &learned.mappings[0].fields[0];
    assert_eq!(
        (field.agree.len(), field.disagree.len()),
        (15, 5),
        "{field:?}"
    );
}

#[test]
fn a_field_that_is_likelier_wrong_than_right_is_left_out_and_named() {
    let html = |number: usize| {
        format!(
            "<h1>Item {number}</h1><dl><dt>Kind</dt><dd>thing {number}</dd></dl><p>free {}</p>",
            number * 7
        )
    };
    // Most pages do not show their known values.
    let pages: Vec<Page> = (0..10)
        .map(|number| {
            let kind = format!("thing {number}");
            let other = match number % 3 {
                0 => format!("free {}", number * 7),
                _ => format!("unknown {number}"),
            };
            let known: &[(&str, &[&str])] = &[("kind", &[&kind]), ("other", &[&other])];
            page(&format!("item/{number}"), html(number), known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let names: Vec<&str> = learned.mappings[0].mapping["fields"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|field| field["name"].as_str())
        .collect();
    assert_eq!(names, ["kind"]);
    let other = learned.mappings[0]
        .fields
        .iter()
        .find(|one| one.field == "other");
    let other = other.unwrap();
    assert!(
        other.confidence < 0.5 && other.processors.is_none(),
        "{other:?}"
    );
    assert!(other.why.starts_with("left out"), "{}", other.why);
}

#[test]
fn no_alternative_counts_positions_where_a_page_may_lack_the_field() {
    let html = |number: usize, mail: Option<&str>| {
        let mail = mail.map_or(String::new(), |mail| {
            format!("<dt class=m>E-mail</dt><dd class=mail>{mail}</dd>")
        });
        format!(
            "<h1>Firm {number}</h1><dl class=data><dt>City</dt><dd>Town {number}</dd>{mail}\
             <dt>Phone</dt><dd>030 12345{number:02}</dd></dl>"
        )
    };
    let pages: Vec<Page> = (0..12)
        .map(|number| {
            // The texts have no common shape, so a filter by shape cannot exclude wrong values.
            let mail = ["Ada at home", "desk 4", "x@y.example", "by post"][number % 4];
            let mail = format!("{mail} {number}");
            let text = html(number, Some(&mail));
            let known: &[(&str, &[&str])] = &[("field", &[&mail])];
            page(&format!("firm/{number}"), text, known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let mapping = &learned.mappings[0].mapping;
    for number in 20..30 {
        let without = page("firm/x", html(number, None), &[]);
        let value = read(mapping, &without).remove("field");
        assert_eq!(value, None, "{mapping:#}");
    }
}

#[test]
fn records_that_are_out_of_date_are_doubted_and_not_the_chain() {
    let html = |number: usize| {
        format!(
            "<h1>Item {number}</h1><table><tr><th>Maker:</th><td class=maker>Firm {}</td></tr></table><p>end</p>",
            number * 13
        )
    };
    for stale in [1, 2, 3] {
        let pages: Vec<Page> = (0..12)
            .map(|number| {
                let maker = match number < stale {
                    true => format!("Former {number}"),
                    false => format!("Firm {}", number * 13),
                };
                page(
                    &format!("item/{number}"),
                    html(number),
                    &[("field", &[&maker])],
                )
            })
            .collect();
        let learned = learn(&pages, &[], &task()).unwrap();
        let field = &learned.mappings[0].fields[0];
        assert_eq!(field.doubted.len(), stale, "{field:?}");
        assert!(
            field.disagree.is_empty() && field.confidence >= 0.9,
            "{field:?}"
        );
        assert!(!learned.mappings[0].draft);
    }
}

#[test]
fn records_that_were_mixed_up_are_doubted_and_the_mapping_is_a_draft() {
    let maker = |number: usize| format!("Firm {}", number * 13);
    let html = |number: usize| {
        format!(
            "<h1>Item {number}</h1><table><tr><th>Maker:</th><td class=maker>{}</td></tr></table><p>end</p>",
            maker(number)
        )
    };
    // Three of five records have the value of another record's page.
    let pages: Vec<Page> = (0..10)
        .map(|number| {
            let known = maker(if number < 3 { number + 4 } else { number });
            let known: &[(&str, &[&str])] = match number < 5 {
                true => &[("field", &[&known])],
                false => &[],
            };
            page(&format!("item/{number}"), html(number), known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let (mapping, field) = (&learned.mappings[0], &learned.mappings[0].fields[0]);
    assert_eq!(field.doubted.len(), 3, "{field:?}");
    assert!(mapping.draft && field.confidence <= 0.8, "{field:?}");
    assert_eq!(read(&mapping.mapping, &pages[8])["field"], json!(maker(8)));
}

#[test]
fn a_list_that_is_read_by_positions_is_confirmed_by_no_other_anchor() {
    let of = |number: usize, second: &str| {
        let known = [(
            "people",
            [format!("{} King", NAMES[number]), second.to_owned()],
        )];
        let text = format!(
            "<title>House</title><table id=profile class=profile><tr><td>Main office<br>{number} Main Street<br>{}</td>\
             <td>Admissions<br>Town {number}<br>{second}</td></tr></table>",
            known[0].1[0]
        );
        let known: Vec<&str> = known[0].1.iter().map(String::as_str).collect();
        let known: &[(&str, &[&str])] = &[("people", &known)];
        page(
            &format!("person/{number}"),
            text,
            if number == 0 { known } else { &[] },
        )
    };
    let pages: Vec<Page> = (0..6)
        .map(|number| match number {
            0 | 1 => of(number, &format!("{} Shelley", NAMES[number])),
            _ => of(number, "Open at noon"),
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let field = &learned.mappings[0].fields[0];
    let chain = field.processors.as_ref().unwrap().to_string();
    assert!(field.multiple && chain.contains("[3]"), "{chain}");
    let agreements: Vec<f64> = field.candidates.iter().map(|one| one.agreement).collect();
    assert!(
        agreements.iter().all(|agreement| *agreement == 0.0),
        "{agreements:?}"
    );
}
