//! Who sends a request: where the answer goes, what the sender may do, and how people know it.

use std::sync::Arc;

use webfill_startup::journey::JOURNEY;
use webfill_wire::keys::{Entry, Rights};

use crate::outgoing::Client;

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    pub client: Client,
    pub rights: Rights,
    pub who: Who,
}

/// Whom people know as the sender.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Who {
    /// The name of the key or token; there is none on this machine without keys.
    pub name: Option<Arc<str>>,
    pub address: Option<Arc<str>>,
    pub way: Way,
}

impl Who {
    /// Whoever sends signals to this process.
    pub(crate) fn signal() -> Who {
        Who {
            way: Way::Signal,
            ..Who::default()
        }
    }

    /// Within it each step of a URL that is logged says who has fed it.
    pub(crate) fn span_of_feed(&self) -> tracing::Span {
        tracing::debug_span!(
            target: JOURNEY, "feed",
            fed_by = self.name.as_deref(), by = self.way.as_str(), address = self.address.as_deref(),
        )
    }
}

/// By what a sender is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    Key,
    /// A socket of this machine, without keys.
    #[default]
    Socket,
    Http,
    /// By HTTP, with a token.
    Token,
    /// At the desk, with a token or, on this machine, without.
    Desk,
    Signal,
    /// A file that was read again.
    File,
}

impl Way {
    /// The stable name, as in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Way::Key => "key",
            Way::Socket => "socket",
            Way::Http => "http",
            Way::Token => "token",
            Way::Desk => "desk",
            Way::Signal => "signal",
            Way::File => "file",
        }
    }
}

impl Requester {
    /// The sender of a message on a socket. Without keys, whoever reaches the socket may do everything.
    pub(crate) fn on_socket(
        client: Client,
        sender: Option<&Entry>,
        address: Option<String>,
    ) -> Requester {
        let who = Who {
            name: sender.map(|sender| Arc::clone(&sender.name)),
            address: address.map(Arc::from),
            way: sender.map_or(Way::Socket, |_| Way::Key),
        };
        let rights = sender.map_or(Rights::ALL, |sender| sender.rights.clone());
        Requester {
            client,
            rights,
            who,
        }
    }
}

/// One that nobody has bound.
impl From<Client> for Requester {
    fn from(client: Client) -> Requester {
        Requester {
            client,
            rights: Rights::ALL,
            who: Who::default(),
        }
    }
}
