//! Checks a round by the access log, the store and the frontier's file. A sentence describes each violation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use webfill_tests::site::{Visit, Visits};
use webfill_tests::stored::StoredPage;

use crate::crew::LONGEST_REQUEST;
use crate::graph::Graph;
use crate::plan::Fault;
use crate::round::{Injected, Report};

/// Facts about a round that may explain why tasks have failed.
pub(crate) struct Failures<'a> {
    pub(crate) visits: &'a Visits,
    /// URLs that were requested by a machine without a route to the web.
    pub(crate) without_route: &'a BTreeSet<String>,
    /// Whether one failure of a host may make it unreachable, so that all tasks of the host fail.
    pub(crate) of_whole_hosts: bool,
}

impl Failures<'_> {
    /// Whether these reasons explain why the task of a URL has failed.
    pub(crate) fn can_explain(&self, url: &str) -> bool {
        let mut visits = self.visits.0.iter();
        if self.of_whole_hosts {
            let host = url.split('/').nth(2).unwrap_or_default();
            let is_of_host = |other: &&String| other.split('/').nth(2) == Some(host);
            return self.without_route.iter().any(|other| is_of_host(&other))
                || visits.any(|visit| visit.host == host && visit.status != Some(200));
        }
        self.without_route.contains(url) || visits.any(|visit| has_failed(visit, url))
    }
}

pub(crate) fn build_report(
    graph: &Graph,
    failures: &Failures<'_>,
    injected: &[Injected],
    pages: &BTreeMap<String, StoredPage>,
) -> Report {
    let visits = failures.visits;
    let mut report = Report {
        pages: pages.len(),
        requests: visits.len(),
        ..Report::default()
    };
    for fault in injected {
        let name = format!("{:?}", fault.planned.fault);
        let name = name.split([',', ')']).next().unwrap_or_default();
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "(-".contains(c));
        *report
            .faults
            .entry(name.replace(['(', '"'], " "))
            .or_default() += 1;
    }
    let mut wrong = Vec::new();
    for (host, delay) in &graph.delays {
        let of_host = visits.for_host(host);
        wrong.extend(find_impolite_requests(host, &of_host, *delay));
        wrong.extend(find_robots_violations(host, &of_host));
        report.robots += of_host.robots().len();
    }
    let (repeated, unexplained) = find_repeats(visits, injected);
    report.repeated = repeated;
    wrong.extend(unexplained);
    wrong.extend(find_lost_pages(graph, visits));
    wrong.extend(find_store_differences(graph, pages));
    report.wrong = wrong;
    report
}

/// Finds requests to a site that overlap, and requests for pages that start too early.
fn find_impolite_requests(host: &str, visits: &Visits, delay: Duration) -> Vec<String> {
    let overlaps = visits.overlaps();
    let mut wrong: Vec<String> = overlaps
        .iter()
        .map(|pair| format!("{host}: overlap of {pair}"))
        .collect();
    let pages = visits.without_lost_requests().pages();
    for (gap, pair) in pages.gaps().iter().zip(pages.0.windows(2)) {
        if *gap < delay {
            let (first, second) = (&pair[0].path, &pair[1].path);
            wrong.push(format!(
                "{host}: {gap:?} between {first} and {second}, not {delay:?}"
            ));
        }
    }
    wrong
}

fn find_robots_violations(host: &str, visits: &Visits) -> Vec<String> {
    let mut wrong = Vec::new();
    if visits.0.first().is_some_and(|visit| !visit.is_robots()) {
        wrong.push(format!("{host}: a page was asked for before robots.txt"));
    }
    for visit in &visits.0 {
        if visit.path.starts_with("/private/") {
            wrong.push(format!("{host}: robots.txt forbids {}", visit.path));
        }
    }
    wrong
}

/// Counts repeated requests, and finds those that no fault explains.
fn find_repeats(visits: &Visits, injected: &[Injected]) -> (usize, Vec<String>) {
    let mut last: BTreeMap<(&str, &str), &Visit> = BTreeMap::new();
    let (mut repeated, mut wrong) = (0, Vec::new());
    for visit in &visits.0 {
        let Some(before) = last.insert((&visit.host, &visit.path), visit) else {
            continue;
        };
        repeated += usize::from(!visit.is_robots());
        let is_explained = before.status != Some(200)
            || injected
                .iter()
                .any(|fault| explains_repeat(fault, before, visit));
        if !is_explained {
            let (host, path) = (&visit.host, &visit.path);
            let faults: Vec<String> = injected
                .iter()
                .map(|fault| describe_timing(fault, before, visit))
                .collect();
            wrong.push(format!(
                "{host}{path} was asked for again without a fault: {faults:?}"
            ));
        }
    }
    (repeated, wrong)
}

/// If a worker's supervisor is killed, the worker notices it within this time, even on a busy machine.
const UNLINKED_LIVE: Duration = Duration::from_millis(500);

/// Whether a fault explains that a page was requested again. The fault must have come between the two requests and
/// affected the first one: some process held the task while the fault lasted.
fn explains_repeat(fault: &Injected, first: &Visit, again: &Visit) -> bool {
    let until = match fault.planned.fault {
        // Connections may survive the fault. The data of a request then arrive when the route is back, perhaps late.
        Fault::LosesWay(_) => fault.until + LONGEST_REQUEST,
        // The workers of a killed supervisor may start another request before they notice its death.
        Fault::Kill(_) | Fault::KillAt(_) => fault.until + UNLINKED_LIVE,
        _ => fault.until,
    };
    if first.started_at > until || again.started_at < fault.from {
        return false;
    }
    let of_host = |url: &String| url.starts_with(&format!("http://{}/", first.host));
    match (first.is_robots(), fault.planned.fault) {
        // The clock is wrong during the fault, so cached robots.txt files may have expired.
        (true, Fault::Clock(_)) => true,
        // A robots.txt may be requested because of any task of its host.
        (true, _) => fault.held.iter().any(of_host),
        (false, _) => fault.held.contains(&url_of(first)),
    }
}

/// Describes when a fault happened relative to two requests for a page, and whether it affected the page.
fn describe_timing(fault: &Injected, first: &Visit, again: &Visit) -> String {
    let after = |at: Instant, visit: &Visit| {
        let ms = |span: Duration| span.as_millis() as i64;
        ms(at.saturating_duration_since(visit.started_at))
            - ms(visit.started_at.saturating_duration_since(at))
    };
    format!(
        "{:?} from {} to {} ms after the first request, {} ms before the second, held: {}",
        fault.planned.fault,
        after(fault.from, first),
        after(fault.until, first),
        -after(fault.until, again),
        fault.held.contains(&url_of(first))
    )
}

fn url_of(visit: &Visit) -> String {
    format!("http://{}{}", visit.host, visit.path)
}

/// Whether a visit was for this URL, or for the robots.txt of its host, and did not get status 200.
fn has_failed(visit: &Visit, url: &str) -> bool {
    let is_of_host = || url.starts_with(&format!("http://{}/", visit.host));
    let is_meant = url_of(visit) == url || (visit.is_robots() && is_of_host());
    is_meant && visit.status != Some(200)
}

fn find_lost_pages(graph: &Graph, visits: &Visits) -> Vec<String> {
    let counts = visits.counts();
    let fetched = |url: &str| counts.contains_key(url.trim_start_matches("http://"));
    let due = graph
        .expected
        .iter()
        .filter(|(_, page)| page.outcome == "ok");
    due.filter(|(url, _)| !fetched(url))
        .map(|(url, _)| format!("{url} was never asked for"))
        .collect()
}

/// Compares the store with the served pages, and describes the differences.
fn find_store_differences(graph: &Graph, pages: &BTreeMap<String, StoredPage>) -> Vec<String> {
    let mut wrong = Vec::new();
    for url in pages.keys() {
        if !graph.expected.contains_key(url) {
            wrong.push(format!("{url} is stored, and is no task"));
        }
    }
    for (url, expected) in &graph.expected {
        let Some(page) = pages.get(url) else {
            wrong.push(format!("{url} is not stored"));
            continue;
        };
        let field = |name: &str| page.fields.get(name).and_then(|value| value.as_str());
        let same = page.outcome == expected.outcome
            && field("title").unwrap_or_default() == expected.title
            && field("name").unwrap_or_default() == expected.text
            && page.bytes == expected.bytes as i64;
        if !same {
            wrong.push(format!("{url} is stored as {page:?}, not {expected:?}"));
        }
    }
    wrong
}

/// Checks the frontier's file (the database of tasks): its integrity, its counts, and the state of each task.
pub(crate) fn check_frontier(path: &Path, graph: &Graph) -> Vec<String> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let db = db.unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
    let number = |sql: &str| -> i64 {
        let number = db.query_row(sql, [], |row| row.get(0));
        number.unwrap_or_else(|error| panic!("{sql}: {error}"))
    };
    let tasks = graph.expected.len() as i64;
    let checks = [
        (
            "pages of a damaged file",
            "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
            0,
        ),
        ("crawls", "SELECT count(*) FROM crawls", 1),
        (
            "discovered, and neither queued, leased, done nor skipped",
            "SELECT discovered - queued - leased - done - (SELECT sum(n) FROM skipped) FROM crawls",
            0,
        ),
        ("tasks", "SELECT count(*) FROM tasks", tasks),
        (
            "done by the tasks",
            "SELECT count(*) FROM tasks WHERE state = 2 AND outcome IS NOT NULL",
            tasks,
        ),
        ("done by the counter", "SELECT done FROM crawls", tasks),
        ("outcomes", "SELECT sum(n) FROM outcomes", tasks),
        (
            "URLs that are two tasks",
            "SELECT count(*) - count(DISTINCT url) FROM tasks",
            0,
        ),
    ];
    let counted = checks
        .into_iter()
        .map(|(what, sql, right)| (what, number(sql), right));
    let mut wrong: Vec<String> = counted
        .filter(|(_, found, right)| found != right)
        .map(|(what, found, right)| format!("the frontier: {what}: {found}, not {right}"))
        .collect();
    let forbidden = graph
        .expected
        .values()
        .filter(|page| page.outcome == "disallowed");
    let (forbidden, found) = (
        forbidden.count() as i64,
        number("SELECT count(*) FROM tasks WHERE outcome = 'disallowed'"),
    );
    if forbidden != found {
        wrong.push(format!(
            "the frontier: disallowed: {found}, not {forbidden}"
        ));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlannedFault;

    /// Log entries of requests to one site, made from their paths, starts and ends in milliseconds.
    fn log_entries(requests: &[(&str, u64, u64)]) -> Visits {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let visit = |(path, from, until): &(&str, u64, u64)| Visit {
            host: "c0.example".into(),
            host_header: "c0.example".into(),
            method: "GET".into(),
            path: (*path).into(),
            headers: Vec::new(),
            version: "HTTP/1.1",
            tls: false,
            proxied: false,
            connection: 0,
            accepted_at: at(*from),
            started_at: at(*from),
            head_read_at: at(*from),
            ended_at: Some(at(*until)),
            status: Some(200),
            sent_bytes: 0,
            cut_short: false,
        };
        Visits(requests.iter().map(visit).collect())
    }

    fn injected_fault(fault: Fault, from: Instant, until: Instant, held: &[&str]) -> Injected {
        Injected {
            planned: PlannedFault {
                wait_ms: 0,
                fault,
                pick: 0,
            },
            from,
            until,
            held: held.iter().map(|url| (*url).to_owned()).collect(),
        }
    }

    #[test]
    fn requests_that_are_too_close_or_overlap_are_found() {
        let delay = Duration::from_millis(200);
        let judged = |requests: &[_]| {
            find_impolite_requests("c0.example", &log_entries(requests), delay).len()
        };
        assert_eq!(
            judged(&[("/robots.txt", 0, 5), ("/", 6, 20), ("/a", 206, 210)]),
            0
        );
        assert_eq!(judged(&[("/", 0, 20), ("/a", 199, 210)]), 1);
        assert_eq!(judged(&[("/", 0, 300), ("/a", 250, 310)]), 1);
    }

    #[test]
    fn forbidden_requests_are_found() {
        let judged =
            |requests: &[_]| find_robots_violations("c0.example", &log_entries(requests)).len();
        assert_eq!(judged(&[("/robots.txt", 0, 5), ("/", 6, 20)]), 0);
        assert_eq!(judged(&[("/", 0, 5), ("/robots.txt", 6, 20)]), 1);
        assert_eq!(judged(&[("/robots.txt", 0, 5), ("/private/1", 6, 20)]), 1);
    }

    #[test]
    fn a_repeated_request_needs_a_fault_that_affected_its_task() {
        let requests = log_entries(&[("/", 0, 20), ("/", 9_000, 9_020)]);
        let fault_at = |ms, held: &[&str]| {
            let from = requests.0[0].started_at + Duration::from_millis(ms);
            [injected_fault(Fault::KillAll, from, from, held)]
        };
        let (own, other) = ("http://c0.example/", "http://c0.example/p1");
        assert_eq!(
            find_repeats(&requests, &fault_at(100, &[own])),
            (1, Vec::new())
        );
        assert_eq!(find_repeats(&requests, &fault_at(100, &[other])).1.len(), 1);
        assert_eq!(find_repeats(&requests, &fault_at(9_500, &[own])).1.len(), 1);
        assert_eq!(find_repeats(&requests, &[]).1.len(), 1);
    }

    #[test]
    fn a_request_sent_without_a_route_may_arrive_when_the_route_is_back() {
        let requests = log_entries(&[("/", 1_000, 1_020), ("/", 9_000, 9_020)]);
        let lost_until = |ms, held: &[&str]| {
            let back = requests.0[0].started_at - Duration::from_millis(ms);
            [injected_fault(Fault::LosesWay(900), back, back, held)]
        };
        let (own, other) = ("http://c0.example/", "http://c0.example/p1");
        assert_eq!(find_repeats(&requests, &lost_until(100, &[own])).1.len(), 0);
        assert_eq!(
            find_repeats(&requests, &lost_until(100, &[other])).1.len(),
            1
        );
        assert_eq!(
            find_repeats(&requests, &lost_until(5_000, &[own])).1.len(),
            1
        );
    }

    #[test]
    fn a_request_that_was_answered_with_an_error_may_come_again() {
        let mut requests = log_entries(&[("/", 0, 20), ("/", 9_000, 9_020)]);
        requests.0[0].status = Some(503);
        assert_eq!(find_repeats(&requests, &[]), (1, Vec::new()));
    }
}
