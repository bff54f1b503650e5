//! The supervisor at the other end of a connection.

use webfill_wire::codec::WIRE_VERSION;
use webfill_wire::socket::Peer;

/// Where to send answers to a supervisor: its connection, and the version of messages that both sides speak.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub peer: Peer,
    pub version: u8,
}

impl Caller {
    /// A supervisor that speaks this build's version of messages.
    pub fn with_this_version(peer: Peer) -> Caller {
        Caller {
            peer,
            version: WIRE_VERSION,
        }
    }
}
