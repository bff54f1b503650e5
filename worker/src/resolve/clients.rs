//! The HTTP clients: one for each port that a `--resolve` value names, and one for all other ports.
//!
//! A client passes its resolver a name without the port. With a single client, a value for `example.com:443` would also
//! apply to `example.com:80`. So each port that a value names has a client of its own, with its own connections.

use std::collections::HashMap;

use reqwest::header::HOST;
use reqwest::{Client, RequestBuilder};
use webfill_urls::{Position, Url};

use super::{PortResolver, Resolver};

/// The settings that differ between the clients.
#[derive(Debug, Clone)]
pub struct ClientPart {
    pub resolver: PortResolver,
    /// Whether only HTTP/1.1 is offered. HTTP/2 takes the name of the host from the URL that is connected to; unlike
    /// the header `Host`, it cannot be set separately.
    pub http1_only: bool,
}

/// The HTTP clients that the fetcher uses, selected by the port of the URL.
#[derive(Debug, Clone)]
pub struct Clients {
    resolver: Resolver,
    by_port: HashMap<u16, Client>,
    others: Client,
}

impl Clients {
    /// Builds the clients, each with its [`ClientPart`]. Without `--resolve` there is only one.
    ///
    /// # Errors
    ///
    /// Returns the first error of `build`.
    pub fn build<E>(
        resolver: &Resolver,
        build: impl Fn(ClientPart) -> Result<Client, E>,
    ) -> Result<Self, E> {
        let overrides = &resolver.shared.overrides;
        let of_port = |port: Option<u16>| {
            build(ClientPart {
                resolver: PortResolver {
                    resolver: resolver.clone(),
                    port,
                },
                http1_only: port.is_some_and(|port| port != 443 && overrides.is_port_changed(port)),
            })
        };
        let ports = overrides.ports().into_iter();
        Ok(Clients {
            resolver: resolver.clone(),
            by_port: ports
                .map(|port| Ok((port, of_port(Some(port))?)))
                .collect::<Result<_, E>>()?,
            others: of_port(None)?,
        })
    }

    /// Begins a GET request. The URL of the response may lack the port of `url`, so relative links must be joined to
    /// `url`.
    pub fn get(&self, url: &Url) -> RequestBuilder {
        let port = url.port_or_known_default();
        let own = port.and_then(|port| self.by_port.get(&port));
        let client = own.unwrap_or(&self.others);
        if !self.is_dialled_elsewhere(url) {
            return client.get(url.clone());
        }
        // The client connects to the port of a resolved address only if the
        // URL names none.
        let mut dialled = url.clone();
        dialled
            .set_port(None)
            .expect("a URL with a port is one that may have a port");
        client
            .get(dialled)
            .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
    }

    /// Whether the URL names a port, but the connection goes to another port. This is never so behind a proxy, which
    /// connects to the URL's port itself.
    fn is_dialled_elsewhere(&self, url: &Url) -> bool {
        let shared = &self.resolver.shared;
        let (Some(host), Some(port), None) = (url.domain(), url.port(), &shared.proxy) else {
            return false;
        };
        let target = shared.overrides.find(host, port);
        target.is_some_and(|address| address.port() != 0)
    }
}
