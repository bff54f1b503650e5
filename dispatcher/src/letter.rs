//! What leaves the dispatcher after the next commit.

use serde_json::Value;
use webfill_wire::DispatcherToSupervisor;
use webfill_wire::socket::Peer;

/// A message and whom it goes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Letter {
    ToSupervisor(Peer, DispatcherToSupervisor),
    /// The answer to a request.
    ToClient(Peer, Value),
}
