//! Listens for connections within limits, and passes their requests to a [`RequestHandler`].

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use crate::Fault;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use crate::http::connections::{ConnectionPermit, ConnectionPermits};
use crate::http::protection::SharedProtection;
use crate::http::tls;
use crate::http::unread::WriteDeadline;

/// How many connections are served at once for clients that have shown a token, or for all clients if no tokens are
/// required. Clients that have not shown a token yet have a lower limit: see [`ConnectionPermits`].
const MOST_CONNECTIONS: usize = 64;

/// The time limit for the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// How long an answer may wait until the client reads it. The time counts from when the client stops reading.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// The body of an answer: complete from the start, or sent piece by piece.
pub type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

pub type Answer = Response<AnswerBody>;

/// An answer body that is complete from the start.
pub fn complete_body(body: impl Into<Bytes>) -> AnswerBody {
    Full::new(body.into()).boxed_unsync()
}

/// The client's address, and whether the connection uses TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub address: SocketAddr,
    pub is_tls: bool,
}

/// Answers requests.
pub trait RequestHandler: Send + Sync + 'static {
    /// Runs beside the requests, for as long as they are served.
    fn run_background(self: Arc<Self>) -> impl Future<Output = ()> + Send {
        async {}
    }

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: Peer,
    ) -> impl Future<Output = Answer> + Send;
}

/// Starts to listen, and serves requests on a separate thread until the process ends. Returns the address that it
/// listens on. If that is unavailable, the error contains `advice`.
pub fn start<A: RequestHandler>(
    address: SocketAddr,
    advice: &str,
    protection: SharedProtection,
    answering: Arc<A>,
) -> Result<SocketAddr, Fault> {
    let cannot = |error: std::io::Error| {
        Fault::error(format!(
            "cannot take requests at http://{address}: {error}; {advice}"
        ))
    };
    let listener = TcpListener::bind(address).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    std::thread::Builder::new()
        .name("http".into())
        .spawn(move || runtime.block_on(serve(listener, protection, answering)))
        .map_err(cannot)?;
    Ok(address)
}

async fn serve<A: RequestHandler>(
    listener: TcpListener,
    protection: SharedProtection,
    answering: Arc<A>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(event = "http_ended", %error, "no requests are taken by HTTP");
            return;
        }
    };
    tokio::spawn(Arc::clone(&answering).run_background());
    let of_this_machine = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let places = Arc::new(ConnectionPermits::new(MOST_CONNECTIONS));
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                // The process probably has no free file descriptor. Try again when some may be free.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let protection = protection.get();
        // Without tokens, all clients are processes of this machine, so limits per address make no sense.
        let (permit, place) = match protection.tokens {
            Some(_) => match places.try_take(from.ip()) {
                Some(place) => (None, Some(place)),
                None => continue,
            },
            None => (
                Some(Arc::clone(&of_this_machine).acquire_owned().await),
                None,
            ),
        };
        let answering = Arc::clone(&answering);
        let peer = Peer {
            address: from,
            is_tls: protection.tls.is_some(),
        };
        let requests = Requests {
            answering,
            peer,
            place,
        };
        let tls = protection.tls.clone();
        tokio::spawn(async move {
            let _permit = permit;
            serve_connection(stream, tls, requests).await;
        });
    }
}

/// Serves a connection until it ends or loses its place.
async fn serve_connection<A: RequestHandler>(
    stream: tokio::net::TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
    requests: Requests<A>,
) {
    let place = requests.place.clone();
    let serving = async {
        match tls {
            None => requests.serve(stream).await,
            Some(config) => {
                if let Some(stream) = tls::accept_tls(stream, config, HEAD_WITHIN).await {
                    requests.serve(stream).await;
                }
            }
        }
    };
    match &place {
        None => serving.await,
        Some(place) => tokio::select! {
            () = serving => {}
            () = place.wait_until_revoked() => {}
        },
    }
}

/// The requests of one connection.
struct Requests<A> {
    answering: Arc<A>,
    peer: Peer,
    place: Option<Arc<ConnectionPermit>>,
}

impl<A: RequestHandler> Requests<A> {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let serve_one = service_fn(move |mut request: Request<Incoming>| {
            if let Some(place) = &self.place {
                request.extensions_mut().insert(Arc::clone(place));
            }
            let answer = Arc::clone(&self.answering).answer(request, self.peer);
            async { Ok::<_, Infallible>(answer.await) }
        });
        // Errors are ignored, because a client that has closed the connection needs no answer.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .serve_connection(
                TokioIo::new(WriteDeadline::new(stream, READ_WITHIN)),
                serve_one,
            )
            .await;
    }
}
