use webfill_wire::{Delivery, Evidence, SiteClock};

use super::*;

fn backoff_table() -> BackoffTable {
    BackoffTable {
        robots: vec![1.0, 10.0],
        unreachable: vec![1.0],
        dns: Vec::new(),
        busy: vec![1.0, 10.0, 100.0],
        blocked: vec![1.0],
    }
}

fn fail(state: &mut SiteState, reason: BackoffReason, now_ms: i64) -> Verdict {
    let certain = matches!(reason, BackoffReason::Robots | BackoffReason::Dns);
    state.on_failure(reason, certain, true, &backoff_table(), now_ms)
}

fn backing_off(until_ms: i64) -> Phase {
    Phase::BackingOff { until_ms }
}

#[test]
fn the_first_contact_that_fails_makes_the_site_back_off() {
    let mut state = SiteState::default();
    let verdict = state.on_failure(BackoffReason::Robots, true, false, &backoff_table(), 500);
    assert_eq!(
        (verdict, state.phase),
        (Verdict::SiteBackoffs, backing_off(1_500))
    );
}

#[test]
fn one_failure_at_a_site_that_has_answered_counts_as_the_tasks_own() {
    let mut state = SiteState::default();
    assert_eq!(
        fail(&mut state, BackoffReason::Robots, 0),
        Verdict::TaskWaits
    );
    assert_eq!(
        fail(&mut state, BackoffReason::Robots, 0),
        Verdict::SiteBackoffs
    );
    let mut state = SiteState::default();
    for _ in 0..2 {
        assert_eq!(
            fail(&mut state, BackoffReason::Busy, 0),
            Verdict::OwnFailure
        );
    }
    assert!(state.on_answer(0));
    for _ in 0..2 {
        assert_eq!(
            fail(&mut state, BackoffReason::Busy, 0),
            Verdict::OwnFailure
        );
    }
    assert_eq!(
        fail(&mut state, BackoffReason::Busy, 0),
        Verdict::SiteBackoffs
    );
}

#[test]
fn backoffs_grow_with_each_failed_probe_until_the_site_is_unreachable() {
    let mut state = SiteState::default();
    state.on_failure(BackoffReason::Robots, true, false, &backoff_table(), 0);
    // A failed attempt from before the backoff does not prolong the backoff.
    assert_eq!(
        fail(&mut state, BackoffReason::Robots, 999),
        Verdict::SiteBackoffs
    );
    assert_eq!(state.phase, backing_off(1_000));
    assert_eq!(
        fail(&mut state, BackoffReason::Robots, 1_000),
        Verdict::SiteBackoffs
    );
    assert_eq!(state.phase, backing_off(11_000));
    assert_eq!(
        fail(&mut state, BackoffReason::Robots, 11_000),
        Verdict::Unreachable
    );
    state.back_off_for_new_tasks(&backoff_table(), 20_000);
    assert_eq!(state.phase, backing_off(30_000));
    assert_eq!(
        fail(&mut state, BackoffReason::Robots, 30_000),
        Verdict::Unreachable
    );
}

#[test]
fn an_answer_shortens_the_next_backoff() {
    let mut state = SiteState {
        phase: backing_off(100),
        backoff_index: 2,
        reason: BackoffReason::Busy,
        failures: 0,
    };
    assert!(!state.on_answer(99), "a late answer ends no backoff");
    assert!(state.on_answer(100));
    assert_eq!((state.phase, state.backoff_index), (Phase::Open, 1));
    for _ in 0..3 {
        fail(&mut state, BackoffReason::Busy, 200);
    }
    assert_eq!(state.phase, backing_off(10_200));
    assert!(state.on_answer(10_200));
    assert!(state.is_default());
}

#[test]
fn a_site_that_blocks_backs_off_until_a_person_resumes_it() {
    let mut state = SiteState::default();
    let block = |state: &mut SiteState, now_ms| {
        state.on_failure(BackoffReason::Blocked, true, true, &backoff_table(), now_ms)
    };
    assert_eq!(block(&mut state, 0), Verdict::SiteBackoffs);
    assert_eq!(state.phase, backing_off(1_000));
    assert_eq!(block(&mut state, 1_000), Verdict::SiteBackoffs);
    assert_eq!(state.phase, backing_off(UNTIL_WOKEN_MS));
    state.end_backoff(5_000);
    assert_eq!(state.phase, backing_off(5_000));
    assert_eq!(block(&mut state, 6_000), Verdict::SiteBackoffs);
    assert_eq!(state.phase, backing_off(UNTIL_WOKEN_MS));
}

#[test]
fn the_fifth_refusal_in_a_row_is_a_block() {
    let mut state = SiteState::default();
    let mut refuse = || state.on_failure(BackoffReason::Blocked, false, true, &backoff_table(), 0);
    let verdicts: Vec<Verdict> = (0..5).map(|_| refuse()).collect();
    assert_eq!(verdicts[..4], [Verdict::OwnFailure; 4]);
    assert_eq!(verdicts[4], Verdict::SiteBackoffs);
}

#[test]
fn without_a_list_sites_never_back_off() {
    let mut state = SiteState::default();
    for _ in 0..9 {
        assert_eq!(fail(&mut state, BackoffReason::Dns, 0), Verdict::OwnFailure);
    }
    assert!(state.is_default());
}

#[test]
fn what_an_attempt_says() {
    let failed = |reason, certain| AttemptSign::Failed { reason, certain };
    for (outcome, status, sign) in [
        (Outcome::Ok, Some(200), AttemptSign::Answered),
        (Outcome::HttpError, Some(500), AttemptSign::Answered),
        (
            Outcome::HttpError,
            Some(503),
            failed(BackoffReason::Busy, false),
        ),
        (
            Outcome::HttpError,
            Some(403),
            failed(BackoffReason::Blocked, false),
        ),
        (
            Outcome::Blocked,
            Some(200),
            failed(BackoffReason::Blocked, true),
        ),
        (
            Outcome::Timeout,
            None,
            failed(BackoffReason::Unreachable, false),
        ),
        (Outcome::Timeout, Some(200), AttemptSign::Answered),
        (Outcome::DnsError, None, failed(BackoffReason::Dns, true)),
        (Outcome::Disallowed, None, AttemptSign::Nothing),
    ] {
        let done = done_task(outcome, status, false);
        assert_eq!(AttemptSign::from_task(&done), sign, "{outcome} {status:?}");
    }
    for status in [403, 420, 500] {
        let done = done_task(Outcome::HttpError, Some(status), true);
        let busy = failed(BackoffReason::Busy, false);
        assert_eq!(AttemptSign::from_task(&done), busy, "{status} of a limiter");
    }
}

fn done_task(outcome: Outcome, status_code: Option<u16>, has_evidence: bool) -> TaskDone {
    TaskDone {
        task: 1,
        delivery: Delivery {
            epoch: 1,
            number: 1,
        },
        outcome,
        status_code,
        body_bytes: 0,
        fields: 0,
        rows: 0,
        rows_stored: 0,
        links: Vec::new(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
        evidence: has_evidence.then(|| Evidence {
            url: "http://a.org/".into(),
            status_code,
            sign: "it asks to wait".into(),
            no_route: false,
        }),
    }
}
