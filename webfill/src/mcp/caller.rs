//! The agent that waits for an answer. If it has requested progress, it is notified of it.

use std::time::{Duration, Instant};

use rmcp::Peer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::watch;

/// The shortest time between two notifications of progress.
const EVERY: Duration = Duration::from_secs(1);

/// The longest time that a call may wait for the end of a run or a crawl, in seconds.
const LONGEST_WAIT: u64 = 600;

pub struct Caller {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    /// The number of notifications that were sent. It serves as the progress number, because the protocol requires a
    /// number that grows. The real progress may decrease when links are found.
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

    /// Reports the progress of the work, at most once a second.
    pub async fn report_progress(&mut self, progress: String) {
        let Some(token) = &self.token else { return };
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.sent += 1;
        self.last = Some(Instant::now());
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(self.sent))
            .with_message(progress);
        // An error means that the client has gone, so it needs no notification.
        let _ = self.peer.notify_progress(progress).await;
    }

    /// When a wait of this many seconds ends.
    pub fn deadline(seconds: u64) -> tokio::time::Instant {
        tokio::time::Instant::now() + Duration::from_secs(seconds.min(LONGEST_WAIT))
    }

    /// Waits for a future until the deadline. `None` if it was not ready by then, or if the client has closed the
    /// connection.
    pub async fn wait<T>(
        &mut self,
        deadline: tokio::time::Instant,
        what: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            came = what => Some(came),
            () = tokio::time::sleep_until(deadline) => None,
            () = wait_until_closed(&mut self.closing) => None,
        }
    }
}

async fn wait_until_closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}
