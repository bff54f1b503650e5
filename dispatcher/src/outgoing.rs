//! What leaves the dispatcher after the next commit.

use serde_json::Value;
use webfill_wire::DispatcherToSupervisor;
use webfill_wire::socket::Peer;

use crate::firehose::FinishedPage;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// On the control socket.
    Socket(Peer),
    /// By HTTP: the number of the question.
    Http(u64),
}

/// A message and whom it goes to.
#[derive(Debug, Clone, PartialEq)]
pub enum OutgoingMessage {
    ToSupervisor(Peer, DispatcherToSupervisor),
    /// The answer to a request.
    ToClient(Client, Value),
    /// A page that has come to its end, to everybody who hears what becomes of its application's.
    FinishedPage(FinishedPage),
    /// To everybody who hears what happens to an application's crawls.
    Notice {
        app_id: String,
        notice: Value,
    },
}
