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
mod commands;
mod curve;
mod endpoint;
mod floods;
mod frame;
mod handshakes;
mod open_socket;
mod options;
mod outgoing;
mod spec;
mod thread;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

pub use curve::{CurveError, has_curve, key_pair_from_secret, new_key_pair};
pub use endpoint::is_local;
pub use frame::{
    ArrivedFrame, FrameAttachment, FrameHandler, Peer, Subscription, TakenPart, Traffic,
};
pub use options::PUBLISHED_AHEAD;
pub use spec::{Guard, Pattern, Place, SocketError, SocketName, SocketSpec};

use crate::keys::ListChange;
use commands::{Command, CommandQueue};
use outgoing::OutgoingFrame;
use thread::SocketThread;

/// A handler that takes every frame and passes it to a function.
struct TakeAll<F>(F);

impl<F: FnMut(ArrivedFrame) + Send + 'static> FrameHandler for TakeAll<F> {
    fn handle_frame(&mut self, arrived: ArrivedFrame) {
        (self.0)(arrived);
    }
}

/// A handle for sending frames from any thread. All clones send through the same sockets.
#[derive(Clone)]
pub struct Outbox {
    commands: Arc<CommandQueue>,
}

impl Outbox {
    /// Queues a frame on a socket that has a single peer.
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
        self.send_to_with_attachment(socket, peer, frame, None);
    }

    /// Like [`Outbox::send_to`], but keeps a value with the frame until it is sent.
    pub fn send_to_with_attachment(
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

    /// Why a server last refused a connecting socket of this process; `None` if none has. The server may have admitted
    /// the socket since.
    pub fn refusal_reason(&self) -> Option<&'static str> {
        self.commands.refusal_reason()
    }

    /// The changes of the allow-list since the last call. All of them already apply.
    pub fn take_list_changes(&self) -> Vec<ListChange> {
        self.commands.take_list_changes()
    }

    /// The number of frames so far, for each socket, open or closed.
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

    /// Like [`Sockets::start`], but the handler also chooses which frames are taken.
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
