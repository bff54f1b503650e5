//! Identifies visitors. Where tokens are required, a token in the login form opens a session, and a cookie names the
//! session. A token never occurs in an address, and scripts cannot read the cookie.

use std::time::Instant;

use hyper::header::{COOKIE, HOST, HeaderMap, RETRY_AFTER, SET_COOKIE};
use serde_json::json;
use webfill_service::http::{Answer, Bearer, PERIOD, Peer, Tokens};

use crate::answer::{Problem, Shown, html, see_other, with_header};
use crate::fleet::Visitor;
use crate::form::Form;
use crate::service::Dashboard;
use crate::sessions::LASTS;
use crate::templates;

/// The path of the login form. The form is also posted there.
pub(crate) const LOGIN: &str = "/dashboard/login";

/// A visitor who may use the dashboard, and the session, if tokens are required.
pub(crate) struct Admitted {
    pub(crate) visitor: Visitor,
    pub(crate) session: Option<String>,
}

impl Dashboard {
    /// The visitor who sends a request; `None` if a login is required first.
    pub(crate) fn authenticate(
        &self,
        tokens: Option<&Tokens>,
        headers: &HeaderMap,
        peer: Peer,
    ) -> Option<Admitted> {
        let mut visitor = Visitor::dashboard();
        visitor.address = Some(peer.address.ip());
        let Some(tokens) = tokens else {
            let session = None;
            return Some(Admitted { visitor, session });
        };
        let session = session_from_cookies(headers)?;
        let bearer = self.renew_and_get_bearer(tokens, &session)?;
        visitor.name = Some(bearer.name.clone());
        visitor.rights = bearer.rights.clone();
        let session = Some(session);
        Some(Admitted { visitor, session })
    }

    /// Returns the owner of the token that a session began with, and renews the session. `None` if the session has
    /// expired, or the token is not on the list any more.
    pub(crate) fn renew_and_get_bearer<'a>(
        &self,
        tokens: &'a Tokens,
        session: &str,
    ) -> Option<&'a Bearer> {
        let token = self.sessions.renew_and_get_token(session, Instant::now())?;
        tokens.bearer_by_digest(&token)
    }

    /// The login page, which has no navigation.
    pub(crate) fn login_form(&self, status: u16, fault: Option<&str>) -> Answer {
        let text = templates::render(&self.templates, "login.html", json!({"fault": fault}));
        html(status, text)
    }

    /// Handles a login with a token. After too many wrong tokens from an address, all attempts from it must wait, even
    /// those with the right token. People try only a few times, unlike programs.
    pub(crate) fn log_in(
        &self,
        tokens: &Tokens,
        headers: &HeaderMap,
        form: &Form,
        peer: Peer,
    ) -> Shown {
        let now = Instant::now();
        let from = peer.address.ip();
        if self.wrong_tokens.has_too_many(from, now) {
            let why = "too many wrong tokens from your address: try again in a minute";
            let answer = self.login_form(429, Some(why));
            let seconds = PERIOD.as_secs().to_string();
            return Ok(with_header(answer, RETRY_AFTER, &seconds));
        }
        let shown = form.get("token").unwrap_or_default().trim();
        let Some(digest) = tokens.digest_of(shown) else {
            self.wrong_tokens.count_wrong_token(from, now);
            self.log_refused_token(from);
            return Ok(self.login_form(401, Some("unknown token")));
        };
        let session = self
            .sessions
            .begin(digest, now)
            .map_err(Problem::internal_error)?;
        let cookie = session_cookie(headers, &session, LASTS.as_secs(), peer.is_tls);
        Ok(with_header(see_other("/dashboard/"), SET_COOKIE, &cookie))
    }

    /// Ends a session, and removes its cookie from the browser.
    pub(crate) fn log_out(&self, headers: &HeaderMap, session: Option<&str>, peer: Peer) -> Answer {
        if let Some(session) = session {
            self.sessions.end(session);
        }
        let cookie = session_cookie(headers, "", 0, peer.is_tls);
        with_header(see_other(LOGIN), SET_COOKIE, &cookie)
    }
}

/// The name of the session cookie, with the port. Cookies belong to a host, whatever the port, so without it two
/// dashboards on one machine would log out each other's visitors.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let port = host.and_then(|host| host.rsplit_once(':'));
    let port = port.map_or("", |(_, port)| port);
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    format!("webfill-dashboard-{}", if digits { port } else { "" })
}

fn session_cookie(headers: &HeaderMap, session: &str, lasts_s: u64, is_tls: bool) -> String {
    let name = cookie_name(headers);
    let secure = if is_tls { "; Secure" } else { "" };
    format!(
        "{name}={session}; Path=/dashboard; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}"
    )
}

/// The id of the session in the cookies of a request.
pub(crate) fn session_from_cookies(headers: &HeaderMap) -> Option<String> {
    let name = cookie_name(headers);
    let cookies = headers.get_all(COOKIE).iter();
    let texts = cookies.filter_map(|cookie| cookie.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';'));
    let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
    let found = named.find(|(key, value)| *key == name && !value.is_empty());
    found.map(|(_, session)| session.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in of {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn a_cookie_belongs_to_one_port_and_is_hidden_from_scripts_and_other_sites() {
        let at = headers(&[("host", "localhost:8080")]);
        assert_eq!(
            session_cookie(&at, "abc", 60, true),
            "webfill-dashboard-8080=abc; Path=/dashboard; Max-Age=60; HttpOnly; SameSite=Strict; Secure"
        );
        assert!(!session_cookie(&at, "abc", 60, false).contains("Secure"));
        assert!(
            session_cookie(&headers(&[("host", "[::1]")]), "", 0, true)
                .starts_with("webfill-dashboard-=")
        );
    }

    #[test]
    fn a_session_is_found_among_other_cookies() {
        let asked = |cookies: &[(&'static str, &str)]| {
            let host = [("host", "localhost:8080")];
            session_from_cookies(&headers(&[&host, cookies].concat()))
        };
        let own = "webfill-dashboard-8080=abc";
        assert_eq!(asked(&[("cookie", own)]), Some("abc".into()));
        let among = format!("a=b; {own}; webfill-dashboard-8081=other");
        assert_eq!(asked(&[("cookie", &among)]), Some("abc".into()));
        assert_eq!(
            asked(&[("cookie", "a=b"), ("cookie", own)]),
            Some("abc".into())
        );
        for none in [
            "webfill-dashboard-8081=abc",
            "webfill-dashboard-8080=",
            "webfill-dashboard-8080",
            "",
        ] {
            assert_eq!(asked(&[("cookie", none)]), None, "{none}");
        }
    }
}
