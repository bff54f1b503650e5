//! Refuses HTTP requests that a browser on this machine sends on behalf of a foreign web page.

use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use webfill_service::own_names::is_of_this_machine;

/// Judges a request by its headers. A foreign page can make a browser send a form or text to this server, but it
/// cannot suppress `Origin`, choose another `Host`, or send JSON without a preflight request. With tokens in use, any
/// `Host` is allowed: a page whose own host name resolves to this machine has no token.
///
/// Returns the status and the text of a refusal.
pub(super) fn check_headers(
    method: &Method,
    headers: &HeaderMap,
    has_token: bool,
) -> Result<(), (u16, &'static str)> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    if !has_token && !host.is_some_and(is_of_this_machine) {
        return Err((
            403,
            "the Host header names another machine: use localhost or this machine's address",
        ));
    }
    if headers.contains_key(ORIGIN) {
        return Err((403, "requests from web pages are refused (Origin header)"));
    }
    if *method == Method::POST && media_type(headers).is_none() {
        return Err((
            415,
            "expected `Content-Type: application/json`, or application/x-ndjson for JSON lines",
        ));
    }
    Ok(())
}

/// The bearer token of a request, in the form of RFC 6750.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaType {
    Json,
    JsonLines,
}

pub(super) fn media_type(headers: &HeaderMap) -> Option<MediaType> {
    let named = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let name = named.split(';').next().unwrap_or_default().trim();
    match name.to_ascii_lowercase().as_str() {
        "application/json" => Some(MediaType::Json),
        "application/x-ndjson" => Some(MediaType::JsonLines),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked_status(method: Method, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        check_headers(&method, &map, false).map_or_else(|(status, _)| status, |()| 200)
    }

    #[test]
    fn only_this_machine_is_answered() {
        for (host, expected) in [("localhost:8080", 200), ("evil.org:8080", 403)] {
            assert_eq!(
                checked_status(Method::GET, &[("host", host)]),
                expected,
                "{host}"
            );
        }
        assert_eq!(checked_status(Method::GET, &[]), 403);
    }

    #[test]
    fn a_token_is_read_and_lets_any_name_of_the_machine_be_used() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "crawler.example:8443".parse().unwrap());
        assert!(check_headers(&Method::GET, &headers, true).is_ok());
        assert_eq!(bearer_token(&headers), None);
        for (header, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("Bearer ", None),
            ("Bearer", None),
        ] {
            headers.insert(AUTHORIZATION, header.parse().unwrap());
            assert_eq!(bearer_token(&headers), token, "{header}");
        }
        headers.insert(ORIGIN, "https://crawler.example".parse().unwrap());
        assert!(check_headers(&Method::GET, &headers, true).is_err());
    }

    #[test]
    fn pages_of_browsers_are_refused() {
        let own = [("host", "localhost"), ("origin", "http://localhost")];
        assert_eq!(checked_status(Method::GET, &own), 403);
        for forms in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
        ] {
            let headers = [("host", "localhost"), ("content-type", forms)];
            assert_eq!(checked_status(Method::POST, &headers), 415);
        }
        assert_eq!(checked_status(Method::POST, &[("host", "localhost")]), 415);
        for json in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/x-ndjson",
        ] {
            let headers = [("host", "localhost"), ("content-type", json)];
            assert_eq!(checked_status(Method::POST, &headers), 200);
        }
    }
}
