//! The Chrome DevTools Protocol over two pipes (`--remote-debugging-pipe`): JSON messages, each ended by
//! a NUL byte. Unlike a debugging port, the pipes cannot be found by other programs.
//!
//! One thread reads and one writes, because both may block; everything else runs on the worker's main thread. Only
//! about twenty methods are used, so their parameters are plain JSON values without types.
//! <https://chromedevtools.github.io/devtools-protocol/>

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::rc::Rc;
use std::sync::mpsc as threads;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// The capacity for messages that were read but not handled. When it is full, the browser waits.
const MAX_WAITING_MESSAGES: usize = 256;

/// How many bytes are kept of a message that is too large: enough to find the id of the call that it answers.
const HEAD_BYTES: usize = 64;

/// Why a call has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("the browser has died")]
    Gone,
    #[error("the browser's answer is too large")]
    TooLarge,
    #[error("the browser rejects it: {0}")]
    Refused(String),
}

/// A message of the browser that is not the answer to a call.
#[derive(Debug)]
pub struct Event {
    pub method: String,
    pub params: Value,
}

/// A message of the browser.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Message {
    id: Option<u64>,
    result: Value,
    error: Option<Refusal>,
    method: String,
    params: Value,
    session_id: Option<String>,
    #[serde(skip)]
    cut: bool,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
}

type Answer = Result<Value, CallError>;

/// A connection to a browser. It ends when the browser closes its pipe.
#[derive(Clone)]
pub struct DevTools {
    shared: Rc<Shared>,
}

struct Shared {
    out: threads::Sender<Vec<u8>>,
    last_id: Cell<u64>,
    asked: RefCell<HashMap<u64, oneshot::Sender<Answer>>>,
    sessions: RefCell<HashMap<String, mpsc::UnboundedSender<Event>>>,
    gone: Cell<bool>,
}

impl DevTools {
    /// Connects over these pipes. Larger messages than `max_bytes` are refused.
    pub fn connect(
        from_browser: impl Read + Send + 'static,
        to_browser: impl Write + Send + 'static,
        max_bytes: usize,
    ) -> std::io::Result<DevTools> {
        let (out, to_write) = threads::channel();
        let (inbox, arrived) = mpsc::channel(MAX_WAITING_MESSAGES);
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("browser-write").spawn(move || write_frames(to_browser, &to_write))?;
        thread("browser-read").spawn(move || read_messages(from_browser, max_bytes, &inbox))?;
        let shared = Rc::new(Shared {
            out,
            last_id: Cell::new(0),
            asked: RefCell::default(),
            sessions: RefCell::default(),
            gone: Cell::new(false),
        });
        tokio::task::spawn_local(route_messages(Rc::clone(&shared), arrived));
        Ok(DevTools { shared })
    }

    pub fn is_gone(&self) -> bool {
        self.shared.gone.get()
    }

    /// Calls a method, of a session or of the browser itself.
    pub async fn call(&self, session: Option<&str>, method: &str, params: Value) -> Answer {
        let (answer, answered) = oneshot::channel();
        let id = self.send(session, method, params, Some(answer));
        let answer = answered.await.unwrap_or(Err(CallError::Gone));
        self.shared.asked.borrow_mut().remove(&id);
        answer
    }

    /// Calls a method and ignores its answer.
    pub fn notify(&self, session: Option<&str>, method: &str, params: Value) {
        self.send(session, method, params, None);
    }

    /// Returns the events of a session that arrive from now on.
    pub fn subscribe(&self, session: &str) -> mpsc::UnboundedReceiver<Event> {
        let (sender, events) = mpsc::unbounded_channel();
        let mut sessions = self.shared.sessions.borrow_mut();
        // Remove the sessions that were closed since the last call.
        sessions.retain(|_, sender| !sender.is_closed());
        sessions.insert(session.to_owned(), sender);
        events
    }

    fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
        answer: Option<oneshot::Sender<Answer>>,
    ) -> u64 {
        let id = self.shared.last_id.get() + 1;
        self.shared.last_id.set(id);
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut frame = message.to_string().into_bytes();
        frame.push(0);
        if let Some(answer) = answer
            && !self.is_gone()
        {
            self.shared.asked.borrow_mut().insert(id, answer);
        }
        // If the writing thread has ended, the browser is gone, and the reading thread notices it.
        let _ = self.shared.out.send(frame);
        id
    }
}

/// Passes answers to their callers, and events to the subscribers of their sessions, until the browser is gone.
async fn route_messages(shared: Rc<Shared>, mut arrived: mpsc::Receiver<Message>) {
    while let Some(message) = arrived.recv().await {
        match message.id {
            Some(id) => {
                if let Some(asked) = shared.asked.borrow_mut().remove(&id) {
                    // The caller may have stopped waiting.
                    let _ = asked.send(message.into_answer());
                }
            }
            None => {
                let session = message.session_id.unwrap_or_default();
                if let Some(session) = shared.sessions.borrow().get(&session) {
                    let (method, params) = (message.method, message.params);
                    let _ = session.send(Event { method, params });
                }
            }
        }
    }
    shared.gone.set(true);
    shared.asked.borrow_mut().clear();
    shared.sessions.borrow_mut().clear();
}

impl Message {
    fn into_answer(self) -> Answer {
        match self.error {
            _ if self.cut => Err(CallError::TooLarge),
            Some(refusal) => Err(CallError::Refused(refusal.message)),
            None => Ok(self.result),
        }
    }

    /// Makes a message from the beginning of one that was too large. Only its id is known, if it begins like
    /// `{"id":12,...`.
    fn from_truncated(head: &[u8]) -> Message {
        let digits = head.strip_prefix(b"{\"id\":").unwrap_or_default();
        let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
        let id = digits.fold(None, |id: Option<u64>, digit| {
            id.unwrap_or(0)
                .checked_mul(10)?
                .checked_add((digit - b'0').into())
        });
        Message {
            id,
            cut: true,
            ..Message::default()
        }
    }
}

fn write_frames(mut to_browser: impl Write, frames: &threads::Receiver<Vec<u8>>) {
    while let Ok(frame) = frames.recv() {
        if to_browser
            .write_all(&frame)
            .and_then(|()| to_browser.flush())
            .is_err()
        {
            return;
        }
    }
}

fn read_messages(from_browser: impl Read, max_bytes: usize, inbox: &mpsc::Sender<Message>) {
    let mut from_browser = BufReader::with_capacity(64 << 10, from_browser);
    // After an error or at the end, nothing is left to read.
    while let Ok(Some(frame)) = next_frame(&mut from_browser, max_bytes) {
        let message = match frame {
            Frame::Whole(bytes) => match serde_json::from_slice(&bytes) {
                Ok(message) => message,
                Err(error) => {
                    tracing::warn!(event = "unreadable_message", %error, "a message of the browser was dropped");
                    continue;
                }
            },
            Frame::Cut(head) => Message::from_truncated(&head),
        };
        if inbox.blocking_send(message).is_err() {
            return;
        }
    }
}

enum Frame {
    Whole(Vec<u8>),
    /// The beginning of a frame that is too large.
    Cut(Vec<u8>),
}

/// Reads up to the next NUL; `None` at the end.
fn next_frame(from: &mut impl BufRead, max_bytes: usize) -> std::io::Result<Option<Frame>> {
    let (mut frame, mut is_cut) = (Vec::new(), false);
    loop {
        let read = from.fill_buf()?;
        if read.is_empty() {
            return Ok(None);
        }
        let end = memchr::memchr(0, read);
        let part = &read[..end.unwrap_or(read.len())];
        if !is_cut {
            frame.extend_from_slice(part);
        }
        if frame.len() > max_bytes {
            is_cut = true;
            frame = frame[..HEAD_BYTES.min(frame.len())].to_vec();
        }
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(Some(match is_cut {
                true => Frame::Cut(frame),
                false => Frame::Whole(frame),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use tokio::task::LocalSet;

    use super::*;

    /// Starts a simulated browser that answers each message with the results of `answers`.
    fn spawn_browser(answers: impl Fn(Value) -> Vec<String> + Send + 'static) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(theirs.try_clone().unwrap());
            let mut writer = theirs;
            while let Ok(Some(Frame::Whole(frame))) = next_frame(&mut reader, 1 << 20) {
                for answer in answers(serde_json::from_slice(&frame).unwrap()) {
                    writer.write_all(answer.as_bytes()).unwrap();
                    writer.write_all(&[0]).unwrap();
                }
            }
        });
        ours
    }

    fn connect(stream: &UnixStream, max_bytes: usize) -> DevTools {
        let (read, write) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        DevTools::connect(read, write, max_bytes).unwrap()
    }

    #[tokio::test]
    async fn answers_go_to_their_callers_and_events_to_their_sessions() {
        let stream = spawn_browser(|asked| {
            let id = &asked["id"];
            let event = json!({"method": "Page.loaded", "params": {"n": 7}, "sessionId": "s1"});
            let answer = match asked["method"].as_str() {
                Some("Bad.method") => {
                    json!({"id": id, "error": {"code": -1, "message": "no such"}})
                }
                _ => json!({"id": id, "result": {"session": asked["sessionId"]}}),
            };
            vec![event.to_string(), answer.to_string()]
        });
        let both = async {
            let devtools = connect(&stream, 1 << 20);
            let mut events = devtools.subscribe("s1");
            let answer = devtools.call(Some("s1"), "Page.enable", json!({})).await;
            assert_eq!(answer, Ok(json!({"session": "s1"})));
            let refused = devtools.call(None, "Bad.method", json!({})).await;
            assert_eq!(refused, Err(CallError::Refused("no such".into())));
            let event = events.recv().await.unwrap();
            assert_eq!(
                (event.method.as_str(), &event.params["n"]),
                ("Page.loaded", &json!(7))
            );
        };
        LocalSet::new().run_until(both).await;
    }

    #[tokio::test]
    async fn an_answer_that_is_too_large_fails_only_its_own_call() {
        let stream = spawn_browser(|asked| {
            let length = asked["params"]["length"].as_u64().unwrap() as usize;
            let answer = json!({"id": asked["id"], "result": "x".repeat(length)});
            // Chromium, too, puts the id first.
            let text = answer.to_string();
            assert!(text.starts_with("{\"id\""));
            vec![text]
        });
        let both = async {
            let devtools = connect(&stream, 100_000);
            let large = devtools.call(None, "m", json!({"length": 300_000}));
            let small = devtools.call(None, "m", json!({"length": 10}));
            let (large, small) = tokio::join!(large, small);
            assert_eq!(large, Err(CallError::TooLarge));
            assert_eq!(small, Ok(json!("x".repeat(10))));
        };
        LocalSet::new().run_until(both).await;
    }

    #[tokio::test]
    async fn calls_fail_and_events_end_when_the_browser_is_gone() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let both = async {
            let devtools = connect(&ours, 1 << 20);
            let mut events = devtools.subscribe("s1");
            let asked = devtools.call(None, "m", json!({}));
            let goes = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                drop(theirs);
            };
            let (asked, ()) = tokio::join!(asked, goes);
            assert_eq!(asked, Err(CallError::Gone));
            assert!(events.recv().await.is_none());
            assert!(devtools.is_gone());
            assert_eq!(
                devtools.call(None, "m", json!({})).await,
                Err(CallError::Gone)
            );
        };
        LocalSet::new().run_until(both).await;
    }
}
