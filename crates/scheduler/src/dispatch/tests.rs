use webfill_wire::{AddressBounds, Delivery, Lane, SiteClock};

use super::*;
use crate::frontier::{HeldLease, LeaseBatch, Leased, SavedSupervisor, SiteDue, SiteRule, Turn};

mod deferral;
mod granting;
mod groups;
mod handover;
mod lanes;
mod large_fleet;
mod machines;
mod on_demand;
mod sessions;

const NOW: i64 = 1_000_000;
const LEASE_MS: i64 = 10_000;
const LONGEST_REQUEST_MS: u64 = 60_000;

fn dispatch(supervisors: &[(&str, u64)]) -> Dispatch {
    let mut dispatch = Dispatch::new(15_000, LEASE_MS as u64, None);
    for (name, room) in supervisors {
        join_supervisor(&mut dispatch, name, *room);
    }
    dispatch
}

/// Sends a supervisor's hello, which begins a session. `room`: the tasks that the supervisor accepts.
fn join_supervisor(dispatch: &mut Dispatch, name: &str, room: u64) -> Vec<(TaskId, Lease)> {
    join_supervisor_in_lane(dispatch, name, Lane::Http, room)
}

fn join_supervisor_in_lane(
    dispatch: &mut Dispatch,
    name: &str,
    lane: Lane,
    room: u64,
) -> Vec<(TaskId, Lease)> {
    let mut session = 1;
    while dispatch.fleet.check_hello(&hello(name, session)) == HelloVerdict::Outdated {
        session += 1;
    }
    let hello = Hello {
        credit: credit(room),
        lane,
        ..hello(name, session)
    };
    dispatch.join(&hello, peer(name), NOW)
}

fn hello(name: &str, session: u64) -> Hello {
    Hello {
        supervisor: name.into(),
        instance: 1,
        session,
        sent_ms: 0,
        lane: Lane::Http,
        workers: 1,
        longest_request_ms: LONGEST_REQUEST_MS,
        credit: credit(0),
        held: Vec::new(),
    }
}

fn heartbeat(session: u64, sent_ms: u64, room: u64) -> SupervisorHeartbeat {
    SupervisorHeartbeat {
        wall_ms: 0,
        session,
        sent_ms,
        credit: credit(room),
        received: 0,
        outcomes_sent: 0,
    }
}

/// Sends a heartbeat of the first session that confirms no message. Returns whether it is in sync.
fn send_heartbeat(dispatch: &mut Dispatch, name: &str, now_ms: i64) -> bool {
    let heard = dispatch.on_heartbeat(&peer(name), &heartbeat(1, 0, 1_000), now_ms);
    matches!(heard, HeartbeatReply::InSync { .. })
}

/// Sends heartbeats that keep the lease in force up to this time.
fn keep_lease_until(dispatch: &mut Dispatch, name: &str, until_ms: i64) -> bool {
    let (_, over_ms) = dispatch.fleet.lease_end(&peer(name)).unwrap();
    let before = (over_ms - LEASE_MS..until_ms).step_by(LEASE_MS as usize / 2);
    before.for_each(|at_ms| assert!(send_heartbeat(dispatch, name, at_ms)));
    send_heartbeat(dispatch, name, until_ms)
}

fn peer(name: &str) -> Caller {
    Caller::with_this_version(name.as_bytes().to_vec())
}

fn credit(tasks: u64) -> Credit {
    Credit {
        tasks,
        url_bytes: 1_000_000,
    }
}

fn site(id: i64, due_at_ms: i64, owner: Option<&str>) -> SiteDue {
    SiteDue {
        id: SiteId(id),
        name: format!("site-{id}.example"),
        clock: Clock {
            due_at_ms,
            delay_ms: Some(15_000),
            last_start_ms: None,
            owner: owner.map(str::to_owned),
            address: None,
        },
        rule: SiteRule::default(),
        backoff_until_ms: None,
        is_unreachable: false,
        queued: 10,
        next: Some(turn(50)),
    }
}

fn turn(priority: u8) -> Turn {
    Turn {
        priority,
        crawl: 1,
        lane: Lane::Http,
    }
}

fn leased_task(task: TaskId, priority: u8) -> Leased {
    Leased {
        attrs: None,
        task,
        delivery: Delivery::new(0, 1),
        crawl: 1,
        url: "http://a.example/12345".into(),
        depth: 0,
        priority,
        parent: None,
        records: Vec::new(),
        deaths: 0,
        failed_attempts: Vec::new(),
        unreachable: None,
    }
}

fn batch(tasks: &[Leased], left: u64, next: Option<Turn>) -> LeaseBatch {
    LeaseBatch {
        tasks: tasks.to_vec(),
        left,
        next,
        nothing: None,
    }
}

/// Hands out one task under the next grant. Returns the supervisor and the site.
fn hand_out_one(dispatch: &mut Dispatch, now_ms: i64) -> Option<(String, i64)> {
    let grant = dispatch.next_grant(now_ms)?;
    let task = grant.site.0 as u64 * 100 + now_ms as u64 % 100;
    dispatch.record_grant(&grant, &batch(&[leased_task(task, 50)], 9, Some(turn(50))));
    Some((grant.supervisor, grant.site.0))
}
