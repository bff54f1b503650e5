//! Settings of requests: their time limits, size limits, proxy and headers.

use serde::{Deserialize, Serialize};

/// The limits of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchConfig {
    /// Seconds for the name lookup, which precedes the request.
    pub lookup_timeout: f64,
    /// Seconds for connect and TLS handshake together.
    pub connect_timeout: f64,
    /// Seconds until the head of the answer has arrived.
    pub head_timeout: f64,
    /// Seconds that a body may pause between two pieces.
    pub body_timeout: f64,
    /// Seconds for the whole request.
    pub total_timeout: f64,
    /// The most bytes of a body, after decompression.
    pub max_body_bytes: usize,
    /// HTTP(S) or SOCKS5 proxy for all fetches; the environment is not consulted.
    pub proxy: Option<String>,
    /// Fixed addresses of hosts, in curl's format `HOST:PORT:ADDR[:PORT]`; `*` as HOST is a wildcard.
    pub resolve: Vec<String>,
    /// A PEM file of certificate authorities to trust in addition to the system's.
    pub ca_file: Option<std::path::PathBuf>,
    /// `SITE NAME: VALUE`: headers for the pages of a site and its subdomains; `*` is every site.
    pub headers: Vec<String>,
}

impl Default for FetchConfig {
    fn default() -> Self {
        FetchConfig {
            lookup_timeout: 10.0,
            connect_timeout: 10.0,
            head_timeout: 20.0,
            body_timeout: 20.0,
            total_timeout: 60.0,
            max_body_bytes: 8 << 20,
            proxy: None,
            resolve: Vec::new(),
            ca_file: None,
            headers: Vec::new(),
        }
    }
}
