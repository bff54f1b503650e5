//! Asks the dispatcher over its control socket: one question at a time, JSON both ways.

use std::sync::mpsc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use webfill_dispatcher::control::Request;
use webfill_startup::Fault;
use webfill_wire::keys::ClientKeys;
use webfill_wire::socket::{Pattern, SocketSpec, Sockets};

/// A dispatcher that was restarted has lost the question: it is asked again. Every request may be
/// repeated without harm.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

const DISPATCHER: u32 = 1;

/// A connection to the dispatcher.
pub struct ControlClient {
    endpoint: String,
    keys: Option<ClientKeys>,
    connection: Connection,
}

/// A socket of its own per try: the answer to a question that was given up reaches nobody.
struct Connection {
    sockets: Sockets,
    answers: mpsc::Receiver<Vec<u8>>,
}

impl ControlClient {
    pub fn connect(endpoint: &str) -> Result<ControlClient, Fault> {
        ControlClient::connect_with(endpoint, None)
    }

    /// With keys, where the dispatcher is to be reached over a network.
    pub fn connect_with(endpoint: &str, keys: Option<ClientKeys>) -> Result<ControlClient, Fault> {
        Ok(ControlClient {
            endpoint: endpoint.to_owned(),
            connection: Connection::open(endpoint, keys.as_ref())?,
            keys,
        })
    }

    /// Asks until there is an answer; `meanwhile` runs between the tries and may give up.
    pub fn ask<A: DeserializeOwned>(
        &mut self,
        request: &Request,
        mut meanwhile: impl FnMut() -> Result<(), Fault>,
    ) -> Result<A, Fault> {
        let question = serde_json::to_vec(request)
            .map_err(|error| Fault::error(format!("cannot ask the dispatcher: {error}")))?;
        loop {
            let outbox = self.connection.sockets.outbox();
            outbox.send(DISPATCHER, question.clone());
            match self.connection.answers.recv_timeout(ANSWER_WITHIN) {
                Ok(answer) => return read(&answer),
                Err(_) => meanwhile()?,
            }
            self.connection = Connection::open(&self.endpoint, self.keys.as_ref())?;
        }
    }

    /// Asks so many times, each time on a new connection, and waits so long for each answer; says
    /// `None` if none came.
    pub fn ask_times(
        &mut self,
        question: &[u8],
        times: u32,
        wait: Duration,
    ) -> Result<Option<Value>, Fault> {
        for _ in 0..times {
            self.send(question);
            if let Some(answer) = self.answer_within(wait)? {
                return Ok(Some(answer));
            }
            self.connection = Connection::open(&self.endpoint, self.keys.as_ref())?;
        }
        Ok(None)
    }

    /// Asks, and waits for nothing: see [`ControlClient::answer_within`].
    pub fn send(&mut self, question: &[u8]) {
        let outbox = self.connection.sockets.outbox();
        outbox.send(DISPATCHER, question.to_vec());
    }

    /// The answer to what was sent, if it comes in time. It may still be waited for afterwards.
    pub fn answer_within(&mut self, wait: Duration) -> Result<Option<Value>, Fault> {
        let arrived = self.connection.answers.recv_timeout(wait).ok();
        arrived
            .map(|answer| serde_json::from_slice(&answer).map_err(unreadable))
            .transpose()
    }
}

/// How often somebody who waits is asked whether to go on waiting.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl ControlClient {
    /// Asks once, and waits for the answer until told to give up.
    pub fn ask_until<A: DeserializeOwned>(
        &mut self,
        request: &Request,
        give_up: &impl Fn() -> bool,
    ) -> Result<Option<A>, Fault> {
        let question = serde_json::to_vec(request)
            .map_err(|error| Fault::error(format!("cannot ask the dispatcher: {error}")))?;
        self.connection.sockets.outbox().send(DISPATCHER, question);
        while !give_up() {
            if let Ok(answer) = self.connection.answers.recv_timeout(LOOK_EVERY) {
                return read(&answer).map(Some);
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

fn read<A: DeserializeOwned>(answer: &[u8]) -> Result<A, Fault> {
    let answer: Value = serde_json::from_slice(answer).map_err(unreadable)?;
    if let Some(error) = answer.get("error") {
        let text = |key| error.get(key).and_then(Value::as_str).unwrap_or_default();
        return Err(Fault::usage(format!(
            "{}: {}",
            text("path"),
            text("message")
        )));
    }
    serde_json::from_value(answer).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Fault {
    Fault::error(format!("the dispatcher's answer: {error}"))
}
