//! A dispatcher that was restored, or whose file is a copy, waits until nothing of the former fleet can be
//! under way.

use super::*;
use crate::frontier::{Backups, Restoring};

const QUIET_MS: i64 = 40_000;

fn config(backups: Backups) -> FrontierConfig {
    let restoring = Restoring {
        quiet_ms: QUIET_MS,
        default_delay_ms: 0,
        backups,
    };
    FrontierConfig {
        restoring,
        ..FrontierConfig::default()
    }
}

impl Fixture {
    /// Ends the dispatcher and starts the next one.
    fn restart_with(&mut self, backups: Backups) {
        self.core = None;
        self.core = Some(open_with(&self.dir, self.now_ms, config(backups)));
    }

    fn holds(&self) -> Option<String> {
        self.core.as_ref().unwrap().holds(self.now_ms)
    }

    fn is_copy(&self) -> bool {
        self.core.as_ref().unwrap().is_copy()
    }
}

#[test]
fn a_restored_dispatcher_lets_nobody_in_before_its_wait_is_over() {
    let mut fixture = fixture();
    fixture.restart_with(Backups::Told);
    fixture.accept(&request(json!({})));
    let told = fixture.holds().expect("it says that it waits");
    assert!(told.contains("40 s"), "{told}");

    fixture.join();
    fixture.now_ms += QUIET_MS - 1;
    fixture.join();
    assert_eq!(sent_to_supervisors(&fixture), 0, "a hello was answered");
    assert!(
        !fixture.is_in_step(0),
        "a lease of the former fleet was prolonged"
    );
    assert!(fixture.holds().is_some());

    fixture.now_ms += 1;
    assert_eq!(fixture.holds(), None);
    fixture.join();
    assert_eq!(fixture.tasks().len(), 1);
}

#[test]
fn a_restart_within_the_wait_waits_for_the_rest_of_it() {
    let mut fixture = fixture();
    fixture.restart_with(Backups::Told);
    fixture.now_ms += 15_000;
    fixture.restart_with(Backups::Refused);
    let told = fixture.holds().expect("it says that it waits");
    assert!(told.contains("25 s"), "{told}");
    fixture.now_ms += 25_000;
    assert_eq!(fixture.holds(), None);
    fixture.restart_with(Backups::Refused);
    assert_eq!(fixture.holds(), None);
}

/// Nobody says that it is a copy.
#[test]
fn a_copy_of_the_file_is_noticed_once_and_waits_as_well() {
    let mut fixture = fixture();
    fixture.accept(&request(json!({})));
    fixture.restart_with(Backups::Refused);
    assert_eq!(fixture.holds(), None, "the file is where it was");

    fixture.core = None;
    let file = fixture.dir.path().join("dispatcher.db");
    let copy = fixture.dir.path().join("copy");
    std::fs::copy(&file, &copy).unwrap();
    std::fs::rename(&copy, &file).unwrap();
    fixture.restart_with(Backups::Refused);
    assert!(fixture.is_copy());
    let told = fixture.holds().expect("it says that it waits");
    assert!(told.contains("40 s"), "{told}");
    fixture.join();
    assert_eq!(sent_to_supervisors(&fixture), 0, "a hello was answered");

    fixture.now_ms += QUIET_MS;
    fixture.restart_with(Backups::Refused);
    assert!(!fixture.is_copy(), "it is the dispatcher's own by now");
    assert_eq!(fixture.holds(), None);
    // How long it was down is not known, so that sites wait for as long again.
    fixture.now_ms += QUIET_MS;
    fixture.join();
    assert_eq!(fixture.tasks().len(), 1);
}

fn sent_to_supervisors(fixture: &Fixture) -> usize {
    let to_supervisor =
        |message: &&OutgoingMessage| matches!(message, OutgoingMessage::ToSupervisor(..));
    fixture.outgoing.iter().filter(to_supervisor).count()
}
