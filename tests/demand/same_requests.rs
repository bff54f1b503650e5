//! Tests that crawl requests mean the same at every intake: a file for `webfill feed`, a seeds file for `webfill crawl
//! --seeds`, the control socket, and HTTP. The same lines are sent to each intake, in separate processes. Then the
//! refusals, the settings of crawls, the tasks, the requests to sites, and the stored pages are compared.
//!
//! The intakes differ in one respect: if one line of a list is refused, the other lines may be refused, too. The
//! control socket and a JSON body by HTTP accept a list only as a whole, so lines are sent to them one by one. Files
//! and JSON lines by HTTP are accepted line by line.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use webfill_tests::site::{Web, page};
use webfill_tests::stored::Stored;
use webfill_tests::workplace::Workplace;

use crate::clients::send_http;
use crate::fleet::{Fleet, HTTP, wait_for};

mod table;

use table::Fate::{Accepted, Refused};
use table::{request_line, table};

/// The name of an intake (a way to feed requests), with the results of the lines that were sent to it.
struct Way {
    name: &'static str,
    refusals: Refusals,
    crawls: BTreeMap<String, Value>,
    tasks: BTreeMap<String, Value>,
    pages: BTreeMap<String, Value>,
    agents: BTreeMap<String, String>,
    order: Vec<String>,
}

/// For each refused line, its number with the JSON path and the message of the refusal.
type Refusals = BTreeMap<usize, (String, String)>;

fn serve_linked_pages(web: &Web) {
    web.site("a.example").serve_otherwise(|request| {
        let deeper = format!("{}/link", request.path);
        let denied = format!("{}/denied", request.path);
        page(&request.path).link(&deeper).link(&denied).into()
    });
}

/// Feeds a fleet that has no supervisor yet, so that the order of requests is determined by priorities alone. Then
/// starts a supervisor and collects the results.
fn crawl_by_fleet(name: &'static str, feed: impl Fn(&Fleet) -> Refusals) -> Way {
    let mut fleet = Fleet::start_dispatcher_only(&[]);
    serve_linked_pages(&fleet.web);
    let refusals = feed(&fleet);
    fleet.add_supervisor("one");
    let frontier = fleet.work.path("state/dispatcher-0/dispatcher.db");
    wait_for("all is crawled", || {
        let left = "SELECT count(*) FROM tasks WHERE state <> 2";
        (Stored::open(&frontier).query_number(left) == 0).then_some(())
    });
    collect_results(name, refusals, &fleet.web, &fleet.work, &frontier)
}

fn crawl_by_seeds_file(text: &str) -> Way {
    let (web, work) = (Web::start(), Workplace::new());
    serve_linked_pages(&web);
    let seeds = work.write("seeds.jsonl", text);
    let run = work
        .crawl(&web)
        .args(["--follow", "all", "--seeds"])
        .arg(seeds);
    let run = run.finish().expect_code(0);
    let refusals = broken_seeds(&run.summary().json);
    let frontier = work.path("state/dispatcher.db");
    collect_results("--seeds", refusals, &web, &work, &frontier)
}

/// The refused lines in the list of broken seeds of a local crawl. A fault without a path concerns the whole line.
fn broken_seeds(summary: &Value) -> Refusals {
    let file = summary["broken_seeds"]["file"]
        .as_str()
        .expect("some are broken");
    let text = std::fs::read_to_string(file).expect("the file is there");
    let refusal = |line: &str| {
        let listed: Value = serde_json::from_str(line).expect("JSON lines");
        let path = listed["path"].as_str().unwrap_or("$").to_owned();
        (
            to_number(&listed["line"]),
            (path, text_of(&listed["reason"])),
        )
    };
    text.lines().map(refusal).collect()
}

fn to_number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

fn text_of(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// Collects the results of one intake from its databases. Each SQL query yields rows of JSON with a name and a value.
fn collect_results(
    name: &'static str,
    refusals: Refusals,
    web: &Web,
    work: &Workplace,
    frontier: &Path,
) -> Way {
    let named = |stored: Stored, sql: &str| -> BTreeMap<String, Value> {
        let rows = stored.query_texts(sql).into_iter().map(|row| {
            let row: Value = serde_json::from_str(&row).expect("JSON");
            (text_of(&row["name"]), row["value"].clone())
        });
        rows.collect()
    };
    let mut crawls = named(
        Stored::open(frontier),
        "SELECT json_object('name', crawl_id, 'value', json(spec)) FROM crawls WHERE app_id = 'app'",
    );
    for spec in crawls.values_mut() {
        // These two settings are different in a local crawl, because it ends with its seeds and retries nothing. So
        // they are not compared.
        let spec = spec.as_object_mut().expect("an object");
        assert!(spec.remove("on_demand").is_some() && spec.remove("retry").is_some());
    }
    let tasks = "SELECT json_object('name', crawl_id || ' ' || url, 'value', json_object(
                     'priority', tasks.priority, 'depth', depth, 'attrs', json(attrs.json)))
                 FROM tasks JOIN crawls ON crawls.id = tasks.crawl
                 LEFT JOIN attrs ON attrs.id = tasks.attrs WHERE app_id = 'app'";
    let pages = "SELECT json_object('name', crawl_id || ' ' || url, 'value', json_object(
                     'outcome', outcome, 'attrs', json(attrs), 'body', body))
                 FROM pages WHERE app_id = 'app'";
    let visits = web.visits().pages();
    let agent = |path: &str| {
        let visits = visits.for_path(path);
        let sent = visits
            .0
            .first()
            .and_then(|visit| visit.header("user-agent"));
        sent.unwrap_or("nothing was sent").to_owned()
    };
    let paths = ["/bare", "/agent", "/update", "/update/2", "/update/3"];
    let explicit = |path: &String| path.contains("priority") || path.ends_with("update/2");
    Way {
        name,
        refusals,
        crawls,
        tasks: named(Stored::open(frontier), tasks),
        pages: named(work.stored(), pages),
        agents: paths
            .iter()
            .map(|path| ((*path).to_owned(), agent(path)))
            .collect(),
        order: visits
            .0
            .iter()
            .map(|visit| visit.path.clone())
            .filter(explicit)
            .collect(),
    }
}

/// Feeds lines by `webfill feed FILE`. The command reports refused lines on standard error.
fn feed_file(fleet: &Fleet, text: &str) -> Refusals {
    let file = fleet.work.write("requests.jsonl", text);
    let run = fleet
        .run(&["feed", file.to_str().expect("plain")])
        .expect_code(1);
    let refusal = |reported: &str| {
        let reported = reported
            .strip_prefix("webfill: line ")
            .expect("a line is named by its number");
        let (line, reported) = reported
            .split_once(": ")
            .expect("a number and what is wrong");
        let (path, message) = match reported.starts_with('$') {
            true => reported.split_once(": ").expect("a path and a message"),
            false => ("$", reported),
        };
        (
            line.parse().expect("a number"),
            (path.to_owned(), message.to_owned()),
        )
    };
    run.stderr.lines().map(refusal).collect()
}

/// Sends the lines separately. `ask` sends one line and returns the answer.
fn send_one_by_one(lines: &[&str], ask: impl Fn(&str) -> Value) -> Refusals {
    let mut refusals = Refusals::new();
    for (index, line) in lines.iter().enumerate() {
        let answer = ask(line);
        match answer.get("error") {
            Some(error) => {
                let refusal = (text_of(&error["path"]), text_of(&error["message"]));
                refusals.insert(index + 1, refusal);
            }
            None => assert_eq!(answer["accepted"], 1, "{line}: {answer}"),
        }
    }
    refusals
}

fn post_feed(fleet: &Fleet, media_type: &str, body: &str) -> Value {
    let head = [
        "POST /feed HTTP/1.1".to_owned(),
        format!("Host: {}:{HTTP}", fleet.host),
        format!("Content-Type: {media_type}"),
    ];
    let (_, answer) = send_http(fleet, &head.each_ref().map(String::as_str), body);
    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no JSON: {answer}"))
}

/// Sends JSON lines by HTTP. The answer lists the refused lines.
fn post_lines(fleet: &Fleet, text: &str) -> Refusals {
    let answer = post_feed(fleet, "application/x-ndjson", text);
    let refused = answer["errors"]
        .as_array()
        .unwrap_or_else(|| panic!("nothing is refused: {answer}"))
        .iter();
    let refusal = |one: &Value| {
        (
            to_number(&one["line"]),
            (text_of(&one["path"]), text_of(&one["message"])),
        )
    };
    refused.map(refusal).collect()
}

#[test]
fn a_crawl_request_means_the_same_by_every_way_in() {
    let table = table();
    let lines: Vec<&str> = table.iter().map(|(line, _)| line.as_str()).collect();
    let text = lines.join("\n") + "\n";
    let by_socket = crawl_by_fleet("the control socket", |fleet| {
        let client = fleet.client();
        send_one_by_one(&lines, |line| client.ask_bytes(line.as_bytes()))
    });
    for (index, (line, fate)) in table.iter().enumerate() {
        let refusal = by_socket.refusals.get(&(index + 1));
        let path = refusal.map(|(path, _)| path.as_str());
        let expected = match fate {
            Accepted => None,
            Refused(path) => Some(*path),
        };
        assert_eq!(path, expected, "{line:.200}: {refusal:?}");
    }
    let others = [
        crawl_by_fleet("HTTP", |fleet| {
            send_one_by_one(&lines, |line| post_feed(fleet, "application/json", line))
        }),
        crawl_by_fleet("JSON lines by HTTP", |fleet| post_lines(fleet, &text)),
        crawl_by_fleet("webfill feed", |fleet| feed_file(fleet, &text)),
        crawl_by_seeds_file(&text),
    ];
    for other in &others {
        assert_same_results(&by_socket, other, &lines);
    }
    assert_expected_results(&by_socket);
}

fn assert_same_results(first: &Way, other: &Way, lines: &[&str]) {
    let name = other.name;
    for (index, line) in lines.iter().enumerate() {
        let refusal = |way: &Way| way.refusals.get(&(index + 1)).cloned();
        assert_eq!(refusal(other), refusal(first), "{name}: {line:.200}");
    }
    assert_eq!(other.crawls, first.crawls, "{name}: settings of crawls");
    assert_eq!(other.tasks, first.tasks, "{name}: tasks");
    assert_eq!(other.pages, first.pages, "{name}: pages");
    assert_eq!(other.agents, first.agents, "{name}: user agents");
    assert_eq!(other.order, first.order, "{name}: order of requests");
}

/// Checks the results of one intake, because all intakes could make the same mistake.
fn assert_expected_results(way: &Way) {
    assert_eq!(
        way.order,
        ["/priority-100", "/update/2", "/priority-90", "/priority-1"]
    );
    let second = |path: &str| {
        (
            path.to_owned(),
            concat!("webfill/", env!("CARGO_PKG_VERSION"), " second/2").to_owned(),
        )
    };
    for (path, agent) in ["/update", "/update/2", "/update/3"].map(second) {
        assert_eq!(
            way.agents[&path], agent,
            "the later one holds for the crawl"
        );
    }
    assert_eq!(
        way.crawls["expires"]["expires_at_ms"],
        1_999_999_999_500_u64
    );
    let update = &way.crawls["update"];
    assert_eq!(
        (&update["max_depth"], &update["body"]),
        (&json!(0), &json!(true))
    );
    let task = |name: &str| &way.tasks[&format!("update http://a.example/{name}")];
    assert_eq!(task("update")["priority"], 30);
    assert_eq!(task("update")["attrs"], json!({"n": 1}));
    assert_eq!(task("update/2")["priority"], 95);
    assert_eq!(way.pages["body http://a.example/body"]["outcome"], "ok");
    assert!(way.pages["body http://a.example/body"]["body"].is_string());
    assert!(way.pages["no-body http://a.example/no-body"]["body"].is_null());
    let link = &way.tasks["depth http://a.example/depth/link"];
    assert_eq!((&link["priority"], &link["depth"]), (&json!(40), &json!(1)));
    assert!(
        !way.tasks
            .contains_key("depth http://a.example/depth/denied")
    );
    assert!(
        !way.tasks
            .contains_key("patterns http://a.example/elsewhere")
    );
}

/// A seeds file differs from the other intakes in two respects. A plain URL belongs to the command's own crawl. A
/// request for a browser needs `--lane browser`.
#[test]
fn a_seeds_file_differs_in_plain_urls_and_in_browsers() {
    let plain = r#"{"url": "http://a.example/plain"}"#;
    let shown = request_line("shown", json!({"spiderid": "browser"}));
    let lines = [plain, shown.as_str(), "7"];
    let fleet = Fleet::start_dispatcher_only(&[]);
    let client = fleet.client();
    let refusals = send_one_by_one(&lines, |line| client.ask_bytes(line.as_bytes()));
    assert_eq!(refusals[&1].0, "$.appid");
    assert_eq!(
        refusals.get(&2),
        None,
        "it waits for a supervisor with browsers"
    );
    assert!(refusals[&3].1.contains("crawl request"), "{refusals:?}");

    let (web, work) = (Web::start(), Workplace::new());
    serve_linked_pages(&web);
    let seeds = work.write("seeds.jsonl", lines.join("\n"));
    let run = work
        .crawl(&web)
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    assert_eq!(web.visits().pages().paths(), ["a.example/plain"]);
    let refusals = broken_seeds(&run.summary().json);
    assert_eq!(refusals.keys().collect::<Vec<_>>(), [&2, &3]);
    assert_eq!(refusals[&2].0, "$.spiderid");
    assert!(refusals[&2].1.contains("--lane browser"), "{refusals:?}");
    assert!(
        refusals[&3].1.contains("expected a JSON object"),
        "{refusals:?}"
    );
}

/// The requests in a seeds file open crawls. If the local crawl is resumed, these crawls are resumed, too.
#[test]
fn a_resumed_local_crawl_finds_the_crawls_of_its_requests_again() {
    let (web, work) = (Web::start(), Workplace::new());
    serve_linked_pages(&web);
    let lines: Vec<Value> = (0..4)
        .map(|number| {
            json!({"url": format!("http://a.example/{number}"), "appid": "app",
            "crawlid": "again", "maxdepth": number % 2})
        })
        .collect();
    let seeds = work.write_lines("seeds.jsonl", &lines);
    let crawl = || work.crawl(&web).arg("--seeds").arg(&seeds);
    let first = crawl()
        .args(["--max-time", "1s"])
        .replace_flag("--delay", "1")
        .finish()
        .expect_code(12);
    assert!(web.visits().pages().len() < 4, "{}", first.stdout);
    crawl().finish().expect_code(0);
    assert_eq!(web.visits().pages().counts().len(), 4, "each is crawled");
    assert!(
        web.visits()
            .pages()
            .counts()
            .values()
            .all(|count| *count == 1),
        "once"
    );
    let frontier = Stored::open(&work.path("state/dispatcher.db"));
    assert_eq!(
        frontier.query_number("SELECT count(*) FROM crawls WHERE app_id = 'app'"),
        1
    );
}
