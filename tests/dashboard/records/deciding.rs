//! Tests decisions about records, in a real Chromium and by plain requests. The results are checked in the store, in
//! the audit log, and by the effects on the next crawl.

use serde_json::json;
use webfill_test_browser::Browser;
use webfill_test_needs::needs;

use super::{GRID, Records, cell_class, crawl_people};
use crate::http::percent_encode;
use crate::looks::check_on_all_screens;

/// Answers the doubt about a cell by its form. Returns the page of the cell with its new state.
fn submit_decision(records: &Records, id: &str, field: &str, answer: &[(&str, &str)]) -> String {
    let path = format!(
        "/dashboard/record/people/{}/cell?field={}",
        percent_encode(id),
        percent_encode(field)
    );
    let shown = records.visitor.get(&path);
    let (_, version) = shown.body.split_once("name=\"version\" value=\"").unwrap();
    let version = version.split('"').next().unwrap();
    let token = shown.form_token();
    let own = [("token", &*token), ("field", field), ("version", version)];
    let posted = records.visitor.post(&path, &[&own[..], answer].concat());
    assert_eq!(posted.status, 303, "{}", posted.body);
    records.get(&path)
}

pub(super) fn check_decisions(records: &Records) {
    // Answers that accept, replace or reject a value are kept when the same input is crawled again.
    let other = submit_decision(
        records,
        "b-other",
        "name",
        &[("answer", "accept"), ("candidate", "0")],
    );
    assert!(other.contains("data-answer=\"accepted\""), "{other}");
    assert!(other.contains("data-current=\"Grace Hopper\""), "{other}");
    submit_decision(
        records,
        "c-lost",
        "name",
        &[("answer", "edit"), ("value", "By hand")],
    );
    submit_decision(records, "a-filled", "location", &[("answer", "reject")]);
    submit_decision(records, "g-wrong", "name", &[("answer", "accept")]);
    submit_decision(records, "a-filled", "name", &[("answer", "reject")]);
    let undone = submit_decision(records, "a-filled", "name", &[("answer", "undo")]);
    assert!(undone.contains("data-current=\"Ada Lovelace\""), "{undone}");
    let audit = records.audit_log();
    let answers: Vec<&str> = audit
        .iter()
        .filter_map(|line| line["answer"].as_str())
        .collect();
    assert_eq!(
        answers,
        ["accept", "edit", "reject", "accept", "reject", "undo"]
    );
    assert!(
        audit
            .iter()
            .all(|line| line["action"] == "record_review" && line["result"] == "done")
    );
    assert_eq!(audit[1]["value"], "By hand");
    crawl_people(&records.fleet, "second");
    let stored = |id: &str| records.exported_record(id);
    assert_eq!(stored("b-other")["fields"]["name"], "Grace Hopper");
    assert_eq!(
        stored("b-other")["sources"]["name"]["url"],
        "http://people.example/grace"
    );
    assert_eq!(stored("c-lost")["fields"]["name"], "By hand");
    assert_eq!(
        stored("a-filled")["fields"],
        json!({"name": "Ada Lovelace", "location": null})
    );
    assert_eq!(stored("a-filled")["missing"], json!(["location"]));
    assert_eq!(stored("g-wrong")["fields"]["name"], "Ada Lovelace");
    let body = records.get(GRID);
    assert_eq!(cell_class(&body, "a-filled", "location"), "refused");
    assert_eq!(cell_class(&body, "b-other", "name"), "filled");
}

#[test]
fn decisions_about_records_are_kept_audited_and_outlive_the_next_crawl() {
    let records = Records::new(None);
    check_decisions(&records);
    // An answer to a form that shows an outdated record has no effect.
    let path = "/dashboard/record/people/b-other/cell?field=name";
    let token = records.visitor.get(path).form_token();
    let stale = [
        ("token", &*token),
        ("field", "name"),
        ("version", "0"),
        ("answer", "reject"),
    ];
    let before = records.exported_record("b-other");
    assert_eq!(records.visitor.post(path, &stale).status, 303);
    let forged = [("field", "name"), ("version", "0"), ("answer", "reject")];
    assert_eq!(records.visitor.post(path, &forged).status, 403);
    assert_eq!(records.exported_record("b-other"), before);
    records.finish();
}

#[needs(chromedriver, axe)]
#[test]
fn cells_of_records_show_their_evidence_and_are_decided_by_keys_alone() {
    let [down, right, enter, escape] = ['\u{e015}', '\u{e014}', '\u{e007}', '\u{e00c}'];
    let records = Records::new(None);
    let url = |path: &str| format!("http://{}{path}", records.visitor.place);
    let browser = Browser::start();
    browser.set_time_zone("Europe/Berlin");
    browser.set_size(1440, 900);
    browser.open(&url(GRID));
    browser.wait_for("td[tabindex='0']");
    let was_run = browser.run_script("return window.wasRun === undefined", json!([]));
    assert_eq!(was_run, true, "what a record says was taken for markup");
    let focused = || browser.run_script("return document.activeElement.id", json!([]));
    let text = |selector: &str| browser.text_at(selector).unwrap_or_default();
    let place_of = |id: &str, column: &str| -> String {
        let script = "const heads = [...document.querySelectorAll('[role=columnheader]')].map(one => one.innerText.trim());
            const row = [...document.querySelectorAll('[role=grid] tbody tr')].find(row => row.cells[0].title === arguments[0]);
            return row.cells[heads.indexOf(arguments[1])].id";
        let id = browser.run_script(script, json!([id, column]));
        id.as_str().unwrap().to_owned()
    };
    // Arrow keys move the focus, and Enter opens a cell. The opened page marks the evidence in the stored copy of the
    // page.
    browser.run_script(
        "document.querySelector(\"td[tabindex='0']\").focus()",
        json!([]),
    );
    let first = focused();
    browser.press(&[right, down]);
    assert_ne!(focused(), first);
    let goto = |id: &str, column: &str| {
        let cell = place_of(id, column);
        browser.run_script(
            "document.getElementById(arguments[0]).focus()",
            json!([cell]),
        );
        browser.press(&[enter]);
        browser.wait_for("#pane:not([aria-busy]) #evidence");
        cell
    };
    let filled = goto("a-filled", "name");
    assert_eq!(text("#pane mark"), "Ada Lovelace");
    assert!(text("#pane").contains("http://people.example/ada"));
    check_on_all_screens(&browser, "records-evidence");
    browser.set_size(1440, 900);
    browser.press(&['a']);
    browser.wait_for(&format!("#{filled}.a-accepted"));
    assert_eq!(
        records.exported_record("a-filled")["decisions"]["name"]["answer"],
        "accepted"
    );
    browser.press(&['u']);
    browser.wait_for(&format!("#{filled}:not(.a-accepted)"));
    // The key `n` moves to the next doubt, which is then decided.
    browser.press(&['n']);
    let other = place_of("b-other", "name");
    assert_eq!(focused(), json!(other));
    browser.wait_until("the pane follows", || {
        text("#pane").contains("Grace Hopper").then_some(())
    });
    browser.press(&['r']);
    browser.wait_for(&format!("#{other}.a-rejected.c-conflicting"));
    assert_eq!(focused(), json!(other));
    let typed = goto("c-lost", "location");
    browser.press(&['e']);
    browser.press(&"Typed <b>".chars().collect::<Vec<_>>());
    browser.press(&[enter]);
    browser.wait_for(&format!("#{typed}.a-edited.c-filled"));
    assert!(text(&format!("#{typed}")).contains("Typed <b>"));
    browser.press(&[escape]);
    assert!(browser.find("#pane[hidden]").is_some());
    assert_eq!(
        records.exported_record("c-lost")["fields"]["location"],
        "Typed <b>"
    );
    assert!(
        browser.take_console().is_empty(),
        "{:?}",
        browser.take_console()
    );
    check_on_all_screens(&browser, "records-grid");
    // Each cell also has its own page, which works without the grid.
    browser.open(&url("/dashboard/record/people/b-other/cell?field=name"));
    check_on_all_screens(&browser, "record-cell");
    records.finish();
}
