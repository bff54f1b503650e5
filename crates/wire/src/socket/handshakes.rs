//! Logs failed handshakes, which libzmq's socket monitor reports as events. A peer without keys, or with the wrong
//! server key, fails before the authentication handler ([`super::authenticator`]) is called, so only the monitor
//! reports it. A connecting process learns only from these events that it was refused.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::floods::Connection;
use super::{Guard, Place, SocketSpec};
use crate::keys::RotationFiles;
use crate::refusal_log::RefusalLog;

const ACCEPTED: u16 = zmq::SocketEvent::ACCEPTED as u16;
const DISCONNECTED: u16 = zmq::SocketEvent::DISCONNECTED as u16;
const FAILED_NO_DETAIL: u16 = zmq::SocketEvent::HANDSHAKE_FAILED_NO_DETAIL as u16;
const FAILED_PROTOCOL: u16 = zmq::SocketEvent::HANDSHAKE_FAILED_PROTOCOL as u16;
const SUCCEEDED: u16 = zmq::SocketEvent::HANDSHAKE_SUCCEEDED as u16;

/// ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH: one side has keys, the other has none.
const MECHANISM_MISMATCH: u32 = 0x1100_0002;

/// ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC: the peer's messages are not encrypted for this key.
const CRYPTOGRAPHIC: u32 = 0x1100_0001;

/// How many events of connections this process has read.
static EVENTS_READ: AtomicU64 = AtomicU64::new(0);

pub(super) fn event_count() -> u64 {
    EVENTS_READ.load(Ordering::Relaxed)
}

pub(super) struct Handshakes {
    monitor: zmq::Socket,
    endpoint: String,
    serves: bool,
    has_keys: bool,
    /// The files that show whether the server's key is replaced now; see [`crate::keys::ServerKeys::of_rotation`].
    of_rotation: RotationFiles,
    /// The open connections that this process has accepted, by file descriptor.
    accepted: HashMap<RawFd, AcceptedConnection>,
    /// A failed handshake. libzmq reports next that its connection has ended.
    failed: Option<Failure>,
    /// When this socket must be replaced by a new one: libzmq has stopped reconnecting it, or another key is to be
    /// tried.
    replace_at: Option<Instant>,
}

/// A connection that a peer has opened.
struct AcceptedConnection {
    address: String,
    /// The number of the event that began the connection, counted over all sockets.
    number: u64,
}

/// The result of the last handshake with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    LetIn,
    NotLetIn(&'static str),
}

/// How long after a protocol error a new socket is opened. libzmq reconnects after a lost connection, but not after a
/// protocol error. Such an error may come from a dispatcher that was started without its keys by mistake, or from
/// another server that had its port for a while.
pub(super) const RECONNECT_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// One side has keys and the other has none.
    Mismatch,
    /// The messages were encrypted for another key.
    OtherKey,
    /// Another protocol error.
    Protocol,
    /// The other side disconnected, or did not answer in time.
    Left,
}

impl Handshakes {
    /// Begins to watch the handshakes of a socket that has not been bound or connected yet.
    pub(super) fn watch(
        context: &zmq::Context,
        socket: &zmq::Socket,
        spec: &SocketSpec,
    ) -> zmq::Result<Handshakes> {
        static WATCHED: AtomicU32 = AtomicU32::new(0);
        let number = WATCHED.fetch_add(1, Ordering::Relaxed);
        let at = format!("inproc://handshakes-{number}");
        let events = ACCEPTED | DISCONNECTED | FAILED_NO_DETAIL | FAILED_PROTOCOL | SUCCEEDED;
        socket.monitor(&at, events.into())?;
        let monitor = context.socket(zmq::PAIR)?;
        monitor.set_linger(0)?;
        monitor.connect(&at)?;
        let of_rotation = match &spec.guard {
            Guard::Serve(keys, _) => keys.of_rotation.clone(),
            Guard::None | Guard::Call(_) => RotationFiles::default(),
        };
        Ok(Handshakes {
            monitor,
            endpoint: spec.place.endpoint().to_owned(),
            serves: matches!(spec.place, Place::Bind(_)),
            has_keys: !matches!(spec.guard, Guard::None),
            of_rotation,
            accepted: HashMap::new(),
            failed: None,
            replace_at: None,
        })
    }

    /// When this socket must be replaced; `None` if it need not.
    pub(super) fn replace_at(&self) -> Option<Instant> {
        self.replace_at
    }

    /// Schedules the replacement of the socket after this pause.
    pub(super) fn schedule_replacement(&mut self, pause: Duration) {
        self.replace_at = Some(Instant::now() + pause);
    }

    pub(super) fn poll_item(&self) -> zmq::PollItem<'_> {
        self.monitor.as_poll_item(zmq::POLLIN)
    }

    /// Reads and logs the waiting events. Returns whether a server has admitted or refused this socket last, if one
    /// has.
    pub(super) fn read_events(&mut self, refusal_log: &mut RefusalLog) -> Option<Verdict> {
        let mut verdict = None;
        let mut events = self.waiting_events();
        while !events.is_empty() {
            let addresses: Vec<String> = events.iter().map(address_of_accepted).collect();
            let later = self.waiting_events();
            for (index, (event, address)) in events.iter().zip(addresses).enumerate() {
                // If the descriptor serves another connection by now, the address is the one of that connection.
                let others = events[index + 1..].iter().chain(&later);
                let is_of_another =
                    event.0 == ACCEPTED && others.clone().any(|other| other == event);
                let address = match is_of_another {
                    true => String::new(),
                    false => address,
                };
                verdict = self.handle_event(*event, address, refusal_log).or(verdict);
            }
            events = later;
        }
        verdict
    }

    fn waiting_events(&self) -> Vec<(u16, u32)> {
        let frames = std::iter::from_fn(|| self.monitor.recv_multipart(zmq::DONTWAIT).ok());
        let events = frames.map(|frames| frames.first().and_then(|frame| parse_event(frame)));
        events.flatten().collect()
    }

    /// Handles one event. `address` is that of the peer, if a connection was accepted.
    fn handle_event(
        &mut self,
        (event, value): (u16, u32),
        address: String,
        refusal_log: &mut RefusalLog,
    ) -> Option<Verdict> {
        let number = EVENTS_READ.fetch_add(1, Ordering::Relaxed) + 1;
        match event {
            ACCEPTED => {
                let connection = value as RawFd;
                self.accepted
                    .insert(connection, AcceptedConnection { address, number });
            }
            DISCONNECTED => {
                let accepted = self.accepted.remove(&(value as RawFd));
                if let (true, Some(failure)) = (self.serves, self.failed.take()) {
                    let address = accepted.map(|one| one.address).unwrap_or_default();
                    self.log_failed_client(failure, &address, refusal_log);
                }
            }
            SUCCEEDED if self.serves => {}
            SUCCEEDED => return Some(Verdict::LetIn),
            _ if self.serves => self.failed = Some(classify_failure(event, value)),
            _ => {
                if event == FAILED_PROTOCOL {
                    self.schedule_replacement(RECONNECT_AFTER);
                }
                let why = self.explain_refusal(classify_failure(event, value));
                self.log_failed_server(classify_failure(event, value), why, refusal_log);
                return Some(Verdict::NotLetIn(why));
            }
        }
        None
    }

    /// Closes a connection that a peer has opened, if it is still open.
    ///
    /// libzmq reports the end of a connection before it closes the file descriptor. So the descriptor still belongs to
    /// the peer if its last known connection was accepted before the peer was admitted.
    pub(super) fn close_connection(
        &mut self,
        connection: Connection,
        refusal_log: &mut RefusalLog,
    ) {
        // SAFETY: the descriptor is borrowed only to be duplicated. If libzmq has closed it, the call fails, or the
        // duplicate belongs to something else and is not touched.
        #[allow(unsafe_code)]
        let descriptor = unsafe { BorrowedFd::borrow_raw(connection.descriptor) };
        let Ok(held) = descriptor.try_clone_to_owned() else {
            return;
        };
        self.read_events(refusal_log);
        let accepted = self.accepted.get(&connection.descriptor);
        if accepted.is_some_and(|one| one.number <= connection.admitted_at) {
            // An error means that the peer is gone, which is as good.
            let _ = TcpStream::from(held).shutdown(Shutdown::Both);
        }
    }

    fn log_failed_client(&self, failure: Failure, address: &str, refusal_log: &mut RefusalLog) {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let is_late = failure == Failure::OtherKey && self.of_rotation.is_recent(SystemTime::now());
        let is_refusal = self.has_keys && failure != Failure::Left && !is_late;
        let what = format!("caller {} {failure:?} {host}", self.endpoint);
        if !refusal_log.record_if_new(&what) {
            return;
        }
        let why = match failure {
            Failure::Mismatch if self.has_keys => "it has no keys",
            Failure::Mismatch => "it has keys, and this side has none",
            Failure::OtherKey if is_late => {
                "it has not the public key of this process, which was replaced: give it the new one if it is yours"
            }
            Failure::OtherKey => "it has not the public key of this process",
            Failure::Protocol => "it does not speak webfill's protocol",
            Failure::Left => "it left before the handshake was over",
        };
        if is_refusal {
            tracing::warn!(event = "peer_refused", address, why, "a peer was refused");
        } else {
            tracing::info!(
                event = "handshake_failed",
                address,
                why,
                "a handshake failed"
            );
        }
    }

    fn explain_refusal(&self, failure: Failure) -> &'static str {
        match failure {
            Failure::Mismatch if self.has_keys => "it has no keys, and this side has",
            Failure::Mismatch => "it wants keys: set `keys`",
            _ if self.has_keys => {
                "it has not let this key in for this role, or dispatcher.pub is not its key: let this key in there by `webfill keys add`, or if its key was replaced, copy its new dispatcher.pub to this folder of keys as dispatcher-next.pub"
            }
            _ => "it hung up during the handshake, perhaps because it wants keys",
        }
    }

    fn log_failed_server(&self, failure: Failure, why: &str, refusal_log: &mut RefusalLog) {
        let what = format!("server {} {failure:?}", self.endpoint);
        if !refusal_log.record_if_new(&what) {
            return;
        }
        tracing::warn!(
            event = "not_admitted",
            endpoint = self.endpoint,
            why,
            "not admitted, trying again"
        );
    }
}

fn classify_failure(event: u16, value: u32) -> Failure {
    match (event, value) {
        (FAILED_PROTOCOL, MECHANISM_MISMATCH) => Failure::Mismatch,
        (FAILED_PROTOCOL, CRYPTOGRAPHIC) => Failure::OtherKey,
        (FAILED_PROTOCOL, _) => Failure::Protocol,
        _ => Failure::Left,
    }
}

/// Parses the first frame of a monitor message: the event's number and its value.
fn parse_event(frame: &[u8]) -> Option<(u16, u32)> {
    let (event, value) = frame.split_first_chunk::<2>()?;
    let value = value.first_chunk::<4>()?;
    Some((u16::from_ne_bytes(*event), u32::from_ne_bytes(*value)))
}

fn address_of_accepted((event, value): &(u16, u32)) -> String {
    let address = (*event == ACCEPTED).then(|| peer_address(*value as RawFd));
    address
        .flatten()
        .map_or_else(String::new, |address| address.to_string())
}

/// The sizes of the C structs `sockaddr_in6` and `sockaddr_in`, in bytes.
const ADDRESS_BYTES: [usize; 2] = [28, 16];

/// The address of a connection's peer. It is found even after the peer has reset the connection, when `getpeername`
/// fails. `None` if libzmq has already closed the descriptor.
fn peer_address(connection: RawFd) -> Option<SocketAddr> {
    ADDRESS_BYTES.into_iter().find_map(|bytes| {
        let mut address = [0_u8; ADDRESS_BYTES[0]];
        let mut length = bytes as libc::socklen_t;
        // SAFETY: at most `length` bytes are written. libzmq owns the descriptor. If it is already closed, the call
        // fails.
        #[allow(unsafe_code)]
        let failed = unsafe {
            libc::getsockopt(
                connection,
                libc::SOL_SOCKET,
                libc::SO_PEERNAME,
                address.as_mut_ptr().cast(),
                &mut length,
            )
        };
        (failed == 0)
            .then(|| parse_socket_address(&address))
            .flatten()
    })
}

/// Parses the C struct `sockaddr_in` or `sockaddr_in6`.
fn parse_socket_address(address: &[u8; ADDRESS_BYTES[0]]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes([address[0], address[1]]);
    let port = u16::from_be_bytes([address[2], address[3]]);
    let ip = match libc::c_int::from(family) {
        libc::AF_INET => IpAddr::from(*address[4..].first_chunk::<4>()?),
        libc::AF_INET6 => IpAddr::from(*address[8..].first_chunk::<16>()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_peer_that_has_reset_its_connection_has_an_address() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(host).unwrap();
            let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let address = peer.local_addr().unwrap();
            let (mut accepted, _) = listener.accept().unwrap();
            assert_eq!(peer_address(accepted.as_raw_fd()), Some(address));
            reset_connection(peer);
            assert!(accepted.read(&mut [0]).is_err(), "it was reset");
            assert!(accepted.peer_addr().is_err());
            assert_eq!(peer_address(accepted.as_raw_fd()), Some(address));
        }
    }

    fn reset_connection(peer: TcpStream) {
        let at_once = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        // SAFETY: the descriptor is open, and the option is read only.
        #[allow(unsafe_code)]
        let failed = unsafe {
            libc::setsockopt(
                peer.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const at_once).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            )
        };
        assert_eq!(failed, 0);
    }
}
