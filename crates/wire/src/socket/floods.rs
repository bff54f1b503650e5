//! Clients that flood a socket with frames: their connections are closed, their frames are dropped, and they are
//! refused for a while, longer each time.
//!
//! libzmq reads a peer's frames into an unbounded queue, and has no call that closes the connection of one peer. So the
//! file descriptor of the connection is shut down. After that, the descriptor may soon belong to another connection,
//! while messages of the closed one still wait to be read. [`ADMITTED_AT`] shows which connection a message belongs to.

use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::keys::PublicKey;

/// A property of each message of an admitted connection: how many connection events had been read when it was admitted
/// ([`super::handshakes::event_count`]). The connection's descriptor was accepted earlier. It belongs to the connection
/// until it is accepted again or closed.
pub(super) const ADMITTED_AT: &str = "X-Admitted-At";

/// The property where libzmq keeps the file descriptor of a message's connection (ZMQ_SRCFD).
const DESCRIPTOR: &str = "__fd";

/// The shortest and the longest time that a flooding client is refused. The time doubles with each flood.
const FIRST_REFUSAL: Duration = Duration::from_secs(5);
const LONGEST_REFUSAL: Duration = Duration::from_secs(300);

/// A client that has not flooded for this long after its refusal starts again with the shortest refusal.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// How long messages of a closed connection may still wait to be read.
const EMPTY_AFTER: Duration = Duration::from_secs(10);

/// The most closed connections that are remembered.
const MOST_CLOSED: usize = 64;

/// The connection that a message arrived through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) descriptor: RawFd,
    pub(super) admitted_at: u64,
}

impl Connection {
    /// The connection that a message arrived through; `None` on a socket without keys.
    pub(super) fn from_message(message: &mut zmq::Message) -> Option<Connection> {
        Some(Connection {
            descriptor: message
                .gets(DESCRIPTOR)?
                .parse()
                .ok()
                .filter(|fd| *fd >= 0)?,
            admitted_at: message.gets(ADMITTED_AT)?.parse().ok()?,
        })
    }
}

/// Encodes a property that libzmq attaches to each message of a connection, in the format of ZAP (ZeroMQ RFC 27).
pub(super) fn encode_property(name: &str, value: &str) -> Vec<u8> {
    let mut metadata = vec![name.len() as u8];
    metadata.extend(name.as_bytes());
    metadata.extend((value.len() as u32).to_be_bytes());
    metadata.extend(value.as_bytes());
    metadata
}

/// Connections that were closed recently because of floods.
#[derive(Debug, Default)]
pub(super) struct ClosedConnections {
    connections: VecDeque<(Connection, Instant)>,
}

impl ClosedConnections {
    /// Whether a message arrived through one of these connections.
    pub(super) fn has_delivered(&mut self, message: &mut zmq::Message) -> bool {
        if self.connections.is_empty() {
            return false;
        }
        let now = Instant::now();
        self.connections
            .retain(|(_, closed)| now < *closed + EMPTY_AFTER);
        Connection::from_message(message).is_some_and(|one| self.contains(one))
    }

    fn contains(&self, connection: Connection) -> bool {
        self.connections.iter().any(|(one, _)| *one == connection)
    }

    pub(super) fn note_closed(&mut self, connection: Connection, now: Instant) {
        if self.contains(connection) {
            return;
        }
        self.connections.truncate(MOST_CLOSED - 1);
        self.connections.push_front((connection, now));
    }
}

/// Clients that have flooded, by key and address.
#[derive(Debug, Default)]
pub(super) struct Floods {
    refused: HashMap<(PublicKey, String), RefusedPeer>,
}

#[derive(Debug, Clone, Copy)]
struct RefusedPeer {
    lasts: Duration,
    until: Instant,
}

impl Floods {
    /// Records a flood. Returns how long its sender is refused.
    pub(super) fn note_flood(&mut self, key: PublicKey, address: &str, now: Instant) -> Duration {
        self.refused
            .retain(|_, refused| now < refused.until + FORGOTTEN_AFTER);
        let sender = (key, address.to_owned());
        let lasts = match self.refused.get(&sender) {
            // The same client has flooded through another connection too. Its refusal is not extended.
            Some(refused) if now < refused.until => return refused.until - now,
            Some(refused) => (refused.lasts * 2).min(LONGEST_REFUSAL),
            None => FIRST_REFUSAL,
        };
        let until = now + lasts;
        self.refused.insert(sender, RefusedPeer { lasts, until });
        lasts
    }

    /// Whether a key is refused from this address for now.
    pub(super) fn refuses(&self, key: &PublicKey, address: &str, now: Instant) -> bool {
        if self.refused.is_empty() {
            return false;
        }
        let refused = self.refused.get(&(*key, address.to_owned()));
        refused.is_some_and(|refused| now < refused.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes(&[number; 32]).unwrap()
    }

    #[test]
    fn repeated_floods_are_refused_longer_until_they_are_forgotten() {
        let mut floods = Floods::default();
        let mut now = Instant::now();
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            let lasts = floods.note_flood(key(1), "10.0.0.7", now);
            assert_eq!(lasts, Duration::from_secs(seconds));
            assert!(floods.refuses(&key(1), "10.0.0.7", now));
            let meanwhile = now + Duration::from_secs(1);
            let rest = floods.note_flood(key(1), "10.0.0.7", meanwhile);
            assert_eq!(rest, Duration::from_secs(seconds - 1), "it counts once");
            now += lasts;
            assert!(!floods.refuses(&key(1), "10.0.0.7", now));
        }
        let lasts = floods.note_flood(key(1), "10.0.0.7", now + FORGOTTEN_AFTER);
        assert_eq!(lasts, FIRST_REFUSAL);
    }

    #[test]
    fn other_keys_and_addresses_are_not_refused() {
        let mut floods = Floods::default();
        let now = Instant::now();
        floods.note_flood(key(1), "10.0.0.7", now);
        assert!(!floods.refuses(&key(2), "10.0.0.7", now));
        assert!(!floods.refuses(&key(1), "10.0.0.8", now));
    }

    #[test]
    fn the_memory_of_closed_connections_is_bounded() {
        let mut closed = ClosedConnections::default();
        let connection = |admitted_at| Connection {
            descriptor: 9,
            admitted_at,
        };
        for number in 0..=MOST_CLOSED as u64 {
            closed.note_closed(connection(number), Instant::now());
            closed.note_closed(connection(number), Instant::now());
        }
        assert!(!closed.contains(connection(0)));
        assert!(closed.contains(connection(1)));
        assert!(closed.contains(connection(MOST_CLOSED as u64)));
    }

    #[test]
    fn properties_are_encoded_in_the_format_of_zap() {
        assert_eq!(encode_property("ab", "7"), b"\x02ab\0\0\0\x017");
    }
}
