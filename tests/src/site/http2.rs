//! HTTP/2 for clients that choose it by ALPN. Only pages are supported, because the bytes of a script have no meaning
//! in HTTP/2. A script resets the stream. A script that refuses reports that the request was not processed.

use std::time::Instant;

use bytes::Bytes;
use h2::server::SendResponse;
use tokio::io::{AsyncRead, AsyncWrite};

use super::reply::{Page, Reply, Step};
use super::{Connection, Request, Shared};

/// Serves a connection until either side closes it.
pub(super) async fn serve<S>(stream: S, connection: Connection, shared: &Shared)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok(mut streams) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = streams.accept().await {
        let started_at = Instant::now();
        let request = convert_request(&request, &connection);
        let (shared, connection) = (shared.clone(), connection.clone());
        tokio::spawn(async move {
            let reply = shared.reply(&request);
            let status = if let Reply::Page(page) = &reply {
                Some(page.status)
            } else {
                None
            };
            let number = shared
                .log
                .begin_visit(request.to_visit(&connection, started_at, status));
            let sent = send_reply(reply, respond).await;
            shared
                .log
                .end_visit(number, sent.unwrap_or(0), sent.is_none());
        });
    }
}

fn convert_request(request: &http::Request<h2::RecvStream>, connection: &Connection) -> Request {
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let authority = request
        .uri()
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let headers = request.headers().iter().map(|(name, value)| {
        (
            name.to_string(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    });
    let method = request.method().as_str();
    Request::new(
        method,
        target,
        authority,
        headers.collect(),
        "HTTP/2",
        connection,
    )
}

/// Sends a reply. Returns the number of bytes that were sent; `None` if the stream broke.
async fn send_reply(reply: Reply, mut respond: SendResponse<Bytes>) -> Option<u64> {
    let page = match reply {
        Reply::Page(page) => page,
        Reply::Script(script) => {
            respond.send_reset(match script.steps.as_slice() {
                [Step::Refuse] => h2::Reason::REFUSED_STREAM,
                _ => h2::Reason::INTERNAL_ERROR,
            });
            return None;
        }
    };
    tokio::time::sleep(page.latency).await;
    let head = response_head(&page)?;
    let mut stream = respond.send_response(head, page.body.is_empty()).ok()?;
    let length = page.body.len() as u64;
    if length > 0 {
        stream.send_data(page.body, true).ok()?;
    }
    Some(length)
}

fn response_head(page: &Page) -> Option<http::Response<()>> {
    let mut response = http::Response::builder().status(page.status);
    for (name, value) in &page.headers {
        response = response.header(name, value);
    }
    response.body(()).ok()
}
