//! The claim of `webfill crawl` to its crawl, as its supervisor sees it. While the claim is not renewed, another
//! process may take the crawl over, so nothing is requested.

use webfill_service::claim_file::ClaimFile;

/// Why nothing is requested, in words.
const LAPSED: &str = "the claim to the crawl is not renewed: webfill crawl stands still, or does not reach the store";

/// See the module.
#[derive(Debug)]
pub(crate) struct Claim {
    /// `None` in a fleet, whose crawls are claimed by nobody.
    file: Option<ClaimFile>,
    until_ms: u64,
    is_in_force: bool,
}

impl Claim {
    /// One that is to be read before it is in force.
    pub(crate) fn new(file: Option<ClaimFile>) -> Claim {
        let until_ms = if file.is_some() { 0 } else { u64::MAX };
        Claim {
            file,
            until_ms,
            is_in_force: true,
        }
    }

    /// Reads until when it is in force. What cannot be read changes nothing.
    pub(crate) fn read(&mut self) -> Option<u64> {
        let file = self.file.as_ref()?;
        if let Some(until_ms) = file.read() {
            self.until_ms = until_ms;
        }
        Some(self.until_ms)
    }

    /// Why nothing may be requested now, if the claim is not in force. Logs when it lapses, and when it is renewed.
    pub(crate) fn lapsed(&mut self, now_ms: u64) -> Option<&'static str> {
        let is_in_force = now_ms < self.until_ms;
        if std::mem::replace(&mut self.is_in_force, is_in_force) != is_in_force {
            match is_in_force {
                true => tracing::info!(event = "claim_renewed", "the claim is renewed: going on"),
                false => tracing::warn!(event = "claim_lapsed", "paused: {LAPSED}"),
            }
        }
        (!is_in_force).then_some(LAPSED)
    }
}
