//! Resolves host names, and refuses addresses that must not be connected to (private, loopback, link-local: protection
//! against SSRF).
//!
//! The HTTP client resolves each name through [`Resolver`]. The answer comes from `--resolve` or from the system, and
//! every address is checked before the client gets it. The client does not resolve hosts that are IP addresses, so
//! [`Resolver::check_literal`] checks those.
//!
//! A lookup may take long, so it is done before a task takes a fetch permit ([`Resolver::hold_lookup`]). The answer is
//! then ready when the request needs it ([`names`]).

mod clients;
mod lookup_threads;
mod memory;
mod names;
mod overrides;
mod refusal;
mod system;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use webfill_urls::address::{AddressClass, classify};
use webfill_urls::{Host, Url};

pub use clients::{ClientPart, Clients};
pub use lookup_threads::PLACES;
pub use memory::MOMENT;
pub use names::{FRESH_FOR, HeldName};
pub use overrides::OverrideError;
pub use refusal::{AddressRefusal, LookupError, ResolveError};

use crate::fetch::FetchConfig;
use crate::politeness::PolitenessConfig;
use names::Names;
use overrides::Overrides;

/// Looks names up and judges addresses. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Resolver {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    policy: Policy,
    overrides: Overrides,
    proxy: Option<ProxyHost>,
    names: Names,
}

/// Which kinds of addresses may be connected to.
#[derive(Debug, Clone, Copy)]
struct Policy {
    allow_private: bool,
    contact_missing: bool,
}

impl Policy {
    fn check_address(self, address: IpAddr) -> Result<(), AddressRefusal> {
        match classify(address) {
            AddressClass::Never => Err(AddressRefusal::NoHost),
            AddressClass::Private if !self.allow_private => Err(AddressRefusal::Private),
            AddressClass::Public if self.contact_missing => Err(AddressRefusal::NoContact),
            AddressClass::Private | AddressClass::Public => Ok(()),
        }
    }
}

/// The proxy that all requests go through. Its address is not checked, because the operator chose it.
#[derive(Debug)]
struct ProxyHost(String);

impl ProxyHost {
    fn from_proxy(proxy: &str) -> Self {
        let with_scheme = match proxy.contains("://") {
            true => proxy.to_owned(),
            false => format!("http://{proxy}"),
        };
        let url = Url::parse(&with_scheme).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        ProxyHost(host.to_ascii_lowercase())
    }
}

impl Resolver {
    /// Creates a resolver from the settings.
    ///
    /// # Errors
    ///
    /// A `--resolve` value cannot be read.
    pub fn new(fetch: &FetchConfig, politeness: &PolitenessConfig) -> Result<Self, OverrideError> {
        let contact = politeness.contact.as_deref().unwrap_or_default();
        Ok(Resolver {
            shared: Arc::new(Shared {
                policy: Policy {
                    allow_private: politeness.allow_private_networks,
                    contact_missing: contact.trim().is_empty(),
                },
                overrides: Overrides::parse(&fetch.resolve)?,
                proxy: fetch.proxy.as_deref().map(ProxyHost::from_proxy),
                names: Names::new(
                    Duration::from_secs_f64(fetch.lookup_timeout),
                    Box::new(system::look_up),
                ),
            }),
        })
    }

    /// Checks the host of a URL if it is an IP address. A name passes, because
    /// its addresses are checked when it is resolved.
    pub fn check_literal(&self, url: &Url) -> Result<(), ResolveError> {
        match ip_literal(url) {
            Some(address) => self.check_host_address(url.host_str().unwrap_or_default(), address),
            None => Ok(()),
        }
    }

    /// Checks a URL whose name a proxy will resolve, by resolving the name here as well. A name that only the proxy can
    /// resolve counts as a public host.
    pub async fn check_proxied(&self, url: &Url) -> Result<(), ResolveError> {
        self.check_literal(url)?;
        let host = url.host_str().unwrap_or_default();
        if self.shared.proxy.is_none() || ip_literal(url).is_some() {
            return Ok(());
        }
        match self.addresses(host, url.port_or_known_default()).await {
            Ok(addresses) => self.keep_allowed(host, addresses).map(|_| ()),
            Err(unknown) if self.shared.policy.contact_missing => Err(unknown),
            Err(_) => Ok(()),
        }
    }

    /// Checks the address that the connection was made to, because it may differ from the address that was checked
    /// before. With a proxy, the connection goes to the proxy, which is not checked.
    pub fn check_peer(&self, peer: Option<SocketAddr>) -> Result<(), ResolveError> {
        match peer {
            Some(peer) if self.shared.proxy.is_none() => {
                self.check_host_address(&peer.ip().to_string(), peer.ip())
            }
            _ => Ok(()),
        }
    }

    /// The addresses of a URL's host that may be connected to. The list is empty if they are unknown, as with a proxy.
    pub async fn allowed_addresses(&self, url: &Url) -> Vec<IpAddr> {
        let host = url.host_str().unwrap_or_default();
        let addresses = match ip_literal(url) {
            _ if self.shared.proxy.is_some() => Vec::new(),
            Some(address) => vec![SocketAddr::new(address, 0)],
            None => {
                let found = self.addresses(host, url.port_or_known_default()).await;
                found.unwrap_or_default()
            }
        };
        let allowed = self.keep_allowed(host, addresses).unwrap_or_default();
        allowed
            .iter()
            .map(|address| address.ip().to_canonical())
            .collect()
    }

    /// Whether all addresses of a URL's host are private or loopback ones.
    pub async fn is_private_host(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let addresses = match ip_literal(url) {
            Some(address) => vec![SocketAddr::new(address, 0)],
            None => match self.addresses(host, url.port_or_known_default()).await {
                Ok(addresses) => addresses,
                Err(_) => return false,
            },
        };
        addresses
            .iter()
            .all(|address| classify(address.ip()) == AddressClass::Private)
    }

    /// Lets the requests of one task share a lookup of the host's name. `None` for a host that needs no lookup.
    pub fn hold_lookup(&self, url: &Url) -> Option<HeldName> {
        let host = url.domain()?;
        let overridden = url
            .port_or_known_default()
            .and_then(|port| self.shared.overrides.find(host, port));
        match overridden {
            Some(_) => None,
            None => Some(self.shared.names.hold(host)),
        }
    }

    /// Forgets the failed lookups of a site's names, so that they are looked up again.
    pub fn forget_failures(&self, site: &str) {
        self.shared.names.forget_site(site);
    }

    /// The addresses of a host that may be connected to, with this port.
    async fn resolve(
        &self,
        host: &str,
        port: Option<u16>,
    ) -> Result<Vec<SocketAddr>, ResolveError> {
        if self
            .shared
            .proxy
            .as_ref()
            .is_some_and(|proxy| proxy.0 == host)
        {
            return self.look_up(host).await;
        }
        let addresses = self.addresses(host, port).await?;
        self.keep_allowed(host, addresses)
    }

    async fn addresses(
        &self,
        host: &str,
        port: Option<u16>,
    ) -> Result<Vec<SocketAddr>, ResolveError> {
        let overridden = port.and_then(|port| self.shared.overrides.find(host, port));
        match overridden {
            Some(address) => Ok(vec![address]),
            None => self.look_up(host).await,
        }
    }

    /// Returns the addresses that are held for the name, or looks them up; there is at least one. Their port is 0, so
    /// that the client uses the port of the URL.
    async fn look_up(&self, host: &str) -> Result<Vec<SocketAddr>, ResolveError> {
        match self.shared.names.addresses(host).await {
            Ok(addresses) => Ok(addresses.to_vec()),
            Err(why) => Err(ResolveError::Lookup {
                host: host.to_owned(),
                why,
            }),
        }
    }

    /// Removes the refused addresses. Returns an error if none is left.
    fn keep_allowed(
        &self,
        host: &str,
        mut addresses: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, ResolveError> {
        let mut refusal = Ok(());
        addresses.retain(|address| {
            let judged = self.check_host_address(host, address.ip());
            let is_allowed = judged.is_ok();
            refusal = judged;
            is_allowed
        });
        match refusal {
            Err(refusal) if addresses.is_empty() => Err(refusal),
            _ => Ok(addresses),
        }
    }

    fn check_host_address(&self, host: &str, address: IpAddr) -> Result<(), ResolveError> {
        self.shared
            .policy
            .check_address(address)
            .map_err(|refused| ResolveError::Unsafe {
                host: host.to_owned(),
                address,
                refused,
            })
    }
}

fn ip_literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// The resolver of the HTTP client for one port. A client passes it only the name of the host, but a `--resolve` value
/// applies to a host at one port.
#[derive(Debug, Clone)]
pub struct PortResolver {
    resolver: Resolver,
    /// The port; `None` for all ports without a `--resolve` value.
    port: Option<u16>,
}

impl Resolve for PortResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let addresses = this.resolver.resolve(name.as_str(), this.port).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
