//! The messages that leave the dispatcher after the next commit.

use serde_json::Value;
use webfill_wire::DispatcherToSupervisor;
use webfill_wire::socket::Peer;

use crate::firehose::FinishedPage;

/// The client that a request came from and its answer goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// On the control socket.
    Socket(Peer),
    /// By HTTP: the number of the request.
    Http(u64),
}

/// A message with its receiver.
#[derive(Debug, Clone, PartialEq)]
pub enum OutgoingMessage {
    ToSupervisor(Peer, DispatcherToSupervisor),
    /// The answer to a request.
    ToClient(Client, Value),
    /// A page with its final outcome, for the subscribers of its application's results.
    FinishedPage(FinishedPage),
    /// A notice about a crawl, for the subscribers of its application's notices.
    Notice {
        app_id: String,
        notice: Value,
    },
}
