//! The steps of a history, and their display.

use serde_json::{Map, Value, json};
use webfill_store::parse_iso_time;

use crate::demand::table::{table, without_control_characters};

/// Members of a line that are shown elsewhere, or are useless for people.
const SHOWN_ELSEWHERE: [&str; 10] = [
    "timestamp",
    "level",
    "target",
    "event",
    "message",
    "span",
    "task",
    "crawl_id",
    "url",
    "attempt",
];

/// An event in the history of the URL.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// When the event happened, in ISO 8601.
    pub(super) at: String,
    /// The process that recorded the event, or the store.
    pub(super) process: String,
    pub(super) event: String,
    pub(super) crawl_id: Option<String>,
    pub(super) task: Option<u64>,
    /// The number of the delivery of the task to a supervisor that the line is about.
    pub(super) delivery: Option<u64>,
    pub(super) message: String,
    /// All further members of the log line.
    pub(super) more: Map<String, Value>,
    /// The position of the line among all lines that were found, for a stable order.
    place: usize,
}

impl Step {
    pub(super) fn from_line(process: String, line: &Value, place: usize) -> Step {
        let of = |key: &str| match &line[key] {
            Value::Null => &line["span"][key],
            own => own,
        };
        let text = |key: &str| of(key).as_str().unwrap_or_default().to_owned();
        let members = line.as_object().into_iter().flatten();
        let own = members.filter(|(key, _)| !SHOWN_ELSEWHERE.contains(&key.as_str()));
        // All lines of a feed name the feeder. Show it only once.
        let of_feed = line["span"]
            .as_object()
            .filter(|span| span.get("name").is_some_and(|name| name == "feed"));
        let of_feed = of_feed.into_iter().flatten();
        let more = own.chain(of_feed.filter(|(key, _)| *key != "name"));
        Step {
            at: text("timestamp"),
            process,
            event: text("event"),
            crawl_id: of("crawl_id").as_str().map(str::to_owned),
            task: of("task").as_u64(),
            delivery: of("attempt").as_u64(),
            message: text("message"),
            more: more
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            place,
        }
    }

    /// The present state of the page in the store, as a step.
    pub(super) fn from_page(page: &Value) -> Step {
        let known = [
            "outcome",
            "status_code",
            "final_url",
            "mapping",
            "worker",
            "bytes",
            "elapsed_ms",
        ];
        let more = known.iter().filter(|key| !page[**key].is_null());
        Step {
            at: page["started_at"].as_str().unwrap_or_default().to_owned(),
            process: "store".into(),
            event: "page".into(),
            crawl_id: page["crawl_id"].as_str().map(str::to_owned),
            task: None,
            delivery: page["attempts"].as_u64(),
            message: "the page that the store has was requested".into(),
            more: more
                .map(|key| ((*key).to_owned(), page[*key].clone()))
                .collect(),
            place: usize::MAX,
        }
    }

    /// The sort key: the time, then the order the steps were found in.
    pub(super) fn sort_key(&self) -> (i64, usize) {
        let at_ms = parse_iso_time(&self.at).unwrap_or(0);
        let at_us = at_ms.saturating_mul(1_000) + microseconds(&self.at);
        (at_us, self.place)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "at": self.at,
            "process": self.process,
            "event": self.event,
            "crawlid": self.crawl_id,
            "task": self.task,
            "delivery": self.delivery,
            "text": self.message,
            "more": self.more,
        })
    }

    fn describe(&self) -> String {
        let mut parts = vec![without_control_characters(&self.message)];
        for (key, value) in &self.more {
            let value = match value {
                Value::Null => continue,
                Value::String(text) => without_control_characters(text),
                other => without_control_characters(&other.to_string()),
            };
            parts.push(format!("{} {value}", key.replace('_', " ")));
        }
        parts.retain(|part| !part.is_empty());
        parts.join(", ")
    }
}

/// The digits of a time after its milliseconds: 456 for `10:00:01.123456Z`.
fn microseconds(at: &str) -> i64 {
    let digits = at
        .split_once('.')
        .map_or("", |(_, fraction)| fraction)
        .bytes();
    let digits = digits
        .take_while(u8::is_ascii_digit)
        .chain(std::iter::repeat(b'0'));
    digits
        .skip(3)
        .take(3)
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

/// Renders the history as a table, preceded by the present state of the URL.
pub(super) fn render_history(
    url: &str,
    crawls: &[Value],
    steps: &[Step],
    missing: &[String],
) -> String {
    let mut parts = vec![without_control_characters(url)];
    for crawl in crawls {
        let text = |key: &str| without_control_characters(crawl[key].as_str().unwrap_or_default());
        parts.push(format!(
            "{}/{}: {}",
            text("appid"),
            text("crawlid"),
            text("text")
        ));
    }
    if !steps.is_empty() {
        let rows: Vec<Vec<String>> = steps.iter().map(step_row).collect();
        let heads = ["time", "by", "crawl", "delivery", "event", "what"];
        parts.push(format!("\n{}", table(&heads, &rows)));
    }
    let missing = missing
        .iter()
        .map(|what| format!("\nmissing: {}", without_control_characters(what)));
    parts.extend(missing);
    parts.join("\n")
}

fn step_row(step: &Step) -> Vec<String> {
    vec![
        without_control_characters(&step.at),
        without_control_characters(&step.process),
        step.crawl_id
            .as_deref()
            .map_or("-".into(), without_control_characters),
        step.delivery
            .map_or("-".into(), |number| number.to_string()),
        without_control_characters(&step.event),
        step.describe(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_one_millisecond_have_the_order_of_their_microseconds() {
        let step = |at: &str, place| {
            let line = json!({"timestamp": at, "event": "e"});
            Step::from_line("a".into(), &line, place).sort_key()
        };
        assert!(step("2026-11-23T10:00:01.123456Z", 1) < step("2026-11-23T10:00:01.1235Z", 0));
        assert!(step("2026-11-23T10:00:01.123Z", 1) < step("2026-11-23T10:00:01.123001Z", 0));
        assert!(step("2026-11-23T10:00:01Z", 1) < step("2026-11-23T10:00:01.000001Z", 0));
    }

    #[test]
    fn a_history_is_in_chronological_order() {
        let line = json!({
            "timestamp": "2026-11-23T10:00:01.5Z", "level": "DEBUG", "event": "leased", "task": 7, "crawl_id": "c",
            "attempt": 2, "supervisor": "one", "message": "leased", "url": "http://a.org/",
        });
        let leased = Step::from_line("dispatcher".into(), &line, 3);
        let page = json!({"started_at": "2026-11-23T10:00:01.2Z", "outcome": "ok", "attempts": 2, "crawl_id": "c"});
        let page = Step::from_page(&page);
        assert!(page.sort_key() < leased.sort_key());
        let known = [json!({"appid": "a", "crawlid": "c", "text": "it ended with `ok`"})];
        let reported = render_history(
            "http://a.org/",
            &known,
            &[page, leased],
            &["nothing".into()],
        );
        let expected = "\
http://a.org/
a/c: it ended with `ok`

time                    by          crawl  delivery  event   what
2026-11-23T10:00:01.2Z  store       c             2  page    the page that the store has was requested, outcome ok
2026-11-23T10:00:01.5Z  dispatcher  c             2  leased  leased, supervisor one

missing: nothing";
        assert_eq!(reported, expected);
    }
}
