//! Live pages: server-sent events for the overview and for a crawl. Each event has the complete content, so that a
//! visitor who missed some (a laptop that slept, a broken connection) is up to date with the next one.
//!
//! Each listener gets its own version of the page part, by its rights. The data of the overview are read once for all
//! ([`crate::snapshot`]). A listener whose session has ended gets no more events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use webfill_service::http::Answer;

use crate::answer::{Problem, Shown, streaming_body};
use crate::snapshot::now_ms;
use crate::views::{crawl, overview};
use crate::visit::Visit;

/// How often pages are checked for changes: the overview, which is read once for all listeners, and a crawl, which is
/// read for each listener.
const EVERY: Duration = Duration::from_secs(2);
const CRAWL_EVERY: Duration = Duration::from_secs(5);

/// If nothing has changed for this long, a heartbeat is sent to show that the connection works.
const BEAT: Duration = Duration::from_secs(10);

/// After this time, a stream of events ends. Browsers reconnect by themselves.
const LASTS: Duration = Duration::from_secs(3_600);

/// A part of a page that is updated by events.
pub(crate) enum Part {
    Overview,
    /// A crawl, by its application's id and its own id.
    Crawl(String, String),
}

impl Part {
    /// The live part whose events are at this path.
    pub(crate) fn from_path(parts: &[&str]) -> Option<Part> {
        match parts {
            ["live"] => Some(Part::Overview),
            ["crawl", app, id, "live"] => Some(Part::Crawl((*app).into(), (*id).into())),
            _ => None,
        }
    }

    /// The present HTML of the part, the number of the reading that it shows, and the time of that reading in
    /// milliseconds.
    async fn read(&self, visit: &Visit) -> Result<(String, u64, i64), Problem> {
        match self {
            Part::Overview => {
                let snapshot = overview::snapshot_for(visit).await;
                let html = overview::render_live_part(visit, &snapshot);
                Ok((html, snapshot.number, snapshot.at_ms))
            }
            Part::Crawl(app, id) => {
                let html = crawl::render_live_part(visit, app, id).await?;
                let at_ms = now_ms();
                Ok((html, at_ms.unsigned_abs(), at_ms))
            }
        }
    }

    fn interval(&self) -> Duration {
        match self {
            Part::Overview => EVERY,
            Part::Crawl(..) => CRAWL_EVERY,
        }
    }
}

pub(crate) fn open_stream(visit: Visit, part: Part) -> Shown {
    if let Part::Crawl(app, _) = &part {
        visit.require_app(app)?;
    }
    let permits = Arc::clone(&visit.dashboard.listeners);
    let permit = permits.try_acquire_owned().map_err(|_| {
        Problem::unavailable("too many live pages are open: reload this one for current numbers")
    })?;
    let (events, body) = mpsc::channel(1);
    tokio::spawn(send_events(visit, part, events, permit));
    let mut answer: Answer = Response::new(streaming_body(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Sends events to one listener, until one cannot be delivered because the listener is gone.
async fn send_events(
    visit: Visit,
    part: Part,
    events: mpsc::Sender<Bytes>,
    _permit: OwnedSemaphorePermit,
) {
    let began = Instant::now();
    let mut shown = String::new();
    let mut last_sent = began;
    while visit.is_session_valid() && began.elapsed() < LASTS {
        let (now, number, at_ms) = match part.read(&visit).await {
            Ok(read) => read,
            // The crawl was dropped, so its page does not change any more. The browser is asked not to reconnect.
            Err(problem) if problem.status == 404 => {
                let _ = events.send("event: gone\ndata: 0\n\n".into()).await;
                return;
            }
            Err(_) => return,
        };
        let event = if now != shown {
            shown = now;
            let data = json!({"html": shown, "at": at_ms});
            Some(format!("event: snapshot\nid: {number}\ndata: {data}\n\n"))
        } else if last_sent.elapsed() >= BEAT {
            Some(format!("event: beat\ndata: {at_ms}\n\n"))
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
            () = tokio::time::sleep(part.interval()) => {}
        }
    }
}
