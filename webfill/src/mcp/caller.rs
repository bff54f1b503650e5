//! The agent that waits for an answer, and is notified of progress if it asked for that.

use std::time::{Duration, Instant};

use rmcp::Peer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::watch;

/// The least time between two notifications of progress.
const EVERY: Duration = Duration::from_secs(1);

/// The longest wait for the end of something, in seconds.
const LONGEST_WAIT: u64 = 600;

pub struct Caller {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    /// Notifications so far; the protocol wants a number that grows, and ours may fall as links are found.
    sent: u32,
    last: Option<Instant>,
    closing: watch::Receiver<bool>,
}

impl Caller {
    pub fn new(context: &RequestContext<RoleServer>, closing: watch::Receiver<bool>) -> Caller {
        Caller {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token(),
            sent: 0,
            last: None,
            closing,
        }
    }

    /// Reports how far the work is, at most once a second.
    pub async fn report(&mut self, progress: String) {
        let Some(token) = &self.token else { return };
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.sent += 1;
        self.last = Some(Instant::now());
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(self.sent))
            .with_message(progress);
        // A client that has gone needs none.
        let _ = self.peer.notify_progress(progress).await;
    }

    /// When a wait of this many seconds is over.
    pub fn deadline(seconds: u64) -> tokio::time::Instant {
        tokio::time::Instant::now() + Duration::from_secs(seconds.min(LONGEST_WAIT))
    }

    /// Waits for something until the deadline; `None` if it did not come, or the client has closed its end.
    pub async fn wait<T>(
        &mut self,
        deadline: tokio::time::Instant,
        what: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            came = what => Some(came),
            () = tokio::time::sleep_until(deadline) => None,
            () = closed(&mut self.closing) => None,
        }
    }
}

async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}
