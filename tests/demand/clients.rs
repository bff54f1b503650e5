//! Clients of a fleet that do not use webfill: libzmq on the control socket and the firehose, and hand-written HTTP.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fleet::{APP, Fleet, HTTP, action};

const WAIT: Duration = Duration::from_secs(60);

/// A client that sends JSON to the control socket.
pub(crate) struct Client {
    socket: zmq::Socket,
}

impl Client {
    pub(crate) fn connect(endpoint: &str) -> Client {
        let client = Client::unconnected_client();
        client.socket.connect(endpoint).expect("an endpoint");
        client
    }

    /// A client that uses the keys in a folder.
    pub(crate) fn connect_with_keys(endpoint: &str, folder: &Path) -> Client {
        let client = Client::unconnected_client();
        set_keys(&client.socket, folder);
        client.socket.connect(endpoint).expect("an endpoint");
        client
    }

    fn unconnected_client() -> Client {
        let socket = zmq::Context::new().socket(zmq::REQ).expect("a socket");
        socket.set_linger(0).expect("an option");
        socket
            .set_rcvtimeo(WAIT.as_millis() as i32)
            .expect("an option");
        Client { socket }
    }

    pub(crate) fn ask(&self, request: &Value) -> Value {
        self.ask_bytes(request.to_string().as_bytes())
    }

    /// Sends these bytes, which need not be valid JSON. Returns the answer.
    pub(crate) fn ask_bytes(&self, request: &[u8]) -> Value {
        self.socket.send(request, 0).expect("it waits");
        let answer = self.socket.recv_bytes(0).expect("an answer in time");
        serde_json::from_slice(&answer).expect("JSON")
    }

    /// Sends a request and waits for the answer. Returns `None` if the server is gone (`is_gone`) and no answer has
    /// arrived.
    pub(crate) fn ask_unless(
        &self,
        request: &Value,
        mut is_gone: impl FnMut() -> bool,
    ) -> Option<Value> {
        self.socket.send(request.to_string().as_bytes(), 0).ok()?;
        let mut was_gone = false;
        while self.socket.poll(zmq::POLLIN, 50).ok()? == 0 {
            if was_gone {
                return None;
            }
            // The server may have sent the answer before it ended, so the socket is read once more after that.
            was_gone = is_gone();
        }
        let answer = self.socket.recv_bytes(0).ok()?;
        serde_json::from_slice(&answer).ok()
    }

    /// Sends a request that must be refused. Returns the JSON path and the message of the refusal.
    pub(crate) fn expect_refusal(&self, request: &Value) -> (String, String) {
        let answer = self.ask(request);
        let text = |key: &str| answer["error"][key].as_str().map(str::to_owned);
        match (text("path"), text("message")) {
            (Some(path), Some(message)) => (path, message),
            _ => panic!("{request} was not refused: {answer}"),
        }
    }
}

/// A client that sends further requests before earlier ones are answered.
pub(crate) struct Pipeline {
    socket: zmq::Socket,
}

impl Pipeline {
    pub(crate) fn connect(endpoint: &str) -> Pipeline {
        let socket = zmq::Context::new().socket(zmq::DEALER).expect("a socket");
        let options = [
            socket.set_linger(0),
            socket.set_rcvtimeo(WAIT.as_millis() as i32),
            socket.connect(endpoint),
        ];
        options
            .into_iter()
            .for_each(|set| set.expect("a valid option"));
        Pipeline { socket }
    }

    /// A pipelining client that uses the keys in a folder.
    pub(crate) fn connect_with_keys(endpoint: &str, folder: &Path) -> Pipeline {
        let socket = zmq::Context::new().socket(zmq::DEALER).expect("a socket");
        set_keys(&socket, folder);
        let set = [socket.set_linger(0), socket.connect(endpoint)];
        set.into_iter().for_each(|set| set.expect("a valid option"));
        Pipeline { socket }
    }

    /// Sends a request. Does nothing if too many requests are waiting to be sent.
    pub(crate) fn try_to_send(&self, request: &Value) {
        let _ = self
            .socket
            .send(request.to_string().as_bytes(), zmq::DONTWAIT);
    }

    pub(crate) fn send(&self, request: &Value) {
        self.send_bytes(request.to_string().as_bytes());
    }

    pub(crate) fn send_bytes(&self, request: &[u8]) {
        self.socket.send(request, 0).expect("it waits");
    }

    /// Discards all answers that have arrived so far.
    pub(crate) fn discard_answers(&self) {
        while self.socket.recv_bytes(zmq::DONTWAIT).is_ok() {}
    }

    /// Receives the next answer, whichever request it belongs to.
    pub(crate) fn receive_answer(&self) -> Value {
        let answer = self.socket.recv_bytes(0).expect("an answer in time");
        serde_json::from_slice(&answer).expect("JSON")
    }
}

fn set_keys(socket: &zmq::Socket, folder: &Path) {
    let read = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).expect("a key");
        let key = text.trim().trim_start_matches("secret ");
        zmq::z85_decode(key).expect("Z85")
    };
    let options = [
        socket.set_curve_serverkey(&read("dispatcher.pub")),
        socket.set_curve_publickey(&read("client.pub")),
        socket.set_curve_secretkey(&read("client.key")),
    ];
    options
        .into_iter()
        .for_each(|set| set.expect("a valid option"));
}

/// A subscriber of the firehose, the stream of all results and notifications.
pub(crate) struct Firehose {
    socket: zmq::Socket,
    topic: String,
}

impl Firehose {
    pub(crate) fn subscribe(fleet: &Fleet, topic: &str) -> Firehose {
        let socket = zmq::Context::new().socket(zmq::SUB).expect("a socket");
        socket.set_linger(0).expect("an option");
        socket.set_rcvhwm(0).expect("an option");
        socket
            .connect(&fleet.firehose_endpoint())
            .expect("an endpoint");
        socket.set_subscribe(topic.as_bytes()).expect("a topic");
        let firehose = Firehose {
            socket,
            topic: topic.to_owned(),
        };
        firehose.wait_until_subscribed(fleet);
        firehose
    }

    /// Causes notifications until one of them arrives, because a subscription takes effect with a delay. Then discards
    /// all of them.
    fn wait_until_subscribed(&self, fleet: &Fleet) {
        if self.topic.starts_with("crawled.") {
            let outbound = format!("outbound.{APP}");
            self.socket
                .set_subscribe(outbound.as_bytes())
                .expect("a topic");
        }
        let deadline = Instant::now() + WAIT;
        let client = fleet.client();
        loop {
            client.ask(&action("info", None));
            if self.next_within(Duration::from_millis(200)).is_some() {
                break;
            }
            assert!(Instant::now() < deadline, "the firehose is silent");
        }
        client
            .ask(&json!({"action": "info", "appid": APP, "uuid": "the last", "spiderid": "link"}));
        while self.next().1["uuid"] != "the last" {}
        if self.topic.starts_with("crawled.") {
            let outbound = format!("outbound.{APP}");
            self.socket
                .set_unsubscribe(outbound.as_bytes())
                .expect("a topic");
        }
    }

    pub(crate) fn next_within(&self, time: Duration) -> Option<(String, Value)> {
        self.socket
            .set_rcvtimeo(time.as_millis() as i32)
            .expect("an option");
        let frames = self.socket.recv_multipart(0).ok()?;
        let [topic, body] = &frames[..] else {
            panic!("a firehose message has {} frames", frames.len());
        };
        let topic = String::from_utf8(topic.clone()).expect("a topic is text");
        Some((topic, serde_json::from_slice(body).expect("JSON")))
    }

    /// Receives the next message. Returns its topic and its JSON.
    pub(crate) fn next(&self) -> (String, Value) {
        self.next_within(WAIT).expect("a message in time")
    }

    /// Waits for a message that `is_it` accepts, and discards all messages before it.
    pub(crate) fn wait_for(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (_, message) = self.next();
            if is_it(&message) {
                return message;
            }
        }
    }
}

/// Sends an HTTP request. Returns the status and the body of the answer.
pub(crate) fn send_http(fleet: &Fleet, head: &[&str], body: &str) -> (u16, String) {
    try_http(&fleet.host, head, body).unwrap_or_else(|answer| panic!("no HTTP: {answer:?}"))
}

/// Sends an HTTP request to a server that may end before it answers. The error is the incomplete answer.
fn try_http(host: &str, head: &[&str], body: &str) -> Result<(u16, String), String> {
    try_http_at((host, HTTP), head, body)
}

/// Sends an HTTP request to a port of a host. If the answer has no status, the error is the received text.
pub(crate) fn try_http_at(
    server: (&str, u16),
    head: &[&str],
    body: &str,
) -> Result<(u16, String), String> {
    let stream = TcpStream::connect(server);
    let mut stream = stream.map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(WAIT)).expect("an option");
    let mut request = head.join("\r\n");
    request += &format!(
        "\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // The server may refuse the request after its head and close the connection, so errors of writing are ignored.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.write_all(body.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("UTF-8");
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    match status {
        Some(status) => Ok((status, body.to_owned())),
        None => Err(answer),
    }
}

/// Sends JSON with `POST`. Returns the status and the JSON of the answer.
pub(crate) fn post(fleet: &Fleet, path: &str, body: &Value) -> (u16, Value) {
    try_post(&fleet.host, path, body).unwrap_or_else(|answer| panic!("no HTTP: {answer:?}"))
}

/// Sends JSON with `POST` to a server that may end before it answers. The error is the incomplete answer.
pub(crate) fn try_post(host: &str, path: &str, body: &Value) -> Result<(u16, Value), String> {
    let head = [
        &format!("POST {path} HTTP/1.1"),
        &format!("Host: {host}:{HTTP}"),
        "Content-Type: application/json",
    ];
    let (status, body) = try_http(host, &head.map(|line| line as &str), &body.to_string())?;
    Ok((status, json_of(&body)))
}

pub(crate) fn get(fleet: &Fleet, path: &str) -> (u16, Value) {
    let head = [
        &format!("GET {path} HTTP/1.1"),
        &format!("Host: {}:{HTTP}", fleet.host),
    ];
    let (status, body) = send_http(fleet, &head.map(String::as_str), "");
    (status, json_of(&body))
}

fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()))
}
