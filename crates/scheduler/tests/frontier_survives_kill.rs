//! Kills a process that feeds, leases and finishes tasks, again and again, at any moment. Everything that was
//! reported as committed must be in the file, and the file must be consistent, as seen by another connection.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use webfill_api::CrawlSpec;
use webfill_scheduler::frontier::{
    Candidate, Completion, FILE_NAME, Frontier, FrontierConfig, Leased, ReturnResult, SiteId,
};
use webfill_wire::{CrawlKey, Lane, Outcome, SiteClock, TaskDone};

const STATE_DIR: &str = "WEBFILL_TEST_KILLED_STATE_DIR";
const ROUNDS: u64 = 12;

/// Opens the frontier with so little memory that keys go to disk and are merged there many times.
fn open_frontier(dir: &Path) -> Frontier {
    let config = FrontierConfig {
        seen_memory_bytes: 0,
        ..FrontierConfig::default()
    };
    Frontier::open(dir, config, 0).unwrap()
}

fn open_crawl(frontier: &mut Frontier) -> CrawlKey {
    let mut spec = CrawlSpec::new("app", "crawl");
    spec.max_depth = u16::MAX;
    frontier.crawls().open(&spec).unwrap()
}

fn feed(frontier: &mut Frontier, crawl: CrawlKey) {
    let fed = frontier.crawls().status(crawl).unwrap().fed_lines;
    let urls: Vec<String> = (fed..fed + 40)
        .map(|n| format!("http://s{}.org/{n}", n % 9))
        .collect();
    let candidates: Vec<_> = urls
        .iter()
        .map(|url| Candidate {
            url,
            depth: 0,
            priority: None,
            parent: None,
            records: &[],
            attrs: None,
        })
        .collect();
    frontier.tasks().feed(crawl, &candidates, 0).unwrap();
    frontier.crawls().set_fed_lines(crawl, fed + 40).unwrap();
}

/// A page with two new links and three links that lead back.
fn done_report(task: &Leased) -> TaskDone {
    let id = task.task;
    let links = [2 * id, 2 * id + 1, id, id / 2, id / 3];
    TaskDone {
        task: task.task,
        delivery: task.delivery,
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 10,
        fields: 1,
        rows: 0,
        rows_stored: 0,
        links: links
            .iter()
            .map(|n| format!("http://l{}.org/{n}", n % 5))
            .collect(),
        redirect: None,
        resolved: vec![],
        clock: SiteClock::default(),
        evidence: None,
    }
}

fn lease(frontier: &mut Frontier) -> Vec<(SiteId, Vec<Leased>)> {
    let mut leased = Vec::new();
    for site in frontier.sites().admit_due(i64::MAX, 5).unwrap() {
        leased.push((
            site.id,
            frontier
                .tasks()
                .lease(site.id, 6, Lane::Http, 0)
                .unwrap()
                .tasks,
        ));
        frontier.sites().evict(site.id, &site.clock).unwrap();
    }
    leased
}

#[test]
#[ignore = "is the process that the other test kills"]
fn works_until_it_is_killed() {
    let Some(dir) = std::env::var_os(STATE_DIR) else {
        return;
    };
    let mut frontier = open_frontier(Path::new(&dir));
    let crawl = open_crawl(&mut frontier);
    give_back_leases(&mut frontier);
    loop {
        feed(&mut frontier, crawl);
        let leased = lease(&mut frontier);
        frontier.commit().unwrap();
        print_counts(&mut frontier, crawl);
        for task in leased
            .iter()
            .flat_map(|(_, tasks)| &tasks[..tasks.len() / 2])
        {
            frontier.tasks().complete(&done_report(task), 0).unwrap();
        }
        frontier.commit().unwrap();
        print_counts(&mut frontier, crawl);
    }
}

fn print_counts(frontier: &mut Frontier, crawl: CrawlKey) {
    let status = frontier.crawls().status(crawl).unwrap();
    println!(
        "committed {} {} {}",
        status.discovered, status.done, status.fed_lines
    );
}

fn start_worker(dir: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "works_until_it_is_killed",
            "--include-ignored",
            "--nocapture",
        ])
        .env(STATE_DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdout)
}

/// Kills the process some time after this many commits. Returns the last counts that it has printed.
fn kill_after(dir: &Path, commits: u64) -> Vec<u64> {
    let (mut child, stdout) = start_worker(dir);
    let mut lines = stdout.lines().map_while(Result::ok).filter_map(|line| {
        let figures = line.split_once("committed ")?.1;
        figures
            .split(' ')
            .map(|figure| figure.parse::<u64>().ok())
            .collect::<Option<Vec<_>>>()
    });
    let last = lines
        .by_ref()
        .nth(commits as usize)
        .expect("it dies of nothing else");
    // The kill may come between two commits, or within one.
    std::thread::sleep(Duration::from_micros(commits * 397 % 5_000));
    child.kill().unwrap();
    child.wait().unwrap();
    lines.last().unwrap_or(last)
}

fn query_numbers(db: &Connection, sql: &str) -> Vec<i64> {
    let read = |row: &rusqlite::Row<'_>| {
        (0..row.as_ref().column_count())
            .map(|n| row.get(n))
            .collect()
    };
    db.query_row(sql, [], read).unwrap()
}

fn assert_file_holds(dir: &Path, announced: &[u64]) {
    let db = Connection::open(dir.join(FILE_NAME)).unwrap();
    let healthy: String = db
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(healthy, "ok");
    let counted = query_numbers(
        &db,
        "SELECT discovered, done, fed_lines, queued, leased FROM crawls",
    );
    for (counted, announced) in counted.iter().zip(announced) {
        assert!(
            *counted >= *announced as i64,
            "{counted} in the file, {announced} announced"
        );
    }
    let skipped = query_numbers(&db, "SELECT coalesce(sum(n), 0) FROM skipped");
    assert_eq!(
        counted[0],
        counted[1] + counted[3] + counted[4] + skipped[0]
    );
    let tasks = query_numbers(
        &db,
        "SELECT sum(state = 2), sum(state = 0), sum(state = 1) FROM tasks",
    );
    assert_eq!(tasks, [counted[1], counted[3], counted[4]]);
    let urls = query_numbers(&db, "SELECT count(*), count(DISTINCT url) FROM tasks");
    assert_eq!(urls[0], urls[1], "a URL became two tasks");
    let outcomes = query_numbers(&db, "SELECT sum(n) FROM outcomes");
    assert_eq!(outcomes[0], counted[1]);
}

#[test]
fn nothing_is_lost_or_doubled_however_often_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    for round in 1..=ROUNDS {
        let announced = kill_after(dir.path(), round * 7 % 40);
        assert_file_holds(dir.path(), &announced);
        assert_runs_have_their_files(dir.path());
    }
    assert!(count_runs(dir.path()) > 0, "no key went to disk");
    end_all_that_is_left(dir.path());
}

/// Checks the runs' files. If one was missing, the next start would rebuild the index without anyone noticing.
fn assert_runs_have_their_files(dir: &Path) {
    let db = Connection::open(dir.join(FILE_NAME)).unwrap();
    let mut select = db.prepare("SELECT file, slices FROM seen_runs").unwrap();
    let runs = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    for run in runs.unwrap() {
        let (file, slices): (String, i64) = run.unwrap();
        let bytes = std::fs::read(dir.join("seen").join(&file)).unwrap();
        let directory = bytes.len() - 4 * (slices as usize + 1);
        let entries = u32::from_le_bytes(*bytes.last_chunk().unwrap()) as usize;
        assert!(
            entries > 0 && directory.is_multiple_of(entries),
            "{file} is whole"
        );
    }
}

fn count_runs(dir: &Path) -> i64 {
    let db = Connection::open(dir.join(FILE_NAME)).unwrap();
    query_numbers(&db, "SELECT count(*) FROM seen_runs")[0]
}

/// Gives back all leases, as if their holder had reported that it lost them.
fn give_back_leases(frontier: &mut Frontier) {
    for lease in frontier.tasks().leases().unwrap() {
        let back = frontier
            .tasks()
            .return_task(lease.task, lease.delivery, false, 0);
        assert!(matches!(back.unwrap(), ReturnResult::Requeued(_)));
    }
}

/// Checks that everything that the last kill left ends with exactly one outcome.
fn end_all_that_is_left(dir: &Path) {
    let mut frontier = open_frontier(dir);
    let crawl = open_crawl(&mut frontier);
    give_back_leases(&mut frontier);
    loop {
        let leased = lease(&mut frontier);
        if leased.is_empty() {
            break;
        }
        for task in leased.iter().flat_map(|(_, tasks)| tasks) {
            let last = TaskDone {
                links: vec![],
                ..done_report(task)
            };
            assert!(matches!(
                frontier.tasks().complete(&last, 0).unwrap(),
                Completion::Counted(_)
            ));
        }
        frontier.commit().unwrap();
    }
    let status = frontier.crawls().status(crawl).unwrap();
    assert_eq!((status.queued, status.leased), (0, 0));
    drop(frontier);
    assert_file_holds(dir, &[status.discovered, status.done, status.fed_lines]);
}
