//! The sender of a request: where the answer goes, its rights, and its name for people.

use std::sync::Arc;

use webfill_service::journey::JOURNEY;
use webfill_wire::keys::{Entry, Rights};

use webfill_wire::socket::Peer;

use crate::client::Client;

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    pub client: Client,
    pub rights: Rights,
    pub who: SenderInfo,
}

/// A sender of requests. Senders take turns, so that the requests of one do not wait for those of another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The name of a key or token. All its connections count as one sender.
    Name(Arc<str>),
    /// A connection of a client that uses no key.
    Peer(Peer),
    Address(Option<Arc<str>>),
}

/// What people are shown about the sender of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SenderInfo {
    /// The name of the key or token; `None` for a sender on this machine that uses no key.
    pub name: Option<Arc<str>>,
    pub address: Option<Arc<str>>,
    pub way: Channel,
}

impl SenderInfo {
    /// The sender of signals to this process.
    pub fn signal() -> SenderInfo {
        SenderInfo {
            way: Channel::Signal,
            ..SenderInfo::default()
        }
    }

    /// A span for the logged steps of URLs, which shows who has fed them.
    pub(crate) fn feed_span(&self) -> tracing::Span {
        tracing::debug_span!(
            target: JOURNEY, "feed",
            fed_by = self.name.as_deref(), by = self.way.as_str(), address = self.address.as_deref(),
        )
    }
}

/// How a sender is identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Channel {
    Key,
    /// A socket of this machine, without keys.
    #[default]
    Socket,
    Http,
    /// A token that was sent by HTTP.
    Token,
    /// The dashboard. On this machine it needs no token.
    Dashboard,
    Signal,
    /// A file that was reloaded.
    File,
}

impl Channel {
    /// The stable name in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Channel::Key => "key",
            Channel::Socket => "socket",
            Channel::Http => "http",
            Channel::Token => "token",
            Channel::Dashboard => "dashboard",
            Channel::Signal => "signal",
            Channel::File => "file",
        }
    }
}

impl Requester {
    pub fn sender(&self) -> Sender {
        match (&self.who.name, &self.client) {
            (Some(name), _) => Sender::Name(Arc::clone(name)),
            (None, Client::Socket(one)) => Sender::Peer(one.peer.clone()),
            (None, Client::Feeder(peer)) => Sender::Peer(peer.clone()),
            (None, Client::Http(_)) => Sender::Address(self.who.address.clone()),
        }
    }

    /// The sender of a message on a socket. Without keys, anyone who reaches the socket has all rights.
    pub fn from_socket(
        client: Client,
        sender: Option<&Entry>,
        address: Option<String>,
    ) -> Requester {
        let who = SenderInfo {
            name: sender.map(|sender| Arc::clone(&sender.name)),
            address: address.map(Arc::from),
            way: sender.map_or(Channel::Socket, |_| Channel::Key),
        };
        let rights = sender.map_or(Rights::ALL, |sender| sender.rights.clone());
        Requester {
            client,
            rights,
            who,
        }
    }
}

/// Turns a client into a sender with unlimited rights.
impl From<Client> for Requester {
    fn from(client: Client) -> Requester {
        Requester {
            client,
            rights: Rights::ALL,
            who: SenderInfo::default(),
        }
    }
}
