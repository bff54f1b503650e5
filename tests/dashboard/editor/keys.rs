//! Tests that a mapping can be edited by keys alone. After each action in the form or in the copy of the page, the
//! focus must be in a useful place.

use serde_json::{Value, json};
use webfill_test_browser::{Browser, CONTROL, DOWN, ENTER, ESCAPE, Keyboard};
use webfill_test_needs::needs;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::bench::{Bench, heading_mapping};

const PAGE: &str = "<html><body><h1>Ada</h1><dl><dt>Town</dt><dd>London</dd><dt>Born</dt><dd>10 <b>December</b> 1815</dd>\
                    <dt>Second town</dt><dd>Ockham</dd></dl></body></html>";

/// Starts a browser and a draft of a mapping with one field and one page, and passes them to `use_it`.
fn with_draft(use_it: impl FnOnce(&Bench, &str, &Browser)) {
    let (work, web) = (Workplace::new(), Web::start());
    std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
    work.write_json(
        "mappings/people.json",
        &heading_mapping("people", "people.example"),
    );
    let bench = Bench::start(&work, &web, &[]);
    let draft = bench.begin_draft("people", "");
    assert_eq!(bench.upload(&draft, "ada.html", PAGE).status, 200);
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&bench.url(&draft));
    browser.wait_for("#editor fieldset");
    use_it(&bench, &draft, &browser);
    assert_eq!(browser.take_console(), Vec::<String>::new());
}

fn wait_for_mapping(bench: &Bench, draft: &str, browser: &Browser, pointer: &str, wanted: &Value) {
    browser.wait_until(pointer, || {
        let state = bench.state(draft);
        let now = state["draft"]["mapping"].pointer(pointer).cloned();
        (now.unwrap_or_default() == *wanted).then_some(())
    });
}

#[needs(chromedriver)]
#[test]
fn steps_are_added_and_removed_by_keys_without_losing_the_place() {
    with_draft(|bench, draft, browser| {
        let by = Keyboard::new(browser);
        by.tab_to_and_enter("Add a step to title");
        assert_eq!(by.focused_name(), "Processor of step 2 of title Processor");
        // Each press of an arrow key chooses another processor, and the form then shows its parameters.
        let before = browser.run_script("return document.activeElement.value", json!([]));
        by.press(&[DOWN, DOWN]);
        assert_eq!(by.focused_name(), "Processor of step 2 of title Processor");
        let now = browser.run_script("return document.activeElement.value", json!([]));
        assert_ne!(before, now);
        wait_for_mapping(bench, draft, browser, "/fields/0/processors/1/type", &now);
        by.tab_to_and_enter("Move step 2 of title up");
        assert_eq!(by.focused_name(), "Processor of step 1 of title Processor");
        by.tab_to_and_enter("Remove step 1 of title");
        assert_eq!(by.focused_name(), "Add a step to title Add a step");
        wait_for_mapping(
            bench,
            draft,
            browser,
            "/fields/0/processors/0/type",
            &json!("css"),
        );
        by.tab_to_and_enter("Add a field");
        assert_eq!(by.focused_name(), "Name");
        by.type_text("x");
        by.press(&[webfill_test_browser::TAB]);
        assert_eq!(by.focused_name(), "all values, as a list");
        // The heading of the field shows the new name, so the form was drawn again.
        assert_eq!(
            browser.wait_for_text("#editor fieldset:last-of-type legend"),
            "field_2x"
        );
        by.tab_to_and_enter("Remove field field_2x");
        assert_eq!(by.focused_name(), "Add a field");
    });
}

#[needs(chromedriver)]
#[test]
fn text_typed_in_the_copy_finds_elements() {
    with_draft(|bench, draft, browser| {
        let by = Keyboard::new(browser);
        by.tab_to("Copy of the chosen page");
        browser.enter_frame(&browser.wait_for("#frame"));
        let here = |wanted: &str| {
            browser.wait_until(wanted, || {
                let here = browser.text_at("#here")?;
                here.contains(wanted).then_some(())
            });
        };
        by.type_text("TOWN");
        here("dt: Town");
        // After a pause, typing starts a new search. It begins after the element that was found last.
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        by.type_text("town");
        here("dt: Second town");
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        // The search finds text across inline elements. A space belongs to the searched text while something is being
        // typed. Otherwise the space key points at the element.
        by.type_text("10 dec");
        here("dd: 10 December 1815");
        by.type_text("x");
        here("10 decx");
        by.press(&['\u{e003}']);
        here("dd: 10 December 1815");
        by.press(&[ENTER]);
        browser.leave_frames();
        wait_for_mapping(bench, draft, browser, "/fields/1/name", &json!("born"));
        // The frame has reported the element to the editor, which can now undo this step.
        browser.wait_for("#undo:not([disabled])");
        // Control and Z also undo when the copy has the focus. Escape moves the focus out of the copy.
        browser.press_with(CONTROL, 'z');
        wait_for_mapping(bench, draft, browser, "/fields/1", &Value::Null);
        by.press(&[ESCAPE]);
        browser.wait_until("the way out", || {
            by.focused_name().contains("Field").then_some(())
        });
    });
}
