//! Faults of processes, of the network between them, and of the connections from machines to the web.

use webfill_wire::Outcome;

use crate::dice::Dice;
use crate::request::Response;

/// How messages travel between supervisors and the dispatcher. For example, one in `loss_once_in` messages is lost.
#[derive(Debug, Clone)]
pub(crate) struct NetworkPlan {
    pub(crate) loss_once_in: u64,
    pub(crate) twice_once_in: u64,
    pub(crate) late_once_in: u64,
    pub(crate) latest_ms: u64,
    pub(crate) reorders: bool,
}

/// A fault that happens to a process or to a connection. `for_ms` and `down_ms` are its duration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    DispatcherDies {
        down_ms: u64,
    },
    SupervisorDies {
        supervisor: usize,
        down_ms: u64,
    },
    /// The supervisor is asked to drain (to finish its tasks and exit), and comes back later.
    SupervisorLeaves {
        supervisor: usize,
        down_ms: u64,
    },
    WorkerDies {
        supervisor: usize,
        slot: u16,
    },
    DispatcherStops {
        for_ms: u64,
    },
    SupervisorStops {
        supervisor: usize,
        for_ms: u64,
    },
    WorkerStops {
        supervisor: usize,
        slot: u16,
        for_ms: u64,
    },
    /// Messages between a supervisor and the dispatcher are lost: upwards to the dispatcher, downwards to the
    /// supervisor, or both.
    Offline {
        supervisor: usize,
        up: bool,
        down: bool,
        for_ms: u64,
    },
    /// The connection to the dispatcher breaks and is made again. All messages in transit are lost.
    Reconnects {
        supervisor: usize,
    },
    /// The wall clock of the dispatcher's machine is set this far ahead of the true time.
    ClockIsSet {
        ahead_ms: i64,
    },
    /// The machine loses its connection to the web, so the requests of its workers reach no site.
    LosesWay {
        supervisor: usize,
        loss: EgressFailure,
        for_ms: u64,
    },
    /// Another supervisor with the same name starts on another machine.
    Namesake {
        supervisor: usize,
        for_ms: u64,
    },
}

impl NetworkPlan {
    pub(crate) fn draw(dice: &mut Dice, lease_ms: u64) -> NetworkPlan {
        NetworkPlan {
            loss_once_in: dice.one_of(&[0, 0, 1_000, 50]),
            twice_once_in: dice.one_of(&[0, 100]),
            late_once_in: dice.one_of(&[0, 0, 300]),
            latest_ms: dice.log_uniform(100, 3 * lease_ms),
            reorders: dice.once_in(3),
        }
    }

    pub(crate) fn perfect() -> NetworkPlan {
        NetworkPlan {
            loss_once_in: 0,
            twice_once_in: 0,
            late_once_in: 0,
            latest_ms: 0,
            reorders: false,
        }
    }
}

/// How requests fail on a machine that has lost its connection to the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EgressFailure {
    /// The operating system has no route to the web.
    NoRoute,
    /// The name servers do not answer.
    NoNames,
    /// Requests leave the machine, but get no answer.
    Silence,
}

/// How long a name look-up waits for an answer.
const NAMES_ARE_AWAITED_MS: u64 = 5_000;

impl EgressFailure {
    /// The result of a request, as a worker sees it.
    pub(crate) fn response(self) -> Response {
        let (outcome, error, no_route) = match self {
            EgressFailure::NoRoute => (Outcome::NetworkError, "Network is unreachable", true),
            EgressFailure::NoNames => (Outcome::DnsError, "no answer within 5 s", true),
            EgressFailure::Silence => (Outcome::Timeout, "no answer in time", false),
        };
        Response {
            error: Some(error.to_owned()),
            no_route,
            is_lost: true,
            ..Response::without_answer(outcome)
        }
    }

    /// The time until a request fails.
    pub(crate) fn takes_ms(self, longest_request_ms: u64) -> u64 {
        match self {
            EgressFailure::NoRoute => 1,
            EgressFailure::NoNames => NAMES_ARE_AWAITED_MS.min(longest_request_ms),
            EgressFailure::Silence => longest_request_ms,
        }
    }
}

/// Whether a task may have this outcome if its machine had no connection to the web.
pub(crate) fn is_failure(outcome: &str) -> bool {
    [
        "network_error",
        "dns_error",
        "timeout",
        "robots_unreachable",
    ]
    .contains(&outcome)
}
