//! The listeners of the test site, and the one thread that serves all of them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::http1::Transport;
use super::{AccessLog, Certificates, Connection, Shared, Site, Visits, http1, http2};

/// How the server treats a new connection before it reads a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConnectionPolicy {
    Serve,
    /// The connection is closed immediately, without a reset.
    Close,
    /// The connection is reset immediately.
    Reset,
}

/// A web on loopback. When it is dropped, its thread is stopped and every connection is closed.
pub struct Web {
    shared: Shared,
    plain: SocketAddr,
    tls: Option<(SocketAddr, Certificates)>,
    connections: Arc<AtomicU64>,
    runtime: tokio::runtime::Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Web {
    /// Starts a web with sites on plain HTTP.
    pub fn start() -> Web {
        Web::start_on(Ipv4Addr::LOCALHOST.into())
    }

    /// Starts a web with sites on plain HTTP at one address of this machine.
    pub fn start_on(address: IpAddr) -> Web {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || serve_until(runtime, stopped));
        let mut web = Web {
            shared: Shared::default(),
            plain: SocketAddr::new(address, 0),
            tls: None,
            connections: Arc::default(),
            runtime: handle,
            stop: Some(stop),
            thread: Some(thread),
        };
        web.plain = web.listen(address, None, ConnectionPolicy::Serve);
        web
    }

    /// Starts a web whose sites are served by plain HTTP and by HTTPS. The certificate is for `names`. The client
    /// chooses HTTP/2 or HTTP/1.1.
    pub fn start_tls(names: &[&str]) -> Web {
        Web::start().with_tls(names, &["h2", "http/1.1"])
    }

    /// Adds HTTPS to this web, with these ALPN protocols.
    pub fn with_tls(mut self, names: &[&str], protocols: &[&str]) -> Web {
        let certificates = Certificates::make(names);
        let acceptor = certificates.acceptor(protocols);
        let address = self.listen(self.plain.ip(), Some(acceptor), ConnectionPolicy::Serve);
        self.tls = Some((address, certificates));
        self
    }

    /// The site with this host name. Webfill reaches it by [`Web::resolve_args`].
    pub fn site(&self, host: &str) -> Site {
        Site::new(&self.shared, host, None)
    }

    /// Creates a site at an address of this machine, on its own port.
    pub fn site_at(&self, address: &str) -> Site {
        self.site_with_policy(address, ConnectionPolicy::Serve)
    }

    /// Like [`Web::site_at`], but with a policy for the connections of the site.
    pub fn site_with_policy(&self, address: &str, policy: ConnectionPolicy) -> Site {
        let address: IpAddr = address.parse().expect("an IP address");
        let listener = self.listen(address, None, policy);
        Site::new(&self.shared, &bracket_if_ipv6(address), Some(listener))
    }

    /// The arguments that make webfill resolve every host name to this web.
    pub fn resolve_args(&self) -> Vec<String> {
        let mut args = resolve_flag("*:80", self.plain);
        if let Some((address, certificates)) = &self.tls {
            args.extend(resolve_flag("*:443", *address));
            let authority = certificates.authority();
            args.extend(["--ca-file".to_string(), authority.display().to_string()]);
        }
        args
    }

    pub fn plain_address(&self) -> SocketAddr {
        self.plain
    }

    pub fn tls_address(&self) -> SocketAddr {
        self.tls.as_ref().expect("a web with TLS").0
    }

    pub fn certificates(&self) -> &Certificates {
        &self.tls.as_ref().expect("a web with TLS").1
    }

    pub fn log(&self) -> &AccessLog {
        &self.shared.log
    }

    pub fn visits(&self) -> Visits {
        self.shared.log.visits()
    }

    /// The number of connections that all listeners have accepted so far.
    pub fn connection_count(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    fn listen(
        &self,
        address: IpAddr,
        tls: Option<TlsAcceptor>,
        policy: ConnectionPolicy,
    ) -> SocketAddr {
        let listener = TcpListener::bind((address, 0))
            .unwrap_or_else(|error| panic!("cannot listen on {address}: {error}"));
        listener
            .set_nonblocking(true)
            .expect("sockets can be non-blocking");
        let bound = listener
            .local_addr()
            .expect("a bound listener has an address");
        let (shared, connections) = (self.shared.clone(), self.connections.clone());
        self.runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("inside the runtime");
            loop {
                // Accepting fails only if the client has already closed the connection.
                let Ok((stream, peer)) = listener.accept().await else {
                    continue;
                };
                let connection = Connection {
                    number: connections.fetch_add(1, Ordering::SeqCst),
                    accepted_at: Instant::now(),
                    tls: tls.is_some(),
                    client: peer.ip(),
                };
                tokio::spawn(serve(
                    stream,
                    tls.clone(),
                    policy,
                    connection,
                    shared.clone(),
                ));
            }
        });
        bound
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // If the thread has panicked, the test has already failed, so errors are ignored.
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve_until(runtime: Runtime, stopped: oneshot::Receiver<()>) {
    // `stopped` receives an error if its sender was dropped. In both cases the thread ends.
    let _ = runtime.block_on(stopped);
    runtime.shutdown_background();
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    policy: ConnectionPolicy,
    connection: Connection,
    shared: Shared,
) {
    if policy != ConnectionPolicy::Serve {
        if policy == ConnectionPolicy::Reset {
            // If this fails, the connection is closed without a reset.
            let _ = stream.reset_on_close();
        }
        return;
    }
    // `TCP_NODELAY` only shortens the latency, so an error is ignored.
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = tls else {
        return http1::serve(stream, connection, &shared).await;
    };
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2::serve(stream, connection, &shared).await;
    } else {
        http1::serve(stream, connection, &shared).await;
    }
}

fn resolve_flag(name_and_port: &str, address: SocketAddr) -> Vec<String> {
    let target = format!(
        "{name_and_port}:{}:{}",
        bracket_if_ipv6(address.ip()),
        address.port()
    );
    vec!["--resolve".to_string(), target]
}

fn bracket_if_ipv6(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
