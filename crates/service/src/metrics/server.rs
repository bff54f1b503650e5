//! A listener for requests that need no key: one or two paths, by `GET`. Requests change nothing. On loopback it
//! refuses names of other machines in `Host`. So no foreign page can make a browser on this machine read the answers.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use crate::Fault;
use crate::own_names::is_of_this_machine;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

/// How many connections are served at once; further ones wait.
const MOST_CONNECTIONS: usize = 16;

/// The time limit for the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// The time limit for a connection, which carries one request. So a client that does not read the answer cannot keep
/// its place.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// The media type of the text format, version 0.0.4.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

const TEXT: &str = "text/plain; charset=utf-8";

type Reply = Response<Full<Bytes>>;

/// How errors and log lines describe a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose {
    /// The plural noun in `no ... are served`, such as `metrics`.
    pub(crate) what: &'static str,
    /// All paths, listed in the answer to requests for other paths.
    pub(crate) paths: &'static str,
    /// The name of the thread that serves the listener.
    pub(crate) thread: &'static str,
}

/// The answer to a request for one path.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    pub(crate) text: String,
}

struct Service<F> {
    is_loopback: bool,
    purpose: Purpose,
    answer: F,
}

/// Starts to listen, and serves the page of metrics until the process ends. Errors name the address by its `setting`.
pub fn serve<F>(address: SocketAddr, setting: &str, page: F) -> Result<(), Fault>
where
    F: Fn() -> String + Send + Sync + 'static,
{
    let purpose = Purpose {
        what: "metrics",
        paths: "GET /metrics",
        thread: "metrics",
    };
    listen(address, setting, purpose, move |path| {
        (path == "/metrics").then(|| Answer {
            status: 200,
            media_type: EXPOSITION,
            text: page(),
        })
    })
}

/// Starts to listen, and answers until the process ends. An answer of `None` means that the path does not exist.
pub(crate) fn listen<F>(
    address: SocketAddr,
    setting: &str,
    purpose: Purpose,
    answer: F,
) -> Result<(), Fault>
where
    F: Fn(&str) -> Option<Answer> + Send + Sync + 'static,
{
    let cannot = |error: std::io::Error| {
        Fault::error(format!(
            "cannot serve {} at http://{address}: {error}; choose another address in {setting}, or `off`",
            purpose.what
        ))
    };
    let listener = TcpListener::bind(address).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    let service = Arc::new(Service {
        is_loopback: address.ip().is_loopback(),
        purpose,
        answer,
    });
    std::thread::Builder::new()
        .name(purpose.thread.into())
        .spawn(move || runtime.block_on(accept_connections(listener, service)))
        .map_err(cannot)?;
    Ok(())
}

async fn accept_connections<F>(listener: TcpListener, service: Arc<Service<F>>)
where
    F: Fn(&str) -> Option<Answer> + Send + Sync + 'static,
{
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            let what = service.purpose.what;
            tracing::error!(event = "listener_ended", what, %error, "nothing of this is served");
            return;
        }
    };
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            // The process probably has no free file descriptor. Try again when some may be free.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let _place = place;
            let answer_one = service_fn(|request| {
                let answer = service.answer(&request);
                async { Ok::<_, Infallible>(answer) }
            });
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WITHIN)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer_one);
            // Errors are ignored, because a client that has closed the connection needs no answer.
            let _ = tokio::time::timeout(SERVED_WITHIN, serving).await;
        });
    }
}

impl<F: Fn(&str) -> Option<Answer>> Service<F> {
    fn answer(&self, request: &Request<Incoming>) -> Reply {
        let host = request.headers().get(HOST);
        let host = host.and_then(|host| host.to_str().ok());
        if self.is_loopback && !host.is_some_and(is_of_this_machine) {
            return refusal_reply(403, "the Host header names another machine\n".into());
        }
        if request.headers().contains_key(ORIGIN) {
            return refusal_reply(
                403,
                "requests from web pages are refused (Origin header)\n".into(),
            );
        }
        let Some(answer) = (self.answer)(request.uri().path()) else {
            let paths = self.purpose.paths;
            return refusal_reply(404, format!("nothing is here; there is {paths}\n"));
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = refusal_reply(405, "expected GET\n".into());
            let allowed = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, allowed);
            return answer;
        }
        to_reply(answer)
    }
}

fn refusal_reply(status: u16, why: String) -> Reply {
    to_reply(Answer {
        status,
        media_type: TEXT,
        text: why,
    })
}

fn to_reply(answer: Answer) -> Reply {
    let mut response = Response::new(Full::new(Bytes::from(answer.text)));
    *response.status_mut() = StatusCode::from_u16(answer.status).expect("it is a status");
    let media_type = HeaderValue::from_static(answer.media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}
