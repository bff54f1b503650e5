//! Tests the learner on pages that were written for it. The engine of the crawl judges the learned mappings.

use std::sync::Arc;

use serde_json::json;
use webfill_learn::{LearnError, Learned, Limits, Page, learn, repair};
use webfill_mapping::{Engine, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

use crate::made::{NAMES, html, page, read, read_last, task};

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
fn misspelt_records_confirm_what_is_read_instead_of_them() {
    let towns = ["town 0", "twon 1", "tonw 2", "town 3x"];
    let learned = learn_from(|number| match towns.get(number) {
        Some(town) => vec![("town", vec![(*town).to_owned()])],
        None => Vec::new(),
    });
    assert_eq!(read_last(&learned)["town"], "town 5");
    let field = &learned.mappings[0].fields[0];
    assert_eq!((field.disagree.len(), field.doubted.len()), (0, 3));
    let read: Vec<bool> = field.without_page.iter().map(|(_, read)| *read).collect();
    assert_eq!(read, [true, true, true], "{field:?}");
}

#[test]
fn a_misspelt_record_is_no_other_value_of_a_constant_field() {
    let learned = learn_from(|number| {
        let given = if number == 3 { "Wlecome" } else { "Welcome" };
        vec![("kind", vec![given.to_owned()])]
    });
    assert_eq!(read_last(&learned)["kind"], "Welcome");
}

#[test]
fn different_slips_are_no_other_values_of_a_constant_field() {
    let learned = learn_from(|number| {
        let given = match number {
            0 => "Wlecome",
            3 => "Welcoem",
            _ => "Welcome",
        };
        vec![("kind", vec![given.to_owned()])]
    });
    assert_eq!(read_last(&learned)["kind"], "Welcome");
}

#[test]
fn a_wrong_record_is_no_other_value_of_a_constant_field() {
    let learned = learn_from(|number| {
        let given = if number == 2 { "Farewell" } else { "Welcome" };
        vec![("kind", vec![given.to_owned()])]
    });
    assert_eq!(read_last(&learned)["kind"], "Welcome");
    // A known value that is wrong but on its page shows that the field differs between pages.
    let learned = learn_from(|number| {
        let given = if number == 2 { "town 2" } else { "Welcome" };
        vec![("kind", vec![given.to_owned()])]
    });
    let mut fields = learned.mappings.iter().flat_map(|one| &one.fields);
    assert!(
        fields.all(|field| field.processors.is_none()),
        "{learned:?}"
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
    assert_eq!((field.disagree.len(), field.doubted.len()), (0, 1));
    assert_eq!(field.doubted[0].known, ["1801"]);
    assert!(field.confidence >= 0.9 && !learned.mappings[0].draft);
}

#[test]
fn a_value_of_several_pages_is_read_although_all_pages_link_to_it() {
    // Five makers are known. The other three pages have the same one.
    let makers = [
        "Ada", "Mary", "Grace", "Emmy", "Rosa", "Hedy", "Hedy", "Hedy",
    ];
    let html = |number: usize| {
        format!(
            "<h1>{}</h1><p>Price: {}</p><ul class=related><li><a href=/a>Hedy</a></li></ul>",
            makers[number],
            number * 13
        )
    };
    let pages: Vec<Page> = (0..8)
        .map(|number| {
            let known = [("maker", &makers[number..=number])];
            let known = if number < 5 { &known[..] } else { &[] };
            page(&format!("thing/{number}"), html(number), known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let fields = read(&learned.mappings[0].mapping, &page("thing/9", html(7), &[]));
    assert_eq!(fields["maker"], "Hedy", "{learned:?}");
}

#[test]
fn two_fields_with_different_values_have_places_of_their_own() {
    let text = |number: usize| {
        format!(
            "<dl><dt>Maker:</dt><dd>{}</dd></dl><p>{}</p>",
            NAMES[number],
            if number == 0 { "Ada" } else { "Other" }
        )
    };
    let pages: Vec<Page> = (0..4)
        .map(|number| {
            let (maker, owner) = (NAMES[number], format!("owner {number}"));
            let owner = if number == 1 { "Mary" } else { &owner };
            page(
                &format!("thing/{number}"),
                text(number),
                &[("maker", &[maker]), ("owner", &[owner])],
            )
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let fields = read(&learned.mappings[0].mapping, &page("thing/5", text(5), &[]));
    assert_eq!(fields["maker"], "Rosa");
    assert_eq!(
        fields.get("owner"),
        None,
        "{:?}",
        learned.mappings[0].fields
    );
}

#[test]
fn a_wrong_record_does_not_part_two_fields_with_the_same_values() {
    let pages: Vec<Page> = (0..6)
        .map(|number| {
            let text = format!("<dl><dt>Maker:</dt><dd>{}</dd></dl>", NAMES[number]);
            let name = NAMES[number];
            let seller = if number == 2 { "Nobody" } else { name };
            let known: &[(&str, &[&str])] = &[("maker", &[name]), ("seller", &[seller])];
            page(&format!("thing/{number}"), text, known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let text = String::from("<dl><dt>Maker:</dt><dd>Someone</dd></dl>");
    let fields = read(&learned.mappings[0].mapping, &page("thing/9", text, &[]));
    assert_eq!(fields["maker"], "Someone");
    assert_eq!(fields["seller"], "Someone");
}

#[test]
fn a_disagreement_shows_values_as_they_are_written() {
    let learned = learn_from(|number| {
        let name = if number == 2 {
            "Alan TURING".into()
        } else {
            format!("{} L", NAMES[number])
        };
        vec![("name", vec![name])]
    });
    let doubted = &learned.mappings[0].fields[0].doubted;
    assert_eq!(doubted[0].known, ["Alan TURING"]);
    assert_eq!(doubted[0].read, ["Grace L"]);
}

#[test]
fn a_label_with_a_no_break_space_is_found() {
    let text = |number: usize| {
        let row = format!("<tr><td>Born&nbsp;in:</td><td>{}</td></tr>", 1800 + number);
        let other = "<tr><td>Kind:</td><td>x</td></tr>".repeat(number % 3);
        format!("<table>{other}{row}</table>")
    };
    let pages: Vec<Page> = (0..5)
        .map(|number| {
            let born = (1800 + number).to_string();
            page(
                &format!("person/{number}"),
                text(number),
                &[("born", &[&born])],
            )
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let fields = read(
        &learned.mappings[0].mapping,
        &page("person/5", text(5), &[]),
    );
    assert_eq!(fields["born"], "1805");
    assert_eq!(
        learned.mappings[0].fields[0].anchor.as_deref(),
        Some("label")
    );
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
            RequestedParts {
                mapped_links: true,
                ..RequestedParts::default()
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

/// The URLs of pages where a field may be read wrongly.
fn disputed_pages(learned: &Learned, field: &str) -> Vec<String> {
    let mut fields = learned.mappings[0].fields.iter();
    let field = fields.find(|one| one.field == field).unwrap();
    assert!(field.processors.is_some(), "{}", field.why);
    field.disputed.clone()
}

#[test]
fn a_page_with_several_values_where_known_ones_stand_alone_is_disputed() {
    let html = |number: usize, more: &str| {
        let name = NAMES[number];
        format!("<h1>Thing {number}</h1><p><b class=maker>{name}</b>{more}</p>")
    };
    let learn_from = |more: &[&str; 6]| {
        let pages = (0..6).map(|number| {
            let known: &[&str] = &NAMES[number..number + usize::from(number < 3)];
            let path = format!("thing/{number}");
            page(&path, html(number, more[number]), &[("maker", known)])
        });
        let pages: Vec<Page> = pages.collect();
        disputed_pages(&learn(&pages, &[], &task()).unwrap(), "maker")
    };
    assert!(learn_from(&["", "", "", "", "", ""]).is_empty());
    let other = " <b class=maker>Someone</b>";
    let found = learn_from(&["", "", "", "", other, ""]);
    assert_eq!(found, ["https://people.example/thing/4"]);
    // If pages with known values have several values too, the first one is right, so no page is disputed.
    assert!(learn_from(&["", other, "", "", other, ""]).is_empty());
}

#[test]
fn on_a_site_of_few_pages_a_chain_of_another_kind_disputes_a_value() {
    let learn_from = |pages: usize, names: &[&str]| {
        let pages = (0..pages).map(|number| {
            let name = NAMES[number];
            let title = names.get(number).copied().unwrap_or(name);
            let text = format!("<meta property='og:title' content='{title}'><h1>{name}</h1>");
            let known: &[&str] = &NAMES[number..number + usize::from(number < 1)];
            page(&format!("thing/{number}"), text, &[("name", known)])
        });
        let pages: Vec<Page> = pages.collect();
        disputed_pages(&learn(&pages, &[], &task()).unwrap(), "name")
    };
    assert!(learn_from(3, &[]).is_empty());
    let found = learn_from(3, &[NAMES[0], "Mary the First"]);
    assert_eq!(found, ["https://people.example/thing/1"]);
    // With six pages, it can be measured how far chains agree, so no page is disputed.
    assert!(learn_from(6, &[NAMES[0], "Mary the First"]).is_empty());
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
