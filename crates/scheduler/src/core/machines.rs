//! Takes back failures that were a machine's fault. When a supervisor's machine turns out to be offline,
//! its failures say nothing about the sites, so their former states are restored. The tasks are queued again and go,
//! with their sites, to other supervisors. If there is no other, everything waits until a probe is answered.

use webfill_wire::{RecallScope, ReturnCause, TaskDone, TaskReturned};

use crate::caller::Caller;
use crate::core::context::Context;
use crate::core::{handing_out, outcomes, recalls};
use crate::dispatch::{MachineFailures, Offline};
use crate::frontier::{FrontierError, SiteHealth};

/// Clock differences between two machines are reported if they exceed this.
const MOST_CLOCK_SKEW_MS: i64 = 10_000;

/// Judges the machine that made an attempt. Returns true if the failure is the machine's fault: then the task was taken
/// back, and the attempt says nothing about its site.
pub(super) fn return_if_machine_failure(
    cx: &mut Context,
    done: &TaskDone,
    now_ms: i64,
) -> Result<bool, FrontierError> {
    let before = match cx.dispatch.site_if_unanswered(done) {
        Some(site) => cx.frontier.site_states().site_health(site)?,
        None => SiteHealth::default(),
    };
    let judgement = cx.dispatch.record_attempt_of_machine(done, before, now_ms);
    if judgement.is_excused {
        let returned = TaskReturned {
            task: done.task,
            delivery: done.delivery,
            cause: ReturnCause::CutShort,
            clock: Some(done.clock),
            address: None,
        };
        outcomes::handle_returned_task(cx, returned, now_ms)?;
    }
    if let Some((supervisor, failures)) = judgement.offline {
        handle_machine_offline(cx, &supervisor, &failures, now_ms)?;
    }
    if let Some(supervisor) = judgement.opened {
        tracing::info!(
            event = "machine_online",
            supervisor,
            "a machine is online again"
        );
        cx.window.next_site_ms = Some(now_ms);
    }
    Ok(judgement.is_excused)
}

/// Handles a machine that is newly offline: its recent failures are retried, and its tasks that have not started are
/// recalled (taken back).
fn handle_machine_offline(
    cx: &mut Context,
    supervisor: &str,
    failures: &MachineFailures,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let sign = cx
        .dispatch
        .fleet
        .offline_state(supervisor)
        .map(|found| found.sign.as_str());
    tracing::warn!(
        event = "machine_offline",
        supervisor,
        sign,
        failed_sites = failures.sites.len(),
        "a machine is offline: its sites go to others, or wait"
    );
    let woken =
        cx.frontier
            .site_states()
            .undo_failures(&failures.tasks, &failures.sites, now_ms)?;
    handing_out::wake_sites(cx, woken);
    cx.window.next_site_ms = Some(now_ms);
    recalls::recall_from(cx, supervisor, &RecallScope::default());
    Ok(())
}

/// How far the wall clock of a supervisor's machine is ahead of the dispatcher's clock, as far as is known.
pub(super) fn clock_ahead_ms(cx: &Context, peer: &Caller) -> i64 {
    let fleet = &cx.dispatch.fleet;
    let name = fleet.name_of(peer);
    name.map_or(0, |name| fleet.wall_clock_ahead_ms(name))
}

/// Warns once when a machine's clock begins to differ from the dispatcher's by more than [`MOST_CLOCK_SKEW_MS`].
pub(super) fn warn_if_clock_differs(cx: &mut Context, peer: &Caller, before_ms: i64) {
    let ahead_ms = clock_ahead_ms(cx, peer);
    let supervisor = cx.dispatch.fleet.name_of(peer);
    if exceeds_skew_newly(before_ms, ahead_ms) {
        tracing::warn!(
            event = "clocks_differ",
            supervisor,
            ahead_ms,
            "the clock of a supervisor's machine differs from the dispatcher's: times in the store are wrong by that much; run NTP on both, then restart the dispatcher if its clock was the wrong one"
        );
    }
}

/// Why no connected supervisor reaches the web, and since when; `None` if one does, or none is connected.
pub(super) fn longest_outage_if_all_offline(cx: &Context) -> Option<&Offline> {
    cx.dispatch.fleet.longest_outage_if_all_offline()
}

fn exceeds_skew_newly(before_ms: i64, ahead_ms: i64) -> bool {
    let differs = |ms: i64| ms.abs() > MOST_CLOCK_SKEW_MS;
    differs(ahead_ms) && !differs(before_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_reported_when_it_begins_to_differ_by_more_than_ten_seconds() {
        for (before_ms, ahead_ms, is_reported) in [
            (0, 10_000, false),
            (0, 10_001, true),
            (0, -10_001, true),
            (10_001, 20_000, false),
            (20_000, -20_000, false),
            (10_000, 20_000, true),
        ] {
            assert_eq!(
                exceeds_skew_newly(before_ms, ahead_ms),
                is_reported,
                "{before_ms} {ahead_ms}"
            );
        }
    }
}
