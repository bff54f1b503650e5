//! HTTP/1.1 written by hand, so that the test site can violate the protocol at every byte. Reads heads, sends replies,
//! and notices when the client closes the connection.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

use super::reply::{Page, Reply, Script, Step};
use super::{Connection, Request, Shared, may_have_body};

/// The longest request head that is read, in bytes. The clients in the tests send far less.
const HEAD_BYTES_MAX: usize = 256 * 1024;

/// The first byte of a TLS connection (RFC 8446, 5.1). No HTTP method begins with it.
const TLS_HANDSHAKE: u8 = 22;

/// A connection that can be ended with a reset.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Makes the next close of the connection a reset.
    fn reset_on_close(&self) -> io::Result<()>;
}

/// How many bytes of a reply were sent, and why sending ended.
struct SentReply {
    sent_bytes: u64,
    end: End,
}

#[derive(PartialEq)]
enum End {
    /// The reply is complete, and the connection stays open for the next request.
    KeptAlive,
    /// The connection is closed, because the script requires it.
    Closed,
    Reset,
    ClientGone,
}

/// A client: the two halves of its connection, and the bytes that were already read from it.
struct Client<S> {
    reader: ReadHalf<S>,
    writer: WriteHalf<S>,
    inbox: Vec<u8>,
    sent_bytes: u64,
}

/// Serves a connection until either side closes it.
pub(super) async fn serve<S: Transport>(stream: S, connection: Connection, shared: &Shared) {
    let (reader, writer) = tokio::io::split(stream);
    let mut client = Client {
        reader,
        writer,
        inbox: Vec::new(),
        sent_bytes: 0,
    };
    let mut end = End::KeptAlive;
    while end == End::KeptAlive {
        let Some((request, started_at)) = client.read_request(&connection).await else {
            break;
        };
        let reply = shared.reply(&request);
        let number =
            shared
                .log
                .begin_visit(request.to_visit(&connection, started_at, reply_status(&reply)));
        let played = client.send_reply(reply).await;
        shared
            .log
            .end_visit(number, played.sent_bytes, played.end == End::ClientGone);
        end = played.end;
    }
    if end == End::Reset {
        let stream = client.reader.unsplit(client.writer);
        // If the reset cannot be requested, the connection is closed normally, and the test notices that.
        let _ = stream.reset_on_close();
        return;
    }
    // The client may already have closed the connection.
    let _ = client.writer.shutdown().await;
}

fn reply_status(reply: &Reply) -> Option<u16> {
    match reply {
        Reply::Page(page) => Some(page.status),
        Reply::Script(script) => match script.steps.first() {
            Some(Step::Send(bytes)) => {
                let line = String::from_utf8_lossy(&bytes[..bytes.len().min(16)]).into_owned();
                line.split(' ').nth(1).and_then(|code| code.parse().ok())
            }
            _ => None,
        },
    }
}

impl<S: Transport> Client<S> {
    /// Reads the next request. `None` if the client has closed the connection, or has sent something other than a
    /// request.
    async fn read_request(&mut self, connection: &Connection) -> Option<(Request, Instant)> {
        let mut started_at = (!self.inbox.is_empty()).then(Instant::now);
        loop {
            if let Some(end) = find_head_end(&self.inbox) {
                let head: Vec<u8> = self.inbox.drain(..end).collect();
                return Some((parse_head(&head, connection)?, started_at?));
            }
            if self.inbox.len() > HEAD_BYTES_MAX {
                return None;
            }
            if self.reader.read_buf(&mut self.inbox).await.ok()? == 0 {
                return None;
            }
            started_at.get_or_insert_with(Instant::now);
            if self.inbox[0] == TLS_HANDSHAKE {
                // Plain servers give this answer to a client that begins with TLS.
                self.send(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.ok()?;
                return None;
            }
        }
    }

    async fn send_reply(&mut self, reply: Reply) -> SentReply {
        self.sent_bytes = 0;
        let end = match reply {
            Reply::Page(page) => self.send_page(page).await,
            Reply::Script(script) => self.send_script(script).await,
        };
        SentReply {
            sent_bytes: self.sent_bytes,
            end: end.unwrap_or(End::ClientGone),
        }
    }

    async fn send_page(&mut self, page: Page) -> io::Result<End> {
        self.wait(page.latency).await?;
        self.send(page.head().as_bytes()).await?;
        if may_have_body(page.status) {
            self.send(&page.body).await?;
        }
        Ok(End::KeptAlive)
    }

    async fn send_script(&mut self, script: Script) -> io::Result<End> {
        for step in script.steps {
            match step {
                Step::Send(bytes) => self.send(&bytes).await?,
                Step::Pause(pause) => self.wait(pause).await?,
                Step::Endless { chunk, every } => loop {
                    self.send(&chunk).await?;
                    self.wait(every).await?;
                },
                Step::HoldOpen => self.wait(Duration::MAX).await?,
                Step::Reset | Step::Refuse => return Ok(End::Reset),
            }
        }
        Ok(End::Closed)
    }

    /// Sends all of these bytes. Fails as soon as the client has closed the connection.
    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            let sent = self.writer.write(left).await?;
            self.sent_bytes += sent as u64;
            left = &left[sent..];
        }
        self.writer.flush().await
    }

    /// Waits for this time. Fails as soon as the client has closed the connection.
    async fn wait(&mut self, pause: Duration) -> io::Result<()> {
        if pause.is_zero() {
            return Ok(());
        }
        let sleep = tokio::time::sleep(pause);
        tokio::pin!(sleep);
        loop {
            tokio::select! {
                () = &mut sleep => return Ok(()),
                read = self.reader.read_buf(&mut self.inbox) => if read? == 0 {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                },
            }
        }
    }
}

fn find_head_end(inbox: &[u8]) -> Option<usize> {
    inbox
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| at + 4)
}

fn parse_head(head: &[u8], connection: &Connection) -> Option<Request> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_end().split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_string(), value.trim().to_string()))
        .collect();
    let host = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host_header = host.map(|(_, value)| value.clone()).unwrap_or_default();
    Some(Request::new(
        method,
        target,
        host_header,
        headers,
        "HTTP/1.1",
        connection,
    ))
}
