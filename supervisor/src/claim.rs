//! The claim of `webfill crawl` to its crawl, as its supervisor sees it. Once the claim has lapsed, another process
//! may take over the crawl, so nothing is requested.

use webfill_service::claim_file::ClaimFile;

/// The reason why nothing is requested, in words.
const LAPSED: &str =
    "the claim to the crawl is not renewed: webfill crawl is suspended, or cannot reach the store";

/// See the module.
#[derive(Debug)]
pub(crate) struct Claim {
    /// `None` in a fleet, because its crawls need no claims.
    file: Option<ClaimFile>,
    until_ms: u64,
    is_in_force: bool,
}

impl Claim {
    /// A claim that comes into force once it is read.
    pub(crate) fn new(file: Option<ClaimFile>) -> Claim {
        let until_ms = if file.is_some() { 0 } else { u64::MAX };
        Claim {
            file,
            until_ms,
            is_in_force: true,
        }
    }

    /// Reads until when the claim is in force. A failed read changes nothing.
    pub(crate) fn read(&mut self) -> Option<u64> {
        let file = self.file.as_ref()?;
        if let Some(until_ms) = file.read() {
            self.until_ms = until_ms;
        }
        Some(self.until_ms)
    }

    /// If the claim is not in force, the reason why nothing may be requested. Logs when the claim lapses and when it
    /// is renewed.
    pub(crate) fn lapsed(&mut self, now_ms: u64) -> Option<&'static str> {
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
