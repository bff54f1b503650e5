//! A request and its answer, as they are archived.
//!
//! The HTTP client returns header values as they were sent, in order, with names in lower case; repeated names are
//! grouped. The archived heads are built from these values, without transfer codings and HTTP/2 framing.

use std::net::IpAddr;

use hyper::ext::ReasonPhrase;
use reqwest::header::{CONNECTION, HOST, HeaderMap, HeaderName, TRANSFER_ENCODING};
use reqwest::{Request, Response, Version};
use webfill_urls::{Position, Url};

/// Replaces the name of the `Transfer-Encoding` header, because the archived body has no transfer coding.
const KEPT_TRANSFER_ENCODING: &str = "x-crawl-transfer-encoding";

/// Why a payload is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncated {
    /// The payload is longer than the limit on bodies.
    Length,
    /// The payload took too long.
    Time,
    /// The connection broke before the end of the payload.
    Disconnect,
}

impl Truncated {
    pub fn as_str(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
        }
    }
}

/// A request and its answer.
#[derive(Debug)]
pub struct Exchange {
    pub url: String,
    /// The wall-clock time when the request was sent, in milliseconds since 1970.
    pub started_ms: i64,
    /// The protocol in the form of the field `WARC-Protocol`, such as `h2` or `http/1.1`.
    pub protocol: &'static str,
    /// The address of the server that answered; `None` behind a proxy.
    pub peer: Option<IpAddr>,
    pub status: u16,
    pub request_head: Vec<u8>,
    pub response_head: Vec<u8>,
    /// The body without transfer coding, but with the content coding it was sent in.
    pub payload: Vec<u8>,
    pub truncated: Option<Truncated>,
}

impl Exchange {
    /// Starts an exchange with the head of the answer. The body is added later.
    pub fn from_response(url: &Url, request: &SentRequest, response: &Response) -> Exchange {
        let version = response.version();
        Exchange {
            url: url[..Position::AfterQuery].to_owned(),
            started_ms: request.started_ms,
            protocol: protocol_name(version),
            peer: response.remote_addr().map(|address| address.ip()),
            status: response.status().as_u16(),
            request_head: request.head(url, version),
            response_head: format_response_head(response),
            payload: Vec::new(),
            truncated: None,
        }
    }
}

/// The parts of a sent request, kept until its answer shows which protocol was used.
#[derive(Debug)]
pub struct SentRequest {
    pub started_ms: i64,
    headers: HeaderMap,
}

impl SentRequest {
    pub fn new(request: &Request, started_ms: i64) -> SentRequest {
        SentRequest {
            started_ms,
            headers: request.headers().clone(),
        }
    }

    /// The request's head as it was sent; for HTTP/2, the equivalent head of HTTP/1.1.
    fn head(&self, url: &Url, version: Version) -> Vec<u8> {
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let mut head = format!("GET {target} HTTP/1.1\r\n").into_bytes();
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let is_http2 = version == Version::HTTP_2;
        if is_http2 {
            push_header(&mut head, HOST.as_str(), host.as_bytes());
        }
        for (name, value) in &self.headers {
            if !(is_http2 && matches!(*name, CONNECTION | HOST)) {
                push_header(&mut head, name.as_str(), value.as_bytes());
            }
        }
        // The HTTP client sends `Host` after all other headers, so it is the last one here, too.
        if !is_http2 && !self.headers.contains_key(HOST) {
            push_header(&mut head, HOST.as_str(), host.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

fn protocol_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "h2",
        Version::HTTP_10 => "http/1.0",
        _ => "http/1.1",
    }
}

fn format_response_head(response: &Response) -> Vec<u8> {
    let version = match response.version() {
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let status = response.status();
    let mut head = format!("{version} {} ", status.as_str()).into_bytes();
    head.extend_from_slice(reason_phrase(response));
    head.extend_from_slice(b"\r\n");
    for (name, value) in response.headers() {
        push_header(&mut head, archived_name(name), value.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The reason phrase of a status line, such as `Not Found`. The HTTP client keeps only unusual phrases, and HTTP/2 has
/// none.
fn reason_phrase(response: &Response) -> &[u8] {
    if response.version() == Version::HTTP_2 {
        return b"";
    }
    match response.extensions().get::<ReasonPhrase>() {
        Some(reason) => reason.as_bytes(),
        None => response
            .status()
            .canonical_reason()
            .unwrap_or("")
            .as_bytes(),
    }
}

fn archived_name(name: &HeaderName) -> &str {
    match *name {
        TRANSFER_ENCODING => KEPT_TRANSFER_ENCODING,
        _ => name.as_str(),
    }
}

fn push_header(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_request(headers: &[(&'static str, &str)]) -> SentRequest {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        SentRequest {
            started_ms: 0,
            headers: map,
        }
    }

    fn head(request: &SentRequest, version: Version) -> String {
        let url = Url::parse("https://a.org:8443/b?c=d#e").unwrap();
        String::from_utf8(request.head(&url, version)).unwrap()
    }

    #[test]
    fn the_head_of_a_request_has_its_host_once() {
        let request = sent_request(&[("accept", "text/html"), ("connection", "close")]);
        assert_eq!(
            head(&request, Version::HTTP_11),
            "GET /b?c=d HTTP/1.1\r\naccept: text/html\r\nconnection: close\r\nhost: a.org:8443\r\n\r\n"
        );
        assert_eq!(
            head(&request, Version::HTTP_2),
            "GET /b?c=d HTTP/1.1\r\nhost: a.org:8443\r\naccept: text/html\r\n\r\n"
        );
        let request = sent_request(&[("host", "a.org:8443"), ("accept", "*/*")]);
        assert_eq!(
            head(&request, Version::HTTP_11),
            "GET /b?c=d HTTP/1.1\r\nhost: a.org:8443\r\naccept: */*\r\n\r\n"
        );
    }

    #[test]
    fn the_head_of_a_response_is_as_sent_except_for_its_transfer_coding() {
        let response = http::Response::builder()
            .status(404)
            .header("content-encoding", "gzip")
            .header("transfer-encoding", "chunked")
            .extension(ReasonPhrase::from_static(b"Nowhere"))
            .body(reqwest::Body::default())
            .unwrap();
        let head = String::from_utf8(format_response_head(&response.into())).unwrap();
        assert_eq!(
            head,
            "HTTP/1.1 404 Nowhere\r\ncontent-encoding: gzip\r\nx-crawl-transfer-encoding: chunked\r\n\r\n"
        );
    }

    #[test]
    fn http_2_has_a_status_line_without_a_reason() {
        let response = http::Response::builder()
            .version(Version::HTTP_2)
            .body(reqwest::Body::default())
            .unwrap();
        assert_eq!(
            format_response_head(&response.into()),
            b"HTTP/1.1 200 \r\n\r\n"
        );
        assert_eq!(protocol_name(Version::HTTP_2), "h2");
    }
}
