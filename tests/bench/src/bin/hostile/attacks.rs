//! The attacks of hostile clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Failure;
use crate::fleet::{Client, Fleet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Info,
    Status,
    Patterns,
    Lists,
    Stops,
}

pub(crate) const KINDS: [Kind; 5] = [
    Kind::Info,
    Kind::Status,
    Kind::Patterns,
    Kind::Lists,
    Kind::Stops,
];

/// The number of requests that a connection sends, for each kind of attack.
const INFOS: usize = 20_000;
const STATUSES: usize = 50_000;
const STOPS: usize = 300_000;

/// The number of requests in a list with patterns: many with light patterns, or few with heavy ones that need a
/// megabyte each.
const LIGHT: usize = 40_000;
const HEAVY: usize = 2_000;

/// The sizes of two lists in bytes: one slightly below the longest allowed message, and one above it.
const LONG_BYTES: [usize; 2] = [15 << 20, 65 << 20];

/// The pause between two lists. It makes the dispatcher, and not the attacking program, the limit of the load.
const PAUSE: Duration = Duration::from_millis(200);

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Info => "info",
            Kind::Status => "status",
            Kind::Patterns => "patterns",
            Kind::Lists => "lists",
            Kind::Stops => "stops",
        }
    }

    /// The name of the key of a client. Clients of the same kind are numbered.
    pub(crate) fn key_name(self, number: usize) -> String {
        format!("{}-{number}", self.name())
    }

    pub(crate) fn rights(self) -> &'static [&'static str] {
        match self {
            Kind::Info => &["--read-only", "--apps", "many"],
            Kind::Status | Kind::Lists => &["--read-only"],
            Kind::Patterns => &["--apps", "patterns"],
            Kind::Stops => &["--apps", "stops"],
        }
    }

    /// Attacks until `is_over` is true.
    pub(crate) fn attack(
        self,
        fleet: &Fleet,
        key: &str,
        is_over: &AtomicBool,
    ) -> Result<(), Failure> {
        let lists = match self {
            Kind::Patterns => vec![
                pattern_list(key, LIGHT, "a{9}"),
                pattern_list(key, HEAVY, r"\w{30}"),
            ],
            Kind::Lists => LONG_BYTES.iter().map(|bytes| long_list(*bytes)).collect(),
            Kind::Info | Kind::Status | Kind::Stops => Vec::new(),
        };
        while !is_over.load(Ordering::Relaxed) {
            let client = fleet.client(key)?;
            match self {
                Kind::Info => {
                    let info = json!({"action": "info", "appid": "many"});
                    send_many_times(&client, &info, INFOS, is_over)?;
                    // The client stays connected, but reads nothing.
                    sleep_unless_over(Duration::from_secs(10), is_over);
                }
                Kind::Status => {
                    send_many_times(&client, &json!({"action": "status"}), STATUSES, is_over)?
                }
                Kind::Stops => {
                    let stop = json!({"action": "stop", "appid": "stops", "crawlid": "one"});
                    for _ in 0..STOPS / 1_000 {
                        send_many_times(&client, &stop, 1_000, is_over)?;
                        client.read_all();
                    }
                }
                Kind::Patterns | Kind::Lists => {
                    for list in &lists {
                        client.send(list)?;
                        sleep_unless_over(PAUSE, is_over);
                        client.read_all();
                    }
                }
            }
        }
        Ok(())
    }
}

fn send_many_times(
    client: &Client,
    request: &Value,
    times: usize,
    is_over: &AtomicBool,
) -> Result<(), Failure> {
    let request = request.to_string();
    for _ in 0..times {
        while !client.send(request.as_bytes())? {
            if is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        if is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    Ok(())
}

fn sleep_unless_over(lasts: Duration, is_over: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(50);
    for _ in 0..lasts.as_millis() / STEP.as_millis() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(STEP);
    }
}

/// A list of requests. Each is for another crawl, which has its own pattern.
fn pattern_list(key: &str, requests: usize, tail: &str) -> Vec<u8> {
    let request = |nth: usize| {
        json!({
            "url": format!("http://blocked.example/{nth}"), "appid": "patterns",
            "crawlid": format!("{key}-{nth}"), "allow_regex": [format!("/{nth}/{tail}")],
        })
    };
    let requests: Value = (0..requests).map(request).collect();
    requests.to_string().into_bytes()
}

fn long_list(bytes: usize) -> Vec<u8> {
    let request = r#"{"url": "http://blocked.example/", "appid": "lists", "crawlid": "c"}"#;
    let requests = bytes / (request.len() + 1);
    format!("[{}]", vec![request; requests].join(",")).into_bytes()
}
