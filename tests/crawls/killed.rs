//! Tests killed processes: no task is lost, no page is stored twice, and the delay of every site is kept.

use std::time::Duration;

use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use crate::wide_web::{assert_complete, repeated_pages, serve_wide_web};

const DELAY: Duration = Duration::from_millis(200);
/// The most pages that a kill may cause to be requested twice: those in flight, one for each site, and as many that
/// were fetched but not yet stored.
const IN_FLIGHT: usize = 12;

fn crawl_command(work: &Workplace, web: &Web, roots: &[String]) -> Run {
    work.crawl(web).args(roots)
}

fn assert_little_was_repeated(web: &Web, kills: usize) {
    let repeated = repeated_pages(web);
    assert!(
        repeated.len() <= kills * IN_FLIGHT,
        "asked again: {repeated:#?}"
    );
}

#[test]
fn a_killed_worker_is_replaced_and_its_tasks_are_done() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let mut running = crawl_command(&work, &web, &roots).start();
    web.log()
        .wait_until("the crawl is under way", |visits| visits.pages().len() > 12);
    let killed = running.kill_role("worker");
    running.wait_until("another worker took its place", |run| {
        let workers = run.processes_of_role("worker");
        workers.len() == 2 && workers.iter().all(|worker| worker.pid != killed)
    });
    let run = running.finish().expect_code(0);
    assert_complete(&work);
    assert_eq!(run.summary().outcomes().len(), 1, "{}", run.summary().json);
    assert_little_was_repeated(&web, 1);
    web.visits().assert_polite(DELAY);
}

#[test]
fn every_worker_may_be_killed_again_and_again() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let mut running = crawl_command(&work, &web, &roots).start();
    for round in 1..=3 {
        web.log()
            .wait_until("it continues", |visits| visits.pages().len() > round * 12);
        for worker in running.wait_for_role("worker", 1) {
            worker.signal(Signal::KILL);
        }
    }
    running.finish().expect_code(0);
    assert_complete(&work);
    assert_little_was_repeated(&web, 3);
    web.visits().assert_polite(DELAY);
}

/// Kills the processes whose role is accepted by `victims` during a run. Waits until all processes have ended, and
/// resumes the crawl.
fn kill_and_resume(victims: impl Fn(&str) -> bool) {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let running = crawl_command(&work, &web, &roots).start();
    web.log()
        .wait_until("the crawl is under way", |visits| visits.pages().len() > 18);
    for process in running.processes() {
        if victims(process.role()) {
            process.signal(Signal::KILL);
        }
    }
    // The run ends only when all of its processes end, so survivors must notice that their parent is dead.
    let ended = running.finish();
    let stored = work.stored();
    assert_eq!(stored.integrity(), "ok");
    let before = stored.pages();
    assert!(before.len() < 54, "it was killed in the middle");
    if ended.status.code() == Some(0) {
        panic!("a crawl cannot be done without them: {}", ended.stderr);
    }
    crawl_command(&work, &web, &roots).finish().expect_code(0);
    assert_complete(&work);
    assert_little_was_repeated(&web, 1);
    web.visits().assert_polite(DELAY);
    let after = work.stored().pages();
    for (url, page) in before {
        assert_eq!(after[&url].fields, page.fields, "{url}");
    }
}

#[test]
fn the_first_process_may_be_killed() {
    kill_and_resume(|role| role == "crawl");
}

#[test]
fn all_processes_may_be_killed_at_once() {
    kill_and_resume(|_| true);
}

#[test]
fn a_killed_dispatcher_loses_nothing() {
    assert_survives_death_of("dispatcher");
}

#[test]
fn a_killed_supervisor_loses_nothing() {
    assert_survives_death_of("supervisor");
}

/// Kills a process with this role. Afterwards the run may continue by itself, or end and be resumed by the same
/// command.
fn assert_survives_death_of(role: &str) {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let mut running = crawl_command(&work, &web, &roots).start();
    web.log()
        .wait_until("the crawl is under way", |visits| visits.pages().len() > 18);
    running.kill_role(role);
    let ended = running.finish();
    if ended.status.code() != Some(0) {
        crawl_command(&work, &web, &roots).finish().expect_code(0);
    }
    assert_complete(&work);
    assert_little_was_repeated(&web, 1);
    web.visits().assert_polite(DELAY);
}

#[test]
fn a_stopped_worker_delays_nothing_for_ever() {
    let web = Web::start();
    let roots = serve_wide_web(&web);
    let work = Workplace::new();
    let mut running = crawl_command(&work, &web, &roots).start();
    web.log()
        .wait_until("the crawl is under way", |visits| visits.pages().len() > 12);
    let stopped = running.wait_for_role("worker", 2).remove(0);
    stopped.signal(Signal::STOP);
    running.wait_until("it was replaced", |run| {
        run.processes_of_role("worker")
            .iter()
            .all(|worker| worker.pid != stopped.pid)
    });
    running.finish().expect_code(0);
    assert_complete(&work);
    web.visits().assert_polite(DELAY);
}
