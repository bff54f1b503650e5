//! The events that end the server: the end of standard input, or a signal.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use webfill_service::Fault;

/// Standard input that reports its end immediately, because the protocol's library would first wait for unfinished
/// answers.
pub struct Input<R> {
    inner: R,
    ended: watch::Sender<bool>,
}

impl<R> Input<R> {
    pub fn new(inner: R, ended: watch::Sender<bool>) -> Input<R> {
        Input { inner, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        let has_ended = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if has_ended {
            self.ended.send_replace(true);
        }
        read
    }
}

/// Listens for SIGINT and SIGTERM.
pub struct Signals([Signal; 2]);

impl Signals {
    pub fn new() -> Result<Signals, Fault> {
        let listen = |kind| {
            signal(kind).map_err(|error| Fault::error(format!("cannot handle signals: {error}")))
        };
        Ok(Signals([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
        ]))
    }

    /// Waits for one of the signals.
    pub async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
