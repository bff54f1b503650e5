//! HTTP requests that wait for the dispatcher's loop, and the way its answers get back to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use webfill_api::Refusal;
use webfill_scheduler::control::ControlRequest;
use webfill_scheduler::effects::{Client, HttpAsker};
use webfill_scheduler::requester::{Requester, SenderInfo};
use webfill_wire::keys::Rights;

use crate::permits::{Admission, Permit, SharedPermits, TOO_MUCH};
use crate::request_reader::ClientRequest;

/// The open requests, shared by the HTTP thread and the dispatcher's loop, which answers them.
#[derive(Clone)]
pub(crate) struct PendingRequests {
    open: Arc<Mutex<OpenRequests>>,
    permits: SharedPermits,
    on_request: Arc<dyn Fn(ClientRequest) + Send + Sync>,
}

#[derive(Default)]
struct OpenRequests {
    last: u64,
    answers: HashMap<u64, oneshot::Sender<Value>>,
}

/// A request in progress. It is dropped if the client disconnects; then nothing waits for its answer any more.
struct OpenRequest<'a> {
    pending_requests: &'a PendingRequests,
    number: u64,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.pending_requests
            .lock_open()
            .answers
            .remove(&self.number);
    }
}

impl PendingRequests {
    pub(crate) fn new(
        permits: SharedPermits,
        on_request: impl Fn(ClientRequest) + Send + Sync + 'static,
    ) -> PendingRequests {
        PendingRequests {
            open: Arc::default(),
            permits,
            on_request: Arc::new(on_request),
        }
    }

    /// Passes the loop's answer to the request with this number, if it still waits.
    pub(crate) fn answer(&self, number: u64, answer: Value) {
        if let Some(asking) = self.lock_open().answers.remove(&number) {
            // An error means that the client has disconnected.
            let _ = asking.send(answer);
        }
    }

    /// Whether the request with this number still waits for its answer.
    pub(crate) fn is_waited_for(&self, number: u64) -> bool {
        self.lock_open().answers.contains_key(&number)
    }

    /// Cancels all waits, because the loop has ended. Returns whether there were any.
    pub(crate) fn cancel_all(&self) -> bool {
        let mut open = self.lock_open();
        !std::mem::take(&mut open.answers).is_empty()
    }

    /// Admits a request with a body of this size, or refuses it for now. The HTTP requests of a client are counted
    /// together over all of its connections, and together with the other requests of its key.
    pub(super) fn acquire_permit(
        &self,
        who: &SenderInfo,
        bytes: usize,
    ) -> Result<Arc<Permit>, Refusal> {
        let known_by = who.name.as_ref().or(who.address.as_ref());
        let peer = format!("{}\0{}", who.way.as_str(), known_by.map_or("", |name| name));
        let mut permits = self.permits.lock();
        match permits.admit(&peer.into_bytes(), who.name.as_ref(), bytes) {
            Admission::Taken(permit) => Ok(Arc::new(permit)),
            Admission::Refused(_, why) => Err(Refusal::temporary("$", why)),
            Admission::Unheard => Err(Refusal::temporary("$", TOO_MUCH)),
        }
    }

    /// Sends a request to the loop and waits for the answer; `None` if the loop has ended.
    pub(super) async fn send(
        &self,
        who: SenderInfo,
        rights: Rights,
        asked: ControlRequest,
        permit: Arc<Permit>,
    ) -> Option<Value> {
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut open = self.lock_open();
            open.last += 1;
            let number = open.last;
            open.answers.insert(number, sender);
            number
        };
        let _asking = OpenRequest {
            pending_requests: self,
            number,
        };
        let requester = Requester {
            client: Client::Http(HttpAsker {
                number,
                permit: Some(permit),
            }),
            rights,
            who,
        };
        (self.on_request)(ClientRequest {
            requester,
            asked: Ok(asked),
        });
        answer.await.ok()
    }

    fn lock_open(&self) -> MutexGuard<'_, OpenRequests> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
