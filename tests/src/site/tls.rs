//! TLS for the test site. The certificates are signed by the tests' own authority (`certs/make.sh`).

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::http1::Transport;

/// An authority and a server certificate. Their folder is removed when this value is dropped.
pub struct Certificates {
    folder: TempDir,
}

impl Certificates {
    /// Creates an authority, and a server certificate for these host names and addresses.
    pub fn make(names: &[&str]) -> Certificates {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../certs/make.sh");
        let made = Command::new(&script)
            .arg(folder.path())
            .args(names)
            .output();
        let made = made.unwrap_or_else(|error| panic!("cannot run {}: {error}", script.display()));
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        Certificates { folder }
    }

    /// The path of the authority's certificate, which a client must trust.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The path of the certificate with its key, for a server that is another program.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.pem")
    }

    /// Creates a certificate for an address that expired yesterday. It has the same key. Returns its path.
    pub fn make_expired_certificate(&self, address: &str) -> PathBuf {
        let script = "printf 'subjectAltName=IP:%s\\n' \"$1\" >expired.extensions && \
            openssl req -new -key server.key -subj /CN=expired -out expired.csr && \
            openssl x509 -req -in expired.csr -CA ca.pem -CAkey ca.key -set_serial 0x77 -days -1 \
                -extfile expired.extensions -out expired.pem";
        let made = Command::new("sh")
            .args(["-c", script, "sh", address])
            .current_dir(self.folder.path())
            .output()
            .expect("sh runs");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{said}");
        self.folder.path().join("expired.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("server.key")
    }

    /// Makes an acceptor of TLS connections with this certificate. It offers these protocols by ALPN.
    pub(super) fn acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        let pem =
            std::fs::read(self.folder.path().join("server.pem")).expect("server.pem was made");
        let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let key =
            std::fs::read(self.folder.path().join("server.key")).expect("server.key was made");
        let key = PrivateKeyDer::from_pem_slice(&key).expect("a private key in PEM");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default versions")
            .with_no_client_auth()
            .with_single_cert(chain.expect("certificates in PEM"), key)
            .expect("the certificate fits its key");
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Transport for TcpStream {
    fn reset_on_close(&self) -> io::Result<()> {
        self.set_zero_linger()
    }
}

impl Transport for TlsStream<TcpStream> {
    fn reset_on_close(&self) -> io::Result<()> {
        self.get_ref().0.set_zero_linger()
    }
}
