//! The connection to a dispatcher, with the time limits of each kind of request.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};
use webfill_dispatcher::Endpoints;
use webfill_service::Fault;
use webfill_wire::keys::{ClientKeys, Role};

use crate::control_client::ControlClient;
use crate::endpoints::endpoints_of_list;
use crate::keys::{KeyFolder, check_reach};
use crate::settings::Settings;

/// How long to wait for the dispatcher's answer. Even a busy dispatcher answers sooner.
const WAIT: Duration = Duration::from_secs(10);

/// How long to wait for the answer to an action that takes effect in the whole fleet. A supervisor that does not
/// respond may still start its leased tasks until its lease ends, after ten seconds by default.
const ORDER_WAIT: Duration = Duration::from_secs(30);

/// A request that every dispatcher answers immediately.
const STATUS: &str = r#"{"action": "status"}"#;

/// How long a command waits before it explains to the user why.
const EXPLAIN_AFTER: Duration = Duration::from_secs(2);

/// If several dispatchers are given: how long each has to answer at first before the next one is asked.
const TURN: Duration = Duration::from_millis(1_500);

/// How long several dispatchers are asked in turn. If the one that serves is lost, another one serves within about ten
/// seconds.
const TAKEOVER_WITHIN: Duration = Duration::from_secs(20);

/// How many times crawl requests are sent while the dispatcher restarts. Repeating is safe, because a crawl accepts a
/// URL only once.
const FEED_TIMES: u32 = 6;

/// Actions that change nothing when they are repeated.
const REPEATABLE: [&str; 7] = [
    "info",
    "resume",
    "sites",
    "status",
    "watch_list",
    "watch_show",
    "why",
];

/// How many times an action that changes nothing is sent, if several dispatchers are named.
const REPEATED_TIMES: u32 = 2;

/// The flags that name the dispatcher.
#[derive(Debug, Clone, Args)]
pub struct ConnectionOptions {
    /// Address of the dispatcher's tasks socket, or several separated by commas [default: tcp://127.0.0.1:5555]
    #[arg(long, value_name = "tcp://HOST:PORT")]
    pub dispatcher: Option<String>,
    /// Folder of keys (see `webfill keys`); needed for connections between machines
    #[arg(long, value_name = "DIR")]
    pub keys: Option<PathBuf>,
    /// Settings file; only `supervisor.dispatcher` and `keys` are used
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConnectionOptions {
    /// The endpoints of the dispatchers (one of them serves) and the keys. Without keys, endpoints on other machines
    /// are refused.
    pub fn resolve(&self) -> Result<(Vec<Endpoints>, Option<ClientKeys>), Fault> {
        let settings = Settings::load(self.config.as_deref())?;
        let dispatcher = &settings.supervisor.dispatcher;
        let endpoints = endpoints_of_list(self.dispatcher.as_ref().unwrap_or(dispatcher))?;
        let folder = self.keys.as_ref().or(settings.keys.as_ref());
        let keys = folder
            .map(|folder| KeyFolder::new(folder).client_keys(Role::Client))
            .transpose()?;
        for endpoints in &endpoints {
            check_reach(&endpoints.control, keys.is_some())?;
        }
        Ok((endpoints, keys))
    }

    /// Requests a drain and waits for its end, which may take as long as the longest fetch. The request is repeated
    /// until it is answered, because the dispatcher may be replaced meanwhile.
    pub(super) fn drain(&self, action: &Value) -> Result<Value, Fault> {
        let mut was_heard = false;
        loop {
            let mut connection = self.connect()?;
            let answer = connection.client.request_with_retries(
                action.to_string().as_bytes(),
                1,
                ORDER_WAIT,
            )?;
            match answer.map(Refusal::check_answer) {
                Some(Ok(answer)) => return Ok(answer),
                // If the dispatcher no longer knows the supervisor, the supervisor has left since the first request.
                Some(Err(refusal)) if was_heard && refusal.path == "$.supervisor" => {
                    let drained = &action["supervisor"];
                    return Ok(json!({"action": "drain", "drained": [drained], "lost": []}));
                }
                Some(Err(refusal)) => return Err(Fault::error(refusal.sentence())),
                None => {}
            }
            let there = connection.request_repeatable(STATUS)?;
            there.map_err(|refusal| Fault::error(refusal.sentence()))?;
            was_heard = true;
        }
    }

    pub(super) fn connect(&self) -> Result<Connection, Fault> {
        let (endpoints, keys) = self.resolve()?;
        let has_keys = keys.is_some();
        let client = ControlClient::connect_with(control_sockets(&endpoints), keys)?;
        let mut connection = Connection {
            has_keys,
            endpoint: control_socket_list(&endpoints),
            client,
            was_answered: false,
        };
        match connection.find_serving_dispatcher()? {
            true => Ok(connection),
            false => Err(connection.no_answer_fault(TAKEOVER_WITHIN)),
        }
    }
}

/// The control sockets of dispatchers.
pub fn control_sockets(endpoints: &[Endpoints]) -> Vec<String> {
    let controls = endpoints.iter().map(|one| one.control.clone());
    controls.collect()
}

/// The control sockets of dispatchers, separated by commas.
pub fn control_socket_list(endpoints: &[Endpoints]) -> String {
    control_sockets(endpoints).join(", ")
}

/// Sends one action, and returns the dispatcher's answer.
pub fn send_action(connection: &ConnectionOptions, action: &Value) -> Result<Value, Fault> {
    connection.connect()?.send_action(action)
}

/// Feeds a list of requests, which is accepted or refused as a whole. Returns the dispatcher's answer.
pub fn feed_list(
    connection: &ConnectionOptions,
    requests: &[Map<String, Value>],
) -> Result<Value, Fault> {
    let requests = serde_json::to_string(requests).map_err(Fault::error)?;
    let fed = connection.connect()?.feed(&requests)?;
    fed.map_err(|refusal| Fault::error(refusal.sentence()))
}

/// A connection to a dispatcher, which may not be running.
pub(super) struct Connection {
    client: ControlClient,
    endpoint: String,
    has_keys: bool,
    was_answered: bool,
}

/// The dispatcher's reason for refusing a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The position of the fault in the request, as a JSON path.
    pub(super) path: String,
    pub(super) message: String,
}

impl Connection {
    /// Connects by a Unix socket to a dispatcher of this user.
    pub(super) fn connect_locally(endpoint: String) -> Result<Connection, Fault> {
        Ok(Connection {
            client: ControlClient::connect(&endpoint)?,
            endpoint,
            has_keys: false,
            was_answered: false,
        })
    }

    /// Sends an action, and returns the answer. If no answer comes, only `retry` is repeated, because a second `pause`
    /// would be answered differently than the first. If several dispatchers are given, another one may have taken over:
    /// then every action is repeated that can do no harm twice.
    pub(super) fn send_action(&mut self, action: &Value) -> Result<Value, Fault> {
        let answer = match action["action"].as_str() {
            Some("stop" | "pause" | "site") => self.send_order_and_wait(&action.to_string())?,
            Some("retry") => self.send_order_until_answered(&action.to_string())?,
            Some(name) if REPEATABLE.contains(&name) => {
                self.request_repeatable(&action.to_string())?
            }
            _ => self.request(&action.to_string(), 1)?,
        };
        answer.map_err(|refusal| Fault::error(refusal.sentence()))
    }

    /// Sends crawl requests. Waits for an unavailable dispatcher if it has answered before.
    pub(super) fn feed(&mut self, requests: &str) -> Result<Result<Value, Refusal>, Fault> {
        let times = if self.was_answered { FEED_TIMES } else { 1 };
        self.request(requests, times)
    }

    /// Sends an action that may be repeated. If one of several dispatchers does not answer, sends it to the one that has
    /// taken over.
    fn request_repeatable(&mut self, question: &str) -> Result<Result<Value, Refusal>, Fault> {
        let times = match self.client.has_several() {
            true => REPEATED_TIMES,
            false => 1,
        };
        self.request(question, times)
    }

    fn request(&mut self, question: &str, times: u32) -> Result<Result<Value, Refusal>, Fault> {
        for time in 0..times {
            if time > 0 {
                self.find_serving_dispatcher()?;
            }
            let answer = self
                .client
                .request_with_retries(question.as_bytes(), 1, WAIT)?;
            if let Some(answer) = answer {
                self.was_answered = true;
                return Ok(Refusal::check_answer(answer));
            }
        }
        Err(self.no_answer_fault(WAIT * times))
    }

    /// If there are several dispatchers, connects to the one that serves, or waits for it. Returns false if none answers.
    fn find_serving_dispatcher(&mut self) -> Result<bool, Fault> {
        if !self.client.has_several() {
            return Ok(true);
        }
        let question = STATUS.as_bytes();
        let found = self
            .client
            .connect_to_answering_dispatcher(question, TURN, TAKEOVER_WITHIN)?;
        self.was_answered |= found;
        Ok(found)
    }

    /// Sends an action whose answer comes when it has taken effect in the whole fleet. If the dispatcher is one of
    /// several and does not answer, sends it to the one that has taken over: it may not know the action.
    fn send_order_and_wait(&mut self, question: &str) -> Result<Result<Value, Refusal>, Fault> {
        let mut answer = self.answer_to_order(question)?;
        if answer.is_none() && self.client.has_several() {
            self.client.reconnect()?;
            self.find_serving_dispatcher()?;
            answer = self.answer_to_order(question)?;
        }
        let answer = answer.ok_or_else(|| self.no_answer_fault(ORDER_WAIT))?;
        Ok(Refusal::check_answer(answer))
    }

    fn answer_to_order(&mut self, question: &str) -> Result<Option<Value>, Fault> {
        self.client.send(question.as_bytes());
        let mut answer = self.client.wait_for_answer(EXPLAIN_AFTER)?;
        if answer.is_none() {
            if std::io::stderr().is_terminal() {
                webfill_service::say!("webfill: waiting for silent supervisors' leases to expire");
            }
            answer = self.client.wait_for_answer(ORDER_WAIT - EXPLAIN_AFTER)?;
        }
        Ok(answer)
    }

    /// Sends an action that may take minutes and can be sent again while it runs. Waits as long as the dispatcher is
    /// reachable.
    fn send_order_until_answered(
        &mut self,
        question: &str,
    ) -> Result<Result<Value, Refusal>, Fault> {
        loop {
            let answer = self
                .client
                .request_with_retries(question.as_bytes(), 1, ORDER_WAIT)?;
            if let Some(answer) = answer {
                return Ok(Refusal::check_answer(answer));
            }
            // Only whether it answers matters.
            let _ = self.request_repeatable(STATUS)?;
        }
    }

    fn no_answer_fault(&self, waited: Duration) -> Fault {
        let why = match self.has_keys {
            true => "is it running there, and is this key on its allow list",
            false => "is it running there, and does it need --keys",
        };
        Fault::error(format!(
            "the dispatcher at {} has not answered for {} s: {why}?",
            self.endpoint,
            waited.as_secs()
        ))
    }
}

impl Refusal {
    /// Splits an answer into success and refusal.
    fn check_answer(answer: Value) -> Result<Value, Refusal> {
        match Refusal::from_answer(&answer) {
            Some(refusal) => Err(refusal),
            None => Ok(answer),
        }
    }

    fn from_answer(answer: &Value) -> Option<Refusal> {
        let error = answer.get("error")?;
        let text = |key| error.get(key).and_then(Value::as_str).unwrap_or_default();
        Some(Refusal {
            path: text("path").to_owned(),
            message: text("message").to_owned(),
        })
    }

    pub(super) fn sentence(&self) -> String {
        match self.path.as_str() {
            "" | "$" => self.message.clone(),
            path => format!("{path}: {}", self.message),
        }
    }

    /// The index of the refused request within a list, and the message about it; `None` if no single request was
    /// refused.
    pub(super) fn refused_entry(&self) -> Option<(usize, String)> {
        let inside = self.path.strip_prefix("$[")?;
        let (index, rest) = inside.split_once(']')?;
        let alone = Refusal {
            path: match rest {
                "" => String::new(),
                rest => format!("${rest}"),
            },
            message: self.message.clone(),
        };
        Some((index.parse().ok()?, alone.sentence()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refused_request_of_a_list_is_found_by_its_json_path() {
        let refusal = |path: &str| Refusal {
            path: path.into(),
            message: "too deep".into(),
        };
        let found = refusal("$[12].maxdepth").refused_entry();
        assert_eq!(found, Some((12, "$.maxdepth: too deep".into())));
        assert_eq!(
            refusal("$[0]").refused_entry(),
            Some((0, "too deep".into()))
        );
        for whole in ["$", "", "$.url", "$[x]"] {
            assert_eq!(refusal(whole).refused_entry(), None, "{whole}");
        }
    }
}
