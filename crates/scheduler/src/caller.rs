//! The peer of a supervisor's connection.

use webfill_wire::codec::WIRE_VERSION;
use webfill_wire::socket::Peer;

/// A supervisor as it is answered: its connection, and the version of messages that both sides speak.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub peer: Peer,
    pub version: u8,
}

impl Caller {
    /// One of the same build.
    pub fn of_this_build(peer: Peer) -> Caller {
        Caller {
            peer,
            version: WIRE_VERSION,
        }
    }
}
