//! TLS for HTTP connections to other machines.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 22;

/// The body of the answer to a request without TLS.
const PLAIN: &str = "{\"error\":{\"path\":\"$\",\"message\":\"this is the place of https\"}}\n";

/// Makes the TLS handshake, and returns the connection; `None` if the handshake fails or takes too long.
pub(crate) async fn accept_tls(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    within: Duration,
) -> Option<TlsStream<TcpStream>> {
    let accepted = async {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1) if first == [HANDSHAKE] => TlsAcceptor::from(config).accept(stream).await.ok(),
            Ok(1) => {
                refuse_plain(stream).await;
                None
            }
            _ => None,
        }
    };
    tokio::time::timeout(within, accepted).await.ok()?
}

/// Answers a request without TLS that this port expects HTTPS. The request is read first, because the answer would be
/// lost if the connection were closed with unread bytes.
async fn refuse_plain(mut stream: TcpStream) {
    let mut head = [0; 4_096];
    let _ = stream.read(&mut head).await;
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{PLAIN}",
        PLAIN.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
