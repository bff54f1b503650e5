//! Keeps foreign pages out, and protects the dashboard's own pages: checks each request, and sets the headers of each
//! answer.
//!
//! A foreign page can make a browser send requests here. But the browser adds the `Host` of the requested address, and
//! to posts the `Origin` of the page. The page also cannot send a form token, which it cannot read
//! ([`Guard::form_token`]). Without login tokens, only requests to this machine's own names are answered, so a foreign
//! name that resolves to this machine is useless.

use hyper::header::{
    CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use webfill_service::http::Answer;
use webfill_service::own_names::is_of_this_machine;

use crate::answer::Problem;
use crate::secrets::{derive, is_same};

/// The content security policy of all pages: no inline scripts or styles, and nothing from other servers. Images may
/// also be in `data:` URLs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The checks of requests, with the secret that form tokens are derived from.
#[derive(Debug)]
pub(crate) struct Guard {
    secret: String,
}

impl Guard {
    pub(crate) fn new(secret: String) -> Guard {
        Guard { secret }
    }

    /// The token in the forms of a session. Without sessions, all visitors have the same token.
    pub(crate) fn form_token(&self, session: Option<&str>) -> String {
        derive(&self.secret, session.unwrap_or_default())
    }

    /// Checks that a posted form comes from a page that this session got from the dashboard.
    pub(crate) fn check_form(
        &self,
        session: Option<&str>,
        form_token: Option<&str>,
    ) -> Result<(), Problem> {
        match form_token.is_some_and(|token| is_same(token, &self.form_token(session))) {
            true => Ok(()),
            false => Err(Problem::forbidden(
                "the form is out of date: reload its page and try again",
            )),
        }
    }
}

/// Checks the headers of any request. `has_tokens` means that visitors must log in with a token.
pub(crate) fn check_headers(headers: &HeaderMap, has_tokens: bool) -> Result<(), Problem> {
    let host = header_text(headers, HOST);
    if !has_tokens && !host.is_some_and(is_of_this_machine) {
        return Err(Problem::forbidden(
            "the Host header names another machine: open the dashboard at localhost or at this machine's address",
        ));
    }
    // A page of another site may link here, but not load resources from here.
    let is_foreign = matches!(
        header_text(headers, FETCH_SITE),
        Some("cross-site" | "same-site")
    );
    if is_foreign && header_text(headers, FETCH_MODE) != Some("navigate") {
        return Err(Problem::forbidden("requests from other sites are refused"));
    }
    Ok(())
}

/// Checks a request that changes something: the page that sends it, if the browser names it, must be from this server.
pub(crate) fn check_post_headers(headers: &HeaderMap, is_tls: bool) -> Result<(), Problem> {
    let scheme = if is_tls { "https" } else { "http" };
    let own = header_text(headers, HOST).map(|host| format!("{scheme}://{host}"));
    let origin = headers.get(ORIGIN);
    let is_own = origin.is_none_or(|origin| {
        let origin = origin.to_str().ok();
        origin
            .zip(own)
            .is_some_and(|(origin, own)| origin.eq_ignore_ascii_case(&own))
    });
    let site = headers.get(FETCH_SITE);
    let is_own_site = site.is_none_or(|site| site == "same-origin");
    match is_own && is_own_site {
        true => Ok(()),
        false => Err(Problem::forbidden(
            "requests from other sites are refused (Origin header)",
        )),
    }
}

/// Adds the security headers to an answer. A content security policy that the answer already has is kept.
pub(crate) fn add_security_headers(answer: &mut Answer, is_tls: bool) {
    let headers = answer.headers_mut();
    let mut add = |name: HeaderName, value: &'static str| {
        let value = HeaderValue::from_static(value);
        headers.entry(name).or_insert(value);
    };
    add(CONTENT_SECURITY_POLICY, POLICY);
    add(X_CONTENT_TYPE_OPTIONS, "nosniff");
    // With `no-referrer`, browsers would omit the `Origin` header from posts to this server.
    add(REFERRER_POLICY, "same-origin");
    add(OPENER_POLICY, "same-origin");
    add(RESOURCE_POLICY, "same-origin");
    if is_tls {
        add(STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in of {
            map.insert(*name, value.parse().unwrap());
        }
        map
    }

    fn status(judged: Result<(), Problem>) -> u16 {
        judged.map_or_else(|problem| problem.status, |()| 200)
    }

    #[test]
    fn without_tokens_only_this_machines_names_are_answered() {
        for (host, open, closed) in [
            ("localhost:8080", 200, 200),
            ("127.0.0.1:8080", 200, 200),
            ("evil.org:8080", 403, 200),
        ] {
            let headers = headers(&[("host", host)]);
            assert_eq!(status(check_headers(&headers, false)), open, "{host}");
            assert_eq!(status(check_headers(&headers, true)), closed, "{host}");
        }
        assert_eq!(status(check_headers(&HeaderMap::new(), false)), 403);
    }

    #[test]
    fn other_sites_may_link_here_but_not_load_resources() {
        let asked = |site: &str, mode: &str| {
            let headers = headers(&[
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
            ]);
            status(check_headers(&headers, false))
        };
        assert_eq!(asked("cross-site", "navigate"), 200);
        assert_eq!(asked("cross-site", "no-cors"), 403);
        assert_eq!(asked("same-site", "cors"), 403);
        assert_eq!(asked("same-origin", "cors"), 200);
        assert_eq!(asked("none", "navigate"), 200);
    }

    #[test]
    fn posts_of_other_pages_are_refused() {
        let posted = |is_tls: bool, more: &[(&'static str, &str)]| {
            let host = [("host", "dashboard.example:8443")];
            status(check_post_headers(
                &headers(&[&host, more].concat()),
                is_tls,
            ))
        };
        let own = [("origin", "https://dashboard.example:8443")];
        assert_eq!(posted(true, &own), 200);
        assert_eq!(posted(false, &own), 403, "another scheme is another origin");
        assert_eq!(posted(true, &[]), 200);
        for foreign in [
            "https://evil.org",
            "https://dashboard.example",
            "https://dashboard.example:8443.evil.org",
            "null",
            "",
        ] {
            assert_eq!(posted(true, &[("origin", foreign)]), 403, "{foreign}");
        }
        for (site, expected) in [
            ("same-origin", 200),
            ("cross-site", 403),
            ("same-site", 403),
        ] {
            assert_eq!(
                posted(true, &[("sec-fetch-site", site)]),
                expected,
                "{site}"
            );
        }
    }

    #[test]
    fn a_form_token_is_valid_for_one_session_and_one_process() {
        let [guard, other] = ["a", "b"].map(|secret| Guard::new(secret.repeat(64)));
        let token = guard.form_token(Some("session"));
        let judged = |guard: &Guard, session: Option<&str>, token: Option<&str>| {
            status(guard.check_form(session, token))
        };
        assert_eq!(judged(&guard, Some("session"), Some(&token)), 200);
        assert_eq!(judged(&guard, Some("session 2"), Some(&token)), 403);
        assert_eq!(judged(&guard, None, Some(&token)), 403);
        assert_eq!(judged(&other, Some("session"), Some(&token)), 403);
        assert_eq!(judged(&guard, Some("session"), None), 403);
        assert_eq!(judged(&guard, Some("session"), Some("")), 403);
    }
}
