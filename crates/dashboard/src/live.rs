//! The live overview: server-sent events. Each event has the complete content, so that a visitor who missed some (a
//! laptop that slept, a broken connection) is up to date with the next one.
//!
//! Each listener gets its own version of the page part, by its rights. The data are read once for all
//! ([`crate::snapshot`]). A listener whose session has ended gets no more events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use webfill_service::http::Answer;

use crate::answer::{Problem, Shown, streamed};
use crate::views::overview;
use crate::visit::Visit;

/// The time between checks for changes.
const EVERY: Duration = Duration::from_secs(2);

/// The time without changes after which a heartbeat is sent.
const BEAT: Duration = Duration::from_secs(10);

/// The lifetime of a stream. Browsers reconnect by themselves.
const LASTS: Duration = Duration::from_secs(3_600);

pub(crate) fn listen(visit: Visit) -> Shown {
    let permits = Arc::clone(&visit.dashboard.listeners);
    let permit = permits.try_acquire_owned().map_err(|_| {
        Problem::away("too many live pages are open: reload this one for current numbers")
    })?;
    let (events, body) = mpsc::channel(1);
    tokio::spawn(send_events(visit, events, permit));
    let mut answer: Answer = Response::new(streamed(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Sends events to one listener until it has gone, which shows when an event cannot be delivered.
async fn send_events(visit: Visit, events: mpsc::Sender<Bytes>, _permit: OwnedSemaphorePermit) {
    let began = Instant::now();
    let mut shown = String::new();
    let mut last_sent = began;
    while visit.still_holds() && began.elapsed() < LASTS {
        let snapshot = overview::snapshot_for(&visit).await;
        let now = overview::part(&visit, &snapshot);
        let event = if now != shown {
            shown = now;
            let data = json!({"html": shown, "at": snapshot.at_ms});
            Some(format!(
                "event: snapshot\nid: {}\ndata: {data}\n\n",
                snapshot.number
            ))
        } else if last_sent.elapsed() >= BEAT {
            Some(format!("event: beat\ndata: {}\n\n", snapshot.at_ms))
        } else {
            None
        };
        if let Some(event) = event {
            last_sent = Instant::now();
            if events.send(event.into()).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = events.closed() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}
