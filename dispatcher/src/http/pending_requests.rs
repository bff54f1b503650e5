//! Questions that wait for the dispatcher's loop, and its answers on their way back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::control::Asked;
use crate::outgoing::Client;
use crate::request_reader::ClientRequest;

/// Shared by the thread that asks and the loop that answers.
#[derive(Clone)]
pub(crate) struct PendingRequests {
    open: Arc<Mutex<Open>>,
    on_request: Arc<dyn Fn(ClientRequest) + Send + Sync>,
}

#[derive(Default)]
struct Open {
    last: u64,
    answers: HashMap<u64, oneshot::Sender<Value>>,
}

/// A question that is given up is forgotten.
struct Asking<'a> {
    pending_requests: &'a PendingRequests,
    number: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.pending_requests.open().answers.remove(&self.number);
    }
}

impl PendingRequests {
    pub(crate) fn new(
        on_request: impl Fn(ClientRequest) + Send + Sync + 'static,
    ) -> PendingRequests {
        PendingRequests {
            open: Arc::default(),
            on_request: Arc::new(on_request),
        }
    }

    /// Hands the loop's answer to whoever has asked.
    pub(crate) fn answer(&self, number: u64, answer: Value) {
        if let Some(asking) = self.open().answers.remove(&number) {
            // Who has gone needs no answer.
            let _ = asking.send(answer);
        }
    }

    /// The loop has ended: nobody is to wait for it. Returns whether somebody did.
    pub(crate) fn forget_all(&self) -> bool {
        let mut open = self.open();
        !std::mem::take(&mut open.answers).is_empty()
    }

    /// Asks the loop; `None` if it has ended.
    pub(super) async fn ask(&self, asked: Asked) -> Option<Value> {
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut open = self.open();
            open.last += 1;
            let number = open.last;
            open.answers.insert(number, sender);
            number
        };
        let _asking = Asking {
            pending_requests: self,
            number,
        };
        (self.on_request)(ClientRequest::read(Client::Http(number), Ok(asked)));
        answer.await.ok()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
