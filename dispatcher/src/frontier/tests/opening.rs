use super::*;

#[test]
fn what_is_committed_survives_and_the_rest_is_undone() {
    let mut bench = bench();
    bench.feed(&["http://a.org/1"]);
    bench.frontier.set_fed(bench.crawl, 1).unwrap();
    bench.frontier.commit().unwrap();
    bench.feed(&["http://a.org/2"]);
    bench.frontier.set_fed(bench.crawl, 2).unwrap();
    let mut bench = bench.reopen(0);
    assert_conserved(bench.dir.path());
    assert_eq!(bench.status().fed_lines, 1);
    assert_eq!(bench.feed(&["http://a.org/1"]).accepted, 0);
    assert_eq!(bench.feed(&["http://a.org/2"]).accepted, 1);
}

#[test]
fn what_was_leased_is_queued_again_and_its_site_waits_its_delay_from_now() {
    let mut bench = bench();
    bench.feed(&["http://a.org/", "http://b.org/", "http://c.org/"]);
    let sites = bench.frontier.next_sites(i64::MAX, 3).unwrap();
    for site in &sites[..2] {
        bench.frontier.lease(site.id, 1, 0).unwrap();
    }
    let slow = Clock {
        due_at_ms: 5_000,
        delay_ms: Some(30_000),
        ..Clock::default()
    };
    bench.frontier.save_clock(sites[1].id, &slow).unwrap();
    bench.frontier.commit().unwrap();

    let mut bench = bench.reopen(100_000);
    bench.assert_conserved();
    let due: Vec<_> = bench.frontier.next_sites(i64::MAX, 3).unwrap();
    let due: Vec<_> = due
        .iter()
        .map(|s| (s.clock.due_at_ms, s.clock.last_start_ms))
        .collect();
    assert_eq!(
        due,
        [
            (0, None),
            (115_000, Some(100_000)),
            (130_000, Some(100_000))
        ]
    );
    let site = bench.frontier.site(sites[0].id).unwrap().unwrap();
    let again = bench.frontier.lease(site.id, 1, 0).unwrap().tasks.remove(0);
    assert_eq!(again.attempt, 2);
}

#[test]
fn a_site_that_must_wait_longer_than_its_delay_still_does_after_a_crash() {
    let mut bench = bench();
    bench.feed(&["http://a.org/"]);
    let site = bench.frontier.next_sites(i64::MAX, 1).unwrap().remove(0);
    bench.frontier.lease(site.id, 1, 0).unwrap();
    let clock = Clock {
        due_at_ms: 900_000,
        delay_ms: Some(1_000),
        ..Clock::default()
    };
    bench.frontier.save_clock(site.id, &clock).unwrap();
    bench.frontier.commit().unwrap();
    let mut bench = bench.reopen(100_000);
    assert_eq!(bench.frontier.next_due_ms().unwrap(), Some(900_000));
}

#[test]
fn a_crawl_opened_again_goes_on_with_its_counters_and_its_new_limits() {
    let mut bench = bench_with(|spec| spec.max_depth = 0);
    bench.feed(&["http://a.org/", "http://a.org/", "x:y"]);
    let page = bench.lease_one();
    bench.done(&page, &["/too-deep"]);
    let before = bench.status();
    bench.frontier.commit().unwrap();
    bench.spec.max_depth = 1;
    let mut bench = bench.reopen(0);
    assert_eq!(bench.status(), before);
    assert_eq!(bench.frontier.spec(bench.crawl).unwrap().max_depth, 1);
    assert!(bench.frontier.unfinished_crawls().unwrap().is_empty());
    bench.feed(&["http://a.org/new"]);
    assert_eq!(bench.frontier.unfinished_crawls().unwrap(), [bench.crawl]);
    let page = bench.lease_one();
    assert_eq!(bench.done(&page, &["/too-deep"]).links.accepted, 1);
}

#[test]
fn a_faulty_scope_is_refused_before_anything_is_stored() {
    let mut bench = bench();
    let mut spec = CrawlSpec::new("app", "faulty");
    spec.allow_regex = vec!["[".into()];
    let error = bench.frontier.open_crawl(&spec).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("allow_regex[0]: invalid pattern `[`"),
        "{error}"
    );
    assert_eq!(
        bench.feed(&["http://a.org/"]).accepted,
        1,
        "the frontier lives on"
    );
}

fn error_on_opening(dir: &Path) -> String {
    Frontier::open(dir, FrontierConfig::default(), 0)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    std::fs::write(&path, "not a database, but notes that someone needs").unwrap();
    assert!(error_on_opening(dir.path()).contains("was not written by webfill"));
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .ends_with("someone needs")
    );

    std::fs::remove_file(&path).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    assert!(error_on_opening(dir.path()).contains("was not written by webfill"));
}

#[test]
fn a_file_of_a_newer_webfill_is_left_alone() {
    let (dir, db) = empty_database();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let error = error_on_opening(dir.path());
    assert!(
        error.contains("a newer webfill (format 99, this one knows 1)"),
        "{error}"
    );
}

#[test]
fn a_state_folder_that_is_missing_is_named() {
    let error = error_on_opening(Path::new("/nowhere/at/all"));
    assert!(
        error.starts_with("cannot open the frontier /nowhere/at/all/dispatcher.db"),
        "{error}"
    );
}

#[test]
fn a_full_disk_is_a_clear_error_and_leaves_the_last_commit() {
    let mut bench = bench();
    bench.feed(&["http://a.org/kept"]);
    bench.frontier.commit().unwrap();
    bench
        .frontier
        .db
        .pragma_update(None, "max_page_count", 60)
        .unwrap();
    let long = "x".repeat(1_000);
    let error = (0..1_000).find_map(|n| {
        let url = format!("http://a.org/{n}/{long}");
        let candidate = Candidate {
            url: &url,
            depth: 0,
            parent: None,
            records: &[],
        };
        bench.frontier.feed(bench.crawl, &[candidate], 0).err()
    });
    assert!(
        error
            .unwrap()
            .to_string()
            .starts_with("no space left on disk for ")
    );
    let closed = bench.frontier.commit().unwrap_err();
    assert!(matches!(closed, FrontierError::Closed { .. }));

    let mut bench = bench.reopen(0);
    bench.assert_conserved();
    assert_eq!(bench.status().queued, 1);
}
