//! A dispatcher that was restored waits until nothing of the former fleet can be under way.

use super::*;

const QUIET_MS: i64 = 40_000;

#[test]
fn a_restored_dispatcher_lets_nobody_in_before_its_wait_is_over() {
    let mut fixture = fixture();
    fixture.core = None;
    fixture.core = Some(open_restored(&fixture.dir, NOW_MS, QUIET_MS));
    fixture.accept(&request(json!({})));
    let holds = |fixture: &Fixture| fixture.core.as_ref().unwrap().holds(fixture.now_ms);
    let told = holds(&fixture).expect("it says that it waits");
    assert!(told.contains("40 s"), "{told}");

    fixture.join();
    fixture.now_ms += QUIET_MS - 1;
    fixture.join();
    assert_eq!(sent_to_supervisors(&fixture), 0, "a hello was answered");
    assert!(
        !fixture.is_in_step(0),
        "a lease of the former fleet was prolonged"
    );
    assert!(holds(&fixture).is_some());

    fixture.now_ms += 1;
    assert_eq!(holds(&fixture), None);
    fixture.join();
    assert_eq!(fixture.tasks().len(), 1);
}

fn sent_to_supervisors(fixture: &Fixture) -> usize {
    let to_supervisor =
        |message: &&OutgoingMessage| matches!(message, OutgoingMessage::ToSupervisor(..));
    fixture.outgoing.iter().filter(to_supervisor).count()
}
