//! Tests the output of a crawl for people and programs: progress, summary, and logs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use webfill_tests::Signal;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page, script};
use webfill_tests::workplace::{Workplace, files_under};

fn crawl_command(work: &Workplace, web: &Web) -> Run {
    let site = web.site("seen.example");
    site.serve(
        "/",
        page("T")
            .field("name", "Ada")
            .mapped_link("/lost")
            .mapped_link("/evil%0Aline"),
    );
    site.serve("/lost", script());
    site.serve("/evil%0Aline", page("line one\nline two \u{1b}[31mred"));
    work.crawl(web).arg(site.url("/"))
}

#[test]
fn no_progress_means_silence() {
    let web = Web::start();
    let run = crawl_command(&Workplace::new(), &web)
        .finish()
        .expect_code(0);
    assert_eq!(run.stderr, "");
}

#[test]
fn the_first_plain_line_comes_after_seconds_where_there_is_no_terminal() {
    let web = Web::start();
    let site = web.site("slow.example");
    site.serve_robots("User-agent: *\nCrawl-delay: 12\n");
    site.serve("/1", page("1")).serve("/2", page("2"));
    let work = Workplace::new();
    let run = work.crawl(&web).replace_flag("--progress", "auto");
    let run = run
        .args([site.url("/1"), site.url("/2")])
        .finish()
        .expect_code(0);
    let line = run.one_sentence();
    // A busy machine may print the line late, but still before the end of the crawl.
    for part in [
        " s: errors 0, at least ",
        " s left, pages 1, ",
        "queued 1",
        "sites 1",
    ] {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
    assert!(!line.contains(['\r', '\u{1b}']), "{line:?}");
}

#[test]
fn an_unknown_field_is_reported_immediately_and_the_time_of_a_slow_site() {
    let web = Web::start();
    let site = web.site("slow.example");
    site.serve_robots("User-agent: *\nCrawl-delay: 90\n");
    site.serve("/1", page("1")).serve("/2", page("2"));
    let work = Workplace::new();
    let seeds = format!(
        "id,url,nmae\n1,{},\n2,{},\n",
        site.url("/1"),
        site.url("/2")
    );
    std::fs::write(work.path("seeds.csv"), seeds).expect("seeds");
    let run = work.crawl(&web).replace_flag("--progress", "plain");
    let run = run.arg("--seeds").arg(work.path("seeds.csv"));
    let mut running = run.start();
    // The delay of the site holds back the second page, so the output shows how much time is left.
    running.wait_for_stderr(" left, pages 1");
    running.wait_for_stderr("records want the field `nmae`");
    let output = running.stderr_so_far();
    assert!(output.contains("did you mean `name`?"), "{output}");
    assert!(web.visits().pages().len() < 2, "the crawl is not over");
    running.signal(Signal::INT);
    let ended = running.finish().expect_code(11);
    assert_eq!(ended.stderr.matches("nmae").count(), 1, "reported once");
}

#[test]
fn the_summary_for_people_says_what_happened() {
    let web = Web::start();
    let run = crawl_command(&Workplace::new(), &web)
        .replace_flag("--summary", "human")
        .finish()
        .expect_code(0);
    for part in ["test", "ok", "network_error", "pages"] {
        assert!(
            run.stdout.contains(part),
            "`{part}` is not in:\n{}",
            run.stdout
        );
    }
    assert!(serde_json::from_str::<Value>(&run.stdout).is_err());
}

#[test]
fn the_summary_for_programs_is_one_json_object() {
    let web = Web::start();
    let run = crawl_command(&Workplace::new(), &web)
        .finish()
        .expect_code(0);
    let summary = run.summary();
    assert_eq!(
        run.stdout.trim().lines().count(),
        1,
        "one line: {}",
        run.stdout
    );
    assert_eq!(summary.pages(), 2, "the lost one got no response");
    assert_eq!(
        (
            summary.outcome_count("ok"),
            summary.outcome_count("network_error")
        ),
        (2, 1)
    );
    assert!(
        summary.json["elapsed_s"]
            .as_f64()
            .is_some_and(|seconds| seconds > 0.3 && seconds < 60.0)
    );
}

#[test]
fn the_links_to_logs_lead_to_the_files_beside_them() {
    let web = Web::start();
    let work = Workplace::new();
    let run = crawl_command(&work, &web).replace_flag("--state", "state");
    run.finish().expect_code(0);
    let links = files_under(&work.path("state/logs"));
    let links: Vec<_> = links.iter().filter(|path| path.is_symlink()).collect();
    assert!(links.len() >= 5, "one for each process: {links:?}");
    for link in links {
        let target = std::fs::read_link(link).expect("a link");
        assert_eq!(target.components().count(), 1, "{link:?} to {target:?}");
        assert!(link.exists(), "{link:?} leads nowhere");
    }
}

#[test]
fn every_process_logs_json_lines_to_a_file_of_its_own() {
    let web = Web::start();
    let work = Workplace::new();
    crawl_command(&work, &web).finish().expect_code(0);
    let logs = work.logs();
    for role in ["dispatcher", "supervisor", "worker"] {
        assert!(
            logs.keys().any(|name| name.starts_with(role)),
            "no log of a {role} in {:?}",
            logs.keys()
        );
    }
    let workers = logs
        .keys()
        .filter(|name| name.starts_with("worker"))
        .count();
    assert!(workers >= 2, "one per worker: {:?}", logs.keys());
    let lines: Vec<&Value> = logs.values().flatten().collect();
    let about = |url: &str| -> Vec<&Value> {
        let of_url = lines.iter().filter(|line| line["url"] == url);
        of_url.copied().collect()
    };
    for url in ["http://seen.example/", "http://seen.example/lost"] {
        assert!(!about(url).is_empty(), "nothing is logged about {url}");
        for line in about(url) {
            assert_eq!(line["crawl_id"], "test", "{line}");
            assert!(line["event"].is_string(), "{line}");
            let message = line["message"].as_str().unwrap_or_default();
            assert!(
                !message.contains("seen.example"),
                "data belongs into fields: {line}"
            );
        }
    }
    let lost: BTreeSet<&str> = about("http://seen.example/lost")
        .iter()
        .filter_map(|line| line["outcome"].as_str())
        .collect();
    assert!(lost.contains("network_error"), "{lost:?}");
}

#[test]
fn a_full_log_continues_in_the_next_file_and_the_oldest_goes() {
    const MIB: u64 = 1 << 20;
    const KEEP: usize = 3;
    let web = Web::start();
    let site = web.site("a.example");
    site.serve_otherwise(|request| page(&request.path).into());
    let work = Workplace::new();
    let urls: Vec<String> = (0..2_000).map(|nth| site.url(&format!("/{nth}"))).collect();
    work.crawl_without_delay(&web)
        .args(["--delay", "0", "--seeds"])
        .arg(work.write("seeds.txt", urls.join("\n")))
        .env("WEBFILL_LOG_LEVEL", "trace")
        .env("WEBFILL_LOG_MAX_MIB", "1")
        .env("WEBFILL_LOG_KEEP", KEEP.to_string())
        .finish()
        .expect_code(0);
    let mut lengths: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for file in files_under(&work.path("state/logs")) {
        if !file.is_symlink() {
            let name = file.file_name().expect("a name").to_string_lossy();
            let process = name.split('.').next().expect("a first part").to_owned();
            let length = file.metadata().expect("it is there").len();
            lengths.entry(process).or_default().push(length);
        }
    }
    let full = lengths.values().filter(|files| files.len() == KEEP).count();
    assert!(full >= 1, "no log was long enough: {lengths:?}");
    for (process, lengths) in lengths {
        assert!(lengths.len() <= KEEP, "{process}: {lengths:?}");
        assert!(
            lengths.iter().all(|bytes| *bytes <= MIB),
            "{process}: {lengths:?}"
        );
    }
}

#[test]
fn every_line_about_a_task_carries_its_number_and_its_crawl() {
    let web = Web::start();
    let work = Workplace::new();
    let site = web.site("seen.example");
    let start = page("T").mapped_link("/next");
    site.serve("/", start.mapped_link("http://0.0.0.0/never"));
    site.serve("/next", page("N"));
    let run = work.crawl(&web).arg(site.url("/"));
    run.env("WEBFILL_LOG_LEVEL", "info,webfill_worker=debug")
        .finish()
        .expect_code(0);
    let logs = work.logs();
    let of_workers = logs.iter().filter(|(name, _)| name.starts_with("worker"));
    let lines: Vec<&Value> = of_workers.flat_map(|(_, lines)| lines).collect();
    let mut tasks = BTreeSet::new();
    for (url, events) in [
        ("http://seen.example/", vec!["ended"]),
        ("http://seen.example/next", vec!["ended"]),
        ("http://0.0.0.0/never", vec!["ended", "refused"]),
    ] {
        let about_url = lines.iter().filter(|line| line["url"] == url);
        let task = about_url
            .map(|line| line["span"]["task"].as_u64())
            .next()
            .flatten();
        let task = task.unwrap_or_else(|| panic!("no task number in the lines about {url}"));
        let about_task = lines.iter().filter(|line| line["span"]["task"] == task);
        let mut found = BTreeSet::new();
        for line in about_task {
            assert_eq!(line["span"]["crawl_id"], "test", "{line}");
            assert_eq!(line["url"], url, "{line}");
            found.extend(line["event"].as_str());
        }
        assert_eq!(found, BTreeSet::from_iter(events), "{url}");
        tasks.insert(task);
    }
    assert_eq!(tasks.len(), 3, "each task has a number of its own");
}
