//! Tests that a person's statements about a page count as true.

use serde_json::json;
use webfill_learn::{FieldStatement, Learned, Page, learn};

use crate::made::{NAMES, html, page, read, read_last, task};

#[test]
fn what_a_person_rejects_is_not_chosen() {
    let pages: Vec<Page> = (0..4)
        .map(|number| {
            let mut page = page(&format!("person/{number}"), html(number), &[]);
            let said = FieldStatement {
                rejected: vec![format!("{} L", NAMES[number])],
                ..FieldStatement::default()
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

/// Learns the field `name` from a person's statement about the first page, and from a record's value for each page.
fn learn_with(said: FieldStatement, known: &[&str]) -> Learned {
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
    let plain = learn_with(FieldStatement::default(), &["NAME L"]);
    assert_eq!(read_last(&plain)["name"], "Rosa L");
    let said = FieldStatement {
        values: vec!["Ada".into()],
        ..FieldStatement::default()
    };
    let learned = learn_with(said, &["NAME", "NAME L"]);
    assert_eq!(read_last(&learned)["name"], json!(["Rosa"]));
}

#[test]
fn a_node_that_is_pointed_at_is_the_value() {
    let said = FieldStatement {
        nodes: vec!["/html/body/p[2]".into()],
        ..FieldStatement::default()
    };
    let learned = learn_with(said, &[]);
    assert_eq!(read_last(&learned)["name"], "Lives in town 5, happily");
}

#[test]
fn a_node_that_is_pointed_at_as_wrong_is_not_chosen() {
    let said = FieldStatement {
        rejected_nodes: vec!["/html/body/h1".into()],
        ..FieldStatement::default()
    };
    let learned = learn_with(said, &["NAME", "NAME L"]);
    assert_eq!(read_last(&learned)["name"], json!(["Rosa"]));
}

#[test]
fn an_image_that_is_pointed_at_stands_for_its_address() {
    let pages: Vec<Page> = (0..4)
        .map(|number| {
            let picture = format!(
                "<img alt=\"{}\" src=\"/pictures/{number}.png\">",
                NAMES[number]
            );
            let html = html(number).replace("</h1>", &format!("</h1>{picture}"));
            let mut page = page(&format!("person/{number}"), html, &[]);
            if number < 2 {
                let said = FieldStatement {
                    nodes: vec!["/html/body/img".into()],
                    ..FieldStatement::default()
                };
                page.said.insert("picture".into(), said);
            }
            page
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let read = read(&learned.mappings[0].mapping, &pages[3]);
    assert_eq!(read["picture"], "/pictures/3.png");
}

#[test]
fn where_a_person_says_that_nothing_stands_nothing_is_read() {
    let said = FieldStatement {
        absent: true,
        ..FieldStatement::default()
    };
    // The known value of the first page is its heading, but a person has said that the heading is not the value.
    let learned = learn_with(said, &["NAME L"]);
    assert!(learned.mappings.is_empty(), "{learned:?}");
    assert_eq!(learned.left_out.len(), 4);
}

/// Learning as the mapping editor uses it: pages in memory, and nodes that a person pointed at. No values are known.
mod pointed {
    use super::*;

    fn add_pointed_nodes(page: &mut Page, field: &str, nodes: &[&str]) {
        let said = FieldStatement {
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            ..FieldStatement::default()
        };
        page.said.insert(field.into(), said);
    }

    fn pages() -> Vec<Page> {
        let page = |number| page(&format!("person/{number}"), html(number), &[]);
        (0..5).map(page).collect()
    }

    #[test]
    fn one_page_is_enough_for_several_fields_and_lists() {
        let mut pages = pages();
        add_pointed_nodes(&mut pages[2], "name", &["/html/body/h1"]);
        add_pointed_nodes(&mut pages[2], "born", &["/html/body/table/tbody/tr[1]/td"]);
        let works = ["/html/body/ul/li[1]", "/html/body/ul/li[2]"];
        add_pointed_nodes(&mut pages[2], "works", &works);
        let learned = learn(&pages, &[], &task()).unwrap();
        let fields = read_last(&learned);
        assert_eq!(fields["name"], "Rosa L");
        assert_eq!(fields["born"], "1805");
        assert_eq!(fields["works"], json!(["Work 5a", "Work 5b"]));
        assert!(learned.mappings[0].draft, "one page says little");
        // The mapping editor asks the person to choose among these candidates.
        let reported = &learned.mappings[0].fields;
        assert!(
            reported.iter().all(|field| !field.candidates.is_empty()),
            "{reported:?}"
        );
    }

    #[test]
    fn a_text_an_attribute_and_an_element_can_be_pointed_at() {
        let text = |number: usize| {
            format!(
                "<p class=a>Born <b>x</b> in {number}0</p><img src='/{number}.png' alt='Face {number}'>\
                 <div class=whole>A <i>slanted</i> {number}</div>"
            )
        };
        let mut pages: Vec<Page> = (0..4)
            .map(|number| page(&format!("person/{number}"), text(number), &[]))
            .collect();
        add_pointed_nodes(&mut pages[0], "born", &["/html/body/p/text()[2]"]);
        add_pointed_nodes(&mut pages[0], "face", &["/html/body/img/@src"]);
        add_pointed_nodes(&mut pages[0], "whole", &["/html/body/div"]);
        let learned = learn(&pages, &[], &task()).unwrap();
        let last = page("person/5", text(5), &[]);
        let fields = crate::made::read(&learned.mappings[0].mapping, &last);
        assert_eq!(fields["born"], "in 50");
        assert_eq!(fields["face"], "/5.png");
        assert_eq!(fields["whole"], "A slanted 5");
    }

    #[test]
    fn a_correction_of_one_page_changes_the_choice() {
        let mut pages = pages();
        add_pointed_nodes(&mut pages[0], "name", &["/html/head/title"]);
        let title = read_last(&learn(&pages, &[], &task()).unwrap());
        assert_eq!(title["name"], "Rosa - People");
        let said = FieldStatement {
            nodes: vec!["/html/body/h1".into()],
            rejected_nodes: vec!["/html/head/title".into()],
            ..FieldStatement::default()
        };
        pages[0].said.insert("name".into(), said);
        let heading = read_last(&learn(&pages, &[], &task()).unwrap());
        assert_eq!(heading["name"], "Rosa L");
    }

    #[test]
    fn what_points_nowhere_is_no_knowledge_and_does_no_harm() {
        for node in [
            "/html/body/h7",
            "",
            "//[",
            "count(//p)",
            "/html/body/p/text()[99]",
            "/html/head/title/@lang",
            "id(id(id('x')))",
        ] {
            let mut pages = pages();
            add_pointed_nodes(&mut pages[1], "name", &[node]);
            let learned = learn(&pages, &[], &task()).unwrap();
            assert!(learned.mappings.is_empty(), "{node}: {learned:?}");
            assert_eq!(learned.left_out.len(), 5, "{node}");
        }
        let mut pages = pages();
        // At most a hundred nodes of a page are used, so more of them do not slow learning down.
        add_pointed_nodes(&mut pages[1], "name", &vec!["//*"; 10_000]);
        assert!(learn(&pages, &[], &task()).is_ok());
    }
}
