//! The test site: many sites on loopback that are served by one thread. Webfill reaches them by name through
//! `--resolve`. Each path answers as its test requires, and every request is logged.
//!
//! [`Web`] owns the listeners and the thread. A [`Site`] is a handle to the answers of one host. If a host has no
//! robots.txt, it answers a request for it with 404, like every request for an unknown path.

mod access_log;
pub mod encodings;
pub mod hostile;
mod http1;
mod http2;
pub mod odd_answers;
mod reply;
pub mod robots;
mod tls;
mod web;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub use self::access_log::{AccessLog, Visit, Visits};
use self::reply::may_have_body;
pub use self::reply::{Page, Reply, Script, document, page, redirect, script, status};
pub use self::tls::Certificates;
pub use self::web::{ConnectionPolicy, Web};

/// The facts about a connection that are known before its first byte arrives.
#[derive(Debug, Clone)]
struct Connection {
    number: u64,
    accepted_at: Instant,
    tls: bool,
    /// The address of the client.
    client: IpAddr,
}

/// A request, as it is passed to the functions that decide the replies.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// The path, including the query.
    pub path: String,
    pub host: String,
    pub host_header: String,
    pub headers: Vec<(String, String)>,
    pub tls: bool,
    /// Whether the request target was a whole URL, as in requests to proxies.
    pub proxied: bool,
    /// The address of the client.
    pub client: IpAddr,
    version: &'static str,
}

impl Request {
    fn new(
        method: &str,
        target: &str,
        host_header: String,
        headers: Vec<(String, String)>,
        version: &'static str,
        connection: &Connection,
    ) -> Request {
        let proxied = target.contains("://");
        let path = if proxied { path_of(target) } else { target };
        let host = host_header
            .rsplit_once(':')
            .map_or(host_header.as_str(), |(host, _)| host);
        Request {
            method: method.to_string(),
            path: path.to_string(),
            host: host.to_ascii_lowercase(),
            host_header,
            headers,
            tls: connection.tls,
            proxied,
            client: connection.client,
            version,
        }
    }

    fn to_visit(&self, connection: &Connection, started_at: Instant, status: Option<u16>) -> Visit {
        Visit {
            host: self.host.clone(),
            host_header: self.host_header.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            version: self.version,
            tls: self.tls,
            proxied: self.proxied,
            connection: connection.number,
            accepted_at: connection.accepted_at,
            started_at,
            head_read_at: Instant::now(),
            ended_at: None,
            status,
            sent_bytes: 0,
            cut_short: false,
        }
    }

    /// The value of a header, whose name is compared without regard to case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The path in a URL `http://host/path`.
fn path_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    after_scheme
        .find('/')
        .map_or("/", |slash| &after_scheme[slash..])
}

/// A function that decides the reply to a request. Its replies may differ from request to request.
type Answer = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// The answers of one host.
#[derive(Default)]
struct Host {
    paths: HashMap<String, Answer>,
    /// The answer for all paths that have no answer of their own.
    otherwise: Option<Answer>,
    /// A delay before every page of the host, in addition to the page's own latency.
    latency: Duration,
}

/// The hosts and the log, shared by all connections.
#[derive(Clone, Default)]
struct Shared {
    hosts: Arc<Mutex<HashMap<String, Host>>>,
    log: AccessLog,
}

impl Shared {
    fn lock_hosts(&self) -> MutexGuard<'_, HashMap<String, Host>> {
        self.hosts
            .lock()
            .expect("nobody panics while holding the hosts")
    }

    fn reply(&self, request: &Request) -> Reply {
        let (answer, latency) = {
            let hosts = self.lock_hosts();
            let Some(host) = hosts.get(&request.host) else {
                return status(404).into();
            };
            let listed = host.paths.get(&request.path);
            // Even if a host answers every path, it has no robots.txt unless a test has set one.
            let otherwise = host
                .otherwise
                .as_ref()
                .filter(|_| request.path != "/robots.txt");
            (listed.or(otherwise).cloned(), host.latency)
        };
        match answer.map(|answer| answer(request)) {
            Some(Reply::Page(page)) => {
                let latency = page.latency + latency;
                page.latency(latency).into()
            }
            Some(script) => script,
            None => status(404).into(),
        }
    }
}

/// A handle to one host of a [`Web`].
#[derive(Clone)]
pub struct Site {
    shared: Shared,
    host: String,
    /// The address in URLs of this site; `None` if the site is reached by `--resolve`.
    address: Option<SocketAddr>,
}

impl Site {
    fn new(shared: &Shared, host: &str, address: Option<SocketAddr>) -> Site {
        shared.lock_hosts().entry(host.to_string()).or_default();
        Site {
            shared: shared.clone(),
            host: host.to_string(),
            address,
        }
    }

    fn change_host(&self, change: impl FnOnce(&mut Host)) -> &Site {
        change(
            self.shared
                .lock_hosts()
                .entry(self.host.clone())
                .or_default(),
        );
        self
    }

    /// Sets the reply for a path, including its query.
    pub fn serve(&self, path: &str, reply: impl Into<Reply>) -> &Site {
        let reply = reply.into();
        self.serve_with(path, move |_| reply.clone())
    }

    /// Sets a function that decides the reply to each request for a path.
    pub fn serve_with(
        &self,
        path: &str,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> &Site {
        self.change_host(|host| {
            host.paths.insert(path.to_string(), Arc::new(answer));
        })
    }

    /// Sets the answer for all other paths, except for robots.txt.
    pub fn serve_otherwise(
        &self,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> &Site {
        self.change_host(|host| host.otherwise = Some(Arc::new(answer)))
    }

    pub fn serve_robots(&self, rules: &str) -> &Site {
        self.serve("/robots.txt", document("text/plain", rules.to_string()))
    }

    /// Adds this delay to every page of the host.
    pub fn set_latency(&self, latency: Duration) -> &Site {
        self.change_host(|host| host.latency = latency)
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn url(&self, path: &str) -> String {
        match self.address {
            Some(address) => format!("http://{address}{path}"),
            None => format!("http://{}{path}", self.host),
        }
    }

    pub fn https_url(&self, path: &str) -> String {
        format!("https://{}{path}", self.host)
    }

    /// All requests to this host so far.
    pub fn visits(&self) -> Visits {
        self.shared.log.visits().for_host(&self.host)
    }
}
