//! Tests that the command lines of `docs/how-to/scrapy-cluster.md` work. Scrapy Cluster's requests are sent exactly as
//! written there, and webfill's answers must have every key of Scrapy Cluster's replies.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_tests::site::page;

use crate::fleet::wait_for;
use crate::machine::{Machine, parse_blocks};

const DOCUMENT: &str = include_str!("../../docs/how-to/scrapy-cluster.md");

/// A machine for the document's commands, with a web that has the sites in the document.
fn machine_with_sites() -> Machine {
    let machine = Machine::new("testapp");
    for host in [
        "istresearch.com",
        "www.apple.com",
        "www.dmoz.org",
        "dmoz.org",
        "aol.com",
    ] {
        machine.web.site(host).serve_otherwise(|request| {
            let path = request.path.trim_end_matches('/').to_owned();
            let links = (0..12).map(|link| format!("{path}/{link}"));
            links
                .fold(page(&request.path), |page, link| page.link(&link))
                .into()
        });
    }
    machine
        .web
        .site("www.dmoz.org")
        .serve("/", page("DMOZ"))
        .serve("/Recreation/Food/", page("Food"));
    machine
}

/// If `line` feeds the crawl `abc1234`, waits until all links of this crawl are pending. The next line of the document
/// reports their number.
fn wait_for_links(machine: &Machine, line: &str) {
    if line.contains("\"crawlid\":\"abc1234\", \"maxdepth\"") {
        wait_for("its links are pending", || {
            (machine.pending_tasks("abc1234")? == 12).then_some(())
        });
    }
}

/// The request in a command line that feeds it. Shell arithmetic, such as a time of expiry, is replaced by a number.
fn parse_request(line: &str) -> Value {
    let line = match (line.find("'$(("), line.find("))'")) {
        (Some(from), Some(to)) => format!("{}4102444800{}", &line[..from], &line[to + 3..]),
        _ => line.to_owned(),
    };
    let (from, to) = (
        line.find('{').expect("JSON"),
        line.rfind('}').expect("JSON"),
    );
    serde_json::from_str(&line[from..=to]).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Reads a reply of Scrapy Cluster, which its documentation prints in the syntax of Python.
fn parse_reply(text: &str) -> Option<Value> {
    let from = text.find("{u'").or_else(|| text.find("{\n"))?;
    let as_json = text[from..].replace("u'", "\"").replace('\'', "\"");
    Some(serde_json::from_str(&as_json).unwrap_or_else(|error| panic!("{error}: {as_json}")))
}

fn object_keys(value: &Value) -> BTreeSet<String> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect()
}

/// A block of Scrapy Cluster's command lines: the request and the reply in it, if there are any.
#[derive(Default)]
struct Theirs {
    request: Option<Value>,
    reply: Option<Value>,
}

impl Theirs {
    fn parse(text: &str) -> Theirs {
        let fed = text.lines().find(|line| line.contains(" feed "));
        Theirs {
            request: fed.map(parse_request),
            reply: parse_reply(
                &text
                    .lines()
                    .filter(|line| !line.starts_with("python "))
                    .collect::<Vec<_>>()
                    .join("\n"),
            ),
        }
    }

    /// Checks that the webfill command in the same row of the document feeds the same request.
    fn assert_same_as(&self, ours: &str) {
        let fed = ours.lines().find(|line| line.contains("webfill feed '{"));
        if let (Some(theirs), Some(ours)) = (&self.request, fed) {
            let mut theirs = theirs.clone();
            let ours = parse_request(ours);
            if theirs.get("expires").is_some() {
                theirs["expires"] = ours["expires"].clone();
            }
            assert_eq!(theirs, ours);
        }
    }

    /// Sends Scrapy Cluster's action unchanged, and checks that webfill's answer has every key of Scrapy Cluster's
    /// reply.
    fn assert_answered(&self, machine: &Machine) {
        if let (Some(request), Some(reply)) = (&self.request, &self.reply)
            && request.get("action").is_some()
        {
            let ours = machine.client().ask(request);
            let missing: Vec<String> = object_keys(reply)
                .difference(&object_keys(&ours))
                .cloned()
                .collect();
            assert!(missing.is_empty(), "{request}: no {missing:?} in {ours}");
            assert_eq!(ours["uuid"], request["uuid"], "{ours}");
        }
    }
}

#[test]
fn every_line_of_the_document_works() {
    let mut machine = machine_with_sites();
    let mut theirs = Theirs::default();
    for block in parse_blocks(DOCUMENT) {
        match block.language {
            "scrapy-cluster" => theirs = Theirs::parse(block.text),
            "console" => {
                theirs.assert_same_as(block.text);
                theirs.assert_answered(&machine);
                machine.run_block(block.text, wait_for_links);
                theirs.request = None;
            }
            "json" => assert_dumped(&machine, &theirs, block.text),
            other => panic!("a block in `{other}`"),
        }
    }
    machine.shut_down();
}

/// Checks that `webfill dump` prints a message like this text. The keys and the values must be the same. Only the time,
/// the body, the fields and most headers may differ. The message must also have every key of Scrapy Cluster's message.
fn assert_dumped(machine: &Machine, theirs: &Theirs, text: &str) {
    let expected: Value = serde_json::from_str(text).expect("JSON");
    let of_theirs = theirs.reply.as_ref().map(object_keys).unwrap_or_default();
    let is_it = |message: &Value| {
        ["crawlid", "action", "url"]
            .iter()
            .all(|key| message.get(*key) == expected.get(*key))
    };
    let found = wait_for("such a message is printed", || {
        machine.dumped_messages().into_iter().find(is_it)
    });
    let missing: Vec<String> = object_keys(&expected)
        .union(&of_theirs)
        .filter(|key| found.get(key.as_str()).is_none())
        .cloned()
        .collect();
    assert!(missing.is_empty(), "no {missing:?} in {found}");
    for (key, value) in expected.as_object().expect("an object") {
        let same = match key.as_str() {
            "timestamp" | "body" | "fields" => {
                std::mem::discriminant(value) == std::mem::discriminant(&found[key])
            }
            "headers" => found[key]["Content-Type"] == value["Content-Type"],
            _ => *value == found[key],
        };
        assert!(
            same,
            "{key}: {value} in the document, {} printed",
            found[key]
        );
    }
}

/// The rows of the document's table whose heading line begins with `head`.
fn table_rows(head: &str) -> Vec<Vec<&'static str>> {
    let table = DOCUMENT
        .lines()
        .skip_while(|line| !line.starts_with(head))
        .skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        line.trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().trim_matches('`'))
            .collect()
    })
    .collect()
}

#[test]
fn every_key_of_the_table_is_accepted_with_its_example_and_none_is_left_out() {
    let mut machine = machine_with_sites();
    machine.run_block("$ webfill dispatcher &", |_, _| {});
    let client = machine.client();
    let rows = table_rows("| key |");
    let mut reported = BTreeSet::new();
    for row in &rows {
        let (key, example) = (row[0], row[1]);
        let example: Value =
            serde_json::from_str(example).unwrap_or_else(|error| panic!("{key}: {error}"));
        let mut request =
            json!({"url": "http://www.example.org/news/", "appid": "a", "crawlid": key});
        request[key] = example;
        assert_eq!(client.ask(&request), json!({"accepted": 1}), "{key}");
        reported.insert(key.to_owned());
    }
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/reference/crawl-request.schema.json"
    );
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(schema).expect("it ships")).expect("JSON");
    assert_eq!(reported, object_keys(&schema["properties"]));
}
