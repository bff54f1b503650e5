//! Why a host is not connected to.

use std::io;
use std::net::IpAddr;

use webfill_wire::Outcome;

/// The fetcher finds it among the sources of the client's error.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("no address for host {host}: {source}")]
    Lookup { host: String, source: io::Error },
    #[error("host {host} is at {address}, {refused}")]
    Unsafe {
        host: String,
        address: IpAddr,
        refused: Refused,
    },
}

impl ResolveError {
    /// How a task ends whose host is refused.
    pub fn outcome(&self) -> Outcome {
        match self {
            ResolveError::Lookup { .. } => Outcome::DnsError,
            ResolveError::Unsafe { .. } => Outcome::UnsafeAddress,
        }
    }
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a loopback, private or link-local address, which --allow-private-networks permits")]
    Private,
    #[error("an address that no host has: unspecified, multicast, documentation or reserved")]
    NoHost,
    #[error("a public address, which needs --contact with the page that explains the crawl")]
    NoContact,
}
