//! Reads the bodies of HTTP requests, within limits of size and time.

use std::fmt;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// A body with more bytes than this is large. At most [`MOST_LARGE`] large bodies should be read at once.
const LARGE_BYTES: usize = 1 << 20;
pub const MOST_LARGE: usize = 4;

/// By how much time a body may be slower than [`LEAST_RATE`] before it is abandoned.
const PATIENCE: Duration = Duration::from_secs(30);

/// The lowest acceptable rate of a body in bytes per second, measured only while waiting for it. So a client that
/// rarely sends a byte cannot keep its connection for long.
const LEAST_RATE: f64 = 4_096.0;

/// Why a body was not read completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    TooLarge { most_bytes: usize },
    TooSlow,
    BrokenOff,
}

impl BodyFault {
    /// The HTTP status of the answer to such a request.
    pub fn status(self) -> u16 {
        match self {
            BodyFault::TooLarge { .. } => 413,
            BodyFault::TooSlow => 408,
            BodyFault::BrokenOff => 400,
        }
    }
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyFault::TooLarge { most_bytes } => write!(f, "more than {most_bytes} bytes"),
            BodyFault::TooSlow => write!(
                f,
                "the body comes too slowly: {LEAST_RATE} bytes a second are the least"
            ),
            BodyFault::BrokenOff => f.write_str("the body is broken off"),
        }
    }
}

/// A body that is still arriving.
pub struct ArrivingBody<B = Incoming> {
    body: B,
    patience: Duration,
    /// How much longer the body has taken than it would at [`LEAST_RATE`]. It is never negative, so a fast start does
    /// not excuse a slow end.
    behind: Duration,
}

impl<B: Body<Data = Bytes> + Unpin> ArrivingBody<B> {
    pub fn new(body: B) -> ArrivingBody<B> {
        ArrivingBody {
            body,
            patience: PATIENCE,
            behind: Duration::ZERO,
        }
    }

    /// Returns the next piece of the body; `None` at the end. Only the time spent in this call counts as the client's
    /// delay.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, BodyFault> {
        loop {
            let began = Instant::now();
            let left = self.patience.saturating_sub(self.behind);
            let frame = tokio::time::timeout(left, self.body.frame()).await;
            let frame = frame.map_err(|_| BodyFault::TooSlow)?;
            self.behind += began.elapsed();
            match frame {
                None => return Ok(None),
                Some(Err(_)) => return Err(BodyFault::BrokenOff),
                Some(Ok(frame)) => {
                    // A frame without data is a trailer, which is not part of the body.
                    if let Ok(piece) = frame.into_data() {
                        let may_take = Duration::from_secs_f64(piece.len() as f64 / LEAST_RATE);
                        self.behind = self.behind.saturating_sub(may_take);
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }
}

/// Reads the whole body, up to a limit of bytes. A large body first takes a permit of `large`.
pub async fn read_whole(
    body: Incoming,
    most_bytes: usize,
    large: &Semaphore,
) -> Result<Vec<u8>, BodyFault> {
    let too_large = BodyFault::TooLarge { most_bytes };
    if body.size_hint().lower() > most_bytes as u64 {
        return Err(too_large);
    }
    let mut body = ArrivingBody::new(body);
    let mut whole = Vec::new();
    let mut place: Option<SemaphorePermit<'_>> = None;
    while let Some(piece) = body.next_piece().await? {
        if whole.len() + piece.len() > most_bytes {
            return Err(too_large);
        }
        whole.extend_from_slice(&piece);
        if place.is_none() && whole.len() > LARGE_BYTES {
            place = large.acquire().await.ok();
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::time::Interval;

    use super::*;

    /// A body for tests that yields a piece at each interval and never ends.
    struct Dripping(Interval, &'static [u8]);

    impl Body for Dripping {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let piece = Bytes::from_static(self.1);
            let ticked = self.0.poll_tick(context);
            ticked.map(|_| Some(Ok(Frame::data(piece))))
        }
    }

    /// A body with a patience of 0.2 seconds that yields a piece every 0.01 seconds.
    fn arriving_body(piece: &'static [u8]) -> ArrivingBody<Dripping> {
        let interval = tokio::time::interval(Duration::from_millis(10));
        ArrivingBody {
            patience: Duration::from_millis(200),
            ..ArrivingBody::new(Dripping(interval, piece))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_occasional_byte_does_not_prolong_the_time_limit() {
        let began = Instant::now();
        let mut body = arriving_body(b".");
        let refusal = loop {
            match body.next_piece().await {
                Ok(piece) => assert!(piece.is_some()),
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(refusal, BodyFault::TooSlow);
        assert!(began.elapsed() >= Duration::from_millis(200));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_came_fast_before_give_no_credit() {
        let mut body = arriving_body(&[b'.'; 1 << 20]);
        for _ in 0..5 {
            assert!(body.next_piece().await.is_ok());
        }
        body.body.1 = b".";
        while body.next_piece().await.is_ok() {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_at_the_least_rate_is_read_for_as_long_as_it_comes() {
        let mut body = arriving_body(&[b'.'; 4 * 4_096 / 100]);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(1) {
            assert!(body.next_piece().await.is_ok());
        }
    }

    /// The dispatcher needs time to write pieces to disk, which must not count as the client's delay.
    #[tokio::test(start_paused = true)]
    async fn the_time_between_two_calls_does_not_count() {
        let mut body = arriving_body(b".");
        for _ in 0..5 {
            assert!(body.next_piece().await.is_ok());
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    }
}
