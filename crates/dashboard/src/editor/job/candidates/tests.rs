use webfill_urls::Url;

use super::*;
use crate::editor::job::PageHead;

const NAMES: [&str; 4] = ["Ada", "Bob", "Cleo", "Dora"];

fn pages() -> Vec<Page> {
    let page = |number: usize| {
        let url = Url::parse(&format!("https://people.example/person/{number}")).unwrap();
        let name = NAMES[number];
        let text = format!(
            "<html><body><nav>home</nav><h1 class=name><span>{name}</span></h1><dl><dt>Town</dt><dd>town {number}</dd><dt>Age</dt><dd>{}</dd></dl><p>of {name}</p></body></html>",
            30 + number
        );
        Page {
            head: PageHead {
                url: url.to_string(),
                content_type: None,
                ending: "html".into(),
                bytes: 0,
                known: BTreeMap::new(),
            },
            url,
            kind: PageKind::Html,
            metadata: None,
            text,
        }
    };
    (0..NAMES.len()).map(page).collect()
}

/// The number of the first element of a page with this tag and text.
fn element_number(page: &Page, tag: &str, text: &str) -> usize {
    let document = page.document();
    let mut found = document.elements_by_tag(tag);
    found.find(|node| node.text() == text).unwrap().position()
}

#[test]
fn one_click_yields_candidates_of_several_kinds_with_their_values_on_all_pages() {
    let pages = pages();
    let said = PointedField {
        right: vec![element_number(&pages[0], "h1", "Ada")],
        ..PointedField::default()
    };
    let reported = find_candidates("name", &[said], &pages).unwrap();
    let all = reported["candidates"].as_array().unwrap();
    assert!((2..=3).contains(&all.len()), "{reported:#}");
    assert_ne!(all[0]["anchor"], all[1]["anchor"]);
    let values: Vec<&str> = (0..4)
        .map(|page| all[0]["values"][page]["value"].as_str().unwrap())
        .collect();
    assert_eq!(values, NAMES);
    let span = element_number(&pages[3], "span", "Dora");
    assert_eq!(all[0]["values"][3]["elements"], json!([span]));
    assert_eq!(reported["pages"], json!([0, 1, 2, 3]));
    assert!(
        reported["url_patterns"][0]["pattern"].is_string(),
        "{reported:#}"
    );
}

#[test]
fn an_element_marked_as_wrong_removes_the_chains_that_read_it() {
    let pages = pages();
    let town = element_number(&pages[0], "dd", "town 0");
    let right = PointedField {
        right: vec![town],
        ..PointedField::default()
    };
    let wrong = PointedField {
        page: 1,
        right: vec![element_number(&pages[1], "dd", "31")],
        wrong: vec![element_number(&pages[1], "dd", "town 1")],
        ..PointedField::default()
    };
    // Without the statement `wrong`, the learned chain reads another town on the second page.
    let reported = find_candidates("town", std::slice::from_ref(&right), &pages).unwrap();
    assert_eq!(reported["candidates"][0]["values"][1]["value"], "town 1");
    let reported = find_candidates("town", &[right, wrong], &pages).unwrap();
    for candidate in reported["candidates"].as_array().unwrap() {
        assert_ne!(candidate["values"][1]["value"], "town 1", "{reported:#}");
    }
}

#[test]
fn a_section_is_not_a_value_and_the_user_is_informed() {
    let mut pages = pages();
    pages[0].text = format!("<body><div><p>{}</p><p>b</p></div>", "long ".repeat(500));
    let said = PointedField {
        right: vec![element_number(
            &pages[0],
            "div",
            &format!("{}b", "long ".repeat(500)),
        )],
        ..PointedField::default()
    };
    let reported = find_candidates("name", &[said], &pages);
    let reported = reported.map_or_else(|why| why, |reported| reported.to_string());
    assert!(
        reported.contains("point at a smaller element")
            || reported.contains("none of the known values"),
        "{reported}"
    );
}

#[test]
fn known_values_of_records_make_a_whole_mapping() {
    let mut pages = pages();
    for (number, page) in pages.iter_mut().enumerate() {
        let known = &mut page.head.known;
        known.insert("name".into(), vec![NAMES[number].into()]);
        known.insert("town".into(), vec![format!("town {number}")]);
        known.insert("Not a name".into(), vec!["x".into()]);
    }
    let learned = learn_all_fields("people", &BTreeMap::new(), &pages).unwrap();
    let fields = learned["mapping"]["fields"].as_array().unwrap();
    let names: Vec<&str> = fields
        .iter()
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["name", "town"]);
}
