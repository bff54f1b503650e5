//! What a person has said of a page counts as true.

mod made;

use serde_json::json;
use webfill_learn::{Learned, Page, Said, learn};

use made::{NAMES, html, page, read_last, task};

#[test]
fn what_a_person_rejects_is_not_chosen() {
    let pages: Vec<Page> = (0..4)
        .map(|number| {
            let mut page = page(&format!("person/{number}"), html(number), &[]);
            let said = Said {
                rejected: vec![format!("{} L", NAMES[number])],
                ..Said::default()
            };
            page.said.insert("name".into(), said);
            page.known.insert(
                "name".into(),
                vec![NAMES[number].into(), format!("{} L", NAMES[number])],
            );
            page
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    assert_eq!(read_last(&learned)["name"], "Rosa");
}

/// What is learned of `name` if a person has said this of the first page, and a record knows the rest.
fn learn_with(said: Said, known: &[&str]) -> Learned {
    let pages: Vec<Page> = (0..4)
        .map(|number| {
            let mut page = page(&format!("person/{number}"), html(number), &[]);
            if number == 0 {
                page.said.insert("name".into(), said.clone());
            }
            let known = known
                .iter()
                .map(|known| known.replace("NAME", NAMES[number]));
            page.known.insert("name".into(), known.collect());
            page
        })
        .collect();
    learn(&pages, &[], &task()).unwrap()
}

#[test]
fn what_a_person_says_outweighs_what_records_know() {
    let plain = learn_with(Said::default(), &["NAME L"]);
    assert_eq!(read_last(&plain)["name"], "Rosa L");
    let said = Said {
        values: vec!["Ada".into()],
        ..Said::default()
    };
    let learned = learn_with(said, &["NAME", "NAME L"]);
    assert_eq!(read_last(&learned)["name"], json!(["Rosa"]));
}

#[test]
fn a_node_that_is_pointed_at_is_the_value() {
    let said = Said {
        nodes: vec!["/html/body/p[2]".into()],
        ..Said::default()
    };
    let learned = learn_with(said, &[]);
    assert_eq!(read_last(&learned)["name"], "Lives in town 5, happily");
}

#[test]
fn a_node_that_is_pointed_at_as_wrong_is_not_chosen() {
    let said = Said {
        rejected_nodes: vec!["/html/body/h1".into()],
        ..Said::default()
    };
    let learned = learn_with(said, &["NAME", "NAME L"]);
    assert_eq!(read_last(&learned)["name"], json!(["Rosa"]));
}

#[test]
fn where_a_person_says_that_nothing_stands_nothing_is_read() {
    let said = Said {
        absent: true,
        ..Said::default()
    };
    // The heading has a value on the first page as well.
    let learned = learn_with(said, &["NAME L"]);
    assert!(learned.mappings.is_empty(), "{learned:?}");
    assert_eq!(learned.left_out.len(), 4);
}
