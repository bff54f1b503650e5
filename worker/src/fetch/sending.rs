//! Sends a request, and repeats it once if the server did not get it.
//!
//! A server may close a kept-open connection at any time. A request sent at that moment is lost, through no fault of
//! the site. It is repeated immediately, once, on a new connection (RFC 9112, 9.3.1). The site's delay does not apply
//! again, because the server has not answered. Like browsers, this module repeats a request only if its connection
//! delivered an answer before and was closed before the head of the new answer arrived. A new connection that breaks is
//! a failure of the site. The same applies to HTTP/2, where requests that the server declares unprocessed are repeated
//! as well (RFC 9113, 8.7).

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::header::{ACCEPT_ENCODING, CONNECTION, HeaderValue, USER_AGENT};
use reqwest::{RequestBuilder, Response, StatusCode};
use tokio::time::timeout;
use webfill_wire::Outcome;

use super::coding::ACCEPTED_CODINGS;
use super::incoming::{IncomingBody, RawCopy};
use super::{BodyRule, Fetched, Fetcher, Received, RequestSpec};
use crate::archive::{Exchange, SentRequest};
use crate::connections::Ends;
use crate::fetch_error::FetchError;
use crate::now::now_ms;

/// The head of an answer, and its request if exchanges are archived.
type Answered = (Response, Option<SentRequest>);

/// The failure of a request that got no answer.
struct NoAnswer {
    fetched: Box<Fetched>,
    /// Whether the server has not processed the request, as far as can be known.
    is_unprocessed: bool,
}

impl Fetcher {
    /// Sends the request, a second time if the first one was lost, and waits for the head of the answer.
    pub(super) async fn send_with_retry(
        &self,
        spec: &RequestSpec<'_>,
        connection_stays: bool,
    ) -> Result<Received, Box<Fetched>> {
        let mut answered = self.send(spec, connection_stays).await;
        if matches!(&answered, Err(failed) if failed.is_unprocessed) {
            tracing::debug!(
                event = "sent_again",
                url = spec.url.as_str(),
                "the server closed the connection before the request arrived"
            );
            answered = self.send(spec, connection_stays).await;
        }
        let (response, sent) = answered.map_err(|failed| failed.fetched)?;
        if let Err(refusal) = self.resolver.check_peer(response.remote_addr()) {
            return Err(Fetched::unanswered(Outcome::UnsafeAddress, refusal).into());
        }
        let exchange = sent.map(|sent| self.begin_exchange(spec, &sent, &response));
        let kept = exchange
            .is_some()
            .then(|| RawCopy::new(self.most_bytes(spec.rule)));
        let (head, body) = IncomingBody::split_response(response, kept);
        Ok(Received {
            head,
            body,
            exchange,
        })
    }

    async fn send(
        &self,
        spec: &RequestSpec<'_>,
        connection_stays: bool,
    ) -> Result<Answered, NoAnswer> {
        let (client, request) = self.build_request(spec, connection_stays).build_split();
        let request = request.map_err(|error| self.note_failure(error))?;
        let archives = self.archived_agent.is_some();
        let sent = archives.then(|| SentRequest::new(&request, now_ms()));
        // The client itself limits only the time to connect. This limit is for connecting and answering together.
        let limit = Duration::from_secs_f64(self.config.connect_timeout + self.config.head_timeout);
        let Ok(response) = timeout(limit, client.execute(request)).await else {
            let late = Fetched::unanswered(Outcome::Timeout, "no answer in time");
            return Err(NoAnswer::new(late, false));
        };
        let response = response.map_err(|error| self.note_failure(error))?;
        let ends = response.extensions().get::<HttpInfo>().map(connection_ends);
        let is_reused = ends.is_some_and(|ends| self.used.borrow_mut().note_answer(ends));
        // A server may send the status 408, without any request, before it closes an idle connection (RFC 9110,
        // 15.5.9).
        if is_reused
            && response.status() == StatusCode::REQUEST_TIMEOUT
            && closes_connection(&response)
        {
            let late =
                Fetched::unanswered(Outcome::HttpError, "the server has closed the connection");
            return Err(NoAnswer::new(late, true));
        }
        Ok((response, sent))
    }

    fn note_failure(&self, error: reqwest::Error) -> NoAnswer {
        let ends = failed_connection(&error);
        let mut used = self.used.borrow_mut();
        let is_reused = ends.is_some_and(|ends| used.is_known(ends));
        if let Some(ends) = ends {
            used.forget(ends);
        }
        let is_unprocessed = was_not_processed(&error) || is_reused && is_connection_closed(&error);
        let error = FetchError::from(error);
        let mut fetched = Fetched::unanswered(error.outcome, error.reason);
        fetched.no_route = error.no_route;
        NoAnswer::new(fetched, is_unprocessed)
    }

    fn build_request(&self, spec: &RequestSpec<'_>, connection_stays: bool) -> RequestBuilder {
        let mut request = self.clients.get(spec.url);
        let of_site = match spec.rule {
            BodyRule::Beginning { .. } => Vec::new(),
            BodyRule::Page(_) | BodyRule::Subresource => self.headers.of(spec.url),
        };
        let own = spec.headers.iter();
        let mut headers: Vec<(&str, &str)> = own.map(|(name, value)| (&**name, &**value)).collect();
        for (name, value) in of_site.into_iter().chain([("accept", spec.accept)]) {
            if !headers.iter().any(|(known, _)| *known == name) {
                headers.push((name, value));
            }
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request = request.header(ACCEPT_ENCODING, ACCEPTED_CODINGS);
        if !connection_stays {
            // HTTP/2 has no `Connection` header, and its connections need little memory.
            request = request.header(CONNECTION, "close");
        }
        let agent = spec.user_agent.or(self.archived_agent.as_deref());
        match agent.and_then(|agent| HeaderValue::from_str(agent).ok()) {
            Some(agent) => request.header(USER_AGENT, agent),
            // The client then sends its own user agent.
            None => request,
        }
    }

    fn begin_exchange(
        &self,
        spec: &RequestSpec<'_>,
        sent: &SentRequest,
        response: &Response,
    ) -> Box<Exchange> {
        let mut exchange = Exchange::from_response(spec.url, sent, response);
        if self.config.proxy.is_some() {
            // The address of the connection is that of the proxy, not of the host.
            exchange.peer = None;
        }
        Box::new(exchange)
    }
}

impl NoAnswer {
    fn new(fetched: Fetched, is_unprocessed: bool) -> NoAnswer {
        NoAnswer {
            fetched: Box::new(fetched),
            is_unprocessed,
        }
    }
}

fn connection_ends(info: &HttpInfo) -> Ends {
    (info.local_addr(), info.remote_addr())
}

fn closes_connection(response: &Response) -> bool {
    let values = response.headers().get_all(CONNECTION);
    let mut values = values.iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.trim().eq_ignore_ascii_case("close"))
}

/// The two ends of the connection that a request failed on.
fn failed_connection(error: &reqwest::Error) -> Option<Ends> {
    let mut extensions = http::Extensions::new();
    causes(error)
        .find_map(|cause| cause.downcast_ref::<legacy::Error>()?.connect_info())?
        .get_extras(&mut extensions);
    extensions.get::<HttpInfo>().map(connection_ends)
}

/// Whether the server says that it has not processed the request.
fn was_not_processed(error: &(dyn Error + 'static)) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<h2::Error>())
        .any(|error| {
            let refuses = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            // A GOAWAY frame without an error fails only requests that the server has not processed.
            let leaves = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            error.is_remote() && (refuses || leaves)
        })
}

/// Whether the connection was closed while waiting for the answer.
fn is_connection_closed(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            return error.is_incomplete_message() || error.is_closed() || error.is_canceled();
        }
        if let Some(error) = cause.downcast_ref::<h2::Error>() {
            return error.is_io() || error.is_remote() && error.is_go_away();
        }
        let kind = cause
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        matches!(
            kind,
            Some(
                ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::BrokenPipe
                    | ErrorKind::NotConnected
                    | ErrorKind::UnexpectedEof
            )
        )
    })
}

/// Iterates over an error and its causes; the innermost cause is the last.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// A frame of HTTP/2 (RFC 9113, 4.1).
    fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, 0, 0, 0, 0, stream][..], payload].concat()
    }

    /// The error that a request ends with if the server answers with these frames and then closes the connection.
    async fn error_after_frames(frames: Vec<u8>) -> h2::Error {
        let (ours, mut server) = duplex(1 << 16);
        let answering = async move {
            // Receives the bytes that the client sends: the preface of HTTP/2, and the frames of the request.
            let mut sent = vec![0; 1 << 12];
            let mut read = 0;
            // The smallest request is complete with its frame of kind 1, which holds the headers.
            while !sent[..read]
                .windows(5)
                .any(|bytes| bytes == [1, 5, 0, 0, 0])
            {
                read += server.read(&mut sent[read..]).await.unwrap();
            }
            server.write_all(&frame(4, 0, &[])).await.unwrap();
            server.write_all(&frames).await.unwrap();
        };
        let asking = async {
            let (mut sender, connection) = h2::client::handshake(ours).await.unwrap();
            let connection = tokio::spawn(connection);
            let request = http::Request::get("http://a.org/").body(()).unwrap();
            let (answer, _) = sender.send_request(request, true).unwrap();
            let error = answer.await.unwrap_err();
            connection.abort();
            error
        };
        tokio::join!(asking, answering).0
    }

    #[tokio::test]
    async fn requests_that_an_http_2_server_has_not_processed_are_recognised() {
        let reset = |reason: u8| frame(3, 1, &[0, 0, 0, reason]);
        let go_away = |last: u8, reason: u8| frame(7, 0, &[0, 0, 0, last, 0, 0, 0, reason]);
        for (name, frames, refused, closed) in [
            ("refused", reset(7), true, false),
            ("reset by an error", reset(2), false, false),
            ("cancelled", reset(8), false, false),
            (
                "above the last one that is processed",
                go_away(0, 0),
                true,
                true,
            ),
            ("ended by an error", go_away(0, 2), false, true),
            ("left without a word", Vec::new(), false, true),
        ] {
            let error = error_after_frames(frames).await;
            assert_eq!(was_not_processed(&error), refused, "{name}: {error:?}");
            assert_eq!(is_connection_closed(&error), closed, "{name}: {error:?}");
        }
    }
}
