//! Tests that every command line of `docs/how-to/demand.md` works exactly as written there.

use serde_json::json;
use webfill_test_needs::needs;
use webfill_tests::site::page;

use crate::machine::{Machine, parse_blocks};

const DOCUMENT: &str = include_str!("../../docs/how-to/demand.md");

#[test]
fn every_line_of_the_guide_without_python_works() {
    let lines = run_blocks(|block| !block.contains("python3"));
    assert!(lines > 12, "{lines}");
}

#[needs(python3_zmq)]
#[test]
fn every_line_of_the_guide_works() {
    let lines = run_blocks(|_| true);
    assert!(lines > 15, "{lines}");
}

/// Runs the command lines in those code blocks that `is_wanted` accepts. Returns the number of these blocks.
fn run_blocks(is_wanted: impl Fn(&str) -> bool) -> usize {
    let mut machine = Machine::new("prices");
    machine.web.site("shop.example").serve_otherwise(|request| {
        let path = request.path.trim_end_matches('/');
        page(path)
            .link(&format!("{path}/1"))
            .link(&format!("{path}/2"))
            .into()
    });
    let line = |priority: u8| json!({"url": format!("http://shop.example/x{priority}"), "appid": "prices", "crawlid": "file", "priority": priority});
    machine
        .work
        .write_lines("requests.jsonl", &[line(1), line(101), line(100)]);
    let mut lines = 0;
    for block in parse_blocks(DOCUMENT) {
        assert_eq!(block.language, "console");
        if is_wanted(block.text) {
            machine.run_block(block.text, |_, _| lines += 1);
        }
    }
    machine
        .web
        .log()
        .wait_until("it crawls", |visits| visits.pages().len() > 1);
    machine.shut_down();
    lines
}
