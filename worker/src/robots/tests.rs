use super::*;

const ORIGIN: &str = "http://a.org";

fn response(status: u16, redirect: Option<&str>) -> RobotsResponse {
    RobotsResponse {
        outcome: Outcome::Ok,
        status: Some(status),
        body: Vec::new(),
        redirect: redirect.map(str::to_owned),
        error: None,
        no_route: false,
        answered_at: Instant::now(),
        answer: Answer::Served,
    }
}

/// The result of a fetch of robots.txt whose only request is answered with this status.
fn fetched_entry(status: u16, now: Now) -> Option<RobotsEntry> {
    let mut fetch = RobotsFetch::new(ORIGIN);
    fetch.note_response(Ok(response(status, None)));
    match fetch.finish(now) {
        RobotsAnswer::Files(mut files) => files.pop(),
        _ => None,
    }
}

fn now_plus(now: Now, by: Duration) -> Now {
    Now {
        instant: now.instant + by,
        wall_ms: now.wall_ms + by.as_millis() as i64,
    }
}

#[test]
fn five_redirects_are_followed_and_the_sixth_allows_everything() {
    let mut fetch = RobotsFetch::new(ORIGIN);
    let mut requests = 0;
    while let Some(url) = fetch.next_request() {
        requests += 1;
        let target = format!("{url}x");
        fetch.note_response(Ok(response(302, Some(&target))));
    }
    assert_eq!(requests, 1 + MOST_REDIRECTS);
    let RobotsAnswer::Files(files) = fetch.finish(Now::read()) else {
        panic!("it is no failure");
    };
    assert!(files.iter().all(|file| rules_from_entry(file).is_some()));
}

#[test]
fn a_fetch_that_is_denied_after_a_redirect_is_cut_short() {
    let mut fetch = RobotsFetch::new(ORIGIN);
    fetch.note_response(Ok(response(301, Some("/elsewhere"))));
    fetch.note_response(Err(Denied::NotStarted));
    assert_eq!(fetch.next_request(), None);
    let cut_short = fetch.finish(Now::read());
    assert!(matches!(cut_short, RobotsAnswer::Denied(Denied::CutShort)));
    let mut denied = RobotsFetch::new(ORIGIN);
    denied.note_response(Err(Denied::NotStarted));
    let denied = denied.finish(Now::read());
    assert!(matches!(denied, RobotsAnswer::Denied(Denied::NotStarted)));
}

#[test]
fn a_file_that_another_origin_owns_is_known_for_both() {
    let mut fetch = RobotsFetch::new(ORIGIN);
    let moved = response(301, Some("https://b.org/robots.txt"));
    fetch.note_response(Ok(moved));
    let target = fetch.origin_of_next_robots_txt();
    assert_eq!(target.as_deref(), Some("https://b.org"));
    fetch.note_response(Ok(response(200, None)));
    let RobotsAnswer::Files(files) = fetch.finish(Now::read()) else {
        panic!("it is no failure");
    };
    let origins: Vec<&str> = files.iter().map(|file| file.origin.as_str()).collect();
    assert_eq!(origins, [ORIGIN, "https://b.org"]);
}

#[test]
fn a_file_is_in_force_for_an_hour_and_a_failure_never() {
    let now = Now::read();
    assert_eq!(fetched_entry(500, now), None);
    let mut files = RobotsFiles::default();
    assert!(
        files
            .remember(&fetched_entry(404, now).unwrap(), now)
            .is_some()
    );
    let last = now_plus(now, LIFETIME - Duration::from_millis(1));
    assert!(files.rules_in_force(ORIGIN, last).is_some());
    assert!(
        files
            .rules_in_force(ORIGIN, now_plus(now, LIFETIME))
            .is_none()
    );
}

#[test]
fn the_last_good_file_stands_in_for_a_day_and_is_asked_for_again_after_minutes() {
    let now = Now::read();
    let mut files = RobotsFiles::default();
    files.remember(&fetched_entry(200, now).unwrap(), now);
    let expired = now_plus(now, LIFETIME);
    assert!(files.fall_back(ORIGIN, expired).is_some());
    let before = now_plus(expired, TRY_AGAIN_AFTER - Duration::from_millis(1));
    assert!(files.rules_in_force(ORIGIN, before).is_some());
    let again = now_plus(expired, TRY_AGAIN_AFTER);
    assert!(files.rules_in_force(ORIGIN, again).is_none());
    let day = Duration::from_millis(ROBOTS_KEPT_MS as u64);
    let last = now_plus(now, day - Duration::from_millis(1));
    assert!(files.fall_back(ORIGIN, last).is_some());
    assert!(files.rules_in_force(ORIGIN, now_plus(now, day)).is_none());
    assert!(files.fall_back(ORIGIN, now_plus(now, day)).is_none());
}

#[test]
fn an_older_file_of_the_cache_does_not_replace_a_later_one() {
    let now = Now::read();
    let mut files = RobotsFiles::default();
    let old = RobotsEntry {
        fetched_at_ms: now.wall_ms - 10,
        ..fetched_entry(200, now).unwrap()
    };
    let new = fetched_entry(200, now).unwrap();
    let stale = now_plus(now, 2 * LIFETIME);
    assert!(files.remember(&new, stale).is_none(), "it is not fresh");
    assert!(files.remember(&old, stale).is_none());
    let day = Duration::from_millis(ROBOTS_KEPT_MS as u64);
    let last = now_plus(now, day - Duration::from_millis(1));
    assert!(files.fall_back(ORIGIN, last).is_some());
}

#[test]
fn an_answer_without_rules_allows_nothing() {
    let rules = b"User-agent: *\nDisallow: /\n".as_slice();
    for (status, body, has_rules) in [
        (200, rules, true),
        (200, b"", true),
        (202, rules, false),
        (203, rules, true),
        (204, b"", true),
        (205, b"", false),
        (206, rules, false),
        (207, rules, false),
        (226, rules, false),
        (101, b"", false),
        (300, rules, false),
        (304, b"", false),
        (305, b"", false),
        (399, b"", false),
        (200, b"<html>no such page</html>", true),
        (200, b"\0\0\nUser-agent: *\nDisallow: /\n", true),
        (200, b"\xff\xfeU\0s\0e\0r\0", true),
        (200, b"\x1f\x8b\x08\0\0\0\0\0\0\x03", false),
        (200, b"\x28\xb5\x2f\xfd\x04\0", false),
        (200, b"PK\x03\x04\x14\0", false),
        (200, b"\x1b\x35\0\x20\x8c\xd3\x1d\xf3", false),
        (200, b"GIF89a\x01\0\x01\0", false),
        // A redirect without a target gives no rules.
        (302, b"", false),
        (401, b"", true),
        (404, b"\x1f\x8b", true),
        (408, b"", false),
        (410, b"", true),
        (418, b"", true),
        (425, b"", false),
        (451, b"", true),
        (429, b"", false),
        (500, rules, false),
        (503, b"", false),
        (600, rules, false),
        (999, b"", false),
    ] {
        let mut fetch = RobotsFetch::new(ORIGIN);
        let mut answer = response(status, None);
        answer.body = body.to_vec();
        fetch.note_response(Ok(answer));
        let found = fetch.finish(Now::read());
        assert_eq!(
            matches!(found, RobotsAnswer::Files(_)),
            has_rules,
            "{status} {}",
            body.escape_ascii()
        );
    }
}
