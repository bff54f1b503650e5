//! The only module that knows ZeroMQ.
//!
//! ZeroMQ sockets block and belong to one thread. A [`Sockets`] thread owns all sockets of a
//! process: it hands every arriving frame to one callback and sends what others queue for it.
//! An eventfd in the same poll wakes it for sends, because waiting on `ZMQ_FD` alone loses edges.
//!
//! Backpressure is the business of the protocol (credit), not of the sockets: what a peer cannot
//! take yet waits here, in order, and is bounded by what the peer asked for. Only what is published
//! waits for nobody: libzmq keeps [`PUBLISHED_AHEAD`] messages for each subscriber, and who is
//! slower than that loses some.
//!
//! A socket that others can reach over a network has a [`Guard`]: CURVE keys, a list of those who
//! are let in, and a role that they must have. Without one it is not opened.

mod curve;
mod door;
mod endpoint;
mod handshakes;
mod open_socket;
mod options;
mod refusals;
mod thread;

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

pub use curve::{CurveError, has_curve, key_pair_of, new_key_pair};
pub use endpoint::is_local;
pub use options::PUBLISHED_AHEAD;

use crate::keys::{ClientKeys, Role, ServerKeys};
use thread::{Command, Commands, SocketThread};

/// Names a socket within its process.
pub type SocketName = u32;

/// How to answer a peer of a router socket. Two messages from one connection have the same one.
pub type Peer = Vec<u8>;

/// What a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Talks to many dealers, each by its [`Peer`].
    Router,
    /// Talks to one router.
    Dealer,
    Push,
    Pull,
    /// Asks a router, one question at a time or many (a dealer with an empty delimiter).
    Client,
    /// Sends to all who subscribe, see [`Outbox::publish`]. What arrives on it is what they
    /// subscribe to, see [`Subscription`].
    Publish,
    /// Hears of a publisher what it subscribes to, see [`SocketSpec::topics`].
    Subscribe,
}

/// What a frame that arrives on a publishing socket says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscription<'a> {
    /// Topics that begin with this are wanted, by one subscriber or more.
    Wanted(&'a [u8]),
    /// Nobody wants them any more.
    Unwanted(&'a [u8]),
    /// All subscribers were cut off; those who may come again.
    AllGone,
}

impl<'a> Subscription<'a> {
    /// `None` if the frame is something else.
    pub fn read(frame: &'a [u8]) -> Option<Subscription<'a>> {
        match frame.split_first() {
            None => Some(Subscription::AllGone),
            Some((1, topic)) => Some(Subscription::Wanted(topic)),
            Some((0, topic)) => Some(Subscription::Unwanted(topic)),
            Some(_) => None,
        }
    }
}

/// Where a socket listens or whom it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Bind(String),
    Connect(String),
}

/// How the two ends of a socket know each other.
#[derive(Debug, Clone)]
pub enum Guard {
    /// Not at all: Unix sockets and loopback only.
    None,
    /// Lets in those on the list who have the role.
    Serve(ServerKeys, Role),
    /// Speaks to the owner of one key, and proves its own.
    Call(ClientKeys),
}

/// A socket to open.
#[derive(Debug, Clone)]
pub struct SocketSpec {
    pub name: SocketName,
    pub pattern: Pattern,
    pub place: Place,
    pub guard: Guard,
    /// What a subscribing socket hears: messages whose topic begins with one of these.
    pub topics: Vec<String>,
}

impl SocketSpec {
    /// A socket that listens, without a guard.
    pub fn bind(name: SocketName, pattern: Pattern, endpoint: impl Into<String>) -> SocketSpec {
        SocketSpec {
            name,
            pattern,
            place: Place::Bind(endpoint.into()),
            guard: Guard::None,
            topics: Vec::new(),
        }
    }

    /// A socket that calls, without a guard.
    pub fn connect(name: SocketName, pattern: Pattern, endpoint: impl Into<String>) -> SocketSpec {
        SocketSpec {
            name,
            pattern,
            place: Place::Connect(endpoint.into()),
            guard: Guard::None,
            topics: Vec::new(),
        }
    }

    /// The same socket, subscribed to topics that begin with one of these.
    pub fn topics(self, topics: Vec<String>) -> SocketSpec {
        SocketSpec { topics, ..self }
    }

    /// The same socket with keys, if there are any.
    pub fn serve(self, keys: Option<&ServerKeys>, role: Role) -> SocketSpec {
        let guard = keys.map_or(Guard::None, |keys| Guard::Serve(keys.clone(), role));
        SocketSpec { guard, ..self }
    }

    /// The same socket with keys, if there are any.
    pub fn call(self, keys: Option<&ClientKeys>) -> SocketSpec {
        let guard = keys.map_or(Guard::None, |keys| Guard::Call(keys.clone()));
        SocketSpec { guard, ..self }
    }
}

/// A frame that arrived.
#[derive(Debug)]
pub struct Arrived {
    pub socket: SocketName,
    /// Who sent it, on a router socket. Includes the routing needed to answer.
    pub peer: Option<Peer>,
    /// On a socket with a guard that serves, unless it publishes: the name under which the
    /// sender's key is listed.
    pub sender: Option<Arc<str>>,
    /// What it was published under, on a subscribing socket.
    pub topic: Option<Vec<u8>>,
    pub frame: Vec<u8>,
}

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("{endpoint} is in use by another process: choose another port or stop that process")]
    InUse { endpoint: String },
    #[error(
        "{endpoint} can be reached by other machines and is not opened without keys: set `keys`"
    )]
    Unguarded { endpoint: String },
    #[error("cannot open {endpoint}: {reason}")]
    Open { endpoint: String, reason: String },
    #[error("the socket thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// A handle to send with; clones share the same thread.
#[derive(Clone)]
pub struct Outbox {
    commands: Arc<Commands>,
}

impl Outbox {
    /// Queues a frame for the peer at the other end.
    pub fn send(&self, socket: SocketName, frame: Vec<u8>) {
        self.commands.push(Command::Send(socket, None, frame));
    }

    /// Queues a frame for one peer of a router socket.
    pub fn send_to(&self, socket: SocketName, peer: &Peer, frame: Vec<u8>) {
        let peer = Some(peer.clone());
        self.commands.push(Command::Send(socket, peer, frame));
    }

    /// Sends a frame at once or not at all: for what is only worth saying now, such as a heartbeat
    /// to a peer that may be away for hours.
    pub fn send_now(&self, socket: SocketName, frame: Vec<u8>) {
        self.commands.push(Command::SendNow(socket, frame));
    }

    /// Sends a message to all who subscribed to the beginning of its topic: now, or not at all.
    pub fn publish(&self, socket: SocketName, topic: Vec<u8>, frame: Vec<u8>) {
        self.commands.push(Command::Publish(socket, topic, frame));
    }

    /// Opens a further socket; waits until that has succeeded or failed.
    pub fn open(&self, spec: SocketSpec) -> Result<(), SocketError> {
        let (answer, opened) = mpsc::channel();
        let endpoint = spec.place.endpoint().to_owned();
        self.commands.push(Command::Open(Box::new(spec), answer));
        opened.recv().unwrap_or_else(|_| {
            Err(SocketError::Open {
                endpoint,
                reason: "the socket thread has stopped".into(),
            })
        })
    }

    /// Closes a socket and forgets what was queued for it.
    pub fn close(&self, socket: SocketName) {
        self.commands.push(Command::Close(socket));
    }
}

/// The thread that owns all sockets of this process. Dropping it sends what is queued, for at
/// most a second, and closes them.
pub struct Sockets {
    outbox: Outbox,
    thread: Option<JoinHandle<()>>,
}

impl Sockets {
    /// Opens the sockets and starts the thread. `on_arrival` runs on that thread and must not block.
    pub fn start(
        specs: Vec<SocketSpec>,
        on_arrival: impl FnMut(Arrived) + Send + 'static,
    ) -> Result<Sockets, SocketError> {
        let commands = Arc::new(Commands::new()?);
        let outbox = Outbox {
            commands: Arc::clone(&commands),
        };
        let thread = std::thread::Builder::new()
            .name("sockets".into())
            .spawn(move || SocketThread::new(commands, on_arrival).run())?;
        let sockets = Sockets {
            outbox,
            thread: Some(thread),
        };
        for spec in specs {
            sockets.outbox.open(spec)?;
        }
        Ok(sockets)
    }

    pub fn outbox(&self) -> Outbox {
        self.outbox.clone()
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.outbox.commands.push(Command::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(
                event = "socket_thread_panicked",
                "the socket thread panicked"
            );
        }
    }
}

impl Place {
    pub fn endpoint(&self) -> &str {
        match self {
            Place::Bind(endpoint) | Place::Connect(endpoint) => endpoint,
        }
    }
}
