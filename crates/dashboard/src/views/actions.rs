//! Actions that visitors start by forms: ordinary actions of the public language, with the visitor's rights. The fields
//! of the form become the members of the action. The browser returns to the page of the form, which shows the result.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::answer::{Problem, Shown, see_other};
use crate::form::Form;
use crate::messages::Message;
use crate::visit::Visit;

/// How a form field becomes a member of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// A number. An empty field is omitted. The text `none` becomes null, which removes the setting.
    Number,
    /// A flag, which is true if the form has the field.
    Flag,
    /// A list of the texts in all fields with this name.
    Texts,
    /// A number of seconds from now. The action gets this time in seconds since the epoch.
    SecondsAhead,
}

/// An action that a form can start: its name, its members, and the message after success.
type OfferedAction = (&'static str, &'static [(&'static str, Kind)], &'static str);

const OFFERED: &[OfferedAction] = &[
    ("pause", CRAWL, "Crawl paused"),
    ("resume", CRAWL, "Crawl resumed"),
    ("stop", CRAWL, "Crawl stopped permanently"),
    ("retry", RETRY, "Tasks queued again"),
    ("site", SITE, "In force on all machines"),
    ("watch_run", WATCH, "Run started"),
    ("watch_pause", WATCH, "Watch paused: no further runs start"),
    ("watch_resume", WATCH, "Watch resumed"),
];

const CRAWL: &[(&str, Kind)] = &[("appid", Kind::Text), ("crawlid", Kind::Text)];

const RETRY: &[(&str, Kind)] = &[
    ("appid", Kind::Text),
    ("crawlid", Kind::Text),
    ("outcome", Kind::Texts),
    ("site", Kind::Text),
];

const SITE: &[(&str, Kind)] = &[
    ("site", Kind::Text),
    ("delay", Kind::Number),
    ("limit", Kind::Number),
    ("block_until", Kind::SecondsAhead),
    ("wake", Kind::Flag),
    ("forget", Kind::Flag),
];

const WATCH: &[(&str, Kind)] = &[("name", Kind::Text)];

pub(crate) async fn submit(visit: &Visit, name: &str, form: &Form) -> Shown {
    let offered = OFFERED.iter().find(|(action, ..)| *action == name);
    let Some((action, members, done)) = offered else {
        return Err(Problem::not_found(format!("unknown action `{name}`")));
    };
    let mut request = json!({"action": action});
    for (member, kind) in *members {
        if let Some(value) = parse_field(form, member, *kind)? {
            request[*member] = value;
        }
    }
    let message = match visit.run_action(request).await {
        Ok(answer) => Message {
            is_fault: false,
            text: result_message(done, &answer),
        },
        Err(problem) => Message {
            is_fault: true,
            text: format!("Nothing changed: {}", problem.text),
        },
    };
    visit.dashboard.expire_snapshot().await;
    let back = return_path(form.get("back"));
    let name = visit.dashboard.messages.store(message);
    let mark = if back.contains('?') { '&' } else { '?' };
    Ok(see_other(&format!("{back}{mark}message={name}")))
}

fn parse_field(form: &Form, member: &str, kind: Kind) -> Result<Option<Value>, Problem> {
    let given = form
        .get(member)
        .map(str::trim)
        .filter(|text| !text.is_empty());
    Ok(match kind {
        Kind::Text => given.map(Value::from),
        Kind::Flag => given.map(|_| true.into()),
        Kind::Number | Kind::SecondsAhead if given == Some(NONE) => Some(Value::Null),
        Kind::Number => given.map(|text| parse_number(member, text)).transpose()?,
        Kind::SecondsAhead => {
            let seconds = given.map(|text| parse_number(member, text)).transpose()?;
            let seconds = seconds.and_then(|seconds| seconds.as_f64());
            seconds.map(|seconds| (seconds + now_s()).into())
        }
        Kind::Texts => {
            let all = form
                .fields()
                .filter(|(key, text)| *key == member && !text.is_empty());
            let all: Vec<Value> = all.map(|(_, text)| text.into()).collect();
            (!all.is_empty()).then(|| all.into())
        }
    })
}

/// The text in a form that removes a setting.
const NONE: &str = "none";

fn parse_number(member: &str, text: &str) -> Result<Value, Problem> {
    let read = serde_json::from_str::<serde_json::Number>(text);
    let refused = |_| Problem::bad_request(format!("{member}: expected a number"));
    read.map(Value::from).map_err(refused)
}

fn now_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

/// The message to the visitor after an action, with the counts in the answer.
fn result_message(done: &str, answer: &Value) -> String {
    let empty = Map::new();
    let members = answer.as_object().unwrap_or(&empty);
    let counted = members.iter().filter(|(key, _)| key.starts_with("total_"));
    let counted: Vec<String> = counted
        .filter_map(|(key, value)| {
            let what = key.trim_start_matches("total_").replace('_', " ");
            value.as_u64().map(|count| format!("{what}: {count}"))
        })
        .collect();
    match counted[..] {
        [] => done.to_owned(),
        _ => format!("{done} ({})", counted.join(", ")),
    }
}

/// The path that the browser returns to after an action. Other paths than the dashboard's own are replaced.
fn return_path(asked: Option<&str>) -> &str {
    let is_own = |path: &&str| {
        path.starts_with("/dashboard/")
            && path
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    asked.filter(is_own).unwrap_or("/dashboard/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(body: &str) -> Form {
        let kind = Some("application/x-www-form-urlencoded");
        Form::parse(kind, body.as_bytes().to_vec())
    }

    #[test]
    fn form_fields_are_parsed_by_the_kinds_of_members() {
        let form = form("text=+a+&empty=&number=2.5&flag=on&list=a&list=b&wrong=x&none=none");
        let before = now_s();
        let read = |member: &str, kind: Kind| parse_field(&form, member, kind);
        assert_eq!(read("text", Kind::Text), Ok(Some("a".into())));
        assert_eq!(read("empty", Kind::Text), Ok(None));
        assert_eq!(read("number", Kind::Number), Ok(Some(2.5.into())));
        assert_eq!(read("empty", Kind::Number), Ok(None));
        assert_eq!(read("flag", Kind::Flag), Ok(Some(true.into())));
        assert_eq!(read("other", Kind::Flag), Ok(None));
        assert_eq!(read("list", Kind::Texts), Ok(Some(json!(["a", "b"]))));
        assert_eq!(read("wrong", Kind::Number).unwrap_err().status, 400);
        assert_eq!(read("none", Kind::Number), Ok(Some(Value::Null)));
        assert_eq!(read("none", Kind::SecondsAhead), Ok(Some(Value::Null)));
        assert_eq!(read("empty", Kind::SecondsAhead), Ok(None));
        let until = read("number", Kind::SecondsAhead).unwrap().unwrap();
        assert!(until.as_f64().unwrap() >= before + 2.5);
    }

    #[test]
    fn forms_return_only_to_pages_of_the_dashboard() {
        assert_eq!(
            return_path(Some("/dashboard/crawls?after=a%20b")),
            "/dashboard/crawls?after=a%20b"
        );
        for foreign in [
            "https://evil.org/dashboard/",
            "//evil.org",
            "/status",
            "/dashboard/a\r\nb",
            "/dashboard/\\e",
        ] {
            assert_eq!(return_path(Some(foreign)), "/dashboard/", "{foreign}");
        }
        assert_eq!(return_path(None), "/dashboard/");
    }

    #[test]
    fn counts_of_the_answer_are_shown() {
        let answer = json!({"action": "stop", "total_purged": 12, "appid": "a"});
        assert_eq!(result_message("Stopped", &answer), "Stopped (purged: 12)");
        assert_eq!(result_message("Stopped", &json!({})), "Stopped");
    }
}
