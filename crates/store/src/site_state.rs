//! The state of a failing site: a copy of the dispatcher's own file, for users' queries. The last dispatcher to write
//! wins.

use std::fmt;
use std::str::FromStr;

/// The state of a site in trouble. Other sites have no state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteState {
    pub site: String,
    pub phase: SitePhase,
    /// The stable name of the reason.
    pub reason: String,
    /// When the current backoff began, or when the site became unreachable.
    pub since_ms: i64,
    /// When the backoff ends; `None` for an unreachable site, and for one that backs off until it is resumed manually.
    pub until_ms: Option<i64>,
    /// The evidence: the requested URL, the status of the answer, and the finding.
    pub url: String,
    pub status_code: Option<u16>,
    pub sign: String,
    pub updated_at_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SitePhase {
    BackingOff,
    Unreachable,
}

impl SitePhase {
    /// The stable name, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            SitePhase::BackingOff => "backing_off",
            SitePhase::Unreachable => "unreachable",
        }
    }
}

impl fmt::Display for SitePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SitePhase {
    type Err = String;

    fn from_str(text: &str) -> Result<SitePhase, String> {
        [SitePhase::BackingOff, SitePhase::Unreachable]
            .into_iter()
            .find(|phase| phase.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no state of a site in trouble"))
    }
}
