//! Tests the page of the dashboard where doubts are reviewed, by keys in a real Chromium. The results are checked by
//! their effects on the next run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::{Value, json};
use webfill_test_browser::looks::{self, Tables};
use webfill_test_browser::{Browser, ENTER, Keyboard};
use webfill_test_needs::needs;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, book_count, fill_command, is_gap, read_rows, serve_books, table_with_gaps,
    true_values,
};

const HOSTILE: &str = "<script>window.wasRun = 1</script><b>Nobody</b>\u{202e}";

pub(super) struct Dashboard {
    running: Running,
    pub(super) place: String,
}

impl Dashboard {
    pub(super) fn start(work: &Workplace) -> Dashboard {
        Dashboard::start_with_flags(work, &["--fill", "books.webfill"])
    }

    pub(super) fn start_with_flags(work: &Workplace, flags: &[&str]) -> Dashboard {
        let [.., high, low] = std::process::id().to_be_bytes();
        let place = format!("127.78.{high}.{low}:8081");
        let mut running = Run::new(["dashboard", "--listen", &place])
            .args(flags)
            .in_folder(work.path("."))
            .start();
        running.wait_for_stderr("ready");
        Dashboard { running, place }
    }

    pub(super) fn kill(self) {
        self.running.signal(Signal::KILL);
        self.running.finish();
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.place)
    }

    /// Posts a form that lacks the token of the page. Returns the status line of the answer.
    fn post_forged(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.place,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }
}

/// The wrong authors in the table, by book and field. One of them is HTML markup.
pub(super) fn wrong_values() -> BTreeMap<(usize, usize), String> {
    let known = (0..book_count()).filter(|book| book % 6 == 2 && !is_gap(*book, 1));
    let mut wrong: BTreeMap<(usize, usize), String> = known
        .map(|book| ((book, 1), format!("Nobody {book}")))
        .collect();
    if let Some(first) = wrong.values_mut().next() {
        *first = HOSTILE.to_owned();
    }
    wrong
}

/// The listed doubts. Each has the id of its row, the column, the known value, and the value on the page.
fn read_doubts(work: &Workplace) -> Vec<[String; 4]> {
    let lines = read_rows(work, "books.doubts.csv").into_iter();
    lines
        .map(|cells| [1, 2, 3, 4].map(|at: usize| cells[at].clone()))
        .collect()
}

pub(super) fn read_answers(work: &Workplace) -> Vec<Value> {
    let text = fs::read_to_string(work.path("books.webfill/review.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until `count` answers of the user are on disk, and until the page shows the next doubt.
fn wait_for_answers(browser: &Browser, work: &Workplace, count: usize) {
    browser.wait_until("the answer is on disk", || {
        (read_answers(work).len() == count).then_some(())
    });
    browser.wait_until("the page has it", || {
        browser.find("#review:not([aria-busy])").map(drop)
    });
}

fn shown_subject(browser: &Browser) -> String {
    browser.text_at("#review h2").unwrap_or_default()
}

#[needs(chromedriver)]
#[test]
fn doubts_are_answered_by_keys_and_the_next_run_takes_them() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let wrong = wrong_values();
    work.write("books.csv", table_with_gaps(&wrong));
    let run = || {
        fill_command(&work, &web)
            .args(["--check", "all"])
            .finish()
            .expect_code(0)
    };
    run();
    let listed = read_doubts(&work);
    assert_eq!(listed.len(), wrong.len());
    assert!(listed.len() >= 6, "{listed:?}");
    let dashboard = Dashboard::start(&work);
    let browser = Browser::start();
    browser.set_size(1280, 900);
    browser.open(&dashboard.url("/dashboard/"));
    browser.wait_and_click("main table a");
    assert_eq!(browser.text_at("h1").unwrap(), "Table books.csv");
    browser.wait_and_click("a.button[href$='/review']");
    browser.wait_for("#review");
    let is_at = |place: usize| {
        let expected = format!("{} of {}", listed[place][1], listed[place][0]);
        browser.wait_until(&expected, || {
            (shown_subject(&browser) == expected).then_some(())
        });
    };
    is_at(0);
    assert_eq!(
        browser.run_script("return window.wasRun === undefined", json!([])),
        true
    );
    // First the keys move to the next, the next and the previous doubt. Then three doubts are answered: accepted,
    // rejected, accepted. The last answer is undone and replaced by a rejection.
    browser.press(&['n']);
    is_at(1);
    browser.press(&['n']);
    is_at(2);
    browser.press(&['p']);
    is_at(1);
    // Letter keys only work while the review has the focus (WCAG 2.1.4). A click on the text of the review gives it the
    // focus again.
    for away in [
        "document.querySelector('.mark').focus()",
        "document.activeElement.blur()",
    ] {
        browser.run_script(away, json!([]));
        browser.press(&['a', 'r', 'n']);
    }
    browser.wait_and_click("#review blockquote");
    browser.press(&['a']);
    wait_for_answers(&browser, &work, 1);
    is_at(2);
    browser.press(&['r']);
    wait_for_answers(&browser, &work, 2);
    is_at(3);
    browser.press(&['a']);
    wait_for_answers(&browser, &work, 3);
    is_at(4);
    browser.press(&['u']);
    wait_for_answers(&browser, &work, 4);
    is_at(3);
    browser.press(&['r']);
    wait_for_answers(&browser, &work, 5);
    is_at(4);
    // Doubts can also be answered without scripts.
    browser.run_devtools_command(
        "Emulation.setScriptExecutionDisabled",
        json!({"value": true}),
    );
    browser.open(&browser.address());
    browser.wait_and_click("button[data-key=a]");
    wait_for_answers(&browser, &work, 6);
    browser.run_devtools_command(
        "Emulation.setScriptExecutionDisabled",
        json!({"value": false}),
    );
    let reported: Vec<String> = read_answers(&work)
        .iter()
        .map(|line| format!("{} {}", line["answer"], line["doubt"]["id"]))
        .collect();
    let expected = [
        ("accept", 1),
        ("reject", 2),
        ("accept", 3),
        ("undo", 3),
        ("reject", 3),
        ("accept", 4),
    ];
    let expected = expected.map(|(answer, at)| format!("\"{answer}\" \"{}\"", listed[at][0]));
    assert_eq!(reported, expected);
    let path = "/dashboard/table/books/review";
    let key = read_answers(&work)[0]["key"].as_str().unwrap().to_owned();
    let forged = dashboard.post_forged(path, &format!("answer=reject&key={key}"));
    assert!(forged.contains(" 403 "), "{forged}");
    assert_eq!(read_answers(&work).len(), 6);

    run();
    let left = read_doubts(&work);
    let open = [&listed[..1], &listed[5..]].concat();
    assert_eq!(left, open);
    let filled = read_rows(&work, "books.filled.csv");
    for (at, [id, ..]) in listed.iter().enumerate() {
        let book: usize = id[1..].parse().unwrap();
        let is_accepted = at == 1 || at == 4;
        let expected = match is_accepted {
            true => true_values(book)[1].clone(),
            false => wrong[&(book, 1)].clone(),
        };
        assert_eq!(filled[book][3], expected, "{id}");
    }
    // A later run uses the answers, and the review then shows only the remaining doubts.
    run();
    assert_eq!(read_doubts(&work), open);
    browser.open(&dashboard.url(path));
    let text = browser.page_text();
    assert!(
        text.contains(&format!("{} open, 0 accepted", open.len())),
        "{text}"
    );
}

#[needs(chromedriver)]
#[test]
fn people_accept_twenty_doubts_by_keys() {
    const ACCEPTED: usize = 20;
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let mut wrong = wrong_values();
    let years =
        (0..book_count()).filter(|book| (book % 6 == 4 || book % 12 == 0) && !is_gap(*book, 2));
    wrong.extend(years.map(|book| ((book, 2), (1_700 + book).to_string())));
    work.write("books.csv", table_with_gaps(&wrong));
    let run = || {
        fill_command(&work, &web)
            .args(["--check", "all"])
            .finish()
            .expect_code(0)
    };
    run();
    let listed = read_doubts(&work);
    assert!(listed.len() >= ACCEPTED, "{listed:?}");
    let dashboard = Dashboard::start(&work);
    let browser = Browser::start();
    browser.set_size(1440, 900);
    browser.open(&dashboard.url("/dashboard/"));
    let by = Keyboard::new(&browser);
    by.skip_to_content();
    by.tab_to_and_enter("books");
    by.wait_for_page("Table books.csv");
    by.skip_to_content();
    by.tab_to("Review");
    by.press_as_step(&[ENTER]);
    browser.wait_for("#review");
    for place in 1..=ACCEPTED {
        by.press_as_step(&['a']);
        wait_for_answers(&browser, &work, place);
    }
    by.print_report("accept 20 doubts");
    assert!(
        read_answers(&work)
            .iter()
            .all(|one| one["answer"] == "accept")
    );
    run();
    let filled = read_rows(&work, "books.filled.csv");
    let column = |name: &str| {
        2 + ["title", "author", "year", "publisher"]
            .iter()
            .position(|one| *one == name)
            .unwrap()
    };
    for [id, of, _, page] in &listed[..ACCEPTED] {
        let book: usize = id[1..].parse().unwrap();
        assert_eq!(&filled[book][column(of)], page, "{id} {of}");
    }
}

#[needs(chromedriver, axe)]
#[test]
fn tables_and_their_review_are_shown_whole_to_everybody() {
    let (work, web) = (Workplace::new(), Web::start());
    let odd = Oddities {
        lack_publisher: (0..book_count()).filter(|book| book % 12 == 1).collect(),
        gone: (0..book_count()).filter(|book| book % 24 == 5).collect(),
        ..Oddities::default()
    };
    serve_books(&web, &odd);
    work.write("books.csv", table_with_gaps(&wrong_values()));
    fill_command(&work, &web).finish().expect_code(0);
    let dashboard = Dashboard::start(&work);
    let browser = Browser::start();
    browser.set_time_zone("Europe/Berlin");
    for (name, path) in [
        ("tables", "/dashboard/tables"),
        ("table", "/dashboard/table/books"),
        ("review", "/dashboard/table/books/review"),
        ("doubts", "/dashboard/doubts"),
    ] {
        browser.open(&dashboard.url(path));
        let text = browser.page_text();
        for wrong in ["undefined", "{{", "cannot be shown", "none of the"] {
            assert!(!text.contains(wrong), "{path} says {wrong}: {text}");
        }
        looks::check_and_screenshot(&browser, &format!("fill-{name}"), Tables::Fit);
    }
    let faults = browser.take_console();
    assert!(faults.is_empty(), "{faults:?}");
    let own = dashboard.url("/");
    for url in browser.requested_urls() {
        assert!(
            url.starts_with(&own) || url.starts_with("data:"),
            "{url} was asked"
        );
    }
}

/// The doubt about a value may be answered both on the page for reviews and in the file of doubts. The later answer
/// counts.
#[test]
fn the_newer_of_the_answers_in_review_and_file_counts() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&wrong_values()));
    let run = |args: &[&str]| {
        let run = fill_command(&work, &web)
            .args(["--check", "all"])
            .args(args);
        run.finish().expect_code(0)
    };
    run(&[]);
    let text = fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1].push_str("reject");
    lines[2].push_str("reject");
    work.write("books.doubts.csv", lines.join("\n") + "\n");
    let changed = fs::metadata(work.path("books.doubts.csv"))
        .unwrap()
        .modified()
        .unwrap();
    let changed = changed
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis() as i64;
    let listed: Value =
        serde_json::from_slice(&fs::read(work.path("books.webfill/review.json")).unwrap()).unwrap();
    // The answer in the review is newer than the file for the first doubt, and older for the second.
    let answered = [(0, changed + 1_000), (1, changed - 1_000)].map(|(place, at)| {
        let doubt = &listed["doubts"][place];
        json!({"key": doubt["key"], "answer": "accept", "at": at, "doubt": doubt["doubt"]})
            .to_string()
    });
    work.write("books.webfill/review.jsonl", answered.join("\n") + "\n");
    run(&["--doubts", "books.doubts.csv"]);
    let filled = read_rows(&work, "books.filled.csv");
    let cell = |place: usize| {
        let book: usize = listed["doubts"][place]["id"].as_str().unwrap()[1..]
            .parse()
            .unwrap();
        assert_eq!(listed["doubts"][place]["column"], "author");
        (filled[book][3].clone(), true_values(book)[1].clone())
    };
    let (accepted, page) = cell(0);
    assert_eq!(accepted, page);
    let (rejected, page) = cell(1);
    assert_ne!(rejected, page);
    // The command has written the file of doubts again, without the two answered doubts.
    let left = fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    assert!(!left.contains("reject"), "{left}");
}
