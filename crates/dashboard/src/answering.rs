//! The path of a request through the dashboard.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request};
use webfill_service::http::body;
use webfill_service::http::{Answer, Peer, Tokens, note_known_client};

use crate::answer::{Problem, see_other};
use crate::form::{Form, parse_query_pairs};
use crate::guard;
use crate::history;
use crate::live;
use crate::login::{Admitted, LOGIN};
use crate::route;
use crate::service::Dashboard;
use crate::views::new_table;
use crate::visit::Visit;

/// The pause before metrics are read again if the fleet has no status, or the store does not answer.
const AGAIN: Duration = Duration::from_secs(2);

/// The pause before the first sample of metrics. It is shorter than the usual pause, so that charts soon have a point.
const FIRST: Duration = Duration::from_secs(10);

/// The header where scripts send the form token, instead of the form field `token`.
const FORM_TOKEN_HEADER: &str = "x-webfill-token";

/// The path that visitors upload a table to. The body is a file, which is saved while it arrives.
const NEW_TABLE: [&str; 2] = ["tables", "new"];

impl Dashboard {
    /// Whether a path belongs to the dashboard.
    pub fn owns_path(path: &str) -> bool {
        path == "/dashboard" || path.starts_with("/dashboard/")
    }

    /// Records metrics over time while the dashboard exists.
    pub async fn record_history(self: Arc<Self>) {
        if self.fleet.is_none() && !self.store.is_configured() {
            return;
        }
        loop {
            let snapshot = self.snapshot().await;
            let fault = match self.fleet.is_some() {
                true => &snapshot.fault,
                false => &snapshot.store_fault,
            };
            let sample = match fault {
                None => Some(self.counters().take_sample(&snapshot)),
                Some(_) => None,
            };
            let pause = match sample {
                // The fleet or the store is unavailable.
                None => AGAIN,
                Some(None) => FIRST,
                Some(Some(sample)) => {
                    let dashboard = Arc::clone(&self);
                    // If the sample cannot be stored, the charts have a gap.
                    let note = move || {
                        let writing = dashboard.history().add_sample(sample);
                        writing.write();
                    };
                    let _ = tokio::task::spawn_blocking(note).await;
                    Duration::from_secs(history::EVERY_S as u64)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Answers one request.
    pub async fn answer(self: Arc<Self>, request: Request<Incoming>, peer: Peer) -> Answer {
        let mut answer = self.answer_unprotected(request, peer).await;
        guard::add_security_headers(&mut answer, peer.is_tls);
        answer
    }

    async fn answer_unprotected(self: Arc<Self>, request: Request<Incoming>, peer: Peer) -> Answer {
        let tokens = self.protection.get().tokens;
        // Two checks precede all others: the `Host` header, and whether a page of another site sent the request.
        if let Err(problem) = guard::check_headers(request.headers(), tokens.is_some()) {
            return plain_text_answer(&problem);
        }
        let path = request.uri().path().to_owned();
        let parts = route::split_path(&path);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let let_in = self.authenticate(tokens.as_deref(), request.headers(), peer);
        if let_in.is_some() {
            note_known_client(&request);
        }
        let is_post = *request.method() == Method::POST;
        if !is_post && !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain_text_answer(&Problem::with_status(405, "expected GET or POST"));
        }
        match (&parts[..], tokens, let_in) {
            (["assets", hash, name], ..) if !is_post => {
                let found = self.assets.get(hash, name);
                found.unwrap_or_else(|| plain_text_answer(&Problem::not_found("file not found")))
            }
            (["login"], Some(tokens), let_in) => match is_post {
                true => self.submit_login(&tokens, request, peer).await,
                false if let_in.is_some() => see_other("/dashboard/"),
                false => self.login_form(200, None),
            },
            (["login"], None, _) => see_other("/dashboard/"),
            (_, _, None) => see_other(LOGIN),
            (_, _, Some(let_in)) => {
                let query = request.uri().query().unwrap_or_default();
                let visit = self.new_visit(let_in, &path, query);
                match is_post {
                    true => visit.submit(request, peer, &parts).await,
                    false => visit.show(&parts).await,
                }
            }
        }
    }

    async fn submit_login(
        &self,
        tokens: &Tokens,
        request: Request<Incoming>,
        peer: Peer,
    ) -> Answer {
        let (head, body) = request.into_parts();
        let form = self.read_form(&head.headers, body, peer, &["login"]).await;
        let answer = form.and_then(|form| self.log_in(tokens, &head.headers, &form, peer));
        answer.unwrap_or_else(|problem| plain_text_answer(&problem))
    }

    fn new_visit(self: Arc<Self>, let_in: Admitted, path: &str, query: &str) -> Visit {
        Visit {
            form_token: self.guard.form_token(let_in.session.as_deref()),
            visitor: let_in.visitor,
            session: let_in.session,
            path: path.to_owned(),
            query: parse_query_pairs(query),
            dashboard: self,
        }
    }

    /// Reads the body of a form that a page of the dashboard has posted.
    async fn read_form(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        peer: Peer,
        parts: &[&str],
    ) -> Result<Form, Problem> {
        guard::check_post_headers(headers, peer.is_tls)?;
        let most_bytes = route::max_body_bytes(parts);
        let read = body::read_whole(body, most_bytes, &self.large_bodies).await;
        let body = read.map_err(|fault| Problem::with_status(fault.status(), fault))?;
        let kind = headers.get(CONTENT_TYPE);
        Ok(Form::parse(kind.and_then(|kind| kind.to_str().ok()), body))
    }
}

impl Visit {
    async fn show(self, parts: &[&str]) -> Answer {
        if let Some(part) = live::Part::from_path(parts) {
            return live::open_stream(self, part)
                .unwrap_or_else(|problem| plain_text_answer(&problem));
        }
        let shown = route::show(&self, parts).await;
        shown.unwrap_or_else(|problem| self.render_problem(&problem))
    }

    async fn submit(self, request: Request<Incoming>, peer: Peer, parts: &[&str]) -> Answer {
        let (head, body) = request.into_parts();
        let session = self.session.as_deref();
        if *parts == NEW_TABLE {
            let judged = guard::check_post_headers(&head.headers, peer.is_tls);
            let judged = judged.and_then(|()| {
                let token = form_token_of(&head.headers);
                self.dashboard.guard.check_form(session, token)
            });
            let taken = match judged {
                Ok(()) => new_table::upload(&self, body).await,
                Err(problem) => Err(problem),
            };
            return taken.unwrap_or_else(|problem| self.render_problem(&problem));
        }
        let form = self
            .dashboard
            .read_form(&head.headers, body, peer, parts)
            .await;
        let form = form.and_then(|form| {
            let token = form.get("token").or(form_token_of(&head.headers));
            self.dashboard
                .guard
                .check_form(session, token)
                .map(|()| form)
        });
        let taken = match form {
            Ok(_) if *parts == ["logout"] => {
                Ok(self.dashboard.log_out(&head.headers, session, peer))
            }
            Ok(form) => route::submit(&self, parts, &form).await,
            Err(problem) => Err(problem),
        };
        taken.unwrap_or_else(|problem| self.render_problem(&problem))
    }
}

fn form_token_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(FORM_TOKEN_HEADER)?.to_str().ok()
}

/// A problem as plain text, without a page of the dashboard around it.
fn plain_text_answer(problem: &Problem) -> Answer {
    let text = format!("{}\n", problem.text);
    let kind = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    crate::answer::with_content_type(problem.status, kind, text.into_bytes())
}

/// Redirects a browser that requests `/` to the dashboard.
pub fn redirect_to_start() -> Answer {
    let mut answer = see_other("/dashboard/");
    // Clients other than browsers get another answer at this path, so caches must keep the answers apart.
    answer = crate::answer::with_header(answer, hyper::header::VARY, "Accept");
    guard::add_security_headers(&mut answer, false);
    answer
}
