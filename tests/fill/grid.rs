//! Tests the grid in the dashboard that shows a table's rows, in a real Chromium and by plain requests. The results are
//! checked in the grid, in the answers on disk, and by their effects on the next run.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use webfill_test_browser::Browser;
use webfill_test_browser::looks::{self, Tables};
use webfill_test_needs::needs;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, book_count, fill_command, read_evidence, read_rows, serve_books, table_with_gaps,
};
use super::review::{Dashboard, read_answers, wrong_values};

const ROWS: &str = "/dashboard/table/books/rows";

/// A table that was completed, with cells in several states, and the dashboard that shows it.
struct Filled {
    work: Workplace,
    web: Web,
    dashboard: Dashboard,
}

impl Filled {
    fn new() -> Filled {
        let (work, web) = (Workplace::new(), Web::start());
        let odd = Oddities {
            lack_publisher: (0..book_count()).filter(|book| book % 12 == 1).collect(),
            gone: (0..book_count()).filter(|book| book % 24 == 5).collect(),
            ..Oddities::default()
        };
        serve_books(&web, &odd);
        work.write("books.csv", table_with_gaps(&wrong_values()));
        let filled = Filled {
            dashboard: {
                fs::create_dir(work.path("books.webfill")).unwrap();
                Dashboard::start(&work)
            },
            work,
            web,
        };
        filled.run_fill();
        filled
    }

    fn run_fill(&self) {
        let run = fill_command(&self.work, &self.web).args(["--check", "all"]);
        run.finish().expect_code(0);
    }

    fn open(&self, path: &str) -> Browser {
        let browser = Browser::start();
        browser.set_time_zone("Europe/Berlin");
        browser.set_size(1440, 900);
        browser.open(&self.dashboard.url(path));
        browser.wait_for("[role=grid]");
        browser
    }

    fn get(&self, path: &str) -> (String, Vec<u8>) {
        send_request(
            &self.dashboard.place,
            &format!("GET {path} HTTP/1.1"),
            &[],
            b"",
        )
    }

    /// The line in the evidence file about the first cell in this state.
    fn cell_evidence(&self, state: &str) -> Value {
        let lines = read_evidence(&self.work).into_iter();
        let mut found = lines.filter(|line| line["state"] == state);
        found.next().unwrap_or_else(|| panic!("no cell is {state}"))
    }
}

#[test]
fn an_incomplete_index_of_a_killed_dashboard_is_removed_by_the_next_one() {
    /// So many rows that making their index takes seconds.
    const ROWS_OF_A_LARGE_TABLE: usize = 300_000;
    let work = Workplace::new();
    let lines =
        (0..ROWS_OF_A_LARGE_TABLE).map(|row| format!("{row},http://shelf.example/{row},\n"));
    let lines: String = lines.collect();
    work.write("books.csv", format!("id,link,title\n{lines}"));
    work.write("books.webfill/table.txt", "books.csv");
    let parts = || -> Vec<String> {
        let entries = fs::read_dir(work.path("books.webfill")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("part")).collect()
    };
    let dashboard = Dashboard::start(&work);
    send_request(&dashboard.place, &format!("GET {ROWS} HTTP/1.1"), &[], b"");
    assert_eq!(parts().len(), 1, "an index is being made");
    dashboard.kill();
    assert_eq!(parts().len(), 1);
    let running = format!("books.webfill/.grid.db.part-{}", std::process::id());
    work.write(&running, "part");
    let dashboard = Dashboard::start(&work);
    assert_eq!(
        parts().len(),
        1,
        "only the one of a running process is left"
    );
    assert!(work.path(&running).exists());
    dashboard.kill();
}

/// Sends a request. Returns the head and the body of the answer. A chunked body is joined.
fn send_request(
    place: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(place).unwrap();
    let mut head = format!(
        "{line}\r\nHost: {place}\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes()).unwrap();
    // The server may refuse the request before it has read the whole body, so errors of writing are ignored.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let body = &answer[end + 4..];
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return (head, body.to_vec());
    }
    let (mut whole, mut rest) = (Vec::new(), body);
    loop {
        let end = rest.windows(2).position(|bytes| bytes == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return (head, whole);
        }
        whole.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 4 + length..];
    }
}

/// Waits until `count` answers of the user are on disk, and until the pane beside the grid shows the last one.
fn wait_for_answers(browser: &Browser, filled: &Filled, count: usize) {
    browser.wait_until("the answer is on disk", || {
        (read_answers(&filled.work).len() == count).then_some(())
    });
    browser.wait_until("the pane has it", || {
        browser.find("#pane:not([aria-busy]) #evidence").map(drop)
    });
}

fn focused_id(browser: &Browser) -> String {
    let id = browser.run_script("return document.activeElement.id", json!([]));
    id.as_str().unwrap_or_default().to_owned()
}

/// The HTML id of a cell in the grid. Rows are counted from 1 without the header, and columns from 0.
fn cell_id(line: &Value) -> String {
    let columns = ["id", "link", "title", "author", "year", "publisher", "note"];
    let column = columns.iter().position(|name| line["column"] == *name);
    format!("c{}-{}", line["row"].as_u64().unwrap() - 1, column.unwrap())
}

#[needs(chromedriver)]
#[test]
fn cells_show_their_evidence_and_are_answered_by_keys_alone() {
    let [up, down, right, left, enter, escape] = [
        '\u{e013}', '\u{e015}', '\u{e014}', '\u{e012}', '\u{e007}', '\u{e00c}',
    ];
    let filled = Filled::new();
    let browser = filled.open(ROWS);
    // The grid shows the user's columns and rows in their order.
    let heads = browser.run_script(
        "return [...document.querySelectorAll('[role=columnheader]')].map(head => head.innerText.trim())",
        json!([]),
    );
    assert_eq!(
        heads,
        json!([
            "Row",
            "id",
            "link",
            "title",
            "author",
            "year",
            "publisher",
            "note"
        ])
    );
    let ids = browser.run_script(
        "return [...document.querySelectorAll('tbody tr')].map(row => row.cells[1].innerText.trim())",
        json!([]),
    );
    let expected: Vec<String> = (0..50).map(|book| format!("b{book}")).collect();
    assert_eq!(ids, json!(expected));
    // Each state of a cell has a CSS class, a sign and a word.
    for state in [
        "filled",
        "contradicted",
        "page unreachable",
        "not on the page",
    ] {
        let line = filled.cell_evidence(state);
        let class = state.replace(' ', "-");
        browser.open(
            &filled
                .dashboard
                .url(&format!("{ROWS}?state={}", state.replace(' ', "%20"))),
        );
        let cell = format!("#{}.c-{class}", cell_id(&line));
        browser.wait_for(&cell);
        let text = browser.run_script(
            "return document.querySelector(arguments[0]).textContent",
            json!([cell]),
        );
        assert!(text.as_str().unwrap().trim().len() > 1, "{state}: {text}");
    }
    // Arrow keys move the focus, Enter opens a cell, and Escape closes it and returns the focus.
    browser.open(&filled.dashboard.url(ROWS));
    browser.wait_for("td[tabindex='0']");
    browser.run_script(
        "document.querySelector(\"td[tabindex='0']\").focus()",
        json!([]),
    );
    assert_eq!(focused_id(&browser), "c1-0");
    browser.press(&[right, right, down, left, up, right]);
    assert_eq!(focused_id(&browser), "c1-2");
    browser.press(&[enter]);
    browser.wait_for("#pane #evidence");
    browser.press(&[escape]);
    assert!(browser.find("#pane[hidden]").is_some());
    assert_eq!(focused_id(&browser), "c1-2");
    // Three cells are answered: a contradicted value is accepted, a filled value is rejected, and the value of an
    // unreachable page is typed.
    let goto = |state: &str, place: usize| -> Value {
        let lines = read_evidence(&filled.work).into_iter();
        let line = lines
            .filter(|line| line["state"] == state)
            .nth(place)
            .unwrap();
        let row = line["row"].as_u64().unwrap();
        browser.open(&filled.dashboard.url(&format!("{ROWS}?from={row}")));
        let id = cell_id(&line);
        browser.wait_for(&format!("#{id}[tabindex]"));
        browser.run_script("document.getElementById(arguments[0]).focus()", json!([id]));
        line
    };
    let doubt = goto("contradicted", 1);
    browser.press(&['a']);
    browser.wait_for("#pane #evidence mark");
    assert!(
        read_answers(&filled.work).is_empty(),
        "nobody has seen its evidence"
    );
    let pane = browser.text_at("#pane").unwrap();
    assert!(pane.contains(doubt["url"].as_str().unwrap()), "{pane}");
    assert_eq!(
        browser.text_at("#pane mark").as_deref(),
        doubt["value"].as_str()
    );
    browser.press(&['a']);
    wait_for_answers(&browser, &filled, 1);
    browser.wait_for(&format!("#{}.a-accepted", cell_id(&doubt)));
    assert_eq!(focused_id(&browser), cell_id(&doubt));
    let rejected = goto("filled", 0);
    browser.press(&[enter]);
    browser.wait_for("#pane #evidence");
    browser.press(&['r']);
    wait_for_answers(&browser, &filled, 2);
    let typed = goto("page unreachable", 0);
    browser.press(&['e']);
    browser.wait_for("#pane #evidence");
    browser.press(&['e']);
    browser.press(&"Typed by hand".chars().collect::<Vec<_>>());
    browser.press(&[enter]);
    wait_for_answers(&browser, &filled, 3);
    browser.wait_for(&format!("#{}.a-edited", cell_id(&typed)));
    // The last answer is undone.
    let undone = goto("filled", 1);
    browser.press(&[enter]);
    browser.wait_for("#pane #evidence");
    browser.press(&['r']);
    wait_for_answers(&browser, &filled, 4);
    browser.press(&['u']);
    wait_for_answers(&browser, &filled, 5);
    assert!(
        browser.take_console().is_empty(),
        "{:?}",
        browser.take_console()
    );

    filled.run_fill();
    let written = read_rows(&filled.work, "books.filled.csv");
    let cell = |line: &Value| {
        let id = cell_id(line);
        let (row, column) = id[1..].split_once('-').unwrap();
        let (row, column): (usize, usize) = (row.parse().unwrap(), column.parse().unwrap());
        written[row - 1][column].clone()
    };
    assert_eq!(json!(cell(&doubt)), doubt["value"]);
    assert_eq!(cell(&rejected), "");
    assert_eq!(cell(&typed), "Typed by hand");
    assert_eq!(json!(cell(&undone)), undone["value"]);
    let of_rejected = read_evidence(&filled.work)
        .into_iter()
        .find(|line| line["row"] == rejected["row"] && line["column"] == rejected["column"]);
    assert_eq!(of_rejected.unwrap()["state"], "refused");
}

#[test]
fn the_filtered_rows_are_listed_by_cursor_and_sent_as_files() {
    let filled = Filled::new();
    let (_, page) = filled.get(ROWS);
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("?after=50\""), "{page}");
    let (_, second) = filled.get(&format!("{ROWS}?after=50"));
    let second = String::from_utf8(second).unwrap();
    assert!(second.contains("id=\"c51-0\"") && !second.contains("id=\"c50-0\""));
    assert!(!second.contains("Next page"));
    let expected = fs::read_to_string(filled.work.path("books.filled.csv")).unwrap();
    let (head, csv) = filled.get("/dashboard/table/books/rows.csv");
    assert!(
        head.contains("text/csv") && head.contains("books.csv"),
        "{head}"
    );
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&String::from_utf8(csv).unwrap()), lines(&expected));
    let one = filled.cell_evidence("page unreachable");
    let id = cell_id(&one);
    let (_, column) = id.split_once('-').unwrap();
    let asked = format!("state=page%20unreachable&column={column}");
    let (_, json) = filled.get(&format!("/dashboard/table/books/rows.json?{asked}"));
    let listed: Vec<Value> = serde_json::from_slice(&json).unwrap();
    let gone = read_evidence(&filled.work)
        .into_iter()
        .filter(|line| line["state"] == "page unreachable" && line["column"] == one["column"]);
    let gone: Vec<Value> = gone.map(|line| line["id"].clone()).collect();
    let ids: Vec<Value> = listed.iter().map(|row| row["id"].clone()).collect();
    assert!(!gone.is_empty());
    assert_eq!(ids, gone);
    let (head, parquet) = filled.get("/dashboard/table/books/rows.parquet?site=shelf.example");
    assert!(head.contains("200"), "{head}");
    assert_eq!(
        (&parquet[..4], &parquet[parquet.len() - 4..]),
        (&b"PAR1"[..], &b"PAR1"[..])
    );
    for path in [
        "/dashboard/table/books/rows?state=nothing",
        "/dashboard/table/books/rows?column=99",
        "/dashboard/table/books/rows?sort=x",
        "/dashboard/table/books/cell?row=1",
        "/dashboard/table/books/cell?row=1&column=99",
        "/dashboard/table/books/cell?row=99999&column=1",
        "/dashboard/table/books/rows.exe",
    ] {
        let (head, _) = filled.get(path);
        assert!(head.starts_with("HTTP/1.1 40"), "{path}: {head}");
    }
}

#[test]
fn an_answer_needs_a_form_of_the_page_and_the_present_table() {
    let filled = Filled::new();
    let line = filled.cell_evidence("contradicted");
    let id = cell_id(&line);
    let (row, column) = id[1..].split_once('-').unwrap();
    let path = format!("/dashboard/table/books/cell?row={row}&column={column}");
    let (_, page) = filled.get(&path);
    let page = String::from_utf8(page).unwrap();
    let value = |name: &str| {
        let (_, rest) = page
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let origin = format!("http://{}", filled.dashboard.place);
    let post = |body: &str, origin: &str| {
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        let line = "POST /dashboard/table/books/cell HTTP/1.1";
        let headers = [kind, ("Origin", origin)];
        let (head, _) = send_request(&filled.dashboard.place, line, &headers, body.as_bytes());
        head[9..12].to_owned()
    };
    let (token, version) = (value("token"), value("version"));
    let fields = format!("row={row}&column={column}&answer=accept");
    assert_eq!(post(&format!("{fields}&version={version}"), &origin), "403");
    let whole = format!("{fields}&version={version}&token={token}");
    assert_eq!(post(&whole, "http://evil.example"), "403");
    assert_eq!(
        post(&format!("{fields}&version=0&token={token}"), &origin),
        "303"
    );
    for wrong in [
        "answer=maybe",
        "answer=edit&value=+",
        "answer=accept&candidate=99",
    ] {
        let body = format!("row={row}&column={column}&version={version}&token={token}&{wrong}");
        assert_eq!(post(&body, &origin), "400", "{wrong}");
    }
    assert!(read_answers(&filled.work).is_empty());
    assert_eq!(post(&whole, &origin), "303");
    assert_eq!(read_answers(&filled.work).len(), 1);
}

#[needs(chromedriver, axe)]
#[test]
fn rows_and_cells_are_shown_whole_and_accessible_on_any_screen() {
    let filled = Filled::new();
    let browser = filled.open(ROWS);
    let doubt = cell_id(&filled.cell_evidence("contradicted"));
    let (row, column) = doubt[1..].split_once('-').unwrap();
    let cell = format!("/dashboard/table/books/cell?row={row}&column={column}");
    let after: u64 = row.parse().unwrap();
    let at_doubt = format!("{ROWS}?after={}", after.saturating_sub(3));
    for (name, path) in [
        ("rows", ROWS.to_owned()),
        ("rows-pane", at_doubt),
        ("rows-none", format!("{ROWS}?state=refused")),
        ("cell", cell),
    ] {
        browser.open(&filled.dashboard.url(&path));
        if name == "rows-pane" {
            browser.wait_for(&format!("#{doubt}[tabindex]"));
            browser.wait_and_click(&format!("#{doubt} a"));
            browser.wait_for("#pane #evidence");
        }
        looks::check_and_screenshot(&browser, &format!("fill-{name}"), Tables::Scroll);
    }
    let faults = browser.take_console();
    assert!(faults.is_empty(), "{faults:?}");
}

/// A table is dropped on the dashboard's page for an empty folder, and its gaps are then filled.
#[needs(chromedriver, axe)]
#[test]
fn a_table_that_is_dropped_is_filled() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let hosts: Vec<String> = web
        .resolve_args()
        .chunks(2)
        .map(|pair| pair[1].clone())
        .collect();
    let settings = format!(
        "[politeness]\ndelay = 0\nallow_private_networks = true\n[fetch]\nresolve = {}\n",
        json!(hosts)
    );
    work.write("webfill.toml", settings);
    fs::create_dir(work.path("tables")).unwrap();
    let dashboard =
        Dashboard::start_with_flags(&work, &["--fill", "tables", "--config", "webfill.toml"]);
    let browser = Browser::start();
    browser.open(&dashboard.url("/dashboard/"));
    looks::check_and_screenshot(&browser, "first-run", Tables::Fit);
    let text = browser.page_text();
    assert!(text.contains("Fill your first table"), "{text}");
    // The server refuses a file if the request lacks the token of the page, or if the path leads out of the folder.
    let place = &dashboard.place;
    let origin = format!("http://{place}");
    let token = browser.run_script(
        "return document.getElementById('drop').dataset.token",
        json!([]),
    );
    let token = token.as_str().unwrap();
    let post = |name: &str, headers: &[(&str, &str)]| {
        let line = format!("POST /dashboard/tables/new?name={name} HTTP/1.1");
        let (head, _) = send_request(place, &line, headers, b"id,link,title\n");
        head[9..12].to_owned()
    };
    let own = [("Origin", origin.as_str()), ("x-webfill-token", token)];
    assert_eq!(post("a.csv", &own[..1]), "403");
    assert_eq!(
        post("a.csv", &[("Origin", "http://evil.example"), own[1]]),
        "403"
    );
    for name in [
        "..%2Fa.csv",
        "%2Ftmp%2Fa.csv",
        ".a.csv",
        "a.exe",
        "",
        "a%00.csv",
        "-a.csv",
    ] {
        assert_eq!(post(name, &own), "400", "{name}");
    }
    assert_eq!(fs::read_dir(work.path("tables")).unwrap().count(), 0);
    let dropping = "const file = new File([arguments[0]], 'books.csv'); const data = new DataTransfer(); data.items.add(file);
        document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))";
    browser.run_script(dropping, json!([table_with_gaps(&wrong_values())]));
    browser.wait_until("the file is named", || {
        browser
            .text_at("#drop-status")
            .filter(|text| text.contains("books.csv"))
            .map(drop)
    });
    browser.wait_and_click("#drop button");
    browser.wait_until("the gaps are filled", || {
        work.path("tables/books.filled.csv").is_file().then_some(())
    });
    assert_eq!(
        fs::read_to_string(work.path("tables/books.csv")).unwrap(),
        table_with_gaps(&wrong_values())
    );
    browser.open(&dashboard.url("/dashboard/tables"));
    browser.wait_until("the table is listed", || {
        browser.reload();
        browser.page_text().contains("complete").then_some(())
    });
    assert_eq!(post("books.csv", &own), "409", "a table is never replaced");
    browser.open(&dashboard.url(ROWS));
    browser.wait_for("td.c-filled");
}
