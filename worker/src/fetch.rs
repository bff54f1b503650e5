//! One request: judged, sent, read within its limits, and told as an outcome.
//!
//! A status, a refusal, a broken connection: all of them are ordinary ends of a request. Redirects
//! are not followed here; their target goes back to the intake and is judged like any link.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use reqwest::Response;
use reqwest::header::{
    ACCEPT, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
    RETRY_AFTER, USER_AGENT,
};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use webfill_urls::{Url, origin};
use webfill_wire::Outcome;

use crate::browser::SubresourceRequest;
use crate::charset;
use crate::connections::KeptOpenConnections;
use crate::fetch_error::FetchError;
use crate::memory::Share;
use crate::permits::Denied;
use crate::politeness::Answer;
use crate::resolve::{Clients, Resolver};

mod body;
mod header;
mod refusal;

use body::{BodyLimits, NoBody};
pub use header::retry_after;
use header::{list, text};

/// The limits of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchConfig {
    /// Seconds for the look-up of a name, which is made before the request.
    pub lookup_timeout: f64,
    /// Seconds for connect and TLS handshake together.
    pub connect_timeout: f64,
    /// Seconds until the head of the answer is there.
    pub head_timeout: f64,
    /// Seconds that a body may pause between two pieces.
    pub body_timeout: f64,
    /// Seconds for the whole request.
    pub total_timeout: f64,
    /// Most bytes of a body after decompression.
    pub max_body_bytes: usize,
    /// HTTP(S) or SOCKS5 proxy for all fetches; the environment is not consulted.
    pub proxy: Option<String>,
    /// `HOST:PORT:ADDR[:PORT]` as curl's; `*` as HOST is a wildcard.
    pub resolve: Vec<String>,
    /// A PEM file of certificate authorities to trust beside the system's.
    pub ca_file: Option<std::path::PathBuf>,
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
        }
    }
}

/// The result of a request.
#[derive(Debug)]
pub struct Fetched {
    pub outcome: Outcome,
    pub status_code: Option<u16>,
    pub content_type: Option<String>,
    /// Those of the answer, if there was one.
    pub headers: HeaderMap,
    /// The decoded body of a page worth reading; empty otherwise.
    pub body: Vec<u8>,
    /// The beginning of a refusal's HTML, only for recognising blocks; empty otherwise.
    pub refusal_body: Vec<u8>,
    /// Absolute or relative, as the server sent it.
    pub redirect: Option<String>,
    /// What went wrong, for the log.
    pub error: Option<String>,
    /// See [`FetchError`].
    pub no_route: bool,
    /// When the answer began, or the attempt ended without one: the site's delay counts from here.
    pub answered_at: Instant,
    pub answer: Answer,
}

impl Fetched {
    /// A request that ended without a response.
    pub fn refused(outcome: Outcome, error: impl ToString) -> Fetched {
        Fetched {
            outcome,
            status_code: None,
            content_type: None,
            headers: HeaderMap::new(),
            body: Vec::new(),
            refusal_body: Vec::new(),
            redirect: None,
            error: Some(error.to_string()),
            no_route: false,
            answered_at: Instant::now(),
            answer: Answer::Silent,
        }
    }
}

const ACCEPTED: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,application/json;q=0.8,text/*;q=0.7";

/// What a body is used for, which decides how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyRule {
    /// A page: other types than text are left unread, a body over the cap is an outcome.
    Page,
    /// robots.txt: any type, and only its beginning counts (RFC 9309 2.5).
    Beginning { bytes: usize },
    /// A subresource of a page in the browser: any type.
    Subresource,
}

/// A request to be sent.
struct RequestSpec<'a> {
    url: &'a Url,
    user_agent: Option<&'a str>,
    accept: &'a str,
    headers: &'a [(String, String)],
    rule: BodyRule,
}

impl<'a> RequestSpec<'a> {
    fn page(url: &'a Url, user_agent: Option<&'a str>) -> RequestSpec<'a> {
        RequestSpec {
            url,
            user_agent,
            accept: ACCEPTED,
            headers: &[],
            rule: BodyRule::Page,
        }
    }
}

/// Sends requests within the configured limits.
pub struct Fetcher {
    clients: Clients,
    resolver: Resolver,
    config: FetchConfig,
    connections: RefCell<KeptOpenConnections>,
}

impl Fetcher {
    pub fn new(clients: Clients, resolver: Resolver, config: FetchConfig) -> Fetcher {
        Fetcher {
            clients,
            resolver,
            config,
            connections: RefCell::default(),
        }
    }

    /// Fetches a page. `memory` grows with its body, here as in all that follow.
    pub async fn page(
        &self,
        url: &Url,
        user_agent: Option<&str>,
        memory: &mut Share,
    ) -> Result<Fetched, Denied> {
        self.fetch(RequestSpec::page(url, user_agent), memory).await
    }

    /// Fetches a subresource of a page in the browser.
    pub async fn subresource(
        &self,
        request: &SubresourceRequest,
        user_agent: Option<&str>,
        memory: &mut Share,
    ) -> Result<Fetched, Denied> {
        let spec = RequestSpec {
            accept: "*/*",
            headers: &request.headers,
            rule: BodyRule::Subresource,
            ..RequestSpec::page(&request.url, user_agent)
        };
        self.fetch(spec, memory).await
    }

    /// Fetches the beginning of a robots.txt.
    pub async fn robots(
        &self,
        url: &Url,
        bytes: usize,
        memory: &mut Share,
    ) -> Result<Fetched, Denied> {
        let spec = RequestSpec {
            rule: BodyRule::Beginning { bytes },
            ..RequestSpec::page(url, None)
        };
        self.fetch(spec, memory).await
    }

    /// # Errors
    ///
    /// There was no memory for the body in time.
    async fn fetch(&self, spec: RequestSpec<'_>, memory: &mut Share) -> Result<Fetched, Denied> {
        let (url, rule) = (spec.url, spec.rule);
        if let Err(refusal) = self.resolver.judge_proxied(url).await {
            return Ok(Fetched::refused(refusal.outcome(), refusal));
        }
        let total = Duration::from_secs_f64(self.config.total_timeout);
        let deadline = tokio::time::Instant::now() + total;
        // The page follows right after its robots.txt.
        let stays = matches!(rule, BodyRule::Beginning { .. }) || self.try_keep_open(url, total);
        let head = self.head(&spec, stays);
        let mut head = match tokio::time::timeout_at(deadline, head).await {
            Ok(Ok(head)) => head,
            Ok(Err(fetched)) => return Ok(*fetched),
            Err(_) => return Ok(Fetched::refused(Outcome::Timeout, "no answer in time")),
        };
        let answered_at = Instant::now();
        let mut fetched = outcome_of_head(&head, answered_at, rule);
        fetched.headers = std::mem::take(head.headers_mut());
        if fetched.outcome == Outcome::Ok {
            self.read_body(head, rule, deadline, &mut fetched, memory)
                .await?;
        } else if rule == BodyRule::Page && refusal::is_readable(&fetched) {
            fetched.refusal_body = refusal::beginning(head, deadline).await;
        }
        Ok(fetched)
    }

    fn try_keep_open(&self, url: &Url, longest_request: Duration) -> bool {
        let mut connections = self.connections.borrow_mut();
        connections.try_keep_open(&origin(url), Instant::now(), longest_request)
    }

    /// Sends the request and waits for the head of the answer.
    async fn head(
        &self,
        spec: &RequestSpec<'_>,
        connection_stays: bool,
    ) -> Result<Response, Box<Fetched>> {
        let mut request = self.clients.get(spec.url);
        for (name, value) in spec.headers {
            request = request.header(name, value);
        }
        if !spec.headers.iter().any(|(name, _)| name == ACCEPT.as_str()) {
            request = request.header(ACCEPT, spec.accept);
        }
        if !connection_stays {
            // HTTP/2 knows no such header, and its connections need little memory.
            request = request.header(CONNECTION, "close");
        }
        if let Some(agent) = spec
            .user_agent
            .and_then(|agent| HeaderValue::from_str(agent).ok())
        {
            request = request.header(USER_AGENT, agent);
        }
        // The client bounds the connect; this bounds connect and answer together.
        let limit = Duration::from_secs_f64(self.config.connect_timeout + self.config.head_timeout);
        match timeout(limit, request.send()).await {
            Err(_) => Err(Fetched::refused(Outcome::Timeout, "no answer in time").into()),
            Ok(Err(error)) => {
                let error = FetchError::from(error);
                let mut fetched = Fetched::refused(error.outcome, error.reason);
                fetched.no_route = error.no_route;
                Err(fetched.into())
            }
            Ok(Ok(response)) => match self.resolver.judge_peer(response.remote_addr()) {
                Ok(()) => Ok(response),
                Err(refusal) => Err(Fetched::refused(Outcome::UnsafeAddress, refusal).into()),
            },
        }
    }

    /// Reads the body of a page worth reading.
    async fn read_body(
        &self,
        response: Response,
        rule: BodyRule,
        deadline: tokio::time::Instant,
        fetched: &mut Fetched,
        memory: &mut Share,
    ) -> Result<(), Denied> {
        let limits = BodyLimits {
            rule,
            bytes: match rule {
                BodyRule::Page | BodyRule::Subresource => self.config.max_body_bytes,
                BodyRule::Beginning { bytes } => bytes,
            },
            pause: Duration::from_secs_f64(self.config.body_timeout),
            deadline,
        };
        let body = match body::read(response, &limits, memory).await {
            Ok(body) => body,
            Err(NoBody::Failed(error)) => {
                fetched.fail(error);
                return Ok(());
            }
            Err(NoBody::NoMemory) => return Err(Denied::CutShort),
        };
        let kind = charset::media_type(fetched.content_type.as_deref(), &body);
        if rule == BodyRule::Page && kind == charset::Kind::Unsupported && !body.is_empty() {
            let binary = FetchError::new(Outcome::UnsupportedType, "the body is binary");
            fetched.fail(binary);
            return Ok(());
        }
        fetched.body = body;
        Ok(())
    }
}

impl Fetched {
    fn fail(&mut self, error: FetchError) {
        self.outcome = error.outcome;
        self.error = Some(error.reason);
        self.body = Vec::new();
    }
}

/// What the head alone says: the outcome, and whether the body is worth reading (`Ok`).
fn outcome_of_head(response: &Response, answered_at: Instant, rule: BodyRule) -> Fetched {
    let headers = response.headers();
    let status = response.status().as_u16();
    let content_type = list(headers, CONTENT_TYPE);
    let redirect = match status {
        301 | 302 | 303 | 307 | 308 => text(headers, LOCATION),
        _ => None,
    };
    let (outcome, error) = match status {
        200..=299 if rule == BodyRule::Page => outcome_of_type(headers, content_type.as_deref()),
        200..=299 => (Outcome::Ok, None),
        304 => (Outcome::NotModified, None),
        _ if redirect.is_some() => (Outcome::Redirected, None),
        _ => (Outcome::HttpError, None),
    };
    let answer = match status {
        429 | 503 => overloaded(headers),
        _ => Answer::Served,
    };
    Fetched {
        outcome,
        status_code: Some(status),
        content_type,
        headers: HeaderMap::new(),
        body: Vec::new(),
        refusal_body: Vec::new(),
        redirect,
        error,
        no_route: false,
        answered_at,
        answer,
    }
}

/// The site asks for a pause, as long as the headers say.
pub fn overloaded(headers: &HeaderMap) -> Answer {
    Answer::Overloaded {
        retry_after: text(headers, RETRY_AFTER).and_then(|value| retry_after(&value)),
    }
}

fn outcome_of_type(headers: &HeaderMap, content_type: Option<&str>) -> (Outcome, Option<String>) {
    // The client takes the header away with each coding that it decodes.
    if let Some(coding) = headers.get(CONTENT_ENCODING)
        && coding.as_bytes() != b"identity"
    {
        let reason = format!("content coding {coding:?} is not understood");
        return (Outcome::UnsupportedType, Some(reason));
    }
    match content_type {
        Some(declared) if !charset::is_supported_type(declared) => (Outcome::UnsupportedType, None),
        _ => (Outcome::Ok, None),
    }
}
