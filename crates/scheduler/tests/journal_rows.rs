//! The changes of a frontier's commits, applied to another file.

use rusqlite::Connection;
use webfill_api::CrawlSpec;
use webfill_scheduler::frontier::{
    Applied, Candidate, Frontier, FrontierConfig, apply_changes, note_applied_position, open_file,
    read_applied_position, shared_rows,
};
use webfill_wire::Lane;

const NOW_MS: i64 = 1_800_000_000_000;

/// A frontier with a journal, and a file that applies it.
struct Files {
    frontier: Frontier,
    copy: Connection,
    _folders: [tempfile::TempDir; 2],
}

impl Files {
    fn new() -> Files {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let config = FrontierConfig {
            journalled: true,
            ..FrontierConfig::default()
        };
        let mut files = Files {
            frontier: Frontier::open(folders[0].path(), config, NOW_MS).unwrap(),
            copy: open_file(folders[1].path()).unwrap(),
            _folders: folders,
        };
        files.apply_changes_to_copy();
        files
    }

    fn execute(&mut self, sql: &str) {
        self.frontier
            .run_in_transaction(|db| db.execute_batch(sql))
            .unwrap();
    }

    fn take_changes(&mut self) -> Vec<u8> {
        self.frontier.commit().unwrap();
        self.frontier.take_changes().unwrap()
    }

    fn apply_changes_to_copy(&mut self) {
        let changes = self.take_changes();
        apply_changes(&self.copy, &changes).unwrap();
    }

    /// Applies the changes of a commit. Both files must be equal afterwards.
    fn assert_equal_after_commit(&mut self, what: &str) {
        self.apply_changes_to_copy();
        let rows = self.frontier.run_in_transaction(shared_rows).unwrap();
        let copied = shared_rows(&self.copy).unwrap();
        assert_eq!(copied, rows, "after a commit: {what}");
        assert!(self.take_changes().is_empty(), "its changes are taken");
    }
}

/// Runs statements on a frontier, a commit for each, and applies their changes to another file.
fn replicate(commits: &[&str]) -> Files {
    let mut files = Files::new();
    for (at, sql) in commits.iter().enumerate() {
        files.execute(sql);
        files.assert_equal_after_commit(&format!("{at}: {sql}"));
    }
    files
}

#[test]
fn a_copy_that_applies_all_changes_is_equal_after_each_commit() {
    replicate(&[
        "INSERT INTO sites (name) VALUES ('a.org'), ('b.org')",
        "INSERT INTO task_rows (crawl, site, priority, depth, rank, url) VALUES (1, 1, 50, 0, 0, '2/')",
        "UPDATE task_rows SET state = 1, attempt = attempt + 1; UPDATE sites SET due_at_ms = 7 WHERE id = 2",
        "UPDATE task_rows SET outcome = 'ok', state = 2; DELETE FROM sites WHERE name = 'b.org'",
        "INSERT INTO tries VALUES (1, 1, 'crashed', NULL, 1), (1, 2, 'ok', 200, 1); DELETE FROM tries WHERE ended_at_ms = 1",
        "INSERT INTO check_rates VALUES (1, 1, 1, 1), (1, 1, 2, 1); UPDATE check_rates SET pages = 2 WHERE slot = 2",
        "DELETE FROM task_rows",
    ]);
}

#[test]
fn rows_that_are_replaced_are_noted() {
    replicate(&[
        "INSERT OR REPLACE INTO unsaved_site_states (site) VALUES (1), (2)",
        "INSERT OR REPLACE INTO unsaved_site_states (site) VALUES (1)",
        "INSERT OR REPLACE INTO meta VALUES ('a number', 1)",
        "INSERT OR REPLACE INTO meta VALUES ('a number', 2)",
    ]);
}

#[test]
fn columns_that_seldom_change_are_noted() {
    replicate(&[
        "INSERT INTO sites (name) VALUES ('a.org'), ('b.org')",
        "INSERT INTO task_rows (crawl, site, priority, depth, rank, url) VALUES (1, 1, 50, 0, 0, '2/')",
        "UPDATE task_rows SET url = '2/x'; UPDATE sites SET name = 'c.org', queued = 1 WHERE id = 2",
        "UPDATE task_rows SET state = 1; UPDATE task_rows SET depth = 1",
        "UPDATE task_rows SET id = 5; UPDATE sites SET id = 7 WHERE id = 1; UPDATE sites SET queued = 2",
        "INSERT OR REPLACE INTO sites (id, name) VALUES (2, 'd.org'), (3, 'a.org')",
        "INSERT INTO sites (id, name) VALUES (2, 'x') ON CONFLICT DO UPDATE SET block_until_ms = 3, queued = 3",
        "REPLACE INTO task_rows (id, crawl, site, priority, depth, rank, url) VALUES (5, 1, 1, 9, 0, 0, '2/y')",
    ]);
}

/// These rows are noted by code, because neither a hook nor a trigger sees them.
#[test]
fn rows_of_sites_of_crawls_and_of_records_of_tasks_are_noted() {
    let mut files = Files::new();
    let mut spec = CrawlSpec::new("app", "crawl");
    spec.run_began_ms = Some(NOW_MS);
    let crawl = files.frontier.crawls().open(&spec).unwrap();
    let feed = |frontier: &mut Frontier, records: &[&str], n: usize| {
        let records: Vec<String> = records.iter().map(ToString::to_string).collect();
        let urls: Vec<String> = (0..n)
            .map(|n| format!("http://s{}.org/{n}", n % 3))
            .collect();
        let candidates: Vec<Candidate<'_>> = urls
            .iter()
            .map(|url| Candidate {
                url,
                depth: 0,
                priority: None,
                parent: None,
                records: &records,
                attrs: None,
            })
            .collect();
        frontier.tasks().feed(crawl, &candidates, NOW_MS).unwrap();
    };
    feed(&mut files.frontier, &["r1", "r2"], 6);
    files.assert_equal_after_commit("new tasks with records");
    feed(&mut files.frontier, &["r3"], 9);
    files.assert_equal_after_commit("a further record, and further tasks");
    for site in files.frontier.sites().admit_due(i64::MAX, 2).unwrap() {
        let leased = files.frontier.tasks().lease(site.id, 2, Lane::Http, NOW_MS);
        assert_eq!(leased.unwrap().tasks.len(), 2);
        files.frontier.sites().evict(site.id, &site.clock).unwrap();
    }
    files.assert_equal_after_commit("tasks are handed out");
    spec.run_began_ms = Some(NOW_MS + 1);
    files.frontier.crawls().open(&spec).unwrap();
    files.assert_equal_after_commit("another run of a watch");
    feed(&mut files.frontier, &["r4"], 9);
    files.assert_equal_after_commit("the pages of that run");
}

/// A trigger doubles the time of a statement.
#[test]
fn the_most_frequent_statements_have_no_trigger() {
    let mut files = Files::new();
    let mut has_trigger = |sql: &str| {
        let run = |db: &Connection| {
            let mut explained = db.prepare(&format!("EXPLAIN {sql}"))?;
            let steps = explained.query_map([], |row| row.get::<_, String>(1))?;
            steps.collect::<rusqlite::Result<Vec<String>>>()
        };
        let steps = files.frontier.run_in_transaction(run).unwrap();
        steps.iter().any(|step| step == "Program")
    };
    for sql in [
        "INSERT INTO task_rows (crawl, site, priority, depth, rank, url) VALUES (1, 1, 50, 0, 0, '2/')",
        "UPDATE task_rows SET state = 1, attempt = 1, epoch = 1 WHERE id = 1",
        "UPDATE task_rows SET state = 2, outcome = 'ok', status_code = 200, done_at_ms = 1 WHERE id = 1",
        "UPDATE sites SET queued = 1, top_priority = 1, in_window = 0 WHERE id = 1",
        "UPDATE sites SET due_at_ms = 1, delay_ms = 1, last_start_ms = 1, owner = 'v', address = '::1' WHERE id = 1",
    ] {
        assert!(!has_trigger(sql), "{sql}");
    }
    assert!(has_trigger("UPDATE task_rows SET url = '2/x' WHERE id = 1"));
}

#[test]
fn ids_that_are_never_reused_are_not_reused_by_the_copy() {
    let mut files = replicate(&[
        "INSERT INTO unsaved_crawls (crawl) VALUES (1), (2); DELETE FROM unsaved_crawls WHERE crawl = 2",
    ]);
    let add = |db: &Connection| {
        db.execute("INSERT INTO unsaved_crawls (crawl) VALUES (3)", [])?;
        Ok(db.last_insert_rowid())
    };
    assert_eq!(files.frontier.run_in_transaction(add).unwrap(), 3);
    assert_eq!(add(&files.copy).unwrap(), 3);
}

#[test]
fn unique_values_move_between_rows() {
    replicate(&[
        "INSERT INTO crawls (app_id, crawl_id, spec) VALUES ('app', 'x', '{}')",
        "UPDATE crawls SET app_id = '', crawl_id = 'detached 1';
         INSERT INTO crawls (app_id, crawl_id, spec) VALUES ('app', 'x', '{}')",
        "UPDATE crawls SET id = 7 WHERE id = 2",
    ]);
}

#[test]
fn data_of_a_file_about_itself_are_not_copied() {
    let mut files = Files::new();
    files.execute(
        "INSERT INTO seen_runs (file, slices, keys, last_task) VALUES ('x', 1, 1, 1);
         INSERT INTO meta VALUES ('file_created_at_ns', 1)",
    );
    files.apply_changes_to_copy();
    let count = "SELECT count(*) FROM seen_runs";
    let count: i64 = files.copy.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 0);
    let position = Applied {
        number: 5,
        epoch: 2,
    };
    note_applied_position(&files.copy, position).unwrap();
    assert_eq!(read_applied_position(&files.copy).unwrap(), position);
    let unknown = files
        .frontier
        .run_in_transaction(read_applied_position)
        .unwrap();
    assert_eq!(unknown, Applied::default());
}

#[test]
fn a_change_costs_its_columns_and_not_its_row() {
    let mut files = Files::new();
    let spec = "x".repeat(10_000);
    files.execute(&format!(
        "INSERT INTO crawls (app_id, crawl_id, spec) VALUES ('app', 'x', '{spec}')"
    ));
    files.apply_changes_to_copy();
    files.execute("UPDATE crawls SET done = done + 1");
    let bytes = files.take_changes().len();
    assert!(bytes < 500, "{bytes} bytes");
}

#[test]
fn a_file_that_differs_is_found_by_a_row_that_is_missing() {
    let mut files = Files::new();
    files.execute("INSERT INTO sites (name) VALUES ('a.org')");
    files.take_changes();
    files.execute("UPDATE sites SET queued = 1");
    let changes = files.take_changes();
    assert!(apply_changes(&files.copy, &changes).is_err());
}

#[test]
fn a_file_is_never_ahead_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let config = FrontierConfig {
            journalled: true,
            ..FrontierConfig::default()
        };
        Frontier::open(folder.path(), config, NOW_MS).unwrap()
    };
    let sites = |db: &Connection| {
        db.query_row("SELECT count(*) FROM sites", [], |row| row.get::<_, i64>(0))
    };
    let mut frontier = open();
    let add = "INSERT INTO sites (name) VALUES ('a.org')";
    frontier
        .run_in_transaction(|db| db.execute(add, []))
        .unwrap();
    frontier.commit().unwrap();
    drop(frontier);
    let mut frontier = open();
    assert_eq!(
        frontier.run_in_transaction(sites).unwrap(),
        0,
        "it was not kept"
    );
    frontier
        .run_in_transaction(|db| db.execute(add, []))
        .unwrap();
    frontier.commit().unwrap();
    frontier.take_changes().unwrap();
    let position = Applied {
        number: 1,
        epoch: 1,
    };
    frontier.make_durable(position).unwrap();
    assert!(frontier.take_changes().unwrap().is_empty());
    drop(frontier);
    let mut frontier = open();
    assert_eq!(frontier.run_in_transaction(sites).unwrap(), 1);
    assert_eq!(
        frontier.run_in_transaction(read_applied_position).unwrap(),
        position
    );
}
