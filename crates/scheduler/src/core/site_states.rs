//! Keeps the store's copy of the states of sites in trouble up to date: in batches, one at a time, as fast as the
//! store takes them.

use webfill_store::{SitePhase, SiteState};

use crate::core::context::Context;
use crate::effects::{SiteStatesWrite, StoreWrite};
use crate::frontier::{FrontierError, SiteReport, UnsavedState};
use crate::site_state::{Phase, UNTIL_WOKEN_MS};

/// How often changed states are written.
const STATES_EVERY_MS: i64 = 500;

/// The maximum number of states in one batch.
const STATES_AT_ONCE: usize = 500;

/// How far states were passed to the store writer, and when to pass on the next.
#[derive(Debug, Default)]
pub(super) struct SiteStateWrites {
    next_ms: i64,
    /// The number of the last state that was handed to the store writer.
    taken_to: i64,
    /// Whether the store writer is busy with a batch.
    is_out: bool,
}

impl SiteStateWrites {
    /// Passes the next batch to the store writer, if it is time and the writer has none.
    pub(super) fn write_due_site_states(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        if self.is_out || now_ms < self.next_ms {
            return Ok(());
        }
        self.next_ms = now_ms + STATES_EVERY_MS;
        self.write_site_states(cx, now_ms)
    }

    pub(super) fn write_site_states(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let after = self.taken_to;
        let unsaved = cx
            .frontier
            .site_states()
            .list_unsaved(after, STATES_AT_ONCE)?;
        let Some(last) = unsaved.last().map(|one| one.number) else {
            return Ok(());
        };
        self.taken_to = last;
        self.is_out = true;
        let write = build_site_states_write(unsaved, last, now_ms);
        cx.store_writes.push(StoreWrite::SiteStates(write));
        Ok(())
    }

    /// Notes that the store has the states up to this number.
    pub(super) fn on_site_states_written(
        &mut self,
        cx: &mut Context,
        last: i64,
    ) -> Result<(), FrontierError> {
        self.is_out = false;
        cx.frontier.site_states().delete_notes_up_to(last)
    }
}

fn build_site_states_write(unsaved: Vec<UnsavedState>, last: i64, now_ms: i64) -> SiteStatesWrite {
    let (mut in_trouble, mut open) = (Vec::new(), Vec::new());
    for UnsavedState { report, .. } in unsaved {
        match to_store_state(&report, now_ms) {
            Some(state) => in_trouble.push(state),
            None => open.push(report.name),
        }
    }
    SiteStatesWrite {
        in_trouble,
        open,
        last,
    }
}

/// The state in the form of the store; `None` for an open site.
fn to_store_state(report: &SiteReport, now_ms: i64) -> Option<SiteState> {
    let trouble = report.trouble.as_ref()?;
    let (phase, until_ms) = match trouble.phase {
        Phase::Open => return None,
        Phase::BackingOff { until_ms } => (SitePhase::BackingOff, Some(until_ms)),
        Phase::Unreachable => (SitePhase::Unreachable, None),
    };
    Some(SiteState {
        site: report.name.clone(),
        phase,
        reason: trouble.reason.as_str().to_owned(),
        since_ms: trouble.since_ms,
        until_ms: until_ms.filter(|until_ms| *until_ms < UNTIL_WOKEN_MS),
        url: trouble.evidence.url.clone(),
        status_code: trouble.evidence.status_code,
        sign: trouble.evidence.sign.clone(),
        updated_at_ms: now_ms,
    })
}
