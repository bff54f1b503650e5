//! What the learner makes of pages that were written for it, judged by the engine of the crawl.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use webfill_learn::{LearnError, Learned, Limits, Page, Said, Task, learn, repair};
use webfill_mapping::{Engine, MappingSet, PageInput, PageKind, Source, Wants};
use webfill_urls::Url;

const NAMES: [&str; 6] = ["Ada", "Mary", "Grace", "Emmy", "Hedy", "Rosa"];

fn page(path: &str, text: String, known: &[(&str, &[&str])]) -> Page {
    let known = known.iter().map(|(field, values)| {
        (
            (*field).to_owned(),
            values.iter().map(|value| (*value).to_owned()).collect(),
        )
    });
    Page {
        url: Url::parse(&format!("https://people.example/{path}")).unwrap(),
        kind: PageKind::Html,
        text,
        record: None,
        known: known.collect(),
        said: BTreeMap::new(),
    }
}

fn task() -> Task {
    Task {
        name: "people".into(),
        fields: Vec::new(),
        limits: Limits::default(),
    }
}

fn html(number: usize) -> String {
    let name = NAMES[number];
    format!(
        "<title>{name} - People</title><h1>{name} L</h1><p>Welcome</p><table>\
         <tr><th>Born:</th><td>{}</td></tr><tr><th>Paid:</th><td>${},500.00</td></tr></table>\
         <p class=note>Lives in town {number}, happily</p>\
         <ul class=works><li>Work {number}a</li><li>Work {number}b</li></ul>",
        1800 + number,
        number + 1
    )
}

fn read(mapping: &Value, page: &Page) -> serde_json::Map<String, Value> {
    let source = Source {
        name: "learned".into(),
        text: mapping.to_string(),
    };
    let set = Arc::new(MappingSet::from_sources(vec![source]).unwrap());
    let engine = Engine::new(set, webfill_mapping::Limits::default());
    let input = PageInput {
        url: &page.url,
        kind: page.kind,
        text: &page.text,
    };
    engine.extract(input, Wants::default()).unwrap().fields
}

/// Learns from the first pages and reads the last one.
fn read_last(learned: &Learned) -> serde_json::Map<String, Value> {
    assert_eq!(learned.mappings.len(), 1, "{learned:?}");
    read(
        &learned.mappings[0].mapping,
        &page("person/5", html(5), &[]),
    )
}

fn learn_from(known: impl Fn(usize) -> Vec<(&'static str, Vec<String>)>) -> Learned {
    let pages: Vec<Page> = (0..5)
        .map(|number| {
            let mut page = page(&format!("person/{number}"), html(number), &[]);
            page.known = known(number)
                .into_iter()
                .map(|(field, values)| (field.to_owned(), values))
                .collect();
            page
        })
        .collect();
    learn(
        &pages,
        &[Url::parse("https://people.example/about").unwrap()],
        &task(),
    )
    .unwrap()
}

#[test]
fn a_labelled_cell_a_number_a_part_of_a_text_and_a_list_are_learned() {
    let learned = learn_from(|number| {
        vec![
            ("born", vec![(1800 + number).to_string()]),
            ("paid", vec![format!("{}500", number + 1)]),
            ("town", vec![format!("town {number}")]),
            (
                "works",
                vec![format!("Work {number}a"), format!("Work {number}b")],
            ),
        ]
    });
    let fields = read_last(&learned);
    assert_eq!(fields["born"], "1805");
    assert_eq!(fields["paid"].as_f64(), Some(6500.0));
    assert_eq!(fields["town"], "town 5");
    assert_eq!(fields["works"], json!(["Work 5a", "Work 5b"]));
    assert!(
        !learned.mappings[0].draft,
        "{:?}",
        learned.mappings[0].fields
    );
}

#[test]
fn a_wrong_record_does_not_mislead() {
    let learned = learn_from(|number| {
        let born = if number == 2 { 1801 } else { 1800 + number };
        vec![("born", vec![born.to_string()])]
    });
    assert_eq!(read_last(&learned)["born"], "1805");
    let field = &learned.mappings[0].fields[0];
    assert_eq!(field.disagree.len(), 1);
    assert_eq!(field.disagree[0].known, ["1801"]);
    assert!(field.confidence < 0.9 && learned.mappings[0].draft);
}

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

#[test]
fn patterns_match_pages_of_the_kind_and_no_others() {
    let learned = learn_from(|number| vec![("born", vec![(1800 + number).to_string()])]);
    let mapping = &learned.mappings[0].mapping;
    let about = page("about", html(5), &[]);
    assert!(read(mapping, &about).is_empty(), "{mapping}");
    assert!(
        !read(mapping, &page("person/77", html(5), &[])).is_empty(),
        "{mapping}"
    );
}

#[test]
fn linked_data_is_read_and_a_value_is_no_anchor() {
    let text = |number: usize| {
        format!(
            "<h1 title='{0}'>x</h1><script type='application/ld+json'>{{\"@type\":\"Person\",\"name\":\"{0}\"}}</script>",
            NAMES[number]
        )
    };
    let pages: Vec<Page> = (0..4)
        .map(|number| {
            page(
                &format!("person/{number}"),
                text(number),
                &[("name", &[NAMES[number]])],
            )
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let mapping = &learned.mappings[0].mapping;
    assert_eq!(
        read(mapping, &page("person/5", text(5), &[]))["name"],
        "Rosa"
    );
    assert!(
        NAMES.iter().all(|name| !mapping.to_string().contains(name)),
        "{mapping}"
    );
}

#[test]
fn a_value_behind_a_link_is_reached_by_a_link_to_follow() {
    let mut pages = Vec::new();
    for (number, name) in NAMES.iter().enumerate().take(5) {
        let front = format!(
            "<h1>{name}</h1><ul><li><a href='/about'>About</a><li><a href='../life/{number}'>Life</a>\
             <li><a href='/person/{}'>Next</a></ul>",
            number + 1
        );
        let life = format!(
            "<table><tr><td>Born:</td><td>{}</td></tr><tr><td>x</td></tr></table><p>y</p><dl><dd>z</dl>",
            1800 + number
        );
        let born = (1800 + number).to_string();
        let known: &[(&str, &[&str])] = &[("name", &[name]), ("born", &[&born])];
        for (path, text) in [("person", front), ("life", life)] {
            let mut page = page(&format!("{path}/{number}"), text, known);
            page.record = Some(format!("r{number}"));
            pages.push(page);
        }
    }
    let learned = learn(&pages, &[], &task()).unwrap();
    assert_eq!(learned.mappings.len(), 2, "{learned:?}");
    let source = Source {
        name: "learned".into(),
        text: learned.mappings[0].mapping.to_string(),
    };
    let set = Arc::new(MappingSet::from_sources(vec![source]).unwrap());
    let engine = Engine::new(set, webfill_mapping::Limits::default());
    let text = "<h1>Rosa</h1><ul><li><a href='/about'>About</a><li><a href='/x'>New</a>\
                <li><a href='../life/9'>Life</a></ul>";
    let url = Url::parse("https://people.example/person/9").unwrap();
    let input = PageInput {
        url: &url,
        kind: PageKind::Html,
        text,
    };
    let extraction = engine
        .extract(
            input,
            Wants {
                mapped_links: true,
                ..Wants::default()
            },
        )
        .unwrap();
    let links: Vec<String> = extraction
        .links
        .iter()
        .map(|link| link.to_string())
        .collect();
    assert_eq!(
        links,
        ["https://people.example/life/9"],
        "{:?}",
        learned.mappings[0].mapping
    );
    let life = &learned.mappings[1].mapping;
    assert!(
        life.get("url_parsers").is_none(),
        "nothing is missing there but the name: {life}"
    );
}

#[test]
fn a_broken_field_is_repaired_and_a_sound_one_is_left() {
    let old = json!({"name": "people", "url_patterns": [{"type": "host", "pattern": "people.example"}], "fields": [
        {"name": "born", "description": "kept", "processors": [{"type": "css", "parameters": {"selector": ".gone"}}]},
        {"name": "title", "processors": [{"type": "xpath", "parameters": {"expression": "//h1"}}]}
    ]});
    let pages: Vec<Page> = (0..5)
        .map(|number| {
            let (born, title) = ((1800 + number).to_string(), format!("{} L", NAMES[number]));
            page(
                &format!("person/{number}"),
                html(number),
                &[("born", &[&born]), ("title", &[&title])],
            )
        })
        .collect();
    let repaired = repair(&old, &pages, &Limits::default()).unwrap();
    assert!(repaired.fields[0].accepted, "{repaired:?}");
    assert!(!repaired.fields[1].broken);
    assert_eq!(repaired.mapping["fields"][1], old["fields"][1]);
    assert_eq!(repaired.mapping["fields"][0]["description"], "kept");
    assert_eq!(
        read(&repaired.mapping, &page("person/5", html(5), &[]))["born"],
        "1805"
    );
}

#[test]
fn a_list_that_is_repaired_stays_a_list() {
    let old = json!({"name": "people", "url_patterns": [{"type": "host", "pattern": "people.example"}], "fields": [
        {"name": "works", "multiple": true, "processors": [{"type": "css", "parameters": {"selector": ".gone"}}]}
    ]});
    let html = |number: usize, works: usize| {
        let works: String = (0..works)
            .map(|work| format!("<li>Work {number}{work}</li>"))
            .collect();
        format!(
            "<h1>{}</h1><p>Seen</p><ul class=works>{works}</ul>",
            NAMES[number]
        )
    };
    let pages: Vec<Page> = (0..5)
        .map(|number| {
            let work = format!("Work {number}0");
            page(
                &format!("person/{number}"),
                html(number, 1),
                &[("works", &[&work])],
            )
        })
        .collect();
    let repaired = repair(&old, &pages, &Limits::default()).unwrap();
    assert!(repaired.fields[0].accepted, "{repaired:?}");
    assert_eq!(repaired.mapping["fields"][0]["multiple"], true);
    let fields = read(&repaired.mapping, &page("person/5", html(5, 3), &[]));
    assert_eq!(
        fields["works"].as_array().map(Vec::len),
        Some(3),
        "{}",
        repaired.mapping
    );
}

#[test]
fn a_repair_that_is_not_sure_is_refused() {
    let old = json!({"name": "people", "url_patterns": [{"type": "host", "pattern": "people.example"}], "fields": [
        {"name": "born", "processors": [{"type": "css", "parameters": {"selector": ".gone"}}]}
    ]});
    let pages: Vec<Page> = (0..5)
        .map(|number| {
            page(
                &format!("person/{number}"),
                html(number),
                &[("born", &[["1800", "1809", "x9", "77", "1"][number]])],
            )
        })
        .collect();
    let repaired = repair(&old, &pages, &Limits::default()).unwrap();
    assert!(!repaired.fields[0].accepted, "{repaired:?}");
    assert_eq!(repaired.mapping, old);
}

#[test]
fn hostile_pages_do_no_harm() {
    let deep = "<div>".repeat(200_000) + "Ada";
    let equal = "<b>Ada</b>".repeat(1_000_000);
    let long = "x ".repeat(5 << 20) + "Ada";
    for (number, text) in [deep, equal, long].into_iter().enumerate() {
        let pages = [page(
            &format!("person/{number}"),
            text,
            &[("name", &["Ada"])],
        )];
        learn(&pages, &[], &task()).unwrap();
    }
}

#[test]
fn the_same_input_gives_the_same_mapping() {
    let one = learn_from(|number| vec![("born", vec![(1800 + number).to_string()])]);
    let other = learn_from(|number| vec![("born", vec![(1800 + number).to_string()])]);
    assert_eq!(one.mappings[0].mapping, other.mappings[0].mapping);
}

#[test]
fn without_pages_or_knowledge_it_says_so() {
    assert_eq!(learn(&[], &[], &task()).unwrap_err(), LearnError::NoPages);
    let nothing = [page("person/1", html(1), &[])];
    assert_eq!(
        learn(&nothing, &[], &task()).unwrap_err(),
        LearnError::NothingKnown
    );
}
