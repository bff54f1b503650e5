//! The sender of a request, as far as the answer needs it: its connection, and the permits that the request holds
//! with the process until the answer has left.

use std::fmt::Debug;
use std::sync::Arc;

use webfill_wire::socket::Peer;

/// The permit that a request holds with the process until its answer has left. The core only keeps it.
pub trait RequestPermit: Debug + Send + Sync {
    /// The request was read, and takes this many bytes until it is carried out.
    fn note_read(&self, bytes: usize);
    /// The request is answered; its answer takes this many bytes until its sender reads it.
    fn note_answer(&self, bytes: usize);
    /// Whether its sender has to read answers before there are more.
    fn has_unread(&self) -> bool;
    /// Whether the answer is no longer awaited.
    fn is_for_nobody(&self) -> bool;
    /// Its sender is gone.
    fn note_gone(&self);
}

/// The client that a request came from and its answer goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// On the control socket.
    Socket(ControlPeer),
    /// On the socket of feeders.
    Feeder(Peer),
    /// By HTTP.
    Http(HttpAsker),
}

/// The client that waits for an answer by HTTP.
#[derive(Debug, Clone)]
pub struct HttpAsker {
    /// The number of the request.
    pub number: u64,
    /// Its permit until it is answered.
    pub permit: Option<Arc<dyn RequestPermit>>,
}

impl From<u64> for HttpAsker {
    fn from(number: u64) -> HttpAsker {
        HttpAsker {
            number,
            permit: None,
        }
    }
}

impl PartialEq for HttpAsker {
    fn eq(&self, other: &HttpAsker) -> bool {
        self.number == other.number
    }
}

impl Eq for HttpAsker {}

/// A peer on the control socket, with the permits that its request holds until the answer has left.
#[derive(Debug, Clone)]
pub struct ControlPeer {
    pub peer: Peer,
    pub permit: Option<Arc<dyn RequestPermit>>,
}

impl From<Peer> for ControlPeer {
    fn from(peer: Peer) -> ControlPeer {
        ControlPeer { peer, permit: None }
    }
}

impl PartialEq for ControlPeer {
    fn eq(&self, other: &ControlPeer) -> bool {
        self.peer == other.peer
    }
}

impl Eq for ControlPeer {}

impl Client {
    /// The permit of its request.
    pub fn permit(&self) -> Option<&Arc<dyn RequestPermit>> {
        match self {
            Client::Socket(peer) => peer.permit.as_ref(),
            Client::Http(asker) => asker.permit.as_ref(),
            Client::Feeder(_) => None,
        }
    }
}
