//! What is told again as it was found, for a moment, however many ask. It is found out anew as soon as
//! somebody has changed something.

use std::collections::BTreeMap;

use crate::core::Core;
use crate::frontier::{AtMost, FrontierError, FrontierTally};

/// How long it is told again.
const APPLICATIONS_FOR_MS: i64 = 2_000;
const TALLY_FOR_MS: i64 = 250;

/// So many applications are kept.
const MOST_APPLICATIONS: usize = 100;

#[derive(Debug, Default)]
pub(in crate::core) struct ToldAgain {
    tally: Option<(i64, FrontierTally)>,
    applications: BTreeMap<String, (i64, OfApplication)>,
}

/// What takes a look at many sites of an application.
#[derive(Debug, Clone)]
pub(super) struct OfApplication {
    pub(super) sites: AtMost,
    pub(super) waiting_for: Option<String>,
}

impl ToldAgain {
    pub(super) fn forget(&mut self) {
        *self = ToldAgain::default();
    }
}

fn is_recent(at_ms: i64, for_ms: i64, now_ms: i64) -> bool {
    (0..for_ms).contains(&(now_ms - at_ms))
}

impl Core {
    /// The counters of all crawls.
    pub(super) fn tally_told(&mut self, now_ms: i64) -> Result<FrontierTally, FrontierError> {
        if let Some((at_ms, tally)) = self.told_again.tally
            && is_recent(at_ms, TALLY_FOR_MS, now_ms)
        {
            return Ok(tally);
        }
        let tally = self.frontier.tally()?;
        self.told_again.tally = Some((now_ms, tally));
        Ok(tally)
    }

    pub(super) fn application_told(
        &mut self,
        app_id: &str,
        now_ms: i64,
    ) -> Result<OfApplication, FrontierError> {
        if let Some((at_ms, told)) = self.told_again.applications.get(app_id)
            && is_recent(*at_ms, APPLICATIONS_FOR_MS, now_ms)
        {
            return Ok(told.clone());
        }
        let told = OfApplication {
            sites: self.frontier.pending_sites_of(app_id)?,
            waiting_for: self.awaited_by_application(app_id, now_ms)?,
        };
        let kept = &mut self.told_again.applications;
        if kept.len() >= MOST_APPLICATIONS {
            kept.clear();
        }
        kept.insert(app_id.to_owned(), (now_ms, told.clone()));
        Ok(told)
    }
}
