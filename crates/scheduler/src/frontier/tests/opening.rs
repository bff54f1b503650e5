use super::*;

#[test]
fn committed_changes_survive_a_crash_and_others_are_undone() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1"]);
    fixture
        .frontier
        .crawls()
        .set_fed_lines(fixture.crawl, 1)
        .unwrap();
    fixture.frontier.commit().unwrap();
    fixture.feed(&["http://a.org/2"]);
    fixture
        .frontier
        .crawls()
        .set_fed_lines(fixture.crawl, 2)
        .unwrap();
    let mut fixture = fixture.reopen(0);
    assert_counts_consistent(fixture.dir.path());
    assert_eq!(fixture.status().fed_lines, 1);
    assert_eq!(fixture.feed(&["http://a.org/1"]).accepted, 0);
    assert_eq!(fixture.feed(&["http://a.org/2"]).accepted, 1);
}

/// The files of the index are missing if only the database was copied.
#[test]
fn an_index_whose_files_are_missing_is_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let config = FrontierConfig {
        seen_memory_bytes: 256 << 10,
        ..FrontierConfig::default()
    };
    let open = || Frontier::open(dir.path(), config.clone(), 0).unwrap();
    let urls: Vec<String> = (0..5_000).map(|n| format!("http://a.org/{n}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let files = dir.path().join("seen");
    let mut frontier = open();
    let crawl = frontier
        .crawls()
        .open(&CrawlSpec::new("app", "crawl"))
        .unwrap();
    let feed = |frontier: &mut Frontier| {
        let fed = urls.chunks(100).map(|urls| {
            let seed = |url| Candidate {
                url,
                depth: 0,
                priority: None,
                parent: None,
                records: &[],
                attrs: None,
            };
            let seeds: Vec<_> = urls.iter().copied().map(seed).collect();
            let fed = frontier.tasks().feed(crawl, &seeds, 0).unwrap().accepted;
            frontier.commit().unwrap();
            fed
        });
        fed.sum::<u64>()
    };
    assert_eq!(feed(&mut frontier), 5_000);
    drop(frontier);
    assert!(std::fs::read_dir(&files).unwrap().count() > 0);
    std::fs::remove_dir_all(&files).unwrap();
    let mut frontier = open();
    assert!(std::fs::read_dir(&files).unwrap().count() > 0, "built anew");
    assert_eq!(feed(&mut frontier), 0);
    drop(frontier);
    let file = std::fs::read_dir(&files).unwrap().next().unwrap().unwrap();
    let file = std::fs::File::options().write(true).open(file.path());
    file.unwrap().set_len(1_000).unwrap();
    assert_eq!(feed(&mut open()), 0, "one was not whole");
}

#[test]
fn leases_survive_a_restart_with_their_sites_in_the_window() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/", "http://b.org/"]);
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 1)
        .unwrap()
        .remove(0);
    let leased = fixture
        .frontier
        .tasks()
        .lease(site.id, 1, Lane::Http, 0)
        .unwrap()
        .tasks
        .remove(0);
    fixture.frontier.commit().unwrap();

    let mut fixture = fixture.reopen(100_000);
    fixture.assert_counts_consistent();
    let held = HeldLease {
        task: leased.task,
        delivery: leased.delivery,
        site: site.id,
        priority: 50,
        crawl: 1,
    };
    assert_eq!(fixture.frontier.tasks().leases().unwrap(), [held]);
    let sites = fixture.frontier.sites().admit_leased().unwrap();
    assert_eq!(
        sites.iter().map(|site| site.id).collect::<Vec<_>>(),
        [site.id]
    );
    assert_eq!(
        fixture
            .frontier
            .sites()
            .admit_due(i64::MAX, 9)
            .unwrap()
            .len(),
        1
    );
    fixture.complete_with_links(&leased, &[]);
    fixture.assert_counts_consistent();
}

const HOUR_MS: i64 = 3_600_000;

/// The clock of a site after a restart at `now_ms`, by the dispatcher's clock. The last commit was made at 13:00.
fn clock_after_restart(clock: Clock, now_ms: i64) -> Clock {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/"]);
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 1)
        .unwrap()
        .remove(0);
    fixture.frontier.sites().evict(site.id, &clock).unwrap();
    fixture.frontier.set_now(13 * HOUR_MS);
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(now_ms);
    fixture
        .frontier
        .sites()
        .get(site.id)
        .unwrap()
        .unwrap()
        .clock
}

fn due_after_restart(due_at_ms: i64, now_ms: i64) -> i64 {
    let clock = Clock {
        due_at_ms,
        delay_ms: Some(1_000),
        last_start_ms: Some(due_at_ms - 1_000),
        owner: None,
        address: None,
    };
    let kept = clock_after_restart(clock, now_ms);
    assert!(kept.last_start_ms.unwrap() <= kept.due_at_ms);
    kept.due_at_ms
}

#[test]
fn a_clock_that_was_set_back_does_not_delay_sites_for_an_hour() {
    let waits = 13 * HOUR_MS + 15_000;
    assert_eq!(
        due_after_restart(waits, 12 * HOUR_MS),
        12 * HOUR_MS + 15_000
    );
    let long_due = 13 * HOUR_MS - 5_000;
    assert_eq!(due_after_restart(long_due, 12 * HOUR_MS), 12 * HOUR_MS);
}

#[test]
fn a_clock_that_was_set_forward_cuts_no_delay_short() {
    let waits = 13 * HOUR_MS + 15_000;
    assert_eq!(
        due_after_restart(waits, 14 * HOUR_MS),
        14 * HOUR_MS + 15_000
    );
    let long_due = 13 * HOUR_MS - 5_000;
    assert_eq!(due_after_restart(long_due, 14 * HOUR_MS), long_due);
}

#[test]
fn with_an_unknown_delay_the_time_since_the_last_request_is_kept() {
    let asked = Clock {
        due_at_ms: 13 * HOUR_MS - 5_000,
        last_start_ms: Some(13 * HOUR_MS - 5_000),
        ..Clock::default()
    };
    for now_ms in [12 * HOUR_MS, 14 * HOUR_MS] {
        let kept = clock_after_restart(asked.clone(), now_ms);
        assert_eq!(kept.last_start_ms, Some(now_ms - 5_000));
        assert!(kept.due_at_ms <= now_ms);
    }
}

#[test]
fn a_long_wait_is_over_after_a_day_of_downtime() {
    let waits = 15 * HOUR_MS;
    assert!(due_after_restart(waits, 37 * HOUR_MS) < 37 * HOUR_MS);
}

#[test]
fn supervisors_are_known_after_a_restart() {
    let mut fixture = fixture();
    let kept = |name: &str, instance| SavedSupervisor {
        name: name.into(),
        instance,
        longest_request_ms: 60_000,
        silent_ms: 0,
    };
    for (name, instance) in [("a", 7), ("b", u64::MAX), ("a", 8)] {
        fixture
            .frontier
            .supervisors()
            .save(&kept(name, instance))
            .unwrap();
    }
    fixture.frontier.commit().unwrap();
    let mut fixture = fixture.reopen(0);
    let known = fixture.frontier.supervisors().all().unwrap();
    assert_eq!(known, [kept("a", 8), kept("b", u64::MAX)]);
    fixture.frontier.supervisors().save_silence("b", 7).unwrap();
    assert_eq!(
        fixture.frontier.supervisors().all().unwrap()[1].silent_ms,
        7
    );
    fixture.frontier.supervisors().delete("a").unwrap();
    assert_eq!(fixture.frontier.supervisors().all().unwrap().len(), 1);
}

#[test]
fn a_crawl_opened_again_keeps_its_counters_and_gets_its_new_limits() {
    let mut fixture = fixture_with_spec(|spec| spec.max_depth = 0);
    fixture.feed(&["http://a.org/", "http://a.org/", "x:y"]);
    let page = fixture.lease_one();
    fixture.complete_with_links(&page, &["/too-deep"]);
    let before = fixture.status();
    fixture.frontier.commit().unwrap();
    fixture.spec.max_depth = 1;
    let mut fixture = fixture.reopen(0);
    assert_eq!(fixture.status(), before);
    assert_eq!(
        fixture
            .frontier
            .crawls()
            .spec(fixture.crawl)
            .unwrap()
            .max_depth,
        1
    );
    assert!(
        fixture
            .frontier
            .crawls()
            .unfinished_crawls()
            .unwrap()
            .is_empty()
    );
    fixture.feed(&["http://a.org/new"]);
    assert_eq!(
        fixture.frontier.crawls().unfinished_crawls().unwrap(),
        [fixture.crawl]
    );
    let page = fixture.lease_one();
    assert_eq!(
        fixture
            .complete_with_links(&page, &["/too-deep"])
            .links
            .accepted,
        1
    );
}

#[test]
fn a_faulty_scope_is_refused_before_anything_is_stored() {
    let mut fixture = fixture();
    let mut spec = CrawlSpec::new("app", "faulty");
    spec.allow_regex = vec!["[".into()];
    let error = fixture.frontier.crawls().open(&spec).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("allow_regex[0]: invalid pattern `[`"),
        "{error}"
    );
    assert_eq!(
        fixture.feed(&["http://a.org/"]).accepted,
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
fn a_file_of_another_format_is_left_alone() {
    for other in [0, 2, 99] {
        let (dir, db) = empty_database();
        db.pragma_update(None, "user_version", other).unwrap();
        let error = error_on_opening(dir.path());
        let said = format!(
            "has format {other}, this webfill reads format 1: use the webfill that wrote it"
        );
        assert!(error.contains(&said), "{error}");
        let left = db.pragma_query_value(None, "user_version", |row| row.get(0));
        assert_eq!(left, Ok(other));
    }
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
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/kept"]);
    fixture.frontier.commit().unwrap();
    fixture
        .frontier
        .0
        .cx
        .db
        .pragma_update(None, "max_page_count", 60)
        .unwrap();
    let long = "x".repeat(1_000);
    let error = (0..1_000).find_map(|n| {
        let url = format!("http://a.org/{n}/{long}");
        let candidate = Candidate {
            url: &url,
            depth: 0,
            priority: None,
            parent: None,
            records: &[],
            attrs: None,
        };
        fixture
            .frontier
            .tasks()
            .feed(fixture.crawl, &[candidate], 0)
            .err()
    });
    assert!(
        error
            .unwrap()
            .to_string()
            .starts_with("no space left on disk for ")
    );
    let closed = fixture.frontier.commit().unwrap_err();
    assert!(matches!(closed, FrontierError::Closed { .. }));

    let mut fixture = fixture.reopen(0);
    fixture.assert_counts_consistent();
    assert_eq!(fixture.status().queued, 1);
}

/// If reading continued, lines that were fed for one dataset would never be fed for the next.
#[test]
fn another_dataset_begins_with_the_first_line() {
    let mut fixture = fixture();
    let Fixture {
        frontier, crawl, ..
    } = &mut fixture;
    let lines = |frontier: &mut Frontier| {
        frontier.commit().unwrap();
        frontier.crawls().status(*crawl).unwrap().fed_lines
    };
    assert_eq!(frontier.crawls().dataset(*crawl).unwrap(), None);
    frontier.crawls().set_fed_lines(*crawl, 7).unwrap();
    frontier.crawls().set_dataset(*crawl, "people").unwrap();
    assert_eq!(lines(frontier), 7);
    frontier.crawls().set_dataset(*crawl, "people").unwrap();
    assert_eq!(lines(frontier), 7);
    frontier.crawls().set_dataset(*crawl, "firms").unwrap();
    assert_eq!(lines(frontier), 0);
    assert_eq!(
        frontier.crawls().dataset(*crawl).unwrap().as_deref(),
        Some("firms")
    );
}
