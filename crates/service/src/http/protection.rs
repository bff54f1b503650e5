//! The protection of HTTP to other machines: TLS and tokens. Their files are read at the start and at each reload. New
//! connections use what was read last.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::Fault;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::http::tokens::{Tokens, read_private};

/// The files of certificate, key and tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpFiles {
    /// The certificate with its chain, and the private key, as PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub tokens: Option<PathBuf>,
}

/// How HTTP is protected: the TLS configuration and the tokens, as read from the files.
#[derive(Clone, Default)]
pub struct Protection {
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub tokens: Option<Arc<Tokens>>,
}

/// The output omits the keys and tokens, which must stay secret.
impl std::fmt::Debug for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (tls, tokens) = (self.tls.is_some(), self.tokens.is_some());
        write!(f, "Protection {{ tls: {tls}, tokens: {tokens} }}")
    }
}

impl HttpFiles {
    /// Whether listening on an address is allowed: on other addresses than loopback only with TLS and tokens.
    pub fn permits_address(&self, address: SocketAddr) -> bool {
        address.ip().is_loopback() || (self.tls.is_some() && self.tokens.is_some())
    }

    /// Reads and checks the files.
    pub fn read(&self) -> Result<Protection, Fault> {
        let tls = self.tls.as_ref();
        let tls = tls.map(|(certificate, key)| server_config(certificate, key));
        let tokens = self.tokens.as_deref().map(Tokens::read);
        Ok(Protection {
            tls: tls.transpose()?.map(Arc::new),
            tokens: tokens.transpose()?.map(Arc::new),
        })
    }
}

fn server_config(certificate: &Path, key: &Path) -> Result<ServerConfig, Fault> {
    let unusable = |path: &Path, error: &dyn std::fmt::Display| {
        Fault::usage(format!("cannot use {} for HTTP: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(|found| found.collect::<Result<Vec<_>, _>>())
        .map_err(|error| unusable(certificate, &error))?;
    if chain.is_empty() {
        return Err(unusable(certificate, &"it holds no certificate"));
    }
    let pem = read_private(key, "the key")?;
    let secret =
        PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| unusable(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(certificate, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| unusable(certificate, &error))
}

/// The current protection, shared by the HTTP thread and the code that reloads it.
#[derive(Clone, Default)]
pub struct SharedProtection(Arc<RwLock<Protection>>);

impl SharedProtection {
    pub fn new(protection: Protection) -> SharedProtection {
        SharedProtection(Arc::new(RwLock::new(protection)))
    }

    pub fn replace(&self, protection: Protection) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = protection;
    }

    pub fn get(&self) -> Protection {
        let in_force = self.0.read().unwrap_or_else(PoisonError::into_inner);
        in_force.clone()
    }
}
