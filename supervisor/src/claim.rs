//! A supervisor's view of the claim that `webfill crawl` holds on its crawl. Once the claim has lapsed, another
//! process may take over the crawl, so this supervisor requests nothing.

use webfill_service::claim_file::ClaimFile;

/// The reason shown to people while the claim is lapsed.
const LAPSED: &str =
    "the claim to the crawl is not renewed: webfill crawl is suspended, or cannot reach the store";

/// The claim as last read from its file.
#[derive(Debug)]
pub(crate) struct Claim {
    /// `None` in a fleet, because its crawls need no claims.
    file: Option<ClaimFile>,
    until_ms: u64,
    is_in_force: bool,
}

impl Claim {
    /// Creates a claim that comes into force once its file is read.
    pub(crate) fn new(file: Option<ClaimFile>) -> Claim {
        let until_ms = if file.is_some() { 0 } else { u64::MAX };
        Claim {
            file,
            until_ms,
            is_in_force: true,
        }
    }

    /// Reads and returns the time until which the claim is in force. A failed read keeps the earlier time.
    pub(crate) fn read(&mut self) -> Option<u64> {
        let file = self.file.as_ref()?;
        if let Some(until_ms) = file.read() {
            self.until_ms = until_ms;
        }
        Some(self.until_ms)
    }

    /// Returns why nothing may be requested, if the claim is not in force. Logs when the claim lapses and when it is
    /// renewed.
    pub(crate) fn lapse_reason(&mut self, now_ms: u64) -> Option<&'static str> {
        let is_in_force = now_ms < self.until_ms;
        if std::mem::replace(&mut self.is_in_force, is_in_force) != is_in_force {
            match is_in_force {
                true => tracing::info!(event = "claim_renewed", "the claim is renewed: resumed"),
                false => tracing::warn!(event = "claim_lapsed", "paused: {LAPSED}"),
            }
        }
        (!is_in_force).then_some(LAPSED)
    }
}
