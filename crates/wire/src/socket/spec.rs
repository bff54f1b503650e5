//! Describes a socket to open: its pattern, its endpoint and its keys.

use crate::keys::{ClientKeys, Role, ServerKeys};

/// Names a socket within its process.
pub type SocketName = u32;

/// The messaging pattern of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Exchanges messages with many dealers, each addressed by its [`Peer`](super::Peer).
    Router,
    /// Exchanges messages with one router.
    Dealer,
    Push,
    Pull,
    /// Sends requests to a router, as a dealer that adds an empty delimiter frame.
    Client,
    /// Sends to all subscribers, see [`Outbox::publish`](super::Outbox::publish). Receives their subscriptions, see
    /// [`Subscription`](super::Subscription).
    Publish,
    /// Receives the messages of a publisher that it subscribes to, see [`SocketSpec::topics`].
    Subscribe,
}

/// The endpoint that a socket binds or connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Bind(String),
    Connect(String),
}

impl Place {
    pub fn endpoint(&self) -> &str {
        match self {
            Place::Bind(endpoint) | Place::Connect(endpoint) => endpoint,
        }
    }
}

/// How the two ends of a socket authenticate each other.
#[derive(Debug, Clone)]
pub enum Guard {
    /// Neither end authenticates the other. Only for Unix sockets and loopback addresses.
    None,
    /// Admits keys of the allow-list that have this role. A publishing socket does not admit keys that are limited to
    /// applications. Subscriptions are prefixes, so a subscription to `a` would include everything of `ab`.
    Serve(ServerKeys, Role),
    /// Connects only to the owner of a trusted key, and authenticates with this process's own key.
    Call(ClientKeys),
}

/// A socket to open.
#[derive(Debug, Clone)]
pub struct SocketSpec {
    pub name: SocketName,
    pub pattern: Pattern,
    pub place: Place,
    pub guard: Guard,
    /// The topics of a subscribing socket: it receives messages whose topics begin with one of these.
    pub topics: Vec<String>,
    /// Whether the peers of a router may be any programs, which read and write as they like. Then libzmq's queue for
    /// each peer is bounded, and a peer that does not read does not delay others.
    pub is_for_clients: bool,
}

impl SocketSpec {
    /// A socket that binds an endpoint, without keys.
    pub fn bind(name: SocketName, pattern: Pattern, endpoint: impl Into<String>) -> SocketSpec {
        SocketSpec {
            name,
            pattern,
            place: Place::Bind(endpoint.into()),
            guard: Guard::None,
            topics: Vec::new(),
            is_for_clients: false,
        }
    }

    /// A socket that connects to an endpoint, without keys.
    pub fn connect(name: SocketName, pattern: Pattern, endpoint: impl Into<String>) -> SocketSpec {
        SocketSpec {
            name,
            pattern,
            place: Place::Connect(endpoint.into()),
            guard: Guard::None,
            topics: Vec::new(),
            is_for_clients: false,
        }
    }

    /// Sets the topics of a subscribing socket: it receives topics that begin with one of these.
    pub fn with_topics(self, topics: Vec<String>) -> SocketSpec {
        SocketSpec { topics, ..self }
    }

    /// Sets that the peers of this socket may be any programs.
    pub fn for_clients(self) -> SocketSpec {
        SocketSpec {
            is_for_clients: true,
            ..self
        }
    }

    /// Makes the socket a server that admits only listed keys with this role, if there are keys.
    pub fn with_server_keys(self, keys: Option<&ServerKeys>, role: Role) -> SocketSpec {
        let guard = keys.map_or(Guard::None, |keys| Guard::Serve(keys.clone(), role));
        SocketSpec { guard, ..self }
    }

    /// Makes the socket a client that connects only to a server with a trusted key, if there are keys.
    pub fn call(self, keys: Option<&ClientKeys>) -> SocketSpec {
        let guard = keys.map_or(Guard::None, |keys| Guard::Call(keys.clone()));
        SocketSpec { guard, ..self }
    }
}

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("{endpoint} is in use by another process: choose another port or stop that process")]
    InUse { endpoint: String },
    #[error(
        "{endpoint} can be reached by other machines and is not opened without keys: set `keys`"
    )]
    Unguarded { endpoint: String },
    #[error("cannot open {endpoint}: {reason}")]
    Open { endpoint: String, reason: String },
    #[error("the socket thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}
