//! Tests of the metric that says how long due tasks have waited.

use super::*;

#[test]
fn nothing_is_due_in_an_empty_dispatcher_and_the_wait_of_queued_tasks_grows() {
    let mut fixture = fixture();
    fixture.run_turn();
    let due_after = |fixture: &mut Fixture, ms: i64| {
        fixture.now_ms += ms;
        fixture.run_turn();
        let now_ms = fixture.now_ms;
        fixture.core().metrics(now_ms).oldest_due_ms
    };
    assert_eq!(due_after(&mut fixture, 0), 0);
    assert_eq!(due_after(&mut fixture, 3_600_000), 0);
    fixture.ask(&request_with(json!({})));
    assert_eq!(due_after(&mut fixture, 1_000), 0, "it is noticed");
    assert_eq!(due_after(&mut fixture, 5_000), 5_000);
}
