//! The thread that owns all sockets of the process. Its loop polls them, answers handshakes (the
//! [`super::authenticator`]), carries out the commands of other threads, sends queued frames and passes arriving ones
//! to the callback.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::authenticator::Authenticator;
use super::commands::{Command, CommandQueue};
use super::floods::ClosedConnections;
use super::handshakes::{Handshakes, RECONNECT_AFTER};
use super::open_socket::OpenSocket;
use super::options::configure;
use super::outgoing::{OutgoingFrame, OutgoingQueue};
use super::{
    ArrivedFrame, FrameHandler, Guard, Pattern, Place, SocketError, SocketName, SocketSpec,
    is_local,
};
use crate::refusal_log::RefusalLog;

pub(super) struct SocketThread<A> {
    context: zmq::Context,
    commands: Arc<CommandQueue>,
    open: Vec<OpenSocket>,
    /// Closed publishing sockets that are reopened once libzmq has released their address, each with the number of
    /// tries so far.
    reopening: Vec<(SocketSpec, u32)>,
    /// The authenticator of the sockets. It is opened together with the first socket that serves with keys.
    authenticator: Option<Authenticator>,
    refusal_log: RefusalLog,
    arrivals: A,
}

/// How many frames are read from one socket before the other sockets get their turn.
const READ_BURST: usize = 256;

/// How many frames of a socket may be dropped in addition before the other sockets get their turn. Dropping a frame is
/// cheap, and changing the socket costs more.
const DROPPED_IN_BURST: usize = 16 * READ_BURST;

/// The pause before a router sends a frame again that it could not deliver.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The pause between two attempts to reopen a socket. libzmq releases the address of the closed socket in the
/// background.
const REOPEN_INTERVAL: Duration = Duration::from_millis(10);

/// After this many attempts to reopen a socket, an error is logged.
const REOPEN_TRIES_LOGGED: u32 = 500;

impl<A: FrameHandler> SocketThread<A> {
    pub(super) fn new(commands: Arc<CommandQueue>, arrivals: A) -> Self {
        SocketThread {
            context: zmq::Context::new(),
            commands,
            open: Vec::new(),
            reopening: Vec::new(),
            authenticator: None,
            refusal_log: RefusalLog::default(),
            arrivals,
        }
    }

    pub(super) fn run(mut self) {
        loop {
            if let Err(error) = self.wait_for_work() {
                tracing::error!(event = "poll_failed", %error, "cannot poll the sockets");
                return;
            }
            if let Some(authenticator) = &mut self.authenticator {
                let change = authenticator.refresh();
                let (open, commands) = (&mut self.open, &self.commands);
                authenticator.answer_handshakes(&mut self.refusal_log, |refusal_log| {
                    read_handshakes(open, commands, refusal_log);
                });
                if let Some(change) = change {
                    self.commands.note_list_change(change);
                    self.disconnect_subscribers();
                }
            }
            self.open
                .iter_mut()
                .for_each(OpenSocket::disconnect_if_untrusted);
            self.replace_disconnected();
            self.reopen_pending_sockets();
            for command in self.commands.take_all() {
                if let Some(socket) = command.sending_socket() {
                    self.commands
                        .note_traffic(socket, |traffic| traffic.sent += 1);
                }
                match command {
                    Command::Open(spec, answer) => {
                        // An error means that the sender of the command no longer waits for the answer.
                        let _ = answer.send(self.open_socket(*spec));
                    }
                    Command::Close(name) => self.close(name),
                    Command::Send(name, frame) => self.queue_frame(name, frame),
                    Command::SendNow(name, frame) => self.send_now(name, &frame),
                    Command::Publish(name, topic, frame) => self.publish(name, &topic, &frame),
                    Command::Stop => return self.close_all(),
                }
            }
            for open in &mut self.open {
                open.send_queued(self.authenticator.as_ref(), &mut self.refusal_log);
            }
            self.receive_all();
        }
    }

    /// Waits until a frame arrives, a queued frame can be sent, or a command is queued.
    fn wait_for_work(&self) -> zmq::Result<()> {
        let mut items = Vec::with_capacity(2 * self.open.len() + 2);
        items.push(zmq::PollItem::from_fd(
            self.commands.wake.as_raw_fd(),
            zmq::POLLIN,
        ));
        let mut undeliverable = false;
        let mut stalled = Vec::new();
        for open in &self.open {
            let mut events = zmq::PollEvents::empty();
            if open.spec.pattern != Pattern::Push {
                events |= zmq::POLLIN;
            }
            if !open.waiting.is_empty() {
                // libzmq reports a router as always writable, so it is not polled for that. A frame for an absent peer
                // is retried later.
                match open.spec.pattern {
                    Pattern::Router => undeliverable = true,
                    _ => events |= zmq::POLLOUT,
                }
            }
            stalled.extend(open.waiting.retry_at());
            items.push(open.socket.as_poll_item(events));
        }
        let handshakes = self.open.iter().filter_map(|open| open.handshakes.as_ref());
        items.extend(handshakes.map(Handshakes::poll_item));
        items.extend(self.authenticator.as_ref().map(Authenticator::poll_item));
        let reopen = (!self.reopening.is_empty()).then_some(REOPEN_INTERVAL);
        let retry = undeliverable
            .then_some(RETRY_INTERVAL)
            .into_iter()
            .chain(reopen);
        let now = Instant::now();
        let calls = self.open.iter().filter_map(OpenSocket::replace_at);
        let calls = calls.chain(stalled);
        let waits = calls.map(|at| at.saturating_duration_since(now));
        let timeout_ms = match waits.chain(retry).min() {
            Some(wait) => wait.as_millis() as i64 + 1,
            None => -1,
        };
        match zmq::poll(&mut items, timeout_ms) {
            Err(zmq::Error::EINTR) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Replaces sockets that libzmq has stopped reconnecting, and sockets that try another key, by new ones. Their
    /// queued frames are kept.
    fn replace_disconnected(&mut self) {
        let now = Instant::now();
        for place in 0..self.open.len() {
            if self.open[place].replace_at().is_none_or(|at| at > now) {
                continue;
            }
            let spec = self.open[place].spec.clone();
            match self.try_open(spec) {
                Ok(mut fresh) => {
                    std::mem::swap(&mut fresh.waiting, &mut self.open[place].waiting);
                    self.open[place] = fresh;
                }
                Err(error) => {
                    tracing::error!(event = "cannot_call_again", %error, "cannot call again");
                    if let Some(handshakes) = &mut self.open[place].handshakes {
                        handshakes.schedule_replacement(RECONNECT_AFTER);
                    }
                }
            }
        }
    }

    fn open_socket(&mut self, spec: SocketSpec) -> Result<(), SocketError> {
        let endpoint = spec.place.endpoint();
        if matches!(spec.guard, Guard::None) && !is_local(endpoint) {
            let endpoint = endpoint.to_owned();
            return Err(SocketError::Unguarded { endpoint });
        }
        let failed = |error: zmq::Error| match error {
            zmq::Error::EADDRINUSE => SocketError::InUse {
                endpoint: endpoint.to_owned(),
            },
            other => SocketError::Open {
                endpoint: endpoint.to_owned(),
                reason: other.message().to_owned(),
            },
        };
        let open = self.try_open(spec.clone()).map_err(failed)?;
        if spec.is_for_clients {
            lower_priority_of_libzmq_threads();
        }
        self.open.push(open);
        Ok(())
    }

    fn try_open(&mut self, spec: SocketSpec) -> zmq::Result<OpenSocket> {
        let kind = match spec.pattern {
            Pattern::Router => zmq::ROUTER,
            Pattern::Dealer | Pattern::Client => zmq::DEALER,
            Pattern::Push => zmq::PUSH,
            Pattern::Pull => zmq::PULL,
            Pattern::Publish => zmq::XPUB,
            Pattern::Subscribe => zmq::SUB,
        };
        if let (Guard::Serve(keys, _), None) = (&spec.guard, &self.authenticator) {
            self.authenticator = Some(Authenticator::open(&self.context, keys.allowed.clone())?);
        }
        let mut socket = self.context.socket(kind)?;
        configure(&mut socket, &spec)?;
        let is_network = spec.place.endpoint().starts_with("tcp://");
        let handshakes = is_network
            .then(|| Handshakes::watch(&self.context, &socket, &spec))
            .transpose()?;
        match &spec.place {
            Place::Bind(endpoint) => socket.bind(endpoint)?,
            Place::Connect(endpoint) => socket.connect(endpoint)?,
        }
        Ok(OpenSocket {
            spec,
            socket,
            handshakes,
            waiting: OutgoingQueue::default(),
            closed: ClosedConnections::default(),
        })
    }

    /// Disconnects all subscribers after a change of the allow-list. A publishing socket cannot check its subscribers
    /// after the handshake. So it is closed and reopened, and all subscribers go through a new handshake.
    fn disconnect_subscribers(&mut self) {
        let is_guarded_publisher = |open: &mut OpenSocket| {
            let is_guarded = matches!(open.spec.guard, Guard::Serve(..));
            is_guarded && open.spec.pattern == Pattern::Publish
        };
        for open in self.open.extract_if(.., is_guarded_publisher) {
            self.arrivals.handle_frame(ArrivedFrame {
                socket: open.spec.name,
                peer: None,
                sender: None,
                address: None,
                topic: None,
                frame: Vec::new(),
                is_left_out: false,
            });
            self.reopening.push((open.spec, 0));
        }
    }

    fn reopen_pending_sockets(&mut self) {
        for (spec, tried) in std::mem::take(&mut self.reopening) {
            match self.try_open(spec.clone()) {
                Ok(open) => self.open.push(open),
                Err(error) => {
                    if tried == REOPEN_TRIES_LOGGED {
                        let endpoint = spec.place.endpoint();
                        tracing::error!(event = "not_open_again", endpoint, %error, "a socket cannot be opened again, trying on");
                    }
                    self.reopening.push((spec, tried.saturating_add(1)));
                }
            }
        }
    }

    fn close(&mut self, name: SocketName) {
        self.open.retain(|open| open.spec.name != name);
        self.reopening.retain(|(spec, _)| spec.name != name);
    }

    fn publish(&self, name: SocketName, topic: &[u8], frame: &[u8]) {
        if let Some(open) = self.open.iter().find(|open| open.spec.name == name) {
            open.publish(topic, frame);
        }
    }

    fn queue_frame(&mut self, name: SocketName, frame: OutgoingFrame) {
        // If the socket was closed in the meantime, the frame is dropped.
        if let Some(open) = self.open.iter_mut().find(|open| open.spec.name == name) {
            open.waiting.push(frame);
        }
    }

    fn send_now(&mut self, name: SocketName, frame: &[u8]) {
        if let Some(open) = self.open.iter_mut().find(|open| open.spec.name == name) {
            open.send_queued(self.authenticator.as_ref(), &mut self.refusal_log);
            open.send_now(frame);
        }
    }

    fn receive_all(&mut self) {
        read_handshakes(&mut self.open, &self.commands, &mut self.refusal_log);
        for open in &mut self.open {
            if open.spec.pattern == Pattern::Push {
                continue;
            }
            let (mut received, mut dropped) = (0, 0);
            while received < READ_BURST && dropped < DROPPED_IN_BURST {
                match open.receive(
                    self.authenticator.as_mut(),
                    &mut self.refusal_log,
                    &mut self.arrivals,
                ) {
                    Ok(Some(arrived)) => {
                        received += 1;
                        self.arrivals.handle_frame(arrived);
                    }
                    Ok(None) => dropped += 1,
                    Err(zmq::Error::EAGAIN) => break,
                    Err(error) => {
                        tracing::error!(event = "receive_failed", %error, "cannot receive");
                        break;
                    }
                }
            }
            if received > 0 {
                self.commands.note_traffic(open.spec.name, |traffic| {
                    traffic.received += received as u64
                });
            }
        }
    }

    fn close_all(mut self) {
        for open in &mut self.open {
            open.send_queued(self.authenticator.as_ref(), &mut self.refusal_log);
            // libzmq gets one more second to send frames. A peer that is gone must not delay the exit longer.
            let _ = open.socket.set_linger(1_000);
        }
    }
}

/// Reads the connection events and the handshake results of all sockets, and records refusals.
fn read_handshakes(open: &mut [OpenSocket], commands: &CommandQueue, refusal_log: &mut RefusalLog) {
    for open in open {
        if let Some(why) = open.read_handshakes(refusal_log) {
            commands.note_refusal(why);
        }
    }
}

/// The niceness of libzmq's own threads. On a busy core, they get about two fifths of the time that this thread gets.
const NICENESS: libc::c_int = 4;

/// Gives this thread priority over libzmq's own threads. On a busy machine, it must read arrived frames before libzmq
/// receives more, because nothing else limits libzmq's unread frames. libzmq's threads can be identified only by their
/// names.
fn lower_priority_of_libzmq_threads() {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return;
    };
    for thread in threads.flatten() {
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        let id = thread.file_name().to_string_lossy().parse::<libc::id_t>();
        if let (true, Ok(id)) = (name.starts_with("ZMQbg/IO"), id) {
            // SAFETY: the call changes the priority of a thread of this process. If the thread has ended, it fails.
            #[allow(unsafe_code)]
            unsafe {
                libc::setpriority(libc::PRIO_PROCESS, id, NICENESS);
            }
        }
    }
}
