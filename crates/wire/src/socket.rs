//! Sockets between processes. This is the only module that uses ZeroMQ.
//!
//! ZeroMQ sockets block and belong to one thread, so one thread ([`Sockets`]) owns all sockets of a process. It passes
//! every arriving frame to one callback, and sends the frames that other threads queue in its [`Outbox`]. An eventfd
//! in the same poll wakes it up for sends, because `ZMQ_FD` is edge-triggered and loses wake-ups.
//!
//! Backpressure is not left to the sockets: the messages carry credit-based flow control, which bounds the frames
//! queued for a peer. There are two exceptions. Of published messages, libzmq keeps [`PUBLISHED_AHEAD`] for each
//! subscriber (its high-water mark); a slower subscriber loses messages. Clients ([`SocketSpec::for_clients`]) have no
//! credit, and the caller counts the frames queued for each ([`FrameAttachment`]).
//!
//! A socket that other machines can reach must have a [`Guard`] with CURVE keys; it is not opened without one. A
//! serving socket admits the keys of an allow-list that have one role.

mod authenticator;
mod curve;
mod endpoint;
mod floods;
mod handshakes;
mod open_socket;
mod options;
mod outgoing;
mod thread;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

pub use curve::{CurveError, has_curve, key_pair_from_secret, new_key_pair};
pub use endpoint::is_local;
pub use options::PUBLISHED_AHEAD;

use crate::keys::{ClientKeys, Entry, ListChange, Role, ServerKeys};
use outgoing::OutgoingFrame;
use thread::{Command, CommandQueue, SocketThread};

/// Names a socket within its process.
pub type SocketName = u32;

/// Identifies a connection to a router socket, so that it can be answered. All messages of a connection have the same
/// value.
pub type Peer = Vec<u8>;

/// The messaging pattern of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Exchanges messages with many dealers, each addressed by its [`Peer`].
    Router,
    /// Exchanges messages with one router.
    Dealer,
    Push,
    Pull,
    /// Sends requests to a router (a dealer with an empty delimiter frame).
    Client,
    /// Sends to all subscribers, see [`Outbox::publish`]. Receives their subscriptions, see [`Subscription`].
    Publish,
    /// Receives the messages of a publisher that it subscribes to, see [`SocketSpec::topics`].
    Subscribe,
}

/// A frame that arrives on a publishing socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscription<'a> {
    /// At least one subscriber wants topics that begin with these bytes.
    Wanted(&'a [u8]),
    /// No subscriber wants topics that begin with these bytes any more.
    Unwanted(&'a [u8]),
    /// All subscribers were disconnected. Those that are still admitted reconnect.
    AllGone,
}

impl<'a> Subscription<'a> {
    /// Reads a frame as a subscription; `None` if it is something else.
    pub fn read(frame: &'a [u8]) -> Option<Subscription<'a>> {
        match frame.split_first() {
            None => Some(Subscription::AllGone),
            Some((1, topic)) => Some(Subscription::Wanted(topic)),
            Some((0, topic)) => Some(Subscription::Unwanted(topic)),
            Some(_) => None,
        }
    }
}

/// The endpoint that a socket binds or connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Bind(String),
    Connect(String),
}

/// How the two ends of a socket authenticate each other.
#[derive(Debug, Clone)]
pub enum Guard {
    /// They do not. For Unix sockets and loopback only.
    None,
    /// Admits keys of the allow-list that have the role. A publishing socket does not admit keys that are limited to
    /// applications: subscriptions are prefixes, so one to `a` would include all of `ab`.
    Serve(ServerKeys, Role),
    /// Connects only to the owner of a trusted key, and authenticates with this process's own key.
    Call(ClientKeys),
}

/// A socket to open.
#[derive(Debug, Clone)]
pub struct SocketSpec {
    pub name: SocketName,
    pub pattern: Pattern,
    pub place: Place,
    pub guard: Guard,
    /// For a subscribing socket: it receives messages whose topics begin with one of these.
    pub topics: Vec<String>,
    /// For a router: its peers may be any programs, and read and write as they like. libzmq's queue for each of them
    /// is bounded, and a peer that does not read does not delay others.
    pub is_for_clients: bool,
}

impl SocketSpec {
    /// A socket that binds an endpoint, without a guard.
    pub fn bind(name: SocketName, pattern: Pattern, endpoint: impl Into<String>) -> SocketSpec {
        SocketSpec {
            name,
            pattern,
            place: Place::Bind(endpoint.into()),
            guard: Guard::None,
            topics: Vec::new(),
            is_for_clients: false,
        }
    }

    /// A socket that connects to an endpoint, without a guard.
    pub fn connect(name: SocketName, pattern: Pattern, endpoint: impl Into<String>) -> SocketSpec {
        SocketSpec {
            name,
            pattern,
            place: Place::Connect(endpoint.into()),
            guard: Guard::None,
            topics: Vec::new(),
            is_for_clients: false,
        }
    }

    /// Subscribes the socket to topics that begin with one of these.
    pub fn topics(self, topics: Vec<String>) -> SocketSpec {
        SocketSpec { topics, ..self }
    }

    /// Makes this a socket for clients.
    pub fn for_clients(self) -> SocketSpec {
        SocketSpec {
            is_for_clients: true,
            ..self
        }
    }

    /// Makes the socket a guarded server, if there are keys.
    pub fn with_server_keys(self, keys: Option<&ServerKeys>, role: Role) -> SocketSpec {
        let guard = keys.map_or(Guard::None, |keys| Guard::Serve(keys.clone(), role));
        SocketSpec { guard, ..self }
    }

    /// Makes the socket a guarded client, if there are keys.
    pub fn call(self, keys: Option<&ClientKeys>) -> SocketSpec {
        let guard = keys.map_or(Guard::None, |keys| Guard::Call(keys.clone()));
        SocketSpec { guard, ..self }
    }
}

/// A value kept with an outgoing frame. It is dropped when libzmq has taken the frame, or when the frame can never be
/// read.
pub trait FrameAttachment: Send {
    /// Called if the frame's receiver is gone.
    fn on_receiver_gone(&self);
}

/// Receives the arriving frames, on the thread that owns the sockets. It must not block.
pub trait FrameHandler: Send + 'static {
    /// Decides how much of a frame from a router's peer is taken. The rest is dropped before it is copied. So reading
    /// a flood costs less than sending it, which matters because libzmq queues unread frames without a limit.
    fn how_much_to_take(
        &mut self,
        _socket: SocketName,
        _peer: &Peer,
        _sender: Option<&Entry>,
        _frame: &[u8],
    ) -> TakenPart {
        TakenPart::Whole
    }

    fn arrive(&mut self, arrived: ArrivedFrame);
}

/// How much of a frame is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenPart {
    Whole,
    /// The frame counts as arrived, but its content is left out.
    Arrival,
    Nothing,
    /// The frame belongs to a flood and is dropped. On a socket with keys the connection is closed, and its peer is
    /// refused for a while. Without keys, peers are processes of this machine, and only their frames are dropped.
    Flood,
}

/// Takes every frame.
struct TakeAll<F>(F);

impl<F: FnMut(ArrivedFrame) + Send + 'static> FrameHandler for TakeAll<F> {
    fn arrive(&mut self, arrived: ArrivedFrame) {
        (self.0)(arrived);
    }
}

/// A frame that has arrived.
#[derive(Debug)]
pub struct ArrivedFrame {
    pub socket: SocketName,
    /// The sender, on a router socket. It is needed to answer.
    pub peer: Option<Peer>,
    /// The allow-list entry of the sender's key, on a guarded server socket that does not publish.
    pub sender: Option<Arc<Entry>>,
    /// The sender's address, on a router socket. For a Unix socket it is `:USER:GROUP:PROCESS`.
    pub address: Option<String>,
    /// The topic, on a subscribing socket.
    pub topic: Option<Vec<u8>>,
    pub frame: Vec<u8>,
    /// The frame's content is left out ([`TakenPart::Arrival`]).
    pub is_left_out: bool,
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

/// How many frames a socket has received and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    pub received: u64,
    pub sent: u64,
}

/// A handle for sending. Clones share the same thread.
#[derive(Clone)]
pub struct Outbox {
    commands: Arc<CommandQueue>,
}

impl Outbox {
    /// Queues a frame for the peer of a socket with one peer.
    pub fn send(&self, socket: SocketName, frame: Vec<u8>) {
        let frame = OutgoingFrame {
            peer: None,
            frame,
            held: None,
        };
        self.commands.push(Command::Send(socket, frame));
    }

    /// Queues a frame for one peer of a router socket.
    pub fn send_to(&self, socket: SocketName, peer: &Peer, frame: Vec<u8>) {
        self.send_to_with(socket, peer, frame, None);
    }

    /// Like [`Outbox::send_to`], and keeps a value with the frame.
    pub fn send_to_with(
        &self,
        socket: SocketName,
        peer: &Peer,
        frame: Vec<u8>,
        held: Option<Box<dyn FrameAttachment>>,
    ) {
        let peer = Some(peer.clone());
        let frame = OutgoingFrame { peer, frame, held };
        self.commands.push(Command::Send(socket, frame));
    }

    /// Sends a frame immediately or drops it. For messages that are soon outdated, such as heartbeats to a peer that
    /// may be unreachable for hours.
    pub fn send_now(&self, socket: SocketName, frame: Vec<u8>) {
        self.commands.push(Command::SendNow(socket, frame));
    }

    /// Sends a message to the subscribers of its topic. Subscribers that cannot take it now do not get it.
    pub fn publish(&self, socket: SocketName, topic: Vec<u8>, frame: Vec<u8>) {
        self.commands.push(Command::Publish(socket, topic, frame));
    }

    /// Opens another socket, and waits for the result.
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

    /// Why a server did not admit a connecting socket of this process, if this happened. It may have admitted it
    /// since.
    pub fn refusal_reason(&self) -> Option<&'static str> {
        self.commands.not_admitted()
    }

    /// The changes of the allow-list since the last call. All of them are in force.
    pub fn take_list_changes(&self) -> Vec<ListChange> {
        self.commands.take_list_changes()
    }

    /// The number of frames so far, for each present or former socket.
    pub fn traffic(&self) -> BTreeMap<SocketName, Traffic> {
        self.commands.traffic()
    }

    /// Closes a socket and drops the frames queued for it.
    pub fn close(&self, socket: SocketName) {
        self.commands.push(Command::Close(socket));
    }
}

/// The thread that owns all sockets of this process. Dropping it sends the queued frames, for at most
/// a second, and closes the sockets.
pub struct Sockets {
    outbox: Outbox,
    thread: Option<JoinHandle<()>>,
}

impl Sockets {
    /// Opens the sockets and starts the thread. `on_arrival` runs on that thread and must not block.
    pub fn start(
        specs: Vec<SocketSpec>,
        on_arrival: impl FnMut(ArrivedFrame) + Send + 'static,
    ) -> Result<Sockets, SocketError> {
        Sockets::start_with_handler(specs, TakeAll(on_arrival))
    }

    /// Like [`Sockets::start`], with a choice of the frames that are taken.
    pub fn start_with_handler(
        specs: Vec<SocketSpec>,
        arrivals: impl FrameHandler,
    ) -> Result<Sockets, SocketError> {
        let commands = Arc::new(CommandQueue::new()?);
        let outbox = Outbox {
            commands: Arc::clone(&commands),
        };
        let thread = std::thread::Builder::new()
            .name("sockets".into())
            .spawn(move || SocketThread::new(commands, arrivals).run())?;
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
