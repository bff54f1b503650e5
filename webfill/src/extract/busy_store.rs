//! Retries calls of a store that is busy.

use std::time::Duration;

use webfill_service::Fault;
use webfill_store::StoreError;

/// How many times a call is attempted while the store is busy, and the pause before the first retry.
const TRIES: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Retries a call while the store is busy. All pauses together last about twelve seconds.
pub async fn retry_while_busy<R>(
    call: impl AsyncFn() -> Result<R, StoreError>,
) -> Result<R, Fault> {
    let mut pause = FIRST_PAUSE;
    let mut tries = 1;
    loop {
        match call().await {
            Err(error) if error.is_retry() && tries < TRIES => {
                tokio::time::sleep(pause).await;
                pause *= 2;
                tries += 1;
            }
            called => return called.map_err(read_fault),
        }
    }
}

/// Converts an error of reading the store into a fault. Even reading needs some space, so a full disk is fatal.
pub fn read_fault(error: StoreError) -> Fault {
    match error {
        StoreError::NoSpace { .. } => Fault::fatal(error),
        _ => Fault::error(error),
    }
}
