//! One open socket: its queue of outgoing frames, and the routing frames of messages that it receives.
//!
//! Outgoing frames are queued here in order, without a limit, and not in libzmq. The messages themselves carry a flow
//! control with credit, which bounds the queue. The queue is lost when the process dies.

use std::time::{Duration, Instant};

use super::authenticator::Authenticator;
use super::floods::{ClosedConnections, Connection};
use super::handshakes::{Handshakes, Verdict};
use super::outgoing::{OutgoingFrame, OutgoingQueue, SendResult};
use super::{ArrivedFrame, FrameHandler, Guard, Pattern, Peer, SocketSpec, TakenPart};
use crate::keys::{PublicKey, Role, TrustedKey, TrustedKeys};
use crate::refusal_log::RefusalLog;

pub(super) struct OpenSocket {
    pub(super) spec: SocketSpec,
    pub(super) socket: zmq::Socket,
    pub(super) handshakes: Option<Handshakes>,
    /// Outgoing frames that libzmq cannot take yet.
    pub(super) waiting: OutgoingQueue,
    /// Connections that were closed because their peers flooded. Their messages are dropped.
    pub(super) closed: ClosedConnections,
}

impl OpenSocket {
    /// The role that the sender of a message must have; `None` if messages of this socket are not checked.
    fn required_role(&self) -> Option<Role> {
        match &self.spec.guard {
            // libzmq attaches no key when it unsubscribes an ending connection. So the keys of subscribers are checked
            // at the handshake only; see `disconnect_subscribers`.
            Guard::Serve(..) if self.spec.pattern == Pattern::Publish => None,
            Guard::Serve(_, role) => Some(*role),
            Guard::None | Guard::Call(_) => None,
        }
    }

    /// When this socket must be replaced by a new one; see [`Handshakes::replace_at`].
    pub(super) fn replace_at(&self) -> Option<Instant> {
        self.handshakes.as_ref()?.replace_at()
    }

    /// Disconnects this socket if the server's key is no longer trusted. A new socket replaces it immediately.
    pub(super) fn disconnect_if_untrusted(&mut self) {
        if let (Guard::Call(keys), Some(handshakes)) = (&mut self.spec.guard, &mut self.handshakes)
            && keys.trusted.drop_untrusted()
        {
            handshakes.schedule_replacement(Duration::ZERO);
            // So no more messages from the owner of the former key are read until the socket is replaced.
            let _ = self.socket.disconnect(self.spec.place.endpoint());
        }
    }

    /// Reads the results of handshakes. If a server did not admit this socket, returns the reason, and tries another
    /// trusted key if there is one.
    pub(super) fn read_handshakes(&mut self, refusal_log: &mut RefusalLog) -> Option<&'static str> {
        let handshakes = self.handshakes.as_mut()?;
        let verdict = handshakes.read_events(refusal_log)?;
        let keys = match &mut self.spec.guard {
            Guard::Call(keys) => Some(&mut keys.trusted),
            Guard::None | Guard::Serve(..) => None,
        };
        match verdict {
            Verdict::NotLetIn(why) => {
                let is_replaced = handshakes.replace_at().is_some();
                if let Some(pause) = keys
                    .filter(|_| !is_replaced)
                    .and_then(TrustedKeys::switch_to_next_key)
                {
                    handshakes.schedule_replacement(pause);
                    // The socket is disconnected, because otherwise libzmq would try the refused key until the socket
                    // is replaced.
                    let _ = self.socket.disconnect(self.spec.place.endpoint());
                }
                Some(why)
            }
            Verdict::LetIn => {
                if let Some(keys) = keys
                    && keys.note_admitted()
                {
                    log_admitted(self.spec.place.endpoint(), keys.current_key());
                }
                None
            }
        }
    }

    /// Sends the queued frames until libzmq would block.
    pub(super) fn send_queued(
        &mut self,
        authenticator: Option<&Authenticator>,
        refusal_log: &mut RefusalLog,
    ) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let parts_peers = self.spec.is_for_clients;
        waiting.send_all(parts_peers, |one| {
            self.try_to_send(one, authenticator, refusal_log)
        });
        self.waiting = waiting;
    }

    fn try_to_send(
        &self,
        one: &OutgoingFrame,
        authenticator: Option<&Authenticator>,
        refusal_log: &mut RefusalLog,
    ) -> SendResult {
        if self.is_revoked(one.peer.as_ref(), authenticator) {
            return SendResult::Done;
        }
        match self.send(one.peer.as_ref(), &one.frame) {
            Ok(()) => {}
            Err(zmq::Error::EAGAIN) => return SendResult::NotYet,
            Err(zmq::Error::EHOSTUNREACH) => {
                if let Some(held) = &one.held {
                    held.on_receiver_gone();
                }
                // A client that sends many requests and disconnects must not fill the log.
                if refusal_log.record_if_new(&format!("gone {}", self.spec.place.endpoint())) {
                    tracing::warn!(event = "peer_gone", "a message's receiver is gone");
                }
            }
            Err(error) => {
                tracing::error!(event = "send_failed", %error, "cannot send");
            }
        }
        SendResult::Done
    }

    /// Sends a frame immediately, or drops it if frames are queued before it or libzmq would block.
    pub(super) fn send_now(&mut self, frame: &[u8]) {
        if self.waiting.is_empty() {
            // An error is ignored: the next heartbeat replaces the lost frame.
            let _ = self.send(None, frame);
        }
    }

    /// Sends a message to the subscribers of its topic. Subscribers that have reached their high-water mark lose it.
    pub(super) fn publish(&self, topic: &[u8], frame: &[u8]) {
        if let Err(error) = self.socket.send_multipart([topic, frame], zmq::DONTWAIT) {
            tracing::error!(event = "send_failed", %error, "cannot publish");
        }
    }

    fn send(&self, peer: Option<&Peer>, frame: &[u8]) -> zmq::Result<()> {
        match (
            self.spec.pattern,
            peer.and_then(|peer| Route::from_peer(peer)),
        ) {
            (Pattern::Router, Some(route)) => {
                let delimiter = route.delimited.then_some(&b""[..]);
                let frames = [Some(route.id), delimiter, Some(frame)];
                self.socket
                    .send_multipart(frames.into_iter().flatten(), zmq::DONTWAIT)
            }
            (Pattern::Client, _) => self.socket.send_multipart([&b""[..], frame], zmq::DONTWAIT),
            _ => self.socket.send(frame, zmq::DONTWAIT),
        }
    }

    /// Whether the key of a frame's receiver was removed from the allow-list.
    fn is_revoked(&self, peer: Option<&Peer>, authenticator: Option<&Authenticator>) -> bool {
        let (Some(role), Some(authenticator)) = (self.required_role(), authenticator) else {
            return false;
        };
        let key = peer.and_then(|peer| Route::from_peer(peer)?.key);
        key.is_none_or(|key| authenticator.entry_with_role(role, &key).is_none())
    }

    /// Receives the next message. `None` if its sender is refused, or if the callback takes none of it.
    pub(super) fn receive(
        &mut self,
        authenticator: Option<&mut Authenticator>,
        refusal_log: &mut RefusalLog,
        arrivals: &mut impl FrameHandler,
    ) -> zmq::Result<Option<ArrivedFrame>> {
        let MessageParts {
            first,
            delimited,
            mut last,
        } = self.receive_parts()?;
        if self.closed.has_delivered(&mut last) {
            return Ok(None);
        }
        let sender = match (self.required_role(), authenticator.as_deref()) {
            (None, _) => None,
            (Some(role), Some(authenticator)) => {
                match authenticator.check_sender(role, &mut last, refusal_log) {
                    Some(sender) => Some(sender),
                    None => return Ok(None),
                }
            }
            (Some(_), None) => return Ok(None),
        };
        let mut arrived = ArrivedFrame {
            socket: self.spec.name,
            peer: None,
            sender,
            address: None,
            topic: None,
            frame: Vec::new(),
            is_left_out: false,
        };
        match (self.spec.pattern, &first) {
            (Pattern::Router, Some(id)) => {
                let route = Route {
                    id,
                    key: arrived.sender.as_ref().map(|sender| sender.key),
                    delimited,
                };
                let peer = route.to_peer();
                let sender = arrived.sender.as_deref();
                match arrivals.how_much_to_take(self.spec.name, &peer, sender, &last) {
                    TakenPart::Whole => {}
                    TakenPart::Arrival => arrived.is_left_out = true,
                    TakenPart::Nothing => return Ok(None),
                    TakenPart::Flood => {
                        if let (Some(sender), Some(authenticator)) = (sender, authenticator) {
                            self.close_connection(&mut last, refusal_log);
                            let address = last.gets("Peer-Address").unwrap_or_default();
                            authenticator.note_flood(sender, address, refusal_log);
                        }
                        return Ok(None);
                    }
                }
                arrived.peer = Some(peer);
                arrived.address = last.gets("Peer-Address").and_then(peer_address_of);
            }
            (Pattern::Subscribe, Some(topic)) => arrived.topic = Some(topic.to_vec()),
            (Pattern::Router | Pattern::Subscribe, None) => return Ok(None),
            _ => {}
        }
        if !arrived.is_left_out {
            arrived.frame = last.to_vec();
        }
        Ok(Some(arrived))
    }

    fn receive_parts(&self) -> zmq::Result<MessageParts> {
        let mut first = None;
        let mut delimited = false;
        let mut last = self.socket.recv_msg(zmq::DONTWAIT)?;
        while last.get_more() {
            delimited = first.is_some();
            first.get_or_insert(last);
            last = self.socket.recv_msg(zmq::DONTWAIT)?;
        }
        Ok(MessageParts {
            first,
            delimited,
            last,
        })
    }

    /// Closes the connection of a message's peer, and drops its other messages.
    fn close_connection(&mut self, message: &mut zmq::Message, refusal_log: &mut RefusalLog) {
        if let (Some(handshakes), Some(connection)) =
            (&mut self.handshakes, Connection::from_message(message))
        {
            handshakes.close_connection(connection, refusal_log);
            self.closed.note_closed(connection, Instant::now());
        }
    }
}

fn log_admitted(endpoint: &str, by: &TrustedKey) {
    tracing::info!(
        event = "admitted", endpoint, key = %by.key, file = by.file,
        "admitted by the owner of a trusted key"
    );
}

/// The address that a peer connects from. A peer at a Unix socket has none; for it, libzmq gives
/// `localhost:uid:gid:pid`.
fn peer_address_of(given: &str) -> Option<String> {
    (!given.starts_with("localhost:")).then(|| given.to_owned())
}

/// The frames of a received message.
struct MessageParts {
    /// The first frame of several: a routing id or a topic.
    first: Option<zmq::Message>,
    /// Whether there is an empty frame between the first and the last.
    delimited: bool,
    last: zmq::Message,
}

/// The content of a [`Peer`]: the routing id of a peer of a router socket, and the peer's key.
struct Route<'a> {
    id: &'a [u8],
    key: Option<PublicKey>,
    /// Whether the peer sent an empty delimiter frame, as REQ sockets do. It then expects one in answers.
    delimited: bool,
}

const DELIMITED: u8 = 1;
const KEYED: u8 = 2;

impl<'a> Route<'a> {
    /// Encodes the route: the id, the key if there is one, and a byte of flags.
    fn to_peer(&self) -> Peer {
        let mut peer = Vec::with_capacity(self.id.len() + 33);
        peer.extend(self.id);
        if let Some(key) = &self.key {
            peer.extend(key.bytes());
        }
        let delimited = if self.delimited { DELIMITED } else { 0 };
        let keyed = if self.key.is_some() { KEYED } else { 0 };
        peer.push(delimited | keyed);
        peer
    }

    fn from_peer(peer: &'a [u8]) -> Option<Route<'a>> {
        let (flags, rest) = peer.split_last()?;
        let (id, key) = match flags & KEYED {
            0 => (rest, None),
            _ => {
                let (id, key) = rest.split_last_chunk::<32>()?;
                (id, PublicKey::from_bytes(key))
            }
        };
        Some(Route {
            id,
            key,
            delimited: flags & DELIMITED != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_at_a_unix_socket_has_no_address() {
        assert_eq!(peer_address_of("localhost:1000:1000:4711"), None);
        assert_eq!(peer_address_of("10.0.0.7").as_deref(), Some("10.0.0.7"));
        assert_eq!(peer_address_of("fe80::1").as_deref(), Some("fe80::1"));
    }

    #[test]
    fn a_route_survives_encoding_and_decoding() {
        let key = PublicKey::from_bytes(&[9; 32]);
        for id in [&b""[..], b"\0\x01\x02\x03\x04", &[255; 255]] {
            for (key, delimited) in [(None, false), (None, true), (key, false), (key, true)] {
                let peer = Route { id, key, delimited }.to_peer();
                let route = Route::from_peer(&peer).unwrap();
                assert_eq!((route.id, route.key, route.delimited), (id, key, delimited));
            }
        }
    }
}
