//! Requests by HTTP: the same JSON as on the control socket, for clients without ZeroMQ.
//!
//! HTTP requests carry no keys, so beyond loopback the server listens only with TLS and tokens
//! ([`webfill_service::http`]). To keep out foreign pages in a browser, it refuses any `Origin` header and bodies whose
//! type is not JSON. If no token is needed, it also refuses `Host` names that are not this machine's. One thread serves
//! all connections. It only reads and waits; the dispatcher's loop carries out the requests.
//!
//! Paths below `/dashboard` belong to the dashboard ([`webfill_dashboard`]), which has access rules of its own.

mod answers;
mod body;
mod dashboard;
mod feed;
mod guard;
mod pending_requests;
mod watches;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::body::{Body, Incoming};
use hyper::header::{ACCEPT, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use webfill_api::{Refusal, crawl_request_schema};
use webfill_dashboard::{Dashboard, DashboardSetup};
use webfill_scheduler::control::ControlRequest;
use webfill_scheduler::requester::{Channel, SenderInfo};
use webfill_service::Fault;
use webfill_service::http::body::MOST_LARGE;
use webfill_service::http::{
    PERIOD, Peer, RequestHandler, SharedProtection, WrongTokens, note_known_client,
};
use webfill_wire::RefusalLog;
use webfill_wire::keys::Rights;

use self::answers::{Answer, json_answer, refusal_answer, with_header};
use self::guard::{MediaType, media_type};
pub(crate) use self::pending_requests::PendingRequests;
use self::watches::is_watches_path;
use crate::clock::SteadyClock;
use crate::health::Health;
use crate::permits::Permit;

/// The state shared by all HTTP connections.
struct Service {
    dashboard: Arc<Dashboard>,
    pending_requests: PendingRequests,
    health: Health,
    clock: SteadyClock,
    /// Limits how many large bodies are read at once.
    large_bodies: Semaphore,
    protection: SharedProtection,
    wrong_tokens: WrongTokens,
    refusals: Mutex<RefusalLog>,
}

/// Listens on the address and serves HTTP until the process ends. Returns the address with its actual port.
pub(crate) fn start(
    address: SocketAddr,
    clock: SteadyClock,
    pending_requests: PendingRequests,
    health: Health,
    protection: SharedProtection,
    dashboard: DashboardSetup,
) -> Result<SocketAddr, Fault> {
    let fleet = dashboard::LoopClient::new(pending_requests.clone(), health.clone(), clock);
    let service = Arc::new(Service {
        dashboard: Dashboard::new(dashboard, Some(Arc::new(fleet)), protection.clone())?,
        pending_requests,
        health,
        clock,
        large_bodies: Semaphore::new(MOST_LARGE),
        protection: protection.clone(),
        wrong_tokens: WrongTokens::default(),
        refusals: Mutex::default(),
    });
    let advice = "choose another --http ADDRESS:PORT, or `--http off`";
    webfill_service::http::start(address, advice, protection, service)
}

impl RequestHandler for Service {
    async fn run_background(self: Arc<Self>) {
        Arc::clone(&self.dashboard).record_history().await;
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, peer: Peer) -> Answer {
        if Dashboard::owns_path(request.uri().path()) {
            return Arc::clone(&self.dashboard).answer(request, peer).await;
        }
        if request.uri().path() == "/" && wants_html(&request) {
            return webfill_dashboard::redirect_to_start();
        }
        let visit = HttpRequest::new(self, peer.address.ip());
        visit.answer(request).await
    }
}

/// Whether the client wants a web page. Browsers say so in `Accept`; other programs do not.
fn wants_html(request: &Request<Incoming>) -> bool {
    let accepted = request.headers().get(ACCEPT);
    let accepted = accepted.and_then(|types| types.to_str().ok());
    request.method() == Method::GET && accepted.is_some_and(|types| types.contains("text/html"))
}

/// The methods and paths that the answer to an unknown path lists.
const PLACES: &str = "POST /feed, GET /info, GET /why, POST /stop, POST /pause, POST /resume, POST /retry, POST /prune, POST /site, POST /reload, GET /watches, GET /watches/NAME, POST /watches, POST /watches/NAME/run (or pause, resume, remove), GET /status, GET /schema, GET /healthz, GET /readyz";

/// One request and its sender.
struct HttpRequest {
    service: Arc<Service>,
    from: IpAddr,
    who: SenderInfo,
    rights: Rights,
    /// The request's share of the limits, once it is admitted.
    permit: Option<Arc<Permit>>,
}

impl HttpRequest {
    fn new(service: Arc<Service>, from: IpAddr) -> HttpRequest {
        let who = SenderInfo {
            name: None,
            address: Some(from.to_string().into()),
            way: Channel::Http,
        };
        HttpRequest {
            service,
            from,
            who,
            rights: Rights::ALL,
            permit: None,
        }
    }

    /// Identifies the sender by its token, if tokens are required. Returns a refusal if the token is missing or wrong.
    fn authenticate(&mut self, headers: &HeaderMap) -> Result<(), Box<Answer>> {
        let Some(tokens) = self.service.protection.get().tokens else {
            return Ok(());
        };
        let unauthorised = |why| {
            let answer = with_header(refusal_answer(401, why), WWW_AUTHENTICATE, "Bearer");
            Err(Box::new(with_header(answer, CONNECTION, "close")))
        };
        let Some(token) = guard::bearer_token(headers) else {
            return unauthorised("expected a token, as `Authorization: Bearer TOKEN`");
        };
        let Some(bearer) = tokens.bearer(token) else {
            self.log_wrong_token();
            // How often a client has guessed is checked only after a wrong token. So clients behind the same proxy as a
            // guesser are still admitted.
            if self
                .service
                .wrong_tokens
                .count_wrong_token(self.from, Instant::now())
            {
                let why = "too many wrong tokens from there: try again in a minute";
                let seconds = PERIOD.as_secs().to_string();
                let answer = with_header(refusal_answer(429, why), RETRY_AFTER, &seconds);
                return Err(Box::new(with_header(answer, CONNECTION, "close")));
            }
            return unauthorised("unknown token");
        };
        self.who.name = Some(Arc::clone(&bearer.name));
        self.who.way = Channel::Token;
        self.rights = bearer.rights.clone();
        Ok(())
    }

    fn log_wrong_token(&self) {
        let refusals = self.service.refusals.lock();
        let mut refusals = refusals.unwrap_or_else(PoisonError::into_inner);
        if refusals.record_if_new(&format!("token {}", self.from)) {
            tracing::warn!(
                event = "token_refused",
                address = %self.from,
                "HTTP request refused: unknown token"
            );
        }
    }

    async fn answer(mut self, request: Request<Incoming>) -> Answer {
        if let Err(refusal) = self.authenticate(request.headers()) {
            return *refusal;
        }
        let has_token = self.who.way == Channel::Token;
        if has_token {
            note_known_client(&request);
        }
        if let Err((status, why)) =
            guard::check_headers(request.method(), request.headers(), has_token)
        {
            return refusal_answer(status, why);
        }
        let path = request.uri().path().to_owned();
        match (request.method(), &*path) {
            (&Method::GET, "/healthz") => health_answer(self.service.health.healthz()),
            (&Method::GET, "/readyz") => health_answer(self.service.health.readyz()),
            (&Method::GET, "/schema") => json_answer(200, crawl_request_schema()),
            _ if !self.service.health.is_frontier_open() => refusal_answer(
                503,
                "the frontier is being opened: try again in a few seconds",
            ),
            _ => match self.acquire_permit(&request) {
                Ok(()) => self.answer_with_permit(request).await,
                Err(refusal) => *refusal,
            },
        }
    }

    /// Takes a permit, which the request keeps until it is answered, or refuses the request for now.
    fn acquire_permit(&mut self, request: &Request<Incoming>) -> Result<(), Box<Answer>> {
        let is_stream = media_type(request.headers()) == Some(MediaType::JsonLines);
        let bytes = match request.body().size_hint().upper() {
            // The lines of a stream are handed over in batches, so it needs no more than the largest batch.
            _ if is_stream => feed::MOST_BATCH_BYTES,
            Some(bytes) => usize::try_from(bytes)
                .unwrap_or(usize::MAX)
                .min(body::MOST_BYTES),
            None => body::MOST_BYTES,
        };
        match self
            .service
            .pending_requests
            .acquire_permit(&self.who, bytes)
        {
            Ok(permit) => {
                self.permit = Some(permit);
                Ok(())
            }
            Err(refusal) => Err(Box::new(json_answer(503, refusal.to_answer()))),
        }
    }

    async fn answer_with_permit(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path().to_owned();
        match (request.method(), &*path) {
            (&Method::GET, "/status") => {
                self.parse_and_answer_action(json!({"action": "status"}))
                    .await
            }
            (&Method::GET, "/info") => {
                self.parse_and_answer_action(action_of_query("info", &request))
                    .await
            }
            (&Method::GET, "/why") => {
                self.parse_and_answer_action(action_of_query("why", &request))
                    .await
            }
            (&Method::POST, "/feed") => self.feed(request).await,
            (_, place) if is_watches_path(place) => self.answer_watches_request(request).await,
            (
                &Method::POST,
                "/stop" | "/pause" | "/resume" | "/retry" | "/prune" | "/site" | "/reload",
            ) => {
                let action = path.trim_start_matches('/').to_owned();
                self.answer_action(&action, request).await
            }
            (_, "/healthz" | "/readyz" | "/schema" | "/status" | "/info" | "/why") => {
                refusal_answer(405, "expected GET")
            }
            (
                _,
                "/feed" | "/stop" | "/pause" | "/resume" | "/retry" | "/prune" | "/site"
                | "/reload",
            ) => refusal_answer(405, "expected POST"),
            _ => refusal_answer(404, &format!("not found; there are {PLACES}")),
        }
    }

    /// Carries out the action named in the path.
    async fn answer_action(&self, action: &str, request: Request<Incoming>) -> Answer {
        let body = match body::read_whole(request.into_body(), &self.service.large_bodies).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let mut value: Value = match serde_json::from_slice(&body) {
            Ok(value) => value,
            Err(error) => return refusal_answer(400, &error.to_string()),
        };
        let Some(members) = value.as_object_mut() else {
            return refusal_answer(400, "expected an object");
        };
        if members.get("action").is_some_and(|named| named != action) {
            let refusal = Refusal::new("$.action", format!("this address is for `{action}`"));
            return json_answer(400, refusal.to_answer());
        }
        members.insert("action".into(), action.into());
        self.parse_and_answer_action(value).await
    }

    async fn parse_and_answer_action(&self, action: Value) -> Answer {
        match webfill_api::parse_action(action) {
            Ok(action) => self.answer_request(ControlRequest::Act(action)).await,
            Err(refusal) => json_answer(400, refusal.to_answer()),
        }
    }

    /// Passes a request to the dispatcher's loop. Returns its answer; `None` if the loop has ended.
    async fn submit(&self, asked: ControlRequest) -> Option<Value> {
        let permit = self.permit.clone()?;
        let pending = &self.service.pending_requests;
        pending
            .send(self.who.clone(), self.rights.clone(), asked, permit)
            .await
    }

    async fn answer_request(&self, asked: ControlRequest) -> Answer {
        match self.submit(asked).await {
            Some(answer) if answer.get("error").is_some() => {
                json_answer(refusal_status(&answer), answer)
            }
            Some(answer) => json_answer(200, answer),
            None => refusal_answer(503, "the dispatcher does not answer"),
        }
    }
}

fn health_answer((status, answer): (u16, Value)) -> Answer {
    json_answer(status, answer)
}

/// The HTTP status of a refusal: 503 if the same request may be sent again, 400 if the request is at fault.
fn refusal_status(answer: &Value) -> u16 {
    match answer["error"]["retry"] == true {
        true => 503,
        false => 400,
    }
}

/// An action as JSON, with the parameters of the query string.
fn action_of_query(action: &str, request: &Request<Incoming>) -> Value {
    let query = request.uri().query().unwrap_or_default();
    let url = webfill_urls::Url::parse(&format!("http://localhost/?{query}"));
    let mut action = json!({"action": action});
    for (key, value) in url.iter().flat_map(|url| url.query_pairs()) {
        if !key.is_empty() && key != "action" {
            action[&*key] = value.into();
        }
    }
    action
}

#[cfg(test)]
mod tests;
