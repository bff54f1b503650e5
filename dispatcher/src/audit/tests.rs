use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use webfill_scheduler::effects::{ActionEnd, AuditedAction};
use webfill_scheduler::requester::SenderInfo;
use webfill_wire::keys::{Entry, HEADING, ListChange, PublicKey, Rights, Role, parse};

use super::*;

struct World {
    folder: tempfile::TempDir,
    log: AuditLog,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::new(AuditFile::open(folder.path(), 100, 3).unwrap());
        World { folder, log }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path()).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    fn write_list_change(&mut self, change: &ListChange) {
        let by_file = |audited| Audited {
            at_ms: 7_000,
            who: SenderInfo {
                way: Channel::File,
                ..SenderInfo::default()
            },
            audited,
            end: ActionEnd::Done,
        };
        let actions = AuditedAction::from_list_change(change).into_iter();
        self.log.write(actions.map(by_file).collect());
    }
}

fn sender_named(name: &str) -> SenderInfo {
    SenderInfo {
        name: Some(name.into()),
        address: Some("10.0.0.7".into()),
        way: Channel::Key,
    }
}

fn audited_feed(at_ms: i64, name: &str, crawl_id: &str, accepted: u64) -> Audited {
    let one = json!({"url": "http://a.org/", "appid": "app", "crawlid": crawl_id});
    let text = json!([one, one, one]).to_string();
    let asked = webfill_scheduler::control::parse_request(text.as_bytes(), 0).unwrap();
    let mut audited = AuditedAction::from_request(&asked).unwrap();
    audited.count_answer(&json!({"accepted": accepted}));
    Audited {
        at_ms,
        who: sender_named(name),
        audited,
        end: ActionEnd::Done,
    }
}

fn audited_action(at_ms: i64, action: &'static str) -> Audited {
    Audited {
        at_ms,
        who: sender_named("feeder"),
        audited: AuditedAction::without_subject(action),
        end: ActionEnd::Done,
    }
}

#[test]
fn feeds_of_one_second_are_one_line_for_each_sender() {
    let mut world = World::new();
    for turn in 0..100 {
        let at_ms = 5_000 + turn * 8;
        world.log.write(vec![
            audited_feed(at_ms, "a", "c1", 2),
            audited_feed(at_ms, "b", "c1", 3),
        ]);
        world.log.write(vec![audited_feed(at_ms, "a", "c2", 3)]);
        // Every action that was answered is in the log.
        let so_far = world.lines();
        assert_eq!(so_far.len(), 2, "{so_far:?}");
        assert_eq!(so_far[0]["accepted"], 5 * (turn + 1));
    }
    world.log.write(vec![audited_feed(6_000, "a", "c1", 1)]);
    let lines = world.lines();
    assert_eq!(lines.len(), 3);
    let reported = json!({
        "timestamp": iso_time(5_000), "action": "feed", "who": "a", "address": "10.0.0.7",
        "by": "key", "result": "done", "times": 200, "accepted": 500, "refused": 100,
        "crawls": [{"appid": "app", "crawlid": "c1"}, {"appid": "app", "crawlid": "c2"}],
    });
    assert_eq!(lines[0], reported);
    assert_eq!(
        (&lines[1]["who"], &lines[1]["accepted"]),
        (&json!("b"), &json!(300))
    );
    assert_eq!(lines[2]["accepted"], 1);
}

#[test]
fn each_action_is_a_line_and_the_same_refusals_of_a_second_are_one() {
    let mut world = World::new();
    let refused = |at_ms| Audited {
        end: ActionEnd::from_answer(&json!({"error": {"path": "$.appid", "message": "not yours"}})),
        ..audited_action(at_ms, "stop")
    };
    world.log.write(vec![
        audited_feed(7_000, "a", "c", 1),
        audited_action(7_000, "pause"),
        refused(7_000),
    ]);
    world.log.write(vec![
        audited_action(7_100, "pause"),
        refused(7_100),
        audited_feed(7_100, "a", "c", 1),
    ]);
    let lines = world.lines();
    let reported: Vec<(&str, Option<u64>)> = lines
        .iter()
        .map(|line| (line["action"].as_str().unwrap(), line["times"].as_u64()))
        .collect();
    let expected = [
        ("pause", None),
        ("pause", None),
        ("feed", Some(2)),
        ("stop", Some(2)),
    ];
    assert_eq!(reported, expected);
    assert_eq!(
        (&lines[3]["path"], &lines[3]["why"]),
        (&json!("$.appid"), &json!("not yours"))
    );
}

#[test]
fn so_many_crawls_are_named_and_no_more() {
    let mut world = World::new();
    for crawl in 0..100 {
        world
            .log
            .write(vec![audited_feed(8_000, "a", &format!("c{crawl}"), 1)]);
    }
    let lines = world.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["crawls"].as_array().unwrap().len(), 20);
    assert_eq!(
        (&lines[0]["more_crawls"], &lines[0]["accepted"]),
        (&json!(true), &json!(100))
    );
}

/// A client that feeds under very many names must hide neither other clients' feeds nor its own.
#[test]
fn above_the_most_sums_feeds_are_lines_of_their_own() {
    let mut world = World::new();
    for turn in 0..3 {
        let senders = 0..MOST_SUMS + 50;
        let feeds = senders.map(|n| audited_feed(8_000 + turn, &format!("s{n}"), "c", 2));
        world.log.write(feeds.collect());
    }
    let mut accepted = std::collections::BTreeMap::new();
    let lines = world.lines();
    for line in &lines {
        let who = line["who"].as_str().unwrap().to_owned();
        *accepted.entry(who).or_insert(0) += line["accepted"].as_u64().unwrap();
    }
    assert_eq!(accepted.len(), MOST_SUMS + 50);
    assert!(accepted.values().all(|sum| *sum == 6), "nothing is dropped");
    assert_eq!(
        lines.len(),
        MOST_SUMS + 3 * 50,
        "three lines for each above"
    );
    // In the next second, these feeds fit into the sums again.
    let further = (0..3).map(|turn| audited_feed(9_000 + turn, "s1049", "c", 2));
    world.log.write(further.collect());
    assert_eq!(world.lines().len(), lines.len() + 1);
}

#[test]
fn a_changed_list_of_keys_says_whom_it_lets_in() {
    let entries = |lines: &str| -> Vec<Arc<Entry>> {
        let entries = parse(&format!("{HEADING}\n{lines}")).unwrap();
        entries.into_iter().map(Arc::new).collect()
    };
    let key = "A".repeat(40);
    let bound = entries(&format!("client shop {key} apps=shop read-only\n"));
    let free = entries(&format!("client shop {key}\n"));
    let change = ListChange {
        removed: entries(&format!("supervisor vm-01 {key}\n")),
        changed: vec![(Arc::clone(&bound[0]), Arc::clone(&free[0]))],
        ..ListChange::default()
    };
    let mut world = World::new();
    world.write_list_change(&change);
    let reported = &world.lines()[0];
    assert_eq!(
        (&reported["action"], &reported["by"]),
        (&json!("keys_changed"), &json!("file"))
    );
    assert_eq!(reported["removed"][0]["name"], "vm-01");
    assert_eq!(
        reported["changed"][0]["was"]["rights"],
        "apps=shop read-only"
    );
    assert_eq!(reported["changed"][0]["rights"], "");
    assert!(reported.get("added").is_none(), "{reported}");
}

#[test]
fn a_long_change_of_the_list_is_several_lines() {
    let key = PublicKey::from_bytes(&[7; 32]).unwrap();
    let entries: Vec<_> = (0..250)
        .map(|number| {
            Arc::new(Entry {
                role: Role::Supervisor,
                name: format!("vm-{number}").into(),
                key,
                rights: Rights::ALL,
            })
        })
        .collect();
    let change = ListChange {
        added: entries[..150].to_vec(),
        removed: entries[150..].to_vec(),
        ..ListChange::default()
    };
    let mut world = World::new();
    world.write_list_change(&change);
    let lines = world.lines();
    let count = |kind: &str| {
        let of_kind = lines
            .iter()
            .map(|line| line[kind].as_array().map_or(0, Vec::len));
        of_kind.collect::<Vec<_>>()
    };
    assert_eq!(count("added"), [100, 50, 0]);
    assert_eq!(count("removed"), [0, 50, 50]);
    assert_eq!(lines[2]["removed"][49]["name"], "vm-249");
}
