//! A deadline for answers that clients do not read. Without it, a client that sends a request but never reads the
//! answer could keep its connection forever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// A connection with a limit on the time that written bytes wait until the client reads them. After the time `within`,
/// writes fail. The time applies to an answer as a whole: reading a byte now and then does not extend it.
pub(crate) struct WriteDeadline<S> {
    stream: S,
    within: Duration,
    /// When writes fail; set while written bytes wait for the client.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> WriteDeadline<S> {
    pub(crate) fn new(stream: S, within: Duration) -> WriteDeadline<S> {
        WriteDeadline {
            stream,
            within,
            deadline: None,
        }
    }

    /// Continues a write, or fails after the deadline. `ends` means that no bytes wait after this write, so the
    /// deadline is then removed.
    fn poll_write_until_deadline<T>(
        &mut self,
        context: &mut Context<'_>,
        ends: bool,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let written = write(Pin::new(&mut self.stream), context);
        if written.is_ready() {
            if ends {
                self.deadline = None;
            }
            return written;
        }
        let begins = || Box::pin(sleep_until(Instant::now() + self.within));
        let deadline = self.deadline.get_or_insert_with(begins);
        ready!(deadline.as_mut().poll(context));
        let why = "the client does not read its answer";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_until_deadline(context, false, |stream, context| {
            stream.poll_write(context, bytes)
        })
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_until_deadline(context, false, |stream, context| {
            stream.poll_write_vectored(context, pieces)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_until_deadline(context, true, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_until_deadline(context, true, AsyncWrite::poll_shutdown)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const WITHIN: Duration = Duration::from_millis(500);

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_read_fails_at_the_deadline() {
        let (stream, _client) = duplex(100);
        let began = Instant::now();
        let mut unread = WriteDeadline::new(stream, WITHIN);
        let failed = unread.write_all(&[0; 1_000]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= WITHIN);
    }

    #[tokio::test(start_paused = true)]
    async fn an_occasional_byte_does_not_prolong_the_deadline() {
        let (stream, mut client) = duplex(100);
        let mut unread = WriteDeadline::new(stream, WITHIN);
        let reading = tokio::spawn(async move {
            while client.read_u8().await.is_ok() {
                tokio::time::sleep(WITHIN / 20).await;
            }
        });
        unread.write_all(&[0; 1_000]).await.unwrap_err();
        drop(unread);
        reading.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_has_the_whole_time() {
        let (stream, mut client) = duplex(100);
        let mut unread = WriteDeadline::new(stream, WITHIN);
        for _ in 0..5 {
            let reading = async {
                tokio::time::sleep(WITHIN / 4).await;
                client.read_exact(&mut [0; 300]).await.unwrap();
            };
            let writing = async {
                unread.write_all(&[0; 300]).await.unwrap();
                unread.flush().await.unwrap();
            };
            tokio::join!(reading, writing);
        }
    }
}
