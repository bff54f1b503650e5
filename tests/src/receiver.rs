//! A receiver of webhooks. It stores the posts, and answers as the test has set it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A webhook post.
#[derive(Debug, Clone)]
pub struct Posted {
    pub head: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The status of the answer to this post.
    pub status: u16,
}

impl Posted {
    /// The value of a header. `name` must be in lower case.
    pub fn header(&self, name: &str) -> &str {
        let found = self.head.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The names of the events in this notification.
    pub fn events(&self) -> Vec<String> {
        let notification = self.json();
        let events = notification["events"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let name = |event: &Value| event["event"].as_str().unwrap_or_default().to_owned();
        events.iter().map(name).collect()
    }
}

#[derive(Default)]
struct State {
    posted: Vec<Posted>,
    /// The statuses of the next answers. When all are used, the receiver answers 204.
    answers: Vec<u16>,
    /// Whether the receiver closes connections without an answer.
    is_dead: bool,
}

/// A receiver that listens on its own port.
pub struct Receiver {
    address: std::net::SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Receiver {
    /// Starts a receiver on a loopback address.
    pub fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&served);
                std::thread::spawn(move || serve_connection(&stream, &state));
            }
        });
        Receiver { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the statuses of the next answers.
    pub fn set_answers(&self, answers: &[u16]) {
        self.lock().answers = answers.to_vec();
    }

    /// Makes the receiver close connections without an answer, or makes it answer again.
    pub fn set_dead(&self, is_dead: bool) {
        self.lock().is_dead = is_dead;
    }

    pub fn all_posted(&self) -> Vec<Posted> {
        self.lock().posted.clone()
    }

    pub fn all_delivered(&self) -> Vec<Posted> {
        let mut posted = self.all_posted();
        posted.retain(|posted| posted.status < 300);
        posted
    }

    /// Waits until this many posts were delivered. Returns all delivered posts.
    pub fn wait_for_delivered(&self, delivered: usize) -> Vec<Posted> {
        let begun = Instant::now();
        loop {
            let found = self.all_delivered();
            if found.len() >= delivered {
                return found;
            }
            let posted = self.all_posted();
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "waited in vain for {delivered} deliveries: {posted:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn serve_connection(stream: &TcpStream, state: &Mutex<State>) {
    let Some((head, body)) = read_request(stream) else {
        return;
    };
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if state.is_dead {
        let status = 599;
        state.posted.push(Posted { head, body, status });
        return;
    }
    let status = match state.answers.is_empty() {
        true => 204,
        false => state.answers.remove(0),
    };
    state.posted.push(Posted { head, body, status });
    drop(state);
    let location = match status {
        300..400 => "location: http://127.0.0.1:1/\r\n",
        _ => "",
    };
    let answer =
        format!("HTTP/1.1 {status} X\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n");
    let _ = (&*stream).write_all(answer.as_bytes());
}

type Request = (Vec<(String, String)>, Vec<u8>);

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut head = vec![(String::from(":line"), line.trim().to_owned())];
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        head.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = head.iter().find(|(name, _)| name == "content-length");
    let length: usize = length?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}
