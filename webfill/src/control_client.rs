//! A client of the dispatcher's control socket: one request at a time, in JSON.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use webfill_scheduler::local_crawl::LocalRequest;
use webfill_service::Fault;
use webfill_wire::keys::ClientKeys;
use webfill_wire::socket::{Pattern, SocketSpec, Sockets};

/// How long to wait for an answer before the request is repeated. A dispatcher that has restarted has lost the request.
/// Repeating is safe, because every request is idempotent.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How often, during a wait for an answer, the client checks whether to keep waiting.
const POLL_EVERY: Duration = Duration::from_millis(50);

const DISPATCHER: u32 = 1;

/// A client of the dispatcher's control socket. It sends one request at a time.
pub struct ControlClient {
    /// The addresses of the dispatchers. One of them serves at a time.
    endpoints: Vec<String>,
    /// The index of the dispatcher that this client is connected to.
    current: usize,
    keys: Option<ClientKeys>,
    connection: Connection,
}

/// The sockets of one attempt. Each attempt has its own, so a late answer to an abandoned request is never mistaken for
/// the answer to the next one.
struct Connection {
    sockets: Sockets,
    answers: mpsc::Receiver<Vec<u8>>,
}

impl ControlClient {
    pub fn connect(endpoint: &str) -> Result<ControlClient, Fault> {
        ControlClient::connect_with(vec![endpoint.to_owned()], None)
    }

    /// Connects with keys, which a dispatcher on another machine requires.
    /// If one of several dispatchers does not answer, the next one is asked.
    pub fn connect_with(
        endpoints: Vec<String>,
        keys: Option<ClientKeys>,
    ) -> Result<ControlClient, Fault> {
        let first = endpoints.first().map_or("", String::as_str);
        Ok(ControlClient {
            connection: Connection::open(first, keys.as_ref())?,
            endpoints,
            current: 0,
            keys,
        })
    }

    /// Opens a new connection: to the next dispatcher if there are several, or else to the same one.
    pub fn reconnect(&mut self) -> Result<(), Fault> {
        self.current = (self.current + 1) % self.endpoints.len();
        let next = &self.endpoints[self.current];
        self.connection = Connection::open(next, self.keys.as_ref())?;
        Ok(())
    }

    /// Repeats a request until there is an answer. `meanwhile` runs during the wait; its error ends the wait.
    pub fn request<A: DeserializeOwned>(
        &mut self,
        request: &impl Serialize,
        mut meanwhile: impl FnMut() -> Result<(), Fault>,
    ) -> Result<A, Fault> {
        let question = serde_json::to_vec(request).map_err(|error| {
            Fault::error(format!(
                "cannot write the request to the dispatcher: {error}"
            ))
        })?;
        loop {
            let outbox = self.connection.sockets.outbox();
            outbox.send(DISPATCHER, question.clone());
            let sent = Instant::now();
            while sent.elapsed() < ANSWER_WITHIN {
                match self.connection.answers.recv_timeout(POLL_EVERY) {
                    Ok(answer) => return parse_answer(&answer),
                    Err(RecvTimeoutError::Timeout) => meanwhile()?,
                    Err(RecvTimeoutError::Disconnected) => {
                        meanwhile()?;
                        break;
                    }
                }
            }
            self.reconnect()?;
        }
    }

    /// Sends a request up to `times` times, and reconnects whenever no answer arrives within `wait`. `None` if there
    /// was no answer.
    pub fn request_with_retries(
        &mut self,
        question: &[u8],
        times: u32,
        wait: Duration,
    ) -> Result<Option<Value>, Fault> {
        for _ in 0..times {
            self.send(question);
            if let Some(answer) = self.wait_for_answer(wait)? {
                return Ok(Some(answer));
            }
            self.reconnect()?;
        }
        Ok(None)
    }

    /// Whether there are several dispatchers. One of them serves.
    pub fn has_several(&self) -> bool {
        self.endpoints.len() > 1
    }

    /// Connects to the dispatcher that answers this question. Tries all in turn until `within` has passed: each for
    /// `wait`, and then for twice as long in each round, because the one that serves may be slow. Returns false if none
    /// answers.
    pub fn connect_to_answering_dispatcher(
        &mut self,
        question: &[u8],
        wait: Duration,
        within: Duration,
    ) -> Result<bool, Fault> {
        let started = Instant::now();
        let mut wait = wait;
        while started.elapsed() < within {
            let times = self.endpoints.len() as u32;
            if self.request_with_retries(question, times, wait)?.is_some() {
                return Ok(true);
            }
            wait *= 2;
        }
        Ok(false)
    }

    /// Sends a request without waiting for the answer; see [`ControlClient::wait_for_answer`].
    pub fn send(&mut self, question: &[u8]) {
        let outbox = self.connection.sockets.outbox();
        outbox.send(DISPATCHER, question.to_vec());
    }

    /// Waits for the answer to the last request, and returns `None` if it does not arrive in time. May be called again
    /// to wait longer.
    pub fn wait_for_answer(&mut self, wait: Duration) -> Result<Option<Value>, Fault> {
        let arrived = self.connection.answers.recv_timeout(wait).ok();
        arrived
            .map(|answer| serde_json::from_slice(&answer).map_err(unreadable_answer))
            .transpose()
    }
}

impl ControlClient {
    /// Sends a request once, and waits for the answer until `give_up` returns true.
    pub fn request_until<A: DeserializeOwned>(
        &mut self,
        request: &LocalRequest,
        give_up: &impl Fn() -> bool,
    ) -> Result<Option<A>, Fault> {
        let question = serde_json::to_vec(request).map_err(|error| {
            Fault::error(format!(
                "cannot write the request to the dispatcher: {error}"
            ))
        })?;
        self.connection.sockets.outbox().send(DISPATCHER, question);
        while !give_up() {
            if let Ok(answer) = self.connection.answers.recv_timeout(POLL_EVERY) {
                return parse_answer(&answer).map(Some);
            }
        }
        Ok(None)
    }
}

impl Connection {
    fn open(endpoint: &str, keys: Option<&ClientKeys>) -> Result<Connection, Fault> {
        let (answered, answers) = mpsc::channel();
        let spec = SocketSpec::connect(DISPATCHER, Pattern::Client, endpoint).call(keys);
        let sockets = Sockets::start(vec![spec], move |arrived| {
            let _ = answered.send(arrived.frame);
        })
        .map_err(Fault::error)?;
        Ok(Connection { sockets, answers })
    }
}

fn parse_answer<A: DeserializeOwned>(answer: &[u8]) -> Result<A, Fault> {
    let answer: Value = serde_json::from_slice(answer).map_err(unreadable_answer)?;
    if let Some(error) = answer.get("error") {
        let text = |key| error.get(key).and_then(Value::as_str).unwrap_or_default();
        return Err(Fault::usage(format!(
            "{}: {}",
            text("path"),
            text("message")
        )));
    }
    serde_json::from_value(answer).map_err(unreadable_answer)
}

fn unreadable_answer(error: serde_json::Error) -> Fault {
    Fault::error(format!("the dispatcher's answer: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_given_up_ends_immediately() {
        let folder = tempfile::tempdir().unwrap();
        let nobody = format!("ipc://{}", folder.path().join("control").display());
        let mut client = ControlClient::connect(&nobody).unwrap();
        let begun = Instant::now();
        let mut polls = 0;
        let answer: Result<Value, Fault> = client.request(&"anything", || {
            polls += 1;
            match polls {
                3 => Err(Fault::error("it is over")),
                _ => Ok(()),
            }
        });
        assert_eq!(answer.unwrap_err().message, "it is over");
        assert!(begun.elapsed() < ANSWER_WITHIN);
    }
}
