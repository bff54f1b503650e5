//! Tests repairs: values that were known before a site changed its pages suffice to learn new chains. If they do not,
//! the old chains stay.

use serde_json::{Value, json};
use webfill_learn::{FieldRepair, Limits, Page, repair};

use crate::made::{page, read};

/// A mapping of one field.
fn mapping_of(field: &str, multiple: bool, processors: &Value) -> Value {
    json!({
        "name": "books",
        "url_patterns": [{"type": "host", "pattern": "people.example"}],
        "fields": [{"name": field, "multiple": multiple, "processors": processors}],
    })
}

/// Repairs the only field of a mapping. Returns the result and the repaired mapping.
fn repair_field(old: &Value, pages: &[Page]) -> (FieldRepair, Value) {
    let mut repaired = repair(old, pages, &Limits::default()).unwrap();
    (repaired.fields.remove(0), repaired.mapping)
}

const ANIMALS: [&str; 12] = [
    "otter", "heron", "badger", "lynx", "stork", "marten", "plover", "hare", "vole", "shrew",
    "kite", "newt",
];

/// A page whose value is the first of several paragraphs. Pages have different numbers of paragraphs.
fn with_paragraphs(number: usize, has_own: bool) -> Page {
    let animal = ANIMALS[number % ANIMALS.len()];
    let own = format!("The {animal} is seen near the river.");
    let more: String = (0..number % 4)
        .map(|more| format!("<p>{animal}, note {more}</p>"))
        .collect();
    let section = match has_own {
        true => format!("<div><h3>Seen</h3><div class=text><p>{own}</p>{more}</div></div>"),
        false => String::new(),
    };
    let html = format!(
        "<h1>Animal {number}</h1>{section}<div><h3>Names</h3><div class=text><p>{animal}</p></div></div>"
    );
    let own = [own.as_str()];
    let known: &[&str] = if has_own { &own } else { &[] };
    page(
        &format!("animal/{number}"),
        html,
        &[("seen", known), ("name", &[animal])],
    )
}

#[test]
fn a_repair_needs_no_condition_that_right_pages_do_not_meet() {
    let gone = json!([{"type": "css", "parameters": {"selector": ".gone"}}]);
    let old = mapping_of("seen", false, &gone);
    let pages: Vec<Page> = (0..10)
        .map(|number| with_paragraphs(number, number != 6))
        .collect();
    let (seen, mapping) = repair_field(&old, &pages);
    assert!(seen.accepted, "{seen:?}");
    for (number, animal) in ANIMALS.iter().enumerate().skip(10) {
        let fields = read(&mapping, &with_paragraphs(number, true));
        assert_eq!(
            fields["seen"],
            format!("The {animal} is seen near the river.")
        );
        let fields = read(&mapping, &with_paragraphs(number, false));
        assert_eq!(fields.get("seen"), None, "{mapping}");
    }
}

/// A page with declarations, some of them longer than a line.
fn with_declarations(number: usize) -> (Page, Vec<String>) {
    let animal = ANIMALS[number % ANIMALS.len()];
    let mut all = vec![format!("int {animal}_open(const char *name, int flags)")];
    all.extend((0..number % 3).map(|more| format!("void {animal}_close_{more}(int handle)")));
    let text: String = all
        .iter()
        .map(|one| format!("{};\n", one.replace(", ", ",\n    ")))
        .collect();
    let html = format!("<h1>About {animal}</h1><div class=code><pre>{text}</pre></div><p>More</p>");
    let known: Vec<&str> = all.iter().map(String::as_str).collect();
    let page = page(
        &format!("animal/{number}"),
        html,
        &[("declarations", &known)],
    );
    (page, all)
}

#[test]
fn the_former_steps_are_used_at_the_new_place() {
    let processors = json!([
        {"type": "css", "parameters": {"selector": "blockquote pre"}},
        {"type": "split", "parameters": {"separator": ";\\s*\\n(?=\\S)|;\\s*$", "regex": true}},
        {"type": "collapse_whitespace"},
    ]);
    let old = mapping_of("declarations", true, &processors);
    let pages: Vec<Page> = (0..6).map(|number| with_declarations(number).0).collect();
    let (declarations, mapping) = repair_field(&old, &pages);
    assert!(declarations.accepted, "{declarations:?}");
    for number in 6..12 {
        let (page, all) = with_declarations(number);
        let read = &read(&mapping, &page)["declarations"];
        assert_eq!(*read, json!(all), "{mapping}");
    }
}

/// A page with a version of the manual, and perhaps a note that contains another version.
fn with_note(number: usize, note: Option<&str>, words: &str) -> Page {
    let animal = ANIMALS[number % ANIMALS.len()];
    let own = note.map(|version| {
        format!("<div class=note><span>{words} {version}</span>, of little use</div>")
    });
    let html = format!(
        "<title>{animal} - Manual 3.11.2</title><h1>{animal}</h1>{}<p>A text</p>",
        own.unwrap_or_default()
    );
    let known: Vec<&str> = note.into_iter().collect();
    page(&format!("animal/{number}"), html, &[("since", &known)])
}

fn repair_note(noted: &[usize], words: &str) -> (FieldRepair, Value) {
    let processors = json!([
        {"type": "css", "parameters": {"selector": "p.gone"}},
        {"type": "regex", "parameters": {"pattern": "Deprecated since (\\d[\\d.]*\\d)"}},
    ]);
    let old = mapping_of("since", false, &processors);
    let pages: Vec<Page> = (0..10)
        .map(|number| with_note(number, noted.contains(&number).then_some("3.11"), words))
        .collect();
    repair_field(&old, &pages)
}

#[test]
fn two_pages_are_enough_with_the_former_words_and_pages_without_a_value() {
    let (since, mapping) = repair_note(&[2, 7], "Deprecated since");
    assert!(since.accepted, "{since:?}");
    let fields = read(&mapping, &with_note(10, Some("3.9"), "Deprecated since"));
    assert_eq!(fields["since"], "3.9");
    let fields = read(&mapping, &with_note(11, None, ""));
    assert_eq!(fields.get("since"), None, "{mapping}");
}

#[test]
fn what_stands_on_pages_without_a_value_is_not_the_value() {
    // Without a fixed word, the chain would read the version of the manual on all pages, although only three pages had
    // a note.
    let (since, mapping) = repair_note(&[2, 5, 7], "");
    let fields = read(&mapping, &with_note(11, None, ""));
    assert_eq!(fields.get("since"), None, "{since:?}");
    let (since, _) = repair_note(&[2], "Deprecated since");
    assert!(!since.accepted, "{since:?}");
}

/// A page of a function, or of a program, whose synopsis is written in another way and place.
fn with_synopsis(number: usize, is_program: bool) -> (Page, String) {
    let animal = ANIMALS[number % ANIMALS.len()];
    let (synopsis, html) = match is_program {
        true => (
            format!("{animal}ctl [option]"),
            format!(
                "<div class=call><p><code>{animal}ctl</code> [option]</p></div><p>A program</p>"
            ),
        ),
        false => (
            format!("FIND {animal} IN place"),
            format!("<h2>Form</h2><pre class=form>FIND {animal} IN place</pre><p>A function</p>"),
        ),
    };
    let html = format!("<h1>About {animal}</h1>{html}<p>More about it</p>");
    let page = page(
        &format!("animal/{number}"),
        html,
        &[("synopsis", &[&synopsis])],
    );
    (page, synopsis)
}

fn repair_synopsis(programs: &[usize]) -> (FieldRepair, Value) {
    let gone = json!([{"type": "css", "parameters": {"selector": ".gone"}}]);
    let old = mapping_of("synopsis", false, &gone);
    let pages: Vec<Page> = (0..10)
        .map(|number| with_synopsis(number, programs.contains(&number)).0)
        .collect();
    repair_field(&old, &pages)
}

#[test]
fn two_kinds_of_pages_are_repaired_with_a_chain_each() {
    let (repaired, mapping) = repair_synopsis(&[1, 4, 8]);
    assert!(repaired.accepted, "{repaired:?}");
    for (number, is_program) in [(10, true), (11, false)] {
        let (page, synopsis) = with_synopsis(number, is_program);
        assert_eq!(read(&mapping, &page)["synopsis"], synopsis, "{mapping}");
    }
}

#[test]
fn two_pages_are_no_second_kind() {
    let (repaired, _) = repair_synopsis(&[1, 4]);
    assert!(!repaired.accepted, "{repaired:?}");
}
