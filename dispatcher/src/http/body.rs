//! Request bodies, read within limits.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::answers::{Answer, refused};

/// The maximum size of a body that is read as a whole: the same as of a frame on the control
/// socket.
const MOST_BYTES: usize = 64 << 20;

/// A body larger than this counts as large; at most [`MOST_LARGE`] large bodies are read at once.
const LARGE_BYTES: usize = 1 << 20;
pub(super) const MOST_LARGE: usize = 4;

/// A body that brings no byte for this long is given up.
const SILENCE: Duration = Duration::from_secs(30);

/// The next piece; `None` at the end.
pub(super) async fn next_piece(body: &mut Incoming) -> Result<Option<Bytes>, Answer> {
    loop {
        let frame = tokio::time::timeout(SILENCE, body.frame()).await;
        let frame = frame.map_err(|_| refused(408, "the body does not go on"))?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(refused(400, "the body is broken off")),
            Some(Ok(frame)) => {
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

/// The whole body.
pub(super) async fn read_whole(mut body: Incoming, large: &Semaphore) -> Result<Vec<u8>, Answer> {
    let too_large = || {
        let why = format!("more than {MOST_BYTES} bytes: send it in parts, or as JSON lines");
        refused(413, &why)
    };
    if body.size_hint().lower() > MOST_BYTES as u64 {
        return Err(too_large());
    }
    let mut whole = Vec::new();
    let mut place: Option<SemaphorePermit<'_>> = None;
    while let Some(piece) = next_piece(&mut body).await? {
        if whole.len() + piece.len() > MOST_BYTES {
            return Err(too_large());
        }
        whole.extend_from_slice(&piece);
        if place.is_none() && whole.len() > LARGE_BYTES {
            place = large.acquire().await.ok();
        }
    }
    Ok(whole)
}
