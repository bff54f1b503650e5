//! Tests traces, as text and as JSON.

use crate::work::{ADA, Work};

#[test]
fn a_text_trace_shows_the_input_and_output_of_each_step() {
    let work = Work::new();
    work.write("ada.html", ADA);
    let traced = work.test("mappings/people.json ada.html --trace --format text");
    assert_eq!(traced.code, 0, "{}", traced.stderr);
    let expected = r#"mapping people on ada.html

field name: "Ada"
  1 xpath //h1/text()
      reads the page, 57 bytes
      finds /html/body/h1/text()  "Ada"
      gives "Ada"

field born: empty
  1 xpath //table/tr/td/text()
      reads the page, 57 bytes
      gives nothing
      matches up to //table; did you mean //table/tbody/tr/td/text()?
  empty because step 1, xpath, found nothing in the page
"#;
    assert_eq!(traced.stdout, expected);
}

#[test]
fn control_characters_from_a_page_are_replaced_in_a_trace() {
    let work = Work::new();
    work.write("bad.html", "<x\u{1b}[2J><h1>\u{1b}[2J\u{9b}2J</h1>");
    for flags in ["", " --trace"] {
        let traced = work.test(&format!(
            "mappings/people.json bad.html --format text{flags}"
        ));
        assert_eq!(traced.code, 0, "{}", traced.stderr);
        let controls = traced
            .stdout
            .chars()
            .filter(|c| c.is_control() && *c != '\n');
        assert_eq!(controls.count(), 0, "{:?}", traced.stdout);
    }
}

#[test]
fn a_pipe_gets_json_with_nodes_and_hints() {
    let work = Work::new();
    work.write("ada.html", ADA);
    let traced = work.test("mappings/people.json ada.html --trace").json();
    let step = |field: usize| &traced["fields"][field]["alternatives"][0][0];
    assert_eq!(step(0)["nodes"][0]["path"], "/html/body/h1/text()");
    assert_eq!(step(0)["output"]["shown"][0], "Ada");
    assert!(step(0).get("hint").is_none(), "{traced}");
    let hint = step(1)["hint"].as_str().unwrap();
    assert!(
        hint.starts_with("matches up to //table; did you mean"),
        "{hint}"
    );
}
