//! Fetches one URL: checks the request, sends it, reads the answer within limits, and reports an outcome.
//!
//! An error status, a refusal and a broken connection are outcomes, not errors. Redirects are not followed here: the
//! target goes back to the intake and is judged like any link.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use http::response::Parts;
use webfill_urls::{Url, origin};
use webfill_wire::Outcome;

use crate::archive::Exchange;
use crate::browser::SubresourceRequest;
use crate::charset;
use crate::connections::{IDLE, KeptOpenConnections, UsedConnections};
use crate::documents;
use crate::fetch_error::FetchError;
use crate::memory::MemoryPermit;
use crate::permits::Denied;
use crate::resolve::{Clients, Resolver};
use crate::site_headers::SiteHeaders;
use crate::sitemaps;

mod body;
mod coding;
mod config;
mod fetched;
mod head;
mod header;
mod incoming;
mod limiter;
mod refusal;
mod request;
mod rule;
mod sending;

use body::{BodyLimits, NoBody};
pub use config::FetchConfig;
pub use fetched::Fetched;
use head::outcome_of_head;
pub use header::parse_retry_after;
use incoming::IncomingBody;
pub(crate) use incoming::decode;
pub use limiter::overloaded_answer;
pub use request::PageRequest;
use request::RequestSpec;
use rule::BodyRule;
pub use rule::Files;

/// Sends requests within the configured limits.
pub struct Fetcher {
    clients: Clients,
    resolver: Resolver,
    config: FetchConfig,
    /// The user agent of crawls that name none; `None` without an archive. It is set on each request explicitly,
    /// because the archive cannot see headers that the client adds itself.
    archived_agent: Option<String>,
    reads_documents: bool,
    headers: SiteHeaders,
    connections: RefCell<KeptOpenConnections>,
    used: RefCell<UsedConnections>,
}

/// An answer whose head has arrived.
struct Received {
    head: Parts,
    body: IncomingBody,
    exchange: Option<Box<Exchange>>,
}

impl Fetcher {
    pub fn new(clients: Clients, resolver: Resolver, config: FetchConfig) -> Fetcher {
        Fetcher {
            clients,
            resolver,
            config,
            archived_agent: None,
            reads_documents: false,
            headers: SiteHeaders::default(),
            connections: RefCell::default(),
            used: RefCell::default(),
        }
    }

    /// Sends these headers with requests for pages and their subresources. robots.txt is requested without them.
    pub fn with_headers(mut self, headers: SiteHeaders) -> Fetcher {
        self.headers = headers;
        self
    }

    /// Keeps requests and answers for the archive. `user_agent` is sent with all requests of crawls that name none.
    pub fn with_archive(mut self, user_agent: String) -> Fetcher {
        self.archived_agent = Some(user_agent);
        self
    }

    /// Accepts documents (PDF, ...) as pages, too.
    pub fn with_documents(mut self) -> Fetcher {
        self.reads_documents = true;
        self
    }

    /// Fetches a page, or a sitemap if the request accepts sitemaps. `memory` grows with the body.
    pub async fn fetch_page(
        &self,
        asked: PageRequest<'_>,
        memory: &mut MemoryPermit,
    ) -> Result<Fetched, Denied> {
        let files = Files {
            documents: self.reads_documents,
            sitemaps: asked.sitemaps,
            is_named_sitemap: asked.is_named_sitemap,
        };
        let spec = RequestSpec::for_page(asked).or_file(files);
        self.fetch(spec, memory).await
    }

    /// Fetches a subresource of a page in the browser.
    pub async fn fetch_subresource(
        &self,
        request: &SubresourceRequest,
        user_agent: Option<&str>,
        memory: &mut MemoryPermit,
    ) -> Result<Fetched, Denied> {
        let spec = RequestSpec {
            accept: "*/*",
            headers: &request.headers,
            rule: BodyRule::Subresource,
            ..RequestSpec::for_page(PageRequest {
                user_agent,
                ..PageRequest::from_url(&request.url)
            })
        };
        self.fetch(spec, memory).await
    }

    /// Fetches the beginning of a robots.txt.
    pub async fn fetch_robots(
        &self,
        url: &Url,
        bytes: usize,
        memory: &mut MemoryPermit,
    ) -> Result<Fetched, Denied> {
        let spec = RequestSpec {
            rule: BodyRule::Beginning { bytes },
            ..RequestSpec::for_page(PageRequest::from_url(url))
        };
        self.fetch(spec, memory).await
    }

    /// Sends a request and reads its answer, within the limits of time and size.
    ///
    /// # Errors
    ///
    /// No memory for the body became free in time.
    async fn fetch(
        &self,
        spec: RequestSpec<'_>,
        memory: &mut MemoryPermit,
    ) -> Result<Fetched, Denied> {
        let (url, rule) = (spec.url, spec.rule);
        if let Err(refusal) = self.resolver.check_proxied(url).await {
            return Ok(Fetched::unanswered(refusal.outcome(), refusal));
        }
        let total = Duration::from_secs_f64(self.config.total_timeout);
        let deadline = tokio::time::Instant::now() + total;
        let stays = self.try_keep_open(&spec, total);
        let answering = self.send_with_retry(&spec, stays);
        let answered = match tokio::time::timeout_at(deadline, answering).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(fetched)) => return Ok(*fetched),
            Err(_) => return Ok(Fetched::unanswered(Outcome::Timeout, "no answer in time")),
        };
        let is_conditional = !spec.headers.is_empty();
        let mut fetched = self.read_answer(answered, rule, deadline, memory).await?;
        if fetched.outcome == Outcome::NotModified && !is_conditional {
            fetched.outcome = Outcome::HttpError;
        }
        Ok(fetched)
    }

    /// Reads the useful parts of an answer.
    async fn read_answer(
        &self,
        answered: Received,
        rule: BodyRule,
        deadline: tokio::time::Instant,
        memory: &mut MemoryPermit,
    ) -> Result<Fetched, Denied> {
        let Received {
            head,
            mut body,
            exchange,
        } = answered;
        let mut limits = self.body_limits(rule, deadline);
        let mut fetched = outcome_of_head(&head, Instant::now(), rule);
        let declared = fetched.content_type.as_deref();
        limits.must_be_file = rule.files() != Files::default()
            && declared.is_some_and(|declared| !charset::is_supported_type(declared));
        fetched.headers = head.headers;
        if fetched.outcome == Outcome::Ok {
            read_body(&mut body, &limits, &mut fetched, memory).await?;
        } else if rule.is_page() && refusal::is_readable(&fetched) {
            fetched.refusal_body = refusal::read_beginning(&mut body, deadline).await;
        }
        if let Some(exchange) = exchange {
            let exchange = complete_exchange(exchange, body, &limits, &fetched, memory).await?;
            fetched.exchange = Some(exchange);
        }
        Ok(fetched)
    }

    /// Whether the connection can stay open for the site's next request, given the site's delay.
    fn try_keep_open(&self, spec: &RequestSpec<'_>, longest_request: Duration) -> bool {
        let (now, is_soon) = (Instant::now(), spec.next_after < IDLE);
        let mut connections = self.connections.borrow_mut();
        // robots.txt (`Beginning`) keeps its connection, because the request for the page follows right after it.
        matches!(spec.rule, BodyRule::Beginning { .. })
            || is_soon && connections.try_keep_open(&origin(spec.url), now, longest_request)
    }

    fn body_limits(&self, rule: BodyRule, deadline: tokio::time::Instant) -> BodyLimits {
        BodyLimits {
            rule,
            must_be_file: false,
            bytes: self.most_bytes(rule),
            pause: Duration::from_secs_f64(self.config.body_timeout),
            deadline,
        }
    }

    fn most_bytes(&self, rule: BodyRule) -> usize {
        match rule {
            BodyRule::Page(_) | BodyRule::Subresource => self.config.max_body_bytes,
            BodyRule::Beginning { bytes } => bytes,
        }
    }
}

/// Reads a body. A page whose body turns out to be binary fails instead.
async fn read_body(
    incoming: &mut IncomingBody,
    limits: &BodyLimits,
    fetched: &mut Fetched,
    memory: &mut MemoryPermit,
) -> Result<(), Denied> {
    let body = match body::read(incoming, limits, memory).await {
        Ok(body) => body,
        Err(NoBody::Failed(error)) => {
            fetched.fail(error);
            return Ok(());
        }
        Err(NoBody::NoMemory) => return Err(Denied::CutShort),
    };
    let kind = charset::content_kind(fetched.content_type.as_deref(), &body);
    let files = limits.rule.files();
    let is_file = files.documents && documents::is_document(fetched.content_type.as_deref(), &body)
        || files.sitemaps && sitemaps::is_sitemap(&body, files.is_named_sitemap);
    if limits.rule.is_page() && !is_file && kind == charset::Kind::Unsupported && !body.is_empty() {
        let binary = FetchError::new(Outcome::UnsupportedType, "the body is binary");
        fetched.fail(binary);
        return Ok(());
    }
    fetched.body = body;
    Ok(())
}

/// Reads the rest of the body into the exchange, which is for the archive only.
async fn complete_exchange(
    mut exchange: Box<Exchange>,
    mut incoming: IncomingBody,
    limits: &BodyLimits,
    fetched: &Fetched,
    memory: &mut MemoryPermit,
) -> Result<Box<Exchange>, Denied> {
    // Do not wait again for a server that was too slow.
    if fetched.outcome != Outcome::Timeout {
        let body_bytes = fetched.body.capacity();
        let keeping = body::keep_rest(&mut incoming, body_bytes, limits, memory);
        if keeping.await.is_err() {
            return Err(Denied::CutShort);
        }
    }
    if let Some(kept) = incoming.into_kept() {
        (exchange.payload, exchange.truncated) = kept.into_payload();
    }
    Ok(exchange)
}

impl Fetched {
    fn fail(&mut self, error: FetchError) {
        self.outcome = error.outcome;
        self.error = Some(error.reason);
        self.body = Vec::new();
    }
}
