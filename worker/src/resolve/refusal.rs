//! Errors that say why a host is not connected to.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use webfill_wire::Outcome;

/// Why a host is not connected to. The HTTP client wraps this error, and the fetcher finds it among the sources of the
/// client's error.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("no address for host {host}: {why}")]
    Lookup { host: String, why: Arc<LookupError> },
    #[error("host {host} is at {address}, {refused}")]
    Unsafe {
        host: String,
        address: IpAddr,
        refused: AddressRefusal,
    },
}

impl ResolveError {
    /// The outcome of a task whose host is refused.
    pub fn outcome(&self) -> Outcome {
        match self {
            ResolveError::Lookup { .. } => Outcome::DnsError,
            ResolveError::Unsafe { .. } => Outcome::UnsafeAddress,
        }
    }

    /// Whether the look-up failed without saying whether the host exists: name servers did not answer in time, or the
    /// resolver reported an error.
    pub fn is_inconclusive_lookup(&self) -> bool {
        match self {
            ResolveError::Lookup { why, .. } => {
                matches!(**why, LookupError::Failed(_) | LookupError::Unanswered(_))
            }
            ResolveError::Unsafe { .. } => false,
        }
    }
}

/// Why a name has no address.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    #[error("no such name, or it has no address")]
    NotFound,
    #[error(transparent)]
    Failed(io::Error),
    #[error("no answer within {} s", .0.as_secs_f64())]
    Unanswered(Duration),
    #[error("too many pending look-ups; it did not start within {} s", .0.as_secs())]
    NoTurn(Duration),
    #[error("cannot start a thread for the look-up: {0}")]
    NoThread(io::Error),
    #[error("the look-up was aborted")]
    BrokenOff,
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefusal {
    #[error("a loopback, private or link-local address, which --allow-private-networks permits")]
    Private,
    #[error("an address that no host has: unspecified, multicast, documentation or reserved")]
    NoHost,
    #[error("a public address, which needs --contact with the page that explains the crawl")]
    NoContact,
}
