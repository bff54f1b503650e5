//! Reads the claim that `webfill crawl` holds on its crawl and renews regularly. Once the claim has lapsed, another
//! process may take over the crawl, so this supervisor requests nothing.

use webfill_service::claim_file::ClaimFile;

/// The reason shown to people after the claim has lapsed.
const LAPSED: &str =
    "the claim to the crawl is not renewed: webfill crawl is suspended, or cannot reach the store";

/// The claim of `webfill crawl`, as last read from its file.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The file of the claim; `None` in a fleet, because its crawls need no claims.
    file: Option<ClaimFile>,
    until_ms: u64,
    is_in_force: bool,
}

impl Claim {
    /// Creates a claim that is valid only after its file was read.
    pub(crate) fn new(file: Option<ClaimFile>) -> Claim {
        let until_ms = if file.is_some() { 0 } else { u64::MAX };
        Claim {
            file,
            until_ms,
            is_in_force: true,
        }
    }

    /// Reads and returns when the claim ends. A failed read keeps the earlier time.
    pub(crate) fn read(&mut self) -> Option<u64> {
        let file = self.file.as_ref()?;
        if let Some(until_ms) = file.read() {
            self.until_ms = until_ms;
        }
        Some(self.until_ms)
    }

    /// Returns why nothing may be requested; `None` while the claim is valid. Logs when the claim lapses and when it is
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
