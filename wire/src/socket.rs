//! The only module that knows ZeroMQ.
//!
//! ZeroMQ sockets block and belong to one thread. A [`Sockets`] thread owns all sockets of a
//! process: it hands every arriving frame to one callback and sends what others queue for it.
//! An eventfd in the same poll wakes it for sends, because waiting on `ZMQ_FD` alone loses edges.
//!
//! Backpressure is the business of the protocol (credit), not of the sockets: what a peer cannot
//! take yet waits here, in order, and is bounded by what the peer asked for.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Names a socket within its process.
pub type SocketName = u32;

/// A peer's address on a router socket.
pub type Peer = Vec<u8>;

/// What a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Talks to many dealers by address.
    Router,
    /// Talks to one router.
    Dealer,
    Push,
    Pull,
    /// Asks a router, one question at a time or many (a dealer with an empty delimiter).
    Client,
}

/// Where a socket listens or whom it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Bind(String),
    Connect(String),
}

/// A socket to open.
#[derive(Debug, Clone)]
pub struct SocketSpec {
    pub name: SocketName,
    pub pattern: Pattern,
    pub place: Place,
    /// The address under which a router knows this dealer.
    pub identity: Option<Peer>,
}

/// A frame that arrived.
#[derive(Debug)]
pub struct Arrived {
    pub socket: SocketName,
    /// Who sent it, on a router socket. Includes the routing needed to answer.
    pub peer: Option<Peer>,
    pub frame: Vec<u8>,
}

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("{endpoint} is in use by another process: choose another port or stop that process")]
    InUse { endpoint: String },
    #[error("cannot open {endpoint}: {reason}")]
    Open { endpoint: String, reason: String },
    #[error("the socket thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

enum Command {
    Open(SocketSpec, std::sync::mpsc::Sender<Result<(), SocketError>>),
    Close(SocketName),
    Send(SocketName, Option<Peer>, Vec<u8>),
    Stop,
}

#[derive(Default)]
struct Queue {
    commands: VecDeque<Command>,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: OwnedFd,
    /// Set while a wake-up is under way, so that a burst of sends costs one system call.
    woken: AtomicBool,
}

impl Shared {
    fn push(&self, command: Command) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.commands.push_back(command);
        drop(queue);
        if !self.woken.swap(true, Ordering::AcqRel) {
            let one = 1u64.to_ne_bytes();
            // SAFETY: the descriptor is an eventfd that lives as long as `self`, the buffer is 8 bytes.
            #[allow(unsafe_code)]
            unsafe {
                libc::write(self.wake.as_raw_fd(), one.as_ptr().cast(), one.len());
            }
        }
    }

    fn take(&self) -> VecDeque<Command> {
        let mut counter = [0u8; 8];
        // SAFETY: as above; the descriptor is non-blocking, so an unset one returns at once.
        #[allow(unsafe_code)]
        unsafe {
            libc::read(
                self.wake.as_raw_fd(),
                counter.as_mut_ptr().cast(),
                counter.len(),
            );
        }
        self.woken.store(false, Ordering::Release);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut queue.commands)
    }
}

/// A handle to send with; clones share the same thread.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

impl Outbox {
    /// Queues a frame for the peer at the other end.
    pub fn send(&self, socket: SocketName, frame: Vec<u8>) {
        self.shared.push(Command::Send(socket, None, frame));
    }

    /// Queues a frame for one peer of a router socket.
    pub fn send_to(&self, socket: SocketName, peer: &Peer, frame: Vec<u8>) {
        self.shared
            .push(Command::Send(socket, Some(peer.clone()), frame));
    }

    /// Opens a further socket; waits until that has succeeded or failed.
    pub fn open(&self, spec: SocketSpec) -> Result<(), SocketError> {
        let (answer, opened) = std::sync::mpsc::channel();
        let endpoint = spec.place.endpoint().to_owned();
        self.shared.push(Command::Open(spec, answer));
        opened.recv().unwrap_or_else(|_| {
            Err(SocketError::Open {
                endpoint,
                reason: "the socket thread has stopped".into(),
            })
        })
    }

    /// Closes a socket and forgets what was queued for it.
    pub fn close(&self, socket: SocketName) {
        self.shared.push(Command::Close(socket));
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
        // SAFETY: eventfd has no preconditions; the result is checked before it is owned.
        #[allow(unsafe_code)]
        let wake = unsafe {
            let fd = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
            if fd < 0 {
                return Err(std::io::Error::last_os_error().into());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake,
            woken: AtomicBool::new(false),
        });
        let outbox = Outbox {
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new()
            .name("sockets".into())
            .spawn(move || SocketThread::new(shared, on_arrival).run())?;
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
        self.outbox.shared.push(Command::Stop);
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

struct OpenSocket {
    name: SocketName,
    pattern: Pattern,
    socket: zmq::Socket,
    /// Frames that the peer could not take yet.
    waiting: VecDeque<(Option<Peer>, Vec<u8>)>,
}

struct SocketThread<F> {
    context: zmq::Context,
    shared: Arc<Shared>,
    open: Vec<OpenSocket>,
    on_arrival: F,
}

/// Frames larger than this are refused by ZeroMQ itself: far above any message of ours.
const MAX_FRAME_BYTES: i64 = 64 << 20;

/// At most so many frames are read from one socket before the others have their turn.
const READ_BURST: usize = 256;

impl<F: FnMut(Arrived)> SocketThread<F> {
    fn new(shared: Arc<Shared>, on_arrival: F) -> Self {
        SocketThread {
            context: zmq::Context::new(),
            shared,
            open: Vec::new(),
            on_arrival,
        }
    }

    fn run(mut self) {
        loop {
            if let Err(error) = self.wait() {
                tracing::error!(event = "poll_failed", %error, "cannot poll the sockets");
                return;
            }
            for command in self.shared.take() {
                match command {
                    Command::Open(spec, answer) => {
                        // The asker may have given up waiting; then nobody needs the answer.
                        let _ = answer.send(self.open_socket(spec));
                    }
                    Command::Close(name) => self.open.retain(|open| open.name != name),
                    Command::Send(name, peer, frame) => self.queue(name, peer, frame),
                    Command::Stop => return self.close_all(),
                }
            }
            for open in &mut self.open {
                open.send_waiting();
            }
            self.receive();
        }
    }

    /// Waits until a frame arrives, a queued frame can go out, or somebody wakes us.
    fn wait(&self) -> zmq::Result<()> {
        let mut items = Vec::with_capacity(self.open.len() + 1);
        items.push(zmq::PollItem::from_fd(
            self.shared.wake.as_raw_fd(),
            zmq::POLLIN,
        ));
        let mut undeliverable = false;
        for open in &self.open {
            let mut events = zmq::PollEvents::empty();
            if open.pattern != Pattern::Push {
                events |= zmq::POLLIN;
            }
            if !open.waiting.is_empty() {
                // A router is always writable; a frame for an absent peer is tried again later.
                match open.pattern {
                    Pattern::Router => undeliverable = true,
                    _ => events |= zmq::POLLOUT,
                }
            }
            items.push(open.socket.as_poll_item(events));
        }
        let timeout_ms = if undeliverable { 100 } else { -1 };
        match zmq::poll(&mut items, timeout_ms) {
            Err(zmq::Error::EINTR) => Ok(()),
            other => other.map(drop),
        }
    }

    fn open_socket(&mut self, spec: SocketSpec) -> Result<(), SocketError> {
        let endpoint = spec.place.endpoint();
        let failed = |error: zmq::Error| match error {
            zmq::Error::EADDRINUSE => SocketError::InUse {
                endpoint: endpoint.to_owned(),
            },
            other => SocketError::Open {
                endpoint: endpoint.to_owned(),
                reason: other.message().to_owned(),
            },
        };
        let kind = match spec.pattern {
            Pattern::Router => zmq::ROUTER,
            Pattern::Dealer | Pattern::Client => zmq::DEALER,
            Pattern::Push => zmq::PUSH,
            Pattern::Pull => zmq::PULL,
        };
        let socket = self.context.socket(kind).map_err(failed)?;
        configure(&socket, &spec).map_err(failed)?;
        match &spec.place {
            Place::Bind(endpoint) => socket.bind(endpoint),
            Place::Connect(endpoint) => socket.connect(endpoint),
        }
        .map_err(failed)?;
        self.open.push(OpenSocket {
            name: spec.name,
            pattern: spec.pattern,
            socket,
            waiting: VecDeque::new(),
        });
        Ok(())
    }

    fn queue(&mut self, name: SocketName, peer: Option<Peer>, frame: Vec<u8>) {
        // A socket that was closed in the meantime takes its frames with it.
        if let Some(open) = self.open.iter_mut().find(|open| open.name == name) {
            open.waiting.push_back((peer, frame));
        }
    }

    fn receive(&mut self) {
        for open in &self.open {
            if open.pattern == Pattern::Push {
                continue;
            }
            for _ in 0..READ_BURST {
                match open.socket.recv_multipart(zmq::DONTWAIT) {
                    Ok(frames) => {
                        if let Some(arrived) = open.unpack(frames) {
                            (self.on_arrival)(arrived);
                        }
                    }
                    Err(zmq::Error::EAGAIN) => break,
                    Err(error) => {
                        tracing::error!(event = "receive_failed", %error, "cannot receive");
                        break;
                    }
                }
            }
        }
    }

    fn close_all(mut self) {
        for open in &mut self.open {
            open.send_waiting();
            // Give what is on its way a second; a peer that is gone must not hold us.
            let _ = open.socket.set_linger(1_000);
        }
    }
}

impl OpenSocket {
    fn send_waiting(&mut self) {
        while let Some((peer, frame)) = self.waiting.front() {
            let sent = match (self.pattern, peer) {
                (Pattern::Router, Some(peer)) => {
                    let parts = routed(peer, frame);
                    self.socket.send_multipart(parts, zmq::DONTWAIT)
                }
                (Pattern::Client, _) => self
                    .socket
                    .send_multipart([&b""[..], frame.as_slice()], zmq::DONTWAIT),
                _ => self.socket.send(frame.as_slice(), zmq::DONTWAIT),
            };
            match sent {
                Ok(()) => {
                    self.waiting.pop_front();
                }
                Err(zmq::Error::EAGAIN) => return,
                Err(zmq::Error::EHOSTUNREACH) => {
                    tracing::warn!(event = "peer_gone", "a message's receiver is gone");
                    self.waiting.pop_front();
                }
                Err(error) => {
                    tracing::error!(event = "send_failed", %error, "cannot send");
                    self.waiting.pop_front();
                }
            }
        }
    }

    /// Takes the routing frames off. On a router the peer is its identity, followed by an empty
    /// delimiter frame if it sent one (REQ sockets do), so that the answer takes the same shape.
    fn unpack(&self, mut frames: Vec<Vec<u8>>) -> Option<Arrived> {
        let frame = frames.pop()?;
        let peer = match self.pattern {
            Pattern::Router => {
                let delimited = frames.len() > 1;
                let mut peer = frames.into_iter().next()?;
                peer.push(u8::from(delimited));
                Some(peer)
            }
            _ => None,
        };
        Some(Arrived {
            socket: self.name,
            peer,
            frame,
        })
    }
}

/// The frames of an answer to a router's peer: the inverse of [`OpenSocket::unpack`].
fn routed<'a>(peer: &'a Peer, frame: &'a [u8]) -> Vec<&'a [u8]> {
    match peer.split_last() {
        Some((1, identity)) => vec![identity, b"", frame],
        Some((_, identity)) => vec![identity, frame],
        None => vec![frame],
    }
}

fn configure(socket: &zmq::Socket, spec: &SocketSpec) -> zmq::Result<()> {
    // The protocol bounds what is in flight; a high-water mark would only hide a mistake in it.
    socket.set_sndhwm(0)?;
    socket.set_rcvhwm(0)?;
    socket.set_linger(0)?;
    socket.set_maxmsgsize(MAX_FRAME_BYTES)?;
    socket.set_reconnect_ivl(50)?;
    socket.set_reconnect_ivl_max(2_000)?;
    if spec.place.endpoint().starts_with("tcp://") {
        socket.set_heartbeat_ivl(2_000)?;
        socket.set_heartbeat_timeout(10_000)?;
        socket.set_handshake_ivl(10_000)?;
    }
    match spec.pattern {
        Pattern::Router => {
            socket.set_router_mandatory(true)?;
            // A supervisor that reconnects under its name takes its place again.
            socket.set_router_handover(true)?;
        }
        // Queue only for a peer that is there.
        Pattern::Push => socket.set_immediate(true)?,
        Pattern::Dealer | Pattern::Client | Pattern::Pull => {}
    }
    if let Some(identity) = &spec.identity {
        socket.set_identity(identity)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    const WAIT: Duration = Duration::from_secs(10);

    fn endpoint(name: &str) -> String {
        let folder = std::env::temp_dir();
        format!(
            "ipc://{}/wf-{name}-{}",
            folder.display(),
            std::process::id()
        )
    }

    fn started(spec: SocketSpec) -> (Sockets, mpsc::Receiver<Arrived>) {
        let (arrivals, arrived) = mpsc::channel();
        let sockets = Sockets::start(vec![spec], move |frame| {
            let _ = arrivals.send(frame);
        })
        .unwrap();
        (sockets, arrived)
    }

    fn spec(pattern: Pattern, place: Place) -> SocketSpec {
        SocketSpec {
            name: 1,
            pattern,
            place,
            identity: None,
        }
    }

    #[test]
    fn a_router_answers_dealers_and_clients_in_their_own_shape() {
        let at = endpoint("router");
        let (router, asked) = started(spec(Pattern::Router, Place::Bind(at.clone())));
        for pattern in [Pattern::Dealer, Pattern::Client] {
            let (dealer, answered) = started(spec(pattern, Place::Connect(at.clone())));
            dealer.outbox().send(1, b"ping".to_vec());
            let question = asked.recv_timeout(WAIT).unwrap();
            assert_eq!(question.frame, b"ping");
            router
                .outbox()
                .send_to(1, &question.peer.unwrap(), b"pong".to_vec());
            assert_eq!(answered.recv_timeout(WAIT).unwrap().frame, b"pong");
        }
    }

    #[test]
    fn frames_wait_for_a_peer_that_comes_later() {
        let at = endpoint("late");
        let (push, _) = started(spec(Pattern::Push, Place::Bind(at.clone())));
        for n in 0..1_000u32 {
            push.outbox().send(1, n.to_be_bytes().to_vec());
        }
        let (_pull, arrived) = started(spec(Pattern::Pull, Place::Connect(at)));
        for n in 0..1_000u32 {
            assert_eq!(arrived.recv_timeout(WAIT).unwrap().frame, n.to_be_bytes());
        }
    }

    #[test]
    fn a_taken_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("tcp://{}", listener.local_addr().unwrap());
        let refused = Sockets::start(vec![spec(Pattern::Pull, Place::Bind(at.clone()))], |_| {});
        let message = refused.err().unwrap().to_string();
        assert!(
            message.contains(&at) && message.contains("in use"),
            "{message}"
        );
    }
}
