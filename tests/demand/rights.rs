//! Tests client keys that are limited to certain applications, or to reading.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::fleet::wait_for;
use crate::keyed::Keyed;

/// All actions, as a client of the application `shop` may send them. Each with whether it changes something, and
/// whether it concerns other applications, too.
fn actions() -> Vec<(Value, bool, bool)> {
    let own = |action: &str| json!({"action": action, "appid": "shop", "crawlid": "c"});
    let watch = |action: &str| json!({"action": action, "name": "of-others"});
    let mut retry = own("retry");
    retry["outcome"] = json!(["timeout"]);
    let added =
        json!({"name": "w", "app": "shop", "schedule": "0 2 1 1 *", "urls": ["http://a.example/"]});
    vec![
        (own("info"), false, false),
        (own("pause"), true, false),
        (own("resume"), true, false),
        (retry, true, false),
        (own("prune"), true, false),
        (own("stop"), true, false),
        (json!({"action": "status"}), false, true),
        (json!({"action": "reload"}), true, true),
        (
            json!({"action": "drain", "supervisor": "nobody"}),
            true,
            true,
        ),
        (json!({"action": "site", "site": "a.example"}), false, true),
        (
            json!({"action": "site", "site": "a.example", "delay": 3}),
            true,
            true,
        ),
        (json!({"action": "sites"}), false, true),
        (
            json!({"action": "why", "url": "http://a.test/"}),
            false,
            true,
        ),
        (json!({"action": "watch_add", "watch": added}), true, true),
        (json!({"action": "watch_list"}), false, false),
        (watch("watch_show"), false, false),
        (watch("watch_run"), true, false),
        (watch("watch_pause"), true, false),
        (watch("watch_resume"), true, false),
        (watch("watch_remove"), true, false),
    ]
}

fn keyed_with_clients(clients: &[(&str, &[&str])]) -> Keyed {
    let keyed = Keyed::new();
    for (name, bounds) in clients {
        let public = keyed.create_member("client", name, false);
        let add = [&["add", "client", name, &public], *bounds].concat();
        keyed.run_keys(&add, "keys");
    }
    keyed
}

fn is_refused_for_rights(answer: &Value) -> bool {
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    [
        "may only read",
        "limited to some",
        "not allowed for the application",
    ]
    .iter()
    .any(|why| message.contains(why))
}

/// The names of all actions, read from the refusal of an unknown action.
fn names_of_all_actions(answer: &Value) -> BTreeSet<String> {
    let message = answer["error"]["message"].as_str().expect("a refusal");
    let (_, names) = message.split_once("known are ").expect("it names them");
    names.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_action_is_refused_to_keys_without_the_right_for_it() {
    let keyed = keyed_with_clients(&[
        ("chief", &[]),
        ("shop", &["--apps", "shop,sho"]),
        ("reader", &["--read-only"]),
    ]);
    let _dispatcher = keyed.start_dispatcher();
    let chief = keyed.client("chief");
    let feed = |app: &str| json!({"url": "http://a.example/", "appid": app, "crawlid": "c"});
    assert_eq!(
        chief.ask(&json!([feed("shop"), feed("shopping")]))["accepted"],
        2
    );
    let foreign = json!({"name": "of-others", "app": "shopping", "schedule": "0 2 1 1 *", "urls": ["http://a.example/"]});
    let added = chief.ask(&json!({"action": "watch_add", "watch": foreign}));
    assert_eq!(added["name"], "of-others", "{added}");

    let table = actions();
    let known = names_of_all_actions(&chief.ask(&json!({"action": "conquer"})));
    let tried = table.iter().map(|(action, ..)| action["action"].as_str());
    assert_eq!(
        tried
            .map(|name| name.expect("a name").to_owned())
            .collect::<BTreeSet<_>>(),
        known
    );

    for (name, is_bound, is_reader) in [("shop", true, false), ("reader", false, true)] {
        let client = keyed.client(name);
        for (action, changes, concerns_all) in &table {
            let answer = client.ask(action);
            let expected = (is_reader && *changes) || (is_bound && *concerns_all);
            assert_eq!(
                is_refused_for_rights(&answer),
                expected,
                "{name}: {action}: {answer}"
            );
            if is_bound && action["appid"] == "shop" {
                let mut foreign = action.clone();
                foreign["appid"] = "shopping".into();
                let answer = client.ask(&foreign);
                assert_eq!(answer["error"]["path"], "$.appid", "{foreign}: {answer}");
            }
            if is_bound && action["name"] == "of-others" {
                assert_eq!(answer["error"]["message"], "no watch of this name");
            }
        }
    }
    let shop = keyed.client("shop");
    assert_eq!(
        shop.ask(&json!({"action": "watch_list"}))["watches"],
        json!([])
    );
    let mixed = shop.ask(&json!([feed("sho"), feed("shopping")]));
    assert_eq!(mixed["error"]["path"], "$[1].appid", "{mixed}");
    assert_eq!(shop.ask(&feed("sho"))["accepted"], 1);
    let read = keyed.client("reader").ask(&feed("shop"));
    assert_eq!(read["error"]["path"], "$", "{read}");
    // The refused request for the crawl of another application has changed nothing.
    let info = chief.ask(&json!({"action": "info", "appid": "shopping", "crawlid": "c"}));
    assert_eq!(
        (&info["total_pending"], &info["state"]),
        (&json!(1), &json!("running")),
        "{info}"
    );
    let watches = chief.ask(&json!({"action": "watch_list"}));
    assert_eq!(watches["watches"][0]["state"], "waiting", "{watches}");
}

/// A subscription is a prefix of topics. So a client that may subscribe to `shop` would also receive messages for
/// `shopping`.
#[test]
fn keys_limited_to_applications_get_nothing_from_the_firehose() {
    let keyed = keyed_with_clients(&[("shop", &["--apps", "shop"]), ("reader", &["--read-only"])]);
    let _dispatcher = keyed.start_dispatcher();
    let bound = keyed
        .command(&["dump", "--app", "shop"], Some("shop"))
        .start();
    let logged = keyed.wait_until_logged("peer_refused", "bound to applications");
    assert_eq!(logged["name"], "shop", "{logged}");
    let mut reader = keyed.command(&["dump"], Some("reader")).start();
    // Each answer to a request is also published on the firehose.
    reader.wait_until("it listens", |reader| {
        let asked = keyed.command(&["info", "shop"], Some("shop")).finish();
        asked.expect_code(0);
        reader.stdout_so_far().contains("total_pending")
    });
    assert_eq!(bound.stdout_so_far(), "");
}

#[test]
fn a_connected_key_that_is_limited_is_limited_at_once() {
    let keyed = keyed_with_clients(&[("app", &[])]);
    let _dispatcher = keyed.start_dispatcher();
    let client = keyed.client("app");
    assert_eq!(
        client.ask(&json!({"action": "sites"}))["error"],
        Value::Null
    );
    let list = keyed.work.path("keys/allowed");
    let bound = fs::read_to_string(&list)
        .expect("a list")
        .trim_end()
        .to_owned()
        + " read-only apps=a\n";
    let new = keyed.work.write("keys/allowed.new", bound);
    fs::rename(new, &list).expect("our own");
    wait_for("the list is in force", || {
        let answer = client.ask(&json!({"action": "sites"}));
        is_refused_for_rights(&answer).then_some(())
    });
    let shown = keyed.run_keys(&["list"], "keys").stdout;
    assert!(
        shown.trim_end().ends_with("apps=a read-only") || shown.contains("read-only"),
        "{shown}"
    );
}

#[test]
fn only_keys_of_clients_can_be_limited() {
    let keyed = Keyed::new();
    let public = keyed.create_member("supervisor", "vm-01", false);
    for bound in [&["--read-only"][..], &["--apps", "a"], &["--apps", "a/b"]] {
        let add = [&["keys", "add", "supervisor", "vm-01", &public], bound].concat();
        let run = webfill_tests::run::Run::new(add)
            .arg("--keys")
            .arg(keyed.work.path("keys"));
        let said = run.finish().expect_code(2).one_sentence().to_owned();
        assert!(
            said.contains("client") || said.contains("application"),
            "{said}"
        );
    }
}
