//! Decides which requests the rights of a key or token permit. Only this module decides it, for the control socket
//! and for HTTP, and before anything is carried out. There is no catch-all: a new action does not compile until its
//! required rights are named here.

use webfill_api::{Action, Batch, Refusal, WatchAction, WatchOrder};
use webfill_wire::keys::Rights;

use crate::control::ControlRequest;

/// The rights that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need<'a> {
    /// Whether the request changes something.
    change: bool,
    reach: Reach<'a>,
}

/// The applications that a request concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach<'a> {
    /// The request concerns crawls of one application.
    App(&'a str),
    /// A watch, whose application the core looks up; or all watches of the sender's applications.
    Watch,
    /// The request concerns all applications.
    Fleet,
}

impl Need<'_> {
    fn to_read(reach: Reach<'_>) -> Need<'_> {
        Need {
            change: false,
            reach,
        }
    }

    fn to_change(reach: Reach<'_>) -> Need<'_> {
        Need {
            change: true,
            reach,
        }
    }
}

fn needed_rights(action: &Action) -> Need<'_> {
    match action {
        Action::Info(question) => Need::to_read(Reach::App(&question.subject.app_id)),
        Action::Stop(subject) | Action::Pause(subject) | Action::Resume(subject) => {
            Need::to_change(Reach::App(&subject.app_id))
        }
        Action::Retry(retry) => Need::to_change(Reach::App(&retry.subject.app_id)),
        Action::Prune(prune) => Need::to_change(Reach::App(&prune.subject.app_id)),
        Action::Status { .. } | Action::Sites(_) => Need::to_read(Reach::Fleet),
        Action::Why(question) => Need::to_read(match &question.app_id {
            Some(app_id) => Reach::App(app_id),
            None => Reach::Fleet,
        }),
        Action::Reload { .. } | Action::Drain { .. } => Need::to_change(Reach::Fleet),
        Action::Site(site) => Need {
            change: site.changes_something(),
            reach: Reach::Fleet,
        },
        Action::Watch(WatchAction { order, .. }) => match order {
            // A watch reads files and databases of the dispatcher's machine, which belong to no application.
            WatchOrder::Add(_) => Need::to_change(Reach::Fleet),
            WatchOrder::List | WatchOrder::Show(..) => Need::to_read(Reach::Watch),
            WatchOrder::Run(_)
            | WatchOrder::Pause(_)
            | WatchOrder::Resume(_)
            | WatchOrder::Remove(_) => Need::to_change(Reach::Watch),
        },
    }
}

/// Refuses a request beyond the rights. The core checks the application of a watch (`act_on_watches`).
pub(crate) fn check_rights(asked: &ControlRequest, rights: &Rights) -> Result<(), Refusal> {
    match asked {
        // The control socket accepts local requests only from this user's processes.
        ControlRequest::Local(_) => Ok(()),
        ControlRequest::Feed { batch, .. } => check_feed_rights(batch, rights),
        ControlRequest::UnreadFeed => Err(read_only_refusal("$")),
        ControlRequest::Act(action) => {
            let need = needed_rights(action);
            if need.change && rights.is_read_only() {
                return Err(read_only_refusal("$.action"));
            }
            match need.reach {
                Reach::App(app_id) if !rights.permits_app(app_id) => {
                    Err(foreign_application_refusal("$.appid"))
                }
                Reach::Fleet if rights.is_limited_to_apps() => Err(Refusal::new(
                    "$.action",
                    "this concerns all applications; the key is limited to some",
                )),
                Reach::App(_) | Reach::Watch | Reach::Fleet => Ok(()),
            }
        }
    }
}

/// The maximum length of a message that may be a request to read, in bytes.
const LONGEST_QUESTION: usize = 64 << 10;

/// Whether a message that was not parsed yet will certainly be refused, because of its sender's rights.
pub fn is_refused_unread(message: &[u8], rights: &Rights) -> bool {
    rights.is_read_only() && (message.len() > LONGEST_QUESTION || webfill_api::is_list(message))
}

/// Whether a request changes something.
pub fn changes_something(asked: &ControlRequest) -> bool {
    match asked {
        ControlRequest::Local(_) | ControlRequest::Feed { .. } | ControlRequest::UnreadFeed => true,
        ControlRequest::Act(action) => needed_rights(action).change,
    }
}

fn check_feed_rights(batch: &Batch, rights: &Rights) -> Result<(), Refusal> {
    if rights.is_read_only() {
        return Err(read_only_refusal("$"));
    }
    let mut foreign = batch.crawls.iter();
    match foreign.find(|order| !rights.permits_app(&order.app_id)) {
        Some(order) => {
            let place = order.seeds.first().map_or(0, |seed| seed.place);
            Err(foreign_application_refusal(&format!(
                "{}.appid",
                batch.request_path(place)
            )))
        }
        None => Ok(()),
    }
}

pub(crate) fn read_only_refusal(path: &str) -> Refusal {
    Refusal::new(path, "this key may only read")
}

/// The refusal of a request about another application.
pub fn foreign_application_refusal(path: &str) -> Refusal {
    Refusal::new(path, "this key is not allowed for the application")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    const READS: bool = false;
    const CHANGES: bool = true;

    /// Every action, for application `a`: whether it changes something, and what it concerns.
    fn action_table() -> Vec<(Value, bool, Reach<'static>)> {
        let own = Reach::App("a");
        let subject =
            |action: &str| json!({"action": action, "appid": "a", "crawlid": "c", "uuid": "u"});
        let watch = |action: &str| json!({"action": action, "name": "w"});
        let mut retry = subject("retry");
        retry["outcome"] = json!(["timeout"]);
        let added =
            json!({"name": "w", "app": "a", "schedule": "0 * * * *", "urls": ["http://a.org/"]});
        vec![
            (subject("info"), READS, own),
            (subject("stop"), CHANGES, own),
            (subject("pause"), CHANGES, own),
            (subject("resume"), CHANGES, own),
            (retry, CHANGES, own),
            (subject("prune"), CHANGES, own),
            (json!({"action": "status"}), READS, Reach::Fleet),
            (json!({"action": "reload"}), CHANGES, Reach::Fleet),
            (json!({"action": "drain"}), CHANGES, Reach::Fleet),
            (
                json!({"action": "site", "site": "a.org"}),
                READS,
                Reach::Fleet,
            ),
            (
                json!({"action": "site", "site": "a.org", "delay": 3}),
                CHANGES,
                Reach::Fleet,
            ),
            (json!({"action": "sites"}), READS, Reach::Fleet),
            (
                json!({"action": "why", "url": "http://a.org/"}),
                READS,
                Reach::Fleet,
            ),
            (
                json!({"action": "why", "url": "http://a.org/", "appid": "a"}),
                READS,
                own,
            ),
            (
                json!({"action": "watch_add", "watch": added}),
                CHANGES,
                Reach::Fleet,
            ),
            (json!({"action": "watch_list"}), READS, Reach::Watch),
            (watch("watch_show"), READS, Reach::Watch),
            (watch("watch_run"), CHANGES, Reach::Watch),
            (watch("watch_pause"), CHANGES, Reach::Watch),
            (watch("watch_resume"), CHANGES, Reach::Watch),
            (watch("watch_remove"), CHANGES, Reach::Watch),
        ]
    }

    fn parse_request(question: &Value) -> ControlRequest {
        let text = question.to_string();
        crate::control::parse_request(text.as_bytes(), 0)
            .unwrap_or_else(|refusal| panic!("{question}: {refusal:?}"))
    }

    fn rights(words: &[&str]) -> Rights {
        Rights::parse(words).unwrap()
    }

    /// The path in the refusal; empty if the request is permitted.
    fn refusal_path(asked: &ControlRequest, words: &[&str]) -> String {
        check_rights(asked, &rights(words)).map_or_else(|refusal| refusal.path, |()| String::new())
    }

    #[test]
    fn every_action_has_its_place_in_the_table_of_rights() {
        let table = action_table();
        let named: BTreeSet<&str> = table
            .iter()
            .map(|(question, ..)| question["action"].as_str().unwrap())
            .collect();
        assert_eq!(named, webfill_api::action_names().collect());
    }

    #[test]
    fn every_action_is_judged_by_the_rights_of_its_key() {
        for (question, change, reach) in action_table() {
            let asked = parse_request(&question);
            assert_eq!(changes_something(&asked), change, "{question}");
            assert_eq!(refusal_path(&asked, &[]), "", "{question}");
            let for_readers = if change { "$.action" } else { "" };
            assert_eq!(
                refusal_path(&asked, &["read-only"]),
                for_readers,
                "{question}"
            );
            let (own, other) = match reach {
                Reach::App(_) => ("", "$.appid"),
                Reach::Watch => ("", ""),
                Reach::Fleet => ("$.action", "$.action"),
            };
            assert_eq!(refusal_path(&asked, &["apps=a,x"]), own, "{question}");
            assert_eq!(refusal_path(&asked, &["apps=aa,b"]), other, "{question}");
        }
    }

    #[test]
    fn lists_of_a_key_that_may_only_read_are_refused_unread() {
        let long = format!("{{{}\"action\": \"status\"}}", " ".repeat(LONGEST_QUESTION));
        for (message, words, refused) in [
            (" [", vec!["read-only"], true),
            (" [", vec!["apps=a", "read-only"], true),
            (" [", vec!["apps=a"], false),
            (" [", vec![], false),
            (long.as_str(), vec!["read-only"], true),
            (long.as_str(), vec![], false),
            (r#"{"action": "status"}"#, vec!["read-only"], false),
        ] {
            let is_refused = is_refused_unread(message.as_bytes(), &rights(&words));
            assert_eq!(is_refused, refused, "{words:?}");
        }
        assert_eq!(
            refusal_path(&ControlRequest::UnreadFeed, &["read-only"]),
            "$"
        );
    }

    #[test]
    fn a_feed_is_refused_whole_with_the_place_of_the_first_foreign_request() {
        let one = |app: &str| json!({"url": "http://a.org/", "appid": app, "crawlid": "c"});
        let list = parse_request(&json!([one("a"), one("a"), one("b")]));
        assert_eq!(refusal_path(&list, &["apps=a"]), "$[2].appid");
        assert_eq!(refusal_path(&list, &["apps=a,b"]), "");
        assert_eq!(refusal_path(&list, &["apps=a,b", "read-only"]), "$");
        assert_eq!(
            refusal_path(&parse_request(&one("b")), &["apps=a"]),
            "$.appid"
        );
    }
}
