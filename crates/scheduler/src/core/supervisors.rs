//! The supervisors: they join (hello), renew their leases (heartbeat), leave (goodbye) or are lost
//! (silence).

use webfill_wire::{
    DispatcherToSupervisor, Hello, Lane, MappingsVersion, ReturnCause, SupervisorHeartbeat,
    SupervisorToDispatcher, TaskReturned,
};

use super::requests::drain::DrainEnd;
use crate::caller::Caller;
use crate::core::context::Context;
use crate::core::requests::drain::Drains;
use crate::core::{machines, outcomes, recalls, requests::drain};
use crate::dispatch::{HeartbeatReply, HelloVerdict, Lease};
use crate::frontier::{FrontierError, SavedSupervisor, TaskId};
use crate::mappings::Mappings;

pub(super) fn handle_supervisor_message(
    cx: &mut Context,
    drains: &mut Drains,
    peer: &Caller,
    message: SupervisorToDispatcher,
    now_ms: i64,
) -> Result<(), FrontierError> {
    cx.counters.messages.received += 1;
    match message {
        SupervisorToDispatcher::Hello(hello) => {
            return handle_hello(cx, drains, peer, &hello, now_ms);
        }
        SupervisorToDispatcher::Heartbeat(beat) => answer_heartbeat(cx, peer, &beat, now_ms),
        SupervisorToDispatcher::Credit { session, credit } => {
            cx.dispatch.on_credit(peer, session, credit, now_ms);
        }
        SupervisorToDispatcher::Goodbye {
            session,
            outcomes_sent,
        } => {
            cx.dispatch
                .fleet
                .begin_leaving(peer, session, outcomes_sent, now_ms);
            return remove_gone_supervisors(cx, drains, now_ms);
        }
        SupervisorToDispatcher::AskMappings { session, mappings } => {
            send_mappings_if_current(cx, peer, session, &mappings);
        }
        SupervisorToDispatcher::Report(report) => {
            cx.dispatch.fleet.note_report(peer, report, now_ms);
        }
    }
    Ok(())
}

/// Notes the address of a supervisor that has said hello.
pub(super) fn note_address_of(cx: &mut Context, peer: &Caller, address: String) {
    cx.dispatch.fleet.note_address(peer, address);
}

fn handle_hello(
    cx: &mut Context,
    drains: &mut Drains,
    peer: &Caller,
    hello: &Hello,
    now_ms: i64,
) -> Result<(), FrontierError> {
    if cx.seconds_until_admission(now_ms) > 0 {
        // The hello gets no answer, because an answer would prolong the supervisor's lease, and the supervisor may hold
        // tasks of the former dispatcher under this lease.
        return Ok(());
    }
    match cx.dispatch.fleet.check_hello(hello) {
        HelloVerdict::Joins => join_and_welcome(cx, drains, peer, hello, now_ms),
        HelloVerdict::Outdated => Ok(()),
        HelloVerdict::NameTaken => {
            let refusal = format!("name taken {}", hello.supervisor);
            if cx.surroundings.refusals.record_if_new(&refusal) {
                tracing::warn!(
                    event = "name_taken",
                    supervisor = hello.supervisor,
                    "a second supervisor of this name must wait until the first is gone"
                );
            }
            let session = hello.session;
            cx.send_to_supervisor(peer, DispatcherToSupervisor::NameTaken { session });
            Ok(())
        }
    }
}

fn join_and_welcome(
    cx: &mut Context,
    drains: &mut Drains,
    peer: &Caller,
    hello: &Hello,
    now_ms: i64,
) -> Result<(), FrontierError> {
    tracing::info!(
        event = "supervisor_joined",
        supervisor = hello.supervisor,
        version = peer.version,
        lane = hello.lane.as_str(),
        workers = hello.workers,
        held = hello.held.len(),
        "supervisor joined"
    );
    cx.frontier.supervisors().save(&SavedSupervisor {
        name: hello.supervisor.clone(),
        instance: hello.instance,
        longest_request_ms: hello.longest_request_ms,
        silent_ms: 0,
    })?;
    let lost = cx.dispatch.join(hello, peer.clone(), now_ms);
    return_leases(cx, lost, now_ms)?;
    update_browser_lane(cx);
    let welcome = DispatcherToSupervisor::Welcome {
        session: hello.session,
        heard_ms: hello.sent_ms,
        lease_ms: cx.settings.lease_ms,
        mappings: cx.mappings.version.clone(),
    };
    cx.send_to_supervisor(peer, welcome);
    recalls::resend_recalls(cx, &hello.supervisor);
    if cx.draining {
        cx.dispatch.fleet.drain_all_supervisors();
        cx.send_to_supervisor(peer, DispatcherToSupervisor::Drain);
    } else if drains.is_draining(&hello.supervisor) {
        drain::send_drain(cx, &hello.supervisor);
    }
    Ok(())
}

/// Sends a set of mappings to a supervisor that lacks it. If the set is no longer in force, nothing is sent: a message
/// about the next set is on its way.
fn send_mappings_if_current(
    cx: &mut Context,
    peer: &Caller,
    session: u64,
    wanted: &MappingsVersion,
) {
    if !cx.dispatch.fleet.is_in_session(peer, session) {
        cx.send_to_supervisor(peer, DispatcherToSupervisor::SayHello { session });
    } else if *wanted == cx.mappings.version {
        let Mappings { version, sources } = cx.mappings.clone();
        let message = DispatcherToSupervisor::Mappings {
            session,
            version,
            sources,
        };
        cx.send_to_supervisor(peer, message);
    }
}

fn answer_heartbeat(cx: &mut Context, peer: &Caller, beat: &SupervisorHeartbeat, now_ms: i64) {
    let session = beat.session;
    let ahead_ms = machines::clock_ahead_ms(cx, peer);
    let answer = match cx.dispatch.on_heartbeat(peer, beat, now_ms) {
        HeartbeatReply::InSync {
            heard_ms,
            outcomes_heard,
        } => {
            recalls::extend_recall_deadlines(cx, peer, beat.received);
            machines::warn_if_clock_differs(cx, peer, ahead_ms);
            DispatcherToSupervisor::Heartbeat {
                session,
                heard_ms,
                outcomes_heard,
            }
        }
        HeartbeatReply::OutOfSync => DispatcherToSupervisor::SayHello { session },
    };
    cx.send_to_supervisor(peer, answer);
}

/// Notes in the frontier whether a supervisor of the lane `browser` is connected.
fn update_browser_lane(cx: &mut Context) {
    let browsers = cx.dispatch.fleet.has_lane(Lane::Browser);
    cx.frontier.releases().set_has_browsers(browsers);
}

/// After a start: restores the leases of the frontier's last commit.
pub(super) fn restore_leases(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    let supervisors = cx.frontier.supervisors().all()?;
    let sites = cx.frontier.sites().admit_leased()?;
    let leases = cx.frontier.tasks().leases()?;
    let ownerless = cx
        .dispatch
        .restore_leases(supervisors, sites, leases, now_ms);
    return_leases(cx, ownerless, now_ms)
}

/// Takes back leases that their supervisor no longer holds, or whose supervisor has left or is lost.
fn return_leases(
    cx: &mut Context,
    leases: Vec<(TaskId, Lease)>,
    now_ms: i64,
) -> Result<(), FrontierError> {
    for (task, lease) in leases {
        let returned = TaskReturned {
            task,
            delivery: lease.delivery,
            cause: ReturnCause::WorkerDied,
            clock: None,
            address: None,
        };
        outcomes::handle_returned_task(cx, returned, now_ms)?;
    }
    Ok(())
}

pub(super) fn remove_gone_supervisors(
    cx: &mut Context,
    drains: &mut Drains,
    now_ms: i64,
) -> Result<(), FrontierError> {
    for name in cx.dispatch.fleet.departed_supervisors(now_ms) {
        tracing::info!(
            event = "supervisor_left",
            supervisor = name,
            "supervisor left"
        );
        remove_supervisor(cx, drains, &name, DrainEnd::Left, now_ms)?;
    }
    for name in cx.dispatch.fleet.lost_supervisors(now_ms) {
        cx.counters.supervisors_lost += 1;
        tracing::error!(
            event = "supervisor_lost",
            supervisor = name,
            "a supervisor is lost: its tasks go to others"
        );
        remove_supervisor(cx, drains, &name, DrainEnd::Lost, now_ms)?;
    }
    Ok(())
}

/// Reports supervisors that have fallen silent, before they are lost. Their sites without leased tasks get other owners
/// now. Sites with leased tasks keep their owners, because requests to them may still be in flight.
pub(super) fn report_silent_supervisors(cx: &mut Context, now_ms: i64) {
    for (name, lost_ms) in cx.dispatch.release_newly_silent(now_ms) {
        tracing::warn!(
            event = "supervisor_silent",
            supervisor = name,
            sites = cx.dispatch.schedule.count_owned_by(&name),
            leased = cx.dispatch.leases.count_held_by(&name),
            lost_in_s = (lost_ms - now_ms) / 1_000,
            "a supervisor is silent: its idle sites go to others now, its tasks when it is lost"
        );
        cx.window.next_site_ms = Some(now_ms);
    }
}

/// Stores how long supervisors from before the start have been silent, so that they are found lost in the end even if
/// the dispatcher is restarted often.
pub(super) fn save_silences(cx: &mut Context, now_ms: i64) -> Result<(), FrontierError> {
    for (name, silent_ms) in cx.dispatch.fleet.awaited_silences(now_ms) {
        cx.frontier.supervisors().save_silence(&name, silent_ms)?;
    }
    Ok(())
}

fn remove_supervisor(
    cx: &mut Context,
    drains: &mut Drains,
    name: &str,
    gone: DrainEnd,
    now_ms: i64,
) -> Result<(), FrontierError> {
    drains.on_supervisor_gone(cx, name, gone);
    recalls::stop_awaiting(cx, name);
    let leases = cx.dispatch.remove_supervisor(name);
    return_leases(cx, leases, now_ms)?;
    update_browser_lane(cx);
    cx.frontier.supervisors().delete(name)
}
