//! A small web on loopback with prepared answers, kept-alive connections, and a log of requests with their times.
//!
//! It uses one thread, and one write for each answer, because it shares the cores with the measured processes. Requests
//! have no body. If the web has no answer for a request, it answers 404.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::failure::Failure;

/// A whole HTTP answer, head and body, as it is sent.
pub type Answer = Arc<[u8]>;

/// The pages that a web serves.
pub trait Pages: Send + Sync + 'static {
    /// The answer for a path; `None` for 404. `host` is the requested host, including the port.
    fn answer(&self, host: &str, path: &str) -> Option<Answer>;

    /// How long each request is held before it is answered.
    fn hold_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// A request, as the server saw it.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub at: Instant,
    pub host: String,
    pub path: String,
}

#[derive(Default)]
struct Seen {
    arrivals: Mutex<VecDeque<Arrival>>,
    in_flight: AtomicUsize,
}

/// A running server. It ends with this process.
pub struct Web {
    pub port: u16,
    seen: Arc<Seen>,
}

impl Web {
    /// Serves `pages` at one port of several addresses, which begin with 127.0.0.1.
    pub fn serve(pages: impl Pages, addresses: u8) -> Result<Web, Failure> {
        let seen = Arc::new(Seen::default());
        let listeners = listen_on_addresses(addresses)?;
        let port = listeners[0].local_addr()?.port();
        let shared = Arc::clone(&seen);
        let pages: Arc<dyn Pages> = Arc::new(pages);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("web".into())
            .spawn(move || {
                runtime.block_on(async {
                    let accepting = listeners.into_iter().map(|listener| {
                        tokio::spawn(accept_connections(
                            listener,
                            Arc::clone(&pages),
                            Arc::clone(&shared),
                        ))
                    });
                    for task in accepting.collect::<Vec<_>>() {
                        let _ = task.await;
                    }
                });
            })?;
        Ok(Web { port, seen })
    }

    /// The number of requests that were read and are not answered yet.
    pub fn in_flight(&self) -> usize {
        self.seen.in_flight.load(Ordering::Relaxed)
    }

    /// Takes all logged requests out of the log.
    pub fn take_arrivals(&self) -> VecDeque<Arrival> {
        std::mem::take(
            &mut *self
                .seen
                .arrivals
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

fn listen_on_addresses(addresses: u8) -> Result<Vec<std::net::TcpListener>, Failure> {
    let mut listeners = Vec::new();
    let mut port = 0;
    for last in 1..=addresses.max(1) {
        let address = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), port));
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

async fn accept_connections(
    listener: std::net::TcpListener,
    pages: Arc<dyn Pages>,
    seen: Arc<Seen>,
) {
    let listener = TcpListener::from_std(listener).expect("a listener that was just bound");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                tokio::spawn(answer_requests(
                    stream,
                    Arc::clone(&pages),
                    Arc::clone(&seen),
                ));
            }
            // The process has no free file descriptor. Others will be closed soon, so it waits a moment.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Answers requests until the peer closes the connection or sends something else.
async fn answer_requests(mut stream: TcpStream, pages: Arc<dyn Pages>, seen: Arc<Seen>) {
    let mut buffer = Vec::with_capacity(1024);
    loop {
        let head = match head_end(&buffer) {
            Some(end) => buffer.drain(..end).collect::<Vec<u8>>(),
            None => match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => continue,
            },
        };
        let Some((host, path)) = read_head(&head) else {
            return;
        };
        seen.in_flight.fetch_add(1, Ordering::Relaxed);
        let arrival = Arrival {
            at: Instant::now(),
            host: host.to_owned(),
            path: path.to_owned(),
        };
        seen.arrivals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(arrival);
        let hold = pages.hold_time();
        if !hold.is_zero() {
            tokio::time::sleep(hold).await;
        }
        let answer = pages.answer(host, path).unwrap_or_else(not_found);
        let sent = stream.write_all(&answer).await;
        seen.in_flight.fetch_sub(1, Ordering::Relaxed);
        if sent.is_err() {
            return;
        }
    }
}

fn head_end(buffer: &[u8]) -> Option<usize> {
    buffer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map(|at| at + 4)
}

/// The host and the path of a request.
fn read_head(head: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let path = lines.next()?.strip_prefix("GET ")?.split(' ').next()?;
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    })?;
    Some((host, path))
}

/// A successful answer (status 200).
pub fn page_answer(content_type: &str, body: &[u8]) -> Answer {
    build_answer("200 OK", content_type, body)
}

/// A robots.txt that forbids none of the pages.
pub fn robots_answer() -> Answer {
    let rules = "User-agent: *\nDisallow: /basket/\nDisallow: /*?sort=\nAllow: /\n";
    page_answer("text/plain", rules.as_bytes())
}

fn not_found() -> Answer {
    build_answer("404 Not Found", "text/plain", b"not here\n")
}

fn build_answer(status: &str, content_type: &str, body: &[u8]) -> Answer {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_host_and_path() {
        let head = b"GET /item/7 HTTP/1.1\r\nAccept: */*\r\nhost: site-1.example:80\r\n\r\n";
        assert_eq!(head_end(head), Some(head.len()));
        assert_eq!(read_head(head), Some(("site-1.example:80", "/item/7")));
        assert_eq!(read_head(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n"), None);
        assert_eq!(head_end(b"GET / HTTP/1.1\r\n"), None);
    }
}
