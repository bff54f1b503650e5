use serde_json::json;

use super::*;

/// Makes runs with these numbers of results, latest run last.
fn runs(what: &str, found: &[u64]) -> Vec<WatchRun> {
    let runs = found.iter().enumerate().map(|(index, found)| {
        let mut run = WatchRun::new(index as u64 + 1, 0, 0);
        run.ended_ms = Some(1);
        run.how = Some(RunEnd::Finished);
        run.counts.insert("pages".into(), json!(10));
        run.counts.insert("outcomes".into(), json!({"ok": 10}));
        run.counts.insert(what.into(), json!(found));
        run
    });
    let mut runs: Vec<WatchRun> = runs.collect();
    runs.reverse();
    runs
}

fn reported_silences(runs: &[WatchRun], sites: &[SiteTrouble]) -> BTreeMap<String, String> {
    find_silences(&SilenceFacts {
        runs,
        silent_after: 3,
        sites,
        alerts: &[],
        standing: &BTreeMap::new(),
    })
}

fn remaining_silences(runs: &[WatchRun], standing: &[&str]) -> Vec<String> {
    let standing = standing.iter().map(|name| (name.to_string(), "why".into()));
    let known = SilenceFacts {
        runs,
        silent_after: 3,
        sites: &[],
        alerts: &[],
        standing: &standing.collect(),
    };
    find_silences(&known).into_keys().collect()
}

#[test]
fn a_silence_ends_only_with_a_run_that_has_found_some() {
    let empty = runs("fields", &[0; RUNS_JUDGED as usize]);
    assert_eq!(
        remaining_silences(&empty, &["no_fields"]),
        ["no_fields"],
        "nobody knows more"
    );
    let mut gone = runs("fields", &[5, 5, 5, 0, 0]);
    gone[0].counts.insert("pages".into(), json!(0));
    assert_eq!(
        remaining_silences(&gone, &["no_fields"]),
        ["no_fields", "no_pages"]
    );
    let mut stopped = runs("fields", &[0]);
    stopped[0].how = Some(RunEnd::Stopped);
    let standing = ["no_fields", "not_finished"];
    assert_eq!(
        remaining_silences(&stopped, &standing),
        standing,
        "it was broken off"
    );
    assert_eq!(
        remaining_silences(&runs("fields", &[0, 1]), &standing),
        [""; 0]
    );
}

fn silence_names(what: &str, found: &[u64]) -> Vec<String> {
    reported_silences(&runs(what, found), &[])
        .into_keys()
        .collect()
}

#[test]
fn a_watch_is_silent_after_three_runs_without_its_usual_results() {
    for what in ["documents", "changes", "fields"] {
        let silent = [format!("no_{what}")];
        assert_eq!(silence_names(what, &[4, 2, 9, 0, 0]), [""; 0], "{what}");
        assert_eq!(silence_names(what, &[4, 2, 9, 0, 0, 0]), silent, "{what}");
        assert_eq!(
            silence_names(what, &[4, 2, 9, 0, 0, 0, 0]),
            silent,
            "it stands"
        );
        assert_eq!(
            silence_names(what, &[4, 2, 9, 0, 0, 0, 1]),
            [""; 0],
            "it sees again"
        );
        assert_eq!(
            silence_names(what, &[4, 2, 0, 0, 0, 0]),
            [""; 0],
            "not usual: twice only"
        );
    }
}

/// Tests several numbers of runs with results before runs without any, and several values of `silent_after`.
#[test]
fn a_watch_is_silent_after_the_number_of_runs_that_it_sets() {
    for before in [3, 5, 30] {
        for silent_after in 1..=4 {
            let reported = (1..=8).find(|empty| {
                let mut found = vec![5; before];
                found.extend(vec![0; *empty]);
                let runs = runs("fields", &found);
                let known = SilenceFacts {
                    runs: &runs,
                    silent_after,
                    sites: &[],
                    alerts: &[],
                    standing: &BTreeMap::new(),
                };
                find_silences(&known).contains_key("no_fields")
            });
            let expected = usize::try_from(silent_after).unwrap();
            assert_eq!(reported, Some(expected), "{before} runs before");
        }
    }
}

#[test]
fn unchanged_pages_do_not_make_a_watch_silent() {
    let mut runs = runs("fields", &[4, 2, 9, 0, 0, 0]);
    for run in &mut runs[..3] {
        let outcomes = json!({"ok": 1, "not_modified": 9});
        run.counts.insert("outcomes".into(), outcomes);
    }
    assert!(reported_silences(&runs, &[]).is_empty());
}

#[test]
fn occasional_results_take_longer_to_be_missed() {
    let mut found = vec![1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1];
    found.extend([0; 4]);
    assert_eq!(
        silence_names("changes", &found),
        [""; 0],
        "that happens by chance"
    );
    found.extend([0; 4]);
    assert_eq!(silence_names("changes", &found), ["no_changes"]);
}

#[test]
fn a_run_without_pages_is_reported_immediately_and_alone() {
    let mut runs = runs("pages", &[8, 9, 7, 0]);
    for run in &mut runs[1..] {
        run.counts.insert("fields".into(), json!(5));
    }
    runs[0].counts.insert("outcomes".into(), json!({}));
    let silent = reported_silences(&runs, &[]);
    assert_eq!(silent.keys().collect::<Vec<_>>(), ["no_pages"]);
    let reported = &silent["no_pages"];
    assert!(
        reported.contains("the last run has found no pages"),
        "{reported}"
    );
    assert!(reported.contains("the seeds are empty"), "{reported}");
    runs[0].how = Some(RunEnd::Interrupted);
    assert!(
        reported_silences(&runs, &[]).is_empty(),
        "it was broken off"
    );
}

#[test]
fn the_likely_reason_is_the_outcome_of_most_requests() {
    let mut runs = runs("pages", &[8, 9, 7, 0]);
    for (outcomes, reason) in [
        (json!({"dns_error": 4}), "DNS"),
        (
            json!({"disallowed": 4, "http_error": 1}),
            "disallowed by robots.txt",
        ),
        (json!({"http_error": 4}), "404"),
        (json!({"blocked": 2, "timeout": 1}), "blocks"),
    ] {
        runs[0].counts.insert("outcomes".into(), outcomes);
        let reported = &reported_silences(&runs, &[])["no_pages"];
        assert!(reported.contains(reason), "{reported}");
    }
    let blocking = SiteTrouble {
        site: "a.example".into(),
        reason: "blocked".into(),
        since_ms: 1_700_000_000_000,
        unreachable: false,
        sign: "cf-mitigated: challenge".into(),
        url: "https://a.example/".into(),
    };
    let silent = reported_silences(&runs, std::slice::from_ref(&blocking));
    assert!(
        silent["no_pages"].contains("a.example has been backing off since 2023-11-14"),
        "{silent:?}"
    );
    assert!(
        silent["site_blocked"].contains("cf-mitigated"),
        "{silent:?}"
    );
}

#[test]
fn sites_are_reported_by_reason_and_few_are_named() {
    let site = |n: usize, reason: &str| SiteTrouble {
        site: format!("s{n}.example"),
        reason: reason.into(),
        since_ms: 0,
        unreachable: n == 0,
        sign: String::new(),
        url: String::new(),
    };
    let mut sites: Vec<SiteTrouble> = (0..10).map(|n| site(n, "dns")).collect();
    sites.push(site(10, "blocked"));
    let silent = reported_silences(&runs("pages", &[1]), &sites);
    assert_eq!(
        silent.keys().collect::<Vec<_>>(),
        ["site_blocked", "site_dns"]
    );
    assert!(silent["site_dns"].contains("s0.example has been unreachable"));
    assert!(silent["site_dns"].ends_with("; and 7 more"), "{silent:?}");
}

#[test]
fn an_unfinished_run_is_reported() {
    let mut runs = runs("pages", &[5]);
    runs[0].how = Some(RunEnd::Window);
    runs[0].counts.insert("queued".into(), json!(77));
    assert!(reported_silences(&runs, &[])["not_finished"].contains("window with 77 pages left"));
    runs[0].how = Some(RunEnd::Failed);
    runs[0].why = Some("no such file".into());
    assert!(reported_silences(&runs, &[])["not_finished"].contains("has failed: no such file"));
}

#[test]
fn an_alert_of_a_mapping_or_fewer_pages_are_likely_reasons() {
    let mut judged_runs = runs("fields", &[4, 2, 9, 0, 0, 0]);
    let alerts = [json!({"mapping": "shop", "layout_changed": "2026-01-01T00:00:00Z"})];
    let known = SilenceFacts {
        runs: &judged_runs,
        silent_after: 3,
        sites: &[],
        alerts: &alerts,
        standing: &BTreeMap::new(),
    };
    assert!(find_silences(&known)["no_fields"].contains("the layout changed for the mapping shop"));
    judged_runs[0].counts.insert("pages".into(), json!(2));
    let reported = &reported_silences(&judged_runs, &[])["no_fields"];
    assert!(
        reported.contains("fetches 2 pages, usually 10"),
        "{reported}"
    );
}
