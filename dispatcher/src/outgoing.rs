//! What leaves the dispatcher after a commit.

use std::sync::Arc;

use serde_json::Value;
use webfill_wire::DispatcherToSupervisor;
use webfill_wire::socket::Peer;

use crate::audit::Audited;
use crate::caller::Caller;
use crate::firehose::FinishedPage;
use crate::permits::Permit;
use crate::store_writer::StoreWrite;

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

/// Who waits for an answer by HTTP.
#[derive(Debug, Clone)]
pub struct HttpAsker {
    /// Of the request.
    pub(crate) number: u64,
    /// What it counts for until it is answered.
    pub(crate) permit: Option<Arc<Permit>>,
}

impl HttpAsker {
    /// Of the request.
    pub fn number(&self) -> u64 {
        self.number
    }
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

/// A peer on the control socket, with what its request counts for until the answer has left.
#[derive(Debug, Clone)]
pub struct ControlPeer {
    pub(crate) peer: Peer,
    pub(crate) permit: Option<Arc<Permit>>,
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
    /// What its request counts for.
    pub(crate) fn permit(&self) -> Option<&Arc<Permit>> {
        match self {
            Client::Socket(peer) => peer.permit.as_ref(),
            Client::Http(asker) => asker.permit.as_ref(),
            Client::Feeder(_) => None,
        }
    }
}

/// A message with its receiver.
#[derive(Debug, Clone, PartialEq)]
pub enum OutgoingMessage {
    ToSupervisor(Caller, DispatcherToSupervisor),
    /// The answer to a request.
    ToClient(Client, Value),
    /// A page with its final outcome, for the subscribers of its application's results.
    FinishedPage(FinishedPage),
    /// A notification about a crawl, for the subscribers of its application's notifications.
    Notification {
        app_id: String,
        notification: Value,
    },
}

/// What may leave, because a commit has made durable what it tells of. Only a commit hands it out, so
/// that after a failed one nothing leaves.
#[derive(Default)]
#[must_use = "the commit is told to nobody unless this is sent"]
pub struct Committed {
    pub outgoing: Vec<OutgoingMessage>,
    pub store_writes: Vec<StoreWrite>,
    /// What clients have done or were refused, to be written before the answers leave.
    pub audited: Vec<Audited>,
}
