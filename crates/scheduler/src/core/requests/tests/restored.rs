//! A restored dispatcher waits until no request of the former fleet can be in flight.

use super::*;
use crate::frontier::{Backups, Restoring};

/// The duration of a lease and of a request, and a second for the difference of clocks.
const QUIET_MS: i64 = 40_000;

fn config(backups: Backups) -> FrontierConfig {
    let restoring = Restoring {
        lease_ms: 10_000,
        longest_request_ms: 29_000,
        default_delay_ms: 0,
        backups,
    };
    FrontierConfig {
        restoring: Some(restoring),
        ..FrontierConfig::default()
    }
}

impl Fixture {
    /// Ends the dispatcher and starts another one.
    fn restart_with(&mut self, backups: Backups) {
        self.core = None;
        self.core = Some(open_core_with(&self.dir, self.now_ms, config(backups)));
    }

    fn hold_reason(&self) -> Option<String> {
        self.core.as_ref().unwrap().hold_reason(self.now_ms)
    }
}

#[test]
fn a_restored_dispatcher_lets_nobody_in_before_its_wait_is_over() {
    let mut fixture = fixture();
    fixture.restart_with(Backups::Declared);
    fixture.ask_and_expect_success(&request_with(json!({})));
    let reported = fixture.hold_reason().expect("it says that it waits");
    assert!(reported.contains("40 s"), "{reported}");

    fixture.join_supervisor();
    fixture.now_ms += QUIET_MS - 1;
    fixture.join_supervisor();
    assert_eq!(
        count_sent_to_supervisors(&fixture),
        0,
        "a hello was answered"
    );
    assert!(
        !fixture.send_heartbeat(0),
        "a lease of the former fleet was prolonged"
    );
    assert!(fixture.hold_reason().is_some());

    fixture.now_ms += 1;
    assert_eq!(fixture.hold_reason(), None);
    fixture.join_supervisor();
    assert_eq!(fixture.take_tasks().len(), 1);
}

#[test]
fn a_restart_within_the_wait_waits_for_the_rest_of_it_whatever_the_clock_says() {
    let mut fixture = fixture();
    fixture.restart_with(Backups::Declared);
    let turns = |fixture: &mut Fixture, seconds: u32| {
        for _ in 0..seconds {
            fixture.now_ms += 1_000;
            fixture.run_turn();
        }
    };
    turns(&mut fixture, 15);
    for clock_ms in [3_600_000, -7_200_000] {
        fixture.now_ms += clock_ms;
        fixture.restart_with(Backups::Refused);
        let reported = fixture.hold_reason().expect("it says that it waits");
        assert!(reported.contains("25 s"), "{reported}");
    }
    turns(&mut fixture, 25);
    assert_eq!(fixture.hold_reason(), None);
    // The wait does not begin again, even if the clock is set back.
    fixture.now_ms -= 3_600_000;
    fixture.restart_with(Backups::Refused);
    assert_eq!(fixture.hold_reason(), None);
}

fn count_sent_to_supervisors(fixture: &Fixture) -> usize {
    let to_supervisor =
        |message: &&OutgoingMessage| matches!(message, OutgoingMessage::ToSupervisor(..));
    fixture.outgoing.iter().filter(to_supervisor).count()
}
