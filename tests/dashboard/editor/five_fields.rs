//! Tests the script of docs/how-to/mapping-editor.md: a person makes and saves a mapping of five fields with tests, in
//! at most 12 clicks and 60 seconds. Each step is printed, so that a person can follow it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_test_browser::{Browser, ENTER};
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Web, status};
use webfill_tests::workplace::Workplace;

use super::bench::Bench;

const HOST: &str = "menschen.example";

/// For each person: name, date of birth, town, number of papers, and name of the website.
const PEOPLE: [[&str; 5]; 4] = [
    ["Ada Lovelace", "10 December 1815", "London", "204", "ada"],
    [
        "Grace Hopper",
        "9 December 1906",
        "New York",
        "341",
        "grace",
    ],
    ["Emmy Noether", "23 March 1882", "Göttingen", "143", "emmy"],
    [
        "Sofja Kowalewskaja",
        "15 January 1850",
        "Stockholm",
        "501",
        "sofja",
    ],
];

const MOST_CLICKS: usize = 12;

/// The longest time for a person's own actions: half of the minute. The other half is for the site and the program, so
/// the test does not fail on a slow machine.
const MOST_BY_HAND: Duration = Duration::from_secs(30);

/// The number of pages that the mapping is made from.
const PAGES: usize = 2;

/// The times of a practised person by the keystroke-level model: to move the mouse to a target and click, to press a
/// key, and to decide on the next step.
const TO_CLICK: Duration = Duration::from_millis(1_300);
const TO_TYPE: Duration = Duration::from_millis(280);
const TO_DECIDE: Duration = Duration::from_millis(1_350);

fn person_page([name, born, town, papers, page]: [&str; 5]) -> Page {
    status(200)
        .header("content-type", "text/html; charset=utf-8")
        .body(format!(
            "<html><head><title>{name} - People</title></head><body><nav><a href=/>All people</a></nav>\
             <h1 class=person>{name}</h1><table><tr><th>Born</th><td class=born>{born}</td></tr>\
             <tr><th>Town</th><td>{town}</td></tr><tr><th>Papers</th><td>{papers}</td></tr></table>\
             <dl><dt>Website</dt><dd><a href=http://{page}.example/>http://{page}.example/</a></dd></dl>\
             <footer>Printed on 1 January 2026</footer></body></html>"
        ))
}

/// A person at the mapping editor. Counts clicks and time.
struct Person<'b> {
    browser: &'b Browser,
    began: Instant,
    clicks: usize,
    /// The time of the person's own actions so far, without waits for the program.
    by_hand: Duration,
}

impl Person<'_> {
    fn print_step(&mut self, words: &str) {
        let took = self.began.elapsed().as_secs_f64();
        println!("{took:5.1} s, {:2} clicks: {words}", self.clicks);
        self.by_hand += TO_DECIDE;
    }

    fn click(&mut self, selector: &str) {
        self.browser.wait_and_click(selector);
        self.clicks += 1;
        self.by_hand += TO_CLICK;
    }

    fn click_on_page(&mut self, selector: &str) {
        self.browser.enter_frame(&self.browser.wait_for("#frame"));
        self.click(selector);
        self.browser.leave_frames();
    }

    fn type_text(&mut self, text: &str) {
        self.browser.press(&text.chars().collect::<Vec<_>>());
        self.by_hand += TO_TYPE * text.chars().count() as u32;
    }

    /// Pastes a text into the focused input. A person needs two keys for this.
    fn paste_text(&mut self, text: &str) {
        let paste = "document.execCommand('insertText', false, arguments[0])";
        self.browser.run_script(paste, json!([text]));
        self.by_hand += TO_TYPE * 2;
    }

    fn wait_for_status(&self, text: &str) {
        self.browser.wait_until(text, || {
            let status = self.browser.text_at("#status")?;
            status.contains(text).then_some(())
        });
    }

    /// Waits until the results have columns with these names.
    fn wait_for_columns(&self, names: &[&str]) {
        self.browser.wait_until("the columns", || {
            let shown = shown_columns(self.browser);
            names
                .iter()
                .all(|name| shown.iter().any(|one| one == name))
                .then_some(())
        });
    }
}

/// The first line of each column head of the results.
fn shown_columns(browser: &Browser) -> Vec<String> {
    let script = "return [...document.querySelectorAll('#results thead th')].map((one) => one.innerText.split('\\n')[0])";
    serde_json::from_value(browser.run_script(script, json!([]))).expect("texts")
}

/// The text of each cell of the results. Each inner list is a row.
fn shown_results(browser: &Browser) -> Vec<Vec<String>> {
    let script = "return [...document.querySelectorAll('#results table tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))";
    serde_json::from_value(browser.run_script(script, json!([]))).expect("texts")
}

fn serve_people(web: &Web) {
    let site = web.site(HOST);
    for (number, one) in PEOPLE.into_iter().enumerate() {
        site.serve(&format!("/{number}"), person_page(one));
    }
}

#[needs(chromedriver)]
#[test]
fn five_fields_take_at_most_twelve_clicks_and_a_minute() {
    let (work, web) = (Workplace::new(), Web::start());
    std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
    serve_people(&web);
    // This is the default delay. With it, fetching two pages of a site takes fifteen seconds.
    let bench = Bench::with_delay(&work, &web, "15");
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&bench.url("/dashboard/"));
    let mut person = Person {
        browser: &browser,
        began: Instant::now(),
        clicks: 0,
        by_hand: Duration::ZERO,
    };
    make_mapping(&mut person);
    let (took, clicks) = (person.began.elapsed(), person.clicks);
    let by_hand = person.by_hand;
    println!(
        "{clicks} clicks; {:.0} s by hand: {:.0} s for the site and the program, {:.0} s for the person",
        (took + by_hand).as_secs_f64(),
        took.as_secs_f64(),
        by_hand.as_secs_f64()
    );
    browser.screenshot("editor-five-fields");
    assert!(clicks <= MOST_CLICKS, "{clicks} clicks");
    assert!(by_hand <= MOST_BY_HAND, "{by_hand:?}");
    assert_eq!(browser.take_console(), Vec::<String>::new());
    drop(browser);
    check_saved_mapping(&work);
}

/// Performs the steps of the how-to.
fn make_mapping(person: &mut Person<'_>) {
    person.print_step("Open System, Mapping editor.");
    person.click(".areas li:last-child a");
    person.click(".views a[href='/dashboard/editor']");
    person.browser.wait_for("#new-name:focus");
    person.print_step("Type a name for the mapping, press Enter.");
    person.type_text("people");
    person.type_text(&ENTER.to_string());
    person.browser.wait_for("#url:focus");
    person.print_step("Paste the URLs of two pages, press Fetch once.");
    let urls = (0..PAGES).map(|number| format!("http://{HOST}/{number}\n"));
    person.paste_text(&urls.collect::<String>());
    person.click("#add-url button");
    person.wait_for_status("2 pages added");
    person.print_step("Click the five values on the page, one after the other.");
    for value in [
        "h1",
        "tr:nth-child(1) td",
        "tr:nth-child(2) td",
        "tr:nth-child(3) td",
        "dd",
    ] {
        person.click_on_page(value);
    }
    person.wait_for_columns(&["name", "born", "town", "papers", "website"]);
    person.print_step("Press Read as date, and Read as number, above the values.");
    person.click("button[aria-label='Read born as date']");
    person.wait_for_status("born is read as a date");
    person.click("button[aria-label='Read papers as number']");
    person.wait_for_status("papers is read as a number");
    person.print_step("Press Save: the pages become golden cases.");
    person.click("#save");
    person.wait_for_status("2 golden cases kept");
    person.print_step("Done.");
}

/// Checks that the saved mapping passes its tests, and that the golden case of the first page has the expected values.
fn check_saved_mapping(work: &Workplace) {
    for action in ["check", "test"] {
        let mut run = Run::new(["mapping", action]);
        if action == "test" {
            run = run.arg("--all");
        }
        run.arg(work.path("mappings")).finish().expect_code(0);
    }
    let text = std::fs::read_to_string(work.path("mappings/people.json")).unwrap();
    let mapping: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> = mapping["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["name", "born", "town", "papers", "website"]);
    let cases = std::fs::read_dir(work.path("mappings/golden/people")).unwrap();
    let cases = cases.map(|entry| entry.unwrap().path());
    let ada = cases
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .map(|path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() })
        .find(|case| case["fields"]["name"] == "Ada Lovelace")
        .expect("a case of the first page");
    let fields = &ada["fields"];
    assert_eq!(fields["born"], "1815-12-10", "{fields}");
    assert_eq!(fields["town"], "London", "{fields}");
    assert_eq!(
        fields["papers"].to_string().trim_matches('"'),
        "204",
        "{fields}"
    );
    assert_eq!(fields["website"], "http://ada.example/", "{fields}");
}

/// Starts a browser and a draft with the pages of all people, and passes both to `use_it`.
fn with_draft(use_it: impl FnOnce(&Bench, &str, &Person<'_>)) {
    let (work, web) = (Workplace::new(), Web::start());
    std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
    serve_people(&web);
    let bench = Bench::start(&work, &web, &[]);
    let draft = bench.begin_draft("", "people");
    for number in 0..PEOPLE.len() {
        let url = format!("http://{HOST}/{number}");
        bench.request_ok(&draft, "add", &json!({"add": {"url": url}}));
    }
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&bench.url(&draft));
    let person = Person {
        browser: &browser,
        began: Instant::now(),
        clicks: 0,
        by_hand: Duration::ZERO,
    };
    use_it(&bench, &draft, &person);
    assert_eq!(browser.take_console(), Vec::<String>::new());
}

fn field_names(bench: &Bench, draft: &str) -> Vec<String> {
    let state = bench.state(draft);
    let fields = state["draft"]["mapping"]["fields"].as_array().cloned();
    let fields = fields.unwrap_or_default();
    fields
        .iter()
        .map(|field| field["name"].as_str().unwrap().to_owned())
        .collect()
}

#[needs(chromedriver)]
#[test]
fn candidates_survive_a_reload_and_steps_are_undone() {
    with_draft(|bench, draft, person| {
        let browser = person.browser;
        let click = |selector: &str| {
            browser.enter_frame(&browser.wait_for("#frame"));
            browser.wait_and_click(selector);
            browser.leave_frames();
        };
        click("h1");
        person.wait_for_columns(&["name"]);
        click("tr:nth-child(1) td");
        person.wait_for_columns(&["name", "born"]);
        browser.reload();
        let head = browser.wait_until("the candidates", || {
            browser
                .text_at("#candidates:not([hidden]) h3")
                .filter(|text| !text.is_empty())
        });
        assert_eq!(head, "Candidates for born");
        assert!(browser.find(".candidate table").is_some());
        // Another candidate (a proposed way to read the value) can be chosen after the reload.
        browser.wait_and_click(".candidate:last-child button[aria-label^='Use candidate']");
        person.wait_for_status("born is read by");
        person.wait_for_columns(&["name", "born"]);
        let before = bench.state(draft)["draft"]["mapping"].clone();
        click("tr:nth-child(2) td");
        person.wait_for_columns(&["name", "born", "town"]);
        browser.wait_and_click("#undo");
        person.wait_for_status("Undone");
        browser.wait_until("the former mapping", || {
            (bench.state(draft)["draft"]["mapping"] == before).then_some(())
        });
        browser.wait_until("the former results", || {
            (shown_columns(browser) == ["Page", "name", "born"]).then_some(())
        });
        // After the undo, pointing at the same value adds its field again.
        click("tr:nth-child(2) td");
        person.wait_for_columns(&["name", "born", "town"]);
        assert_eq!(field_names(bench, draft), ["name", "born", "town"]);
    });
}

#[needs(chromedriver)]
#[test]
fn results_are_beside_the_page_with_disagreements_first() {
    let (work, web) = (Workplace::new(), Web::start());
    std::fs::remove_file(work.path("mappings/profile.json")).unwrap();
    serve_people(&web);
    // A crawl needs some mapping. This one matches no page of the test.
    let field = |name: &str| json!({"name": name, "processors": [{"type": "css", "parameters": {"selector": "h1"}}]});
    let elsewhere = json!({"name": "elsewhere", "url_patterns": [{"type": "host", "pattern": "elsewhere.example"}],
        "fields": [field("wohnort"), field("geboren")]});
    work.write_json("mappings/elsewhere.json", &elsewhere);
    let records: Vec<Value> = (0..PEOPLE.len())
        .map(|number| {
            // The record of the last person names another town than the page. The columns have German names, which
            // appear on no page.
            let town = if number == 3 {
                "Moscow"
            } else {
                PEOPLE[number][2]
            };
            json!({"id": format!("p{number}"), "urls": [format!("http://{HOST}/{number}")],
                "fields": {"wohnort": town, "geboren": null}})
        })
        .collect();
    let seeds = work.write_lines("people.jsonl", &records);
    work.crawl_without_delay(&web)
        .args(["--delay", "0", "--keep-bodies", "--dataset", "people"])
        .arg("--seeds")
        .arg(seeds)
        .finish();
    let store = format!("sqlite:{}", work.path("store.db").display());
    let bench = Bench::start(&work, &web, &["--store", &store]);
    let draft = bench.begin_draft("", "people");
    let add = json!({"add": {"crawl": {"app": "local", "crawl": "test", "count": 10}}});
    bench.request_ok(&draft, "add", &add);
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&bench.url(&draft));
    let person = Person {
        browser: &browser,
        began: Instant::now(),
        clicks: 0,
        by_hand: Duration::ZERO,
    };
    browser.wait_for("#frame");
    // Choose a page whose record agrees with it, and point at the value there.
    let choose = "const choice = document.getElementById('page-choice');
        choice.value = [...choice.options].find((one) => one.text.endsWith('/1')).value;
        choice.dispatchEvent(new Event('change', {bubbles: true}))";
    browser.wait_for("#page-choice option");
    browser.run_script(choose, json!([]));
    browser.enter_frame(&browser.wait_for("#frame"));
    browser.wait_until("the page", || {
        (browser.text_at("h1")? == PEOPLE[1][0]).then_some(())
    });
    browser.wait_and_click("tr:nth-child(2) td");
    browser.leave_frames();
    // The field is named after the table's column with the same value, and not after the label on the page.
    person.wait_for_columns(&["wohnort"]);
    let rows = shown_results(&browser);
    assert_eq!(rows.len(), PEOPLE.len(), "{rows:?}");
    assert!(
        rows[0][1].contains("Stockholm") && rows[0][1].contains("Moscow"),
        "{rows:?}"
    );
    assert!(rows[1..].iter().all(|row| row[1].contains('✓')), "{rows:?}");
    // The results are to the right of the page, at the same height.
    let boxes = "return ['frame', 'results'].map((id) => { const box = document.getElementById(id).getBoundingClientRect();
        return [box.left, box.right, box.top, box.bottom]; })";
    let boxes: [[f64; 4]; 2] =
        serde_json::from_value(browser.run_script(boxes, json!([]))).unwrap();
    let [frame, results] = boxes;
    assert!(results[0] >= frame[1], "{boxes:?}");
    assert!(results[2] < frame[3] && frame[2] < results[3], "{boxes:?}");
    // Each input for an XPath is wider than half of the form.
    let widths = "const form = document.getElementById('editor').clientWidth;
        return [...document.querySelectorAll('#editor .step input[type=text]')].map((one) => one.clientWidth / form)";
    let widths: Vec<f64> = serde_json::from_value(browser.run_script(widths, json!([]))).unwrap();
    assert!(
        !widths.is_empty() && widths.iter().all(|share| *share > 0.6),
        "{widths:?}"
    );
    browser.screenshot("editor-disagreement");
    assert_eq!(browser.take_console(), Vec::<String>::new());
}
