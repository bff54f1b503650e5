//! `docs/demand.md` is run: every line as it stands.

use serde_json::json;
use webfill_tests::site::page;

use crate::machine::{Machine, blocks};

const DOCUMENT: &str = include_str!("../../docs/demand.md");

#[test]
fn every_line_of_the_guide_works() {
    let python = std::process::Command::new("/usr/bin/python3")
        .args(["-c", "import zmq"])
        .output();
    let has_python = python.is_ok_and(|run| run.status.success());
    let mut machine = Machine::new("prices");
    machine.web.site("shop.example").otherwise(|request| {
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
    for block in blocks(DOCUMENT) {
        assert_eq!(block.language, "console");
        if block.text.contains("python3") && !has_python {
            eprintln!("skipped a line: Debian's python3-zmq is not installed");
            continue;
        }
        machine.run(block.text, |_, _| lines += 1);
    }
    assert!(lines > 15, "{lines}");
    machine
        .web
        .log()
        .wait_until("it crawls", |visits| visits.pages().len() > 1);
    machine.shut_down();
}
