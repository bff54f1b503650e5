//! The client that sent a request: its connection, and the permit that the request holds until its answer has left.

use std::fmt::Debug;
use std::sync::Arc;

use webfill_wire::socket::Peer;

/// The permit of a request, which counts the memory of the request and of its answer. The dispatcher's process issues
/// it, and it is held until the answer was sent.
pub trait RequestPermit: Debug + Send + Sync {
    /// Notes that the request was read. It takes this many bytes until it is carried out.
    fn note_read(&self, bytes: usize);
    /// Notes that the request was answered. The answer takes this many bytes until the client reads it.
    fn note_answer(&self, bytes: usize);
    /// Whether the client has to read pending answers before it gets more.
    fn has_unread(&self) -> bool;
    /// Whether nobody waits for the answer any more.
    fn has_no_receiver(&self) -> bool;
    /// Notes that the client is gone.
    fn mark_receiver_gone(&self);
}

/// The client that sent a request and gets its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// A client on the control socket.
    Socket(ControlPeer),
    /// A feeder (a process that reads the seeds of a watch's run), on the feeders' socket.
    Feeder(Peer),
    /// A client that sends its requests by HTTP.
    Http(HttpAsker),
}

/// An HTTP client that waits for the answer to its request.
#[derive(Debug, Clone)]
pub struct HttpAsker {
    /// The number of the request. The HTTP thread finds the waiting client by this number.
    pub number: u64,
    /// The request's permit, until it is answered.
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
    /// The permit of the client's request.
    pub fn permit(&self) -> Option<&Arc<dyn RequestPermit>> {
        match self {
            Client::Socket(peer) => peer.permit.as_ref(),
            Client::Http(asker) => asker.permit.as_ref(),
            Client::Feeder(_) => None,
        }
    }
}
