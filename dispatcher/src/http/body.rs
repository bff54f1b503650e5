//! Reads request bodies up to a size limit. Larger ones are refused with a JSON answer.

use hyper::body::Incoming;
use tokio::sync::Semaphore;
use webfill_service::http::body::{self, BodyFault};

use super::answers::{Answer, refusal_answer};

/// The maximum size of a body that is read as a whole, which is also the maximum of a frame on the control socket.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// Reads the whole body.
pub(super) async fn read_whole(body: Incoming, large: &Semaphore) -> Result<Vec<u8>, Answer> {
    let read = body::read_whole(body, MOST_BYTES, large).await;
    read.map_err(refusal)
}

pub(super) fn refusal(fault: BodyFault) -> Answer {
    let advice = match fault {
        BodyFault::TooLarge { .. } => ": send it in parts, or as JSON lines",
        BodyFault::TooSlow | BodyFault::BrokenOff => "",
    };
    refusal_answer(fault.status(), &format!("{fault}{advice}"))
}
