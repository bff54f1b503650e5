//! Tests invalid input: it is answered with one clear sentence and the right exit code before anything is opened.

use std::path::Path;

use webfill_test_needs::needs;
use webfill_tests::isolation::run_isolated;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, files_under};

/// A valid crawl. The tests add an invalid flag to it.
fn crawl_command(work: &Workplace) -> Run {
    let run = work.plain_crawl();
    run.args(["--allow-private-networks", "http://a.example/"])
}

/// Adds arguments to a run. If the run already has the first flag, the flag's value is replaced, because no flag may be
/// given twice.
fn with_arguments(run: Run, args: &[&str]) -> Run {
    let run = run.arg("--allow-private-networks");
    match args {
        [
            flag @ ("--store" | "--summary" | "--workers"),
            value,
            rest @ ..,
        ] => run.replace_flag(flag, value).args(rest),
        _ => run.args(args),
    }
}

/// Checks that the run prints one sentence without a full stop that contains all of these parts, and no result.
fn assert_says(run: &Finished, parts: &[&str]) {
    let sentence = run.one_sentence();
    for part in parts {
        assert!(sentence.contains(part), "`{part}` is not in: {sentence}");
    }
    assert!(!sentence.ends_with('.'), "{sentence}");
    assert_eq!(run.stdout, "", "nothing is printed as a result");
}

fn assert_nothing_written(work: &Workplace) {
    let left: Vec<_> = files_under(&work.path(""))
        .into_iter()
        .filter(|path| !is_test_input(path, work))
        .collect();
    assert!(left.is_empty(), "left behind: {left:#?}");
}

fn is_test_input(path: &Path, work: &Workplace) -> bool {
    path.starts_with(work.path("mappings")) || path.starts_with(work.path("input"))
}

#[test]
fn unknown_flags_and_values_are_named() {
    let work = Workplace::new();
    for (args, named) in [
        (vec!["--dpeth", "3", "http://a.example/"], "--dpeth"),
        (vec!["--depth", "deep", "http://a.example/"], "deep"),
        (vec!["--follow", "some", "http://a.example/"], "some"),
        (vec!["--delay", "-1", "http://a.example/"], "-1"),
        (vec!["--delay", "nan", "http://a.example/"], "nan"),
        (vec!["--workers", "1000", "http://a.example/"], "--workers"),
        (
            vec!["--resolve", "nonsense", "http://a.example/"],
            "nonsense",
        ),
        (vec!["--proxy", "gopher://x", "http://a.example/"], "gopher"),
        (vec!["--store", "oracle://x", "http://a.example/"], "oracle"),
        (
            vec!["--dataset", "a/b", "http://a.example/"],
            "`a/b` is no name of a dataset",
        ),
        (vec!["--max-time", "soon", "http://a.example/"], "soon"),
        (vec!["--allow-regex", "(", "http://a.example/"], "("),
        (vec!["--summary", "xml", "http://a.example/"], "xml"),
        (
            vec!["--ca-file", "no-such.pem", "http://a.example/"],
            "no-such.pem",
        ),
        (
            vec!["--exclude-sites", "no-such.csv", "http://a.example/"],
            "no-such.csv",
        ),
        (
            vec!["--config", "no-such.toml", "http://a.example/"],
            "no-such.toml",
        ),
        (vec!["--seeds", "no-such-seeds.txt"], "no-such-seeds.txt"),
        (vec!["http://a.example/", "a.example"], "\"a.example\""),
        (vec!["ftp://a.example/"], "ftp"),
        (vec![], "seed"),
    ] {
        let run = with_arguments(work.plain_crawl(), &args).finish();
        let run = run.expect_code(2);
        assert!(
            run.stderr.contains(named),
            "{args:?}: `{named}` is not in: {}",
            run.stderr
        );
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        assert_nothing_written(&work);
    }
}

#[test]
fn a_file_in_place_of_a_url_is_to_be_named_with_seeds() {
    let work = Workplace::new();
    work.write("input.csv", "id,link\n");
    let run = work.plain_crawl().in_folder(work.path("."));
    let run = run.arg("input.csv").finish().expect_code(2);
    assert_says(&run, &["invalid URL \"input.csv\"", "--seeds input.csv"]);
}

#[test]
fn a_crawl_to_resume_must_have_begun() {
    let work = Workplace::new();
    let web = Web::start();
    web.site("a.example").serve("/", page("one"));
    let begun = work.crawl(&web).arg("http://a.example/");
    begun.finish().expect_code(0);
    let run = work.crawl(&web).replace_flag("--crawl", "tset").finish();
    assert_says(&run.expect_code(2), &["--crawl tset", "no such crawl"]);
    work.crawl(&web).finish().expect_code(0);
}

#[test]
fn seeds_that_cannot_be_read_from_standard_input_leave_nothing_behind() {
    let work = Workplace::new();
    let run = work
        .plain_crawl()
        .args(["--allow-private-networks", "--seeds", "-"])
        .input("[\"http://a.example/\"]")
        .finish()
        .expect_code(2);
    assert_says(&run, &["JSON lines"]);
    assert_nothing_written(&work);
}

#[test]
fn an_unknown_command_is_named() {
    let run = Run::new(["crwal", "http://a.example/"])
        .finish()
        .expect_code(2);
    assert!(
        run.stderr.contains("crwal") && run.stderr.contains("crawl"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_unknown_setting_is_named_with_the_most_similar_one() {
    let work = Workplace::new();
    let settings = work.write("input/webfill.toml", "[fetch]\nhead_timeuot = 3.0\n");
    let run = crawl_command(&work);
    let run = run.arg("--config").arg(settings).finish().expect_code(2);
    assert!(
        run.stderr.contains("head_timeuot") && run.stderr.contains("head_timeout"),
        "{}",
        run.stderr
    );
    assert_nothing_written(&work);
}

#[test]
fn an_invalid_mapping_is_reported_with_file_path_and_nearest_name() {
    let work = Workplace::new();
    let mapping = r#"{"name": "shop", "url_patterns": [{"type": "prefix", "pattern": "http://shop.example/"}],
        "fields": [{"name": "price", "processors": [{"type": "xpaht", "parameters": {"expression": "//td"}}]}]}"#;
    work.write("mappings/shop.json", mapping);
    let run = crawl_command(&work).finish().expect_code(2);
    for part in ["shop.json", "fields[0].processors[0]", "xpaht", "xpath"] {
        assert!(
            run.stderr.contains(part),
            "`{part}` is not in: {}",
            run.stderr
        );
    }
    assert_nothing_written(&work);
}

#[test]
fn an_invalid_expression_is_reported_with_its_own_error() {
    let work = Workplace::new();
    let mapping = |expression: &str| {
        format!(
            r#"{{"name": "shop", "url_patterns": [{{"type": "prefix", "pattern": "http://shop.example/"}}],
            "fields": [{{"name": "price", "processors": [{{"type": "xpath", "parameters": {{"expression": "{expression}"}}}}]}}]}}"#
        )
    };
    for expression in ["//td[", "//svg:path", "nonsense(1)", ""] {
        work.write("mappings/shop.json", mapping(expression));
        let run = crawl_command(&work).finish().expect_code(2);
        assert!(
            run.stderr.contains("shop.json") && run.stderr.contains(expression),
            "{}",
            run.stderr
        );
        assert!(
            run.stderr
                .contains("fields[0].processors[0].parameters.expression"),
            "{}",
            run.stderr
        );
        assert_nothing_written(&work);
    }
}

#[test]
fn an_unreadable_mapping_folder_stops_the_start() {
    let work = Workplace::new();
    let run = crawl_command(&work).replace_flag("--mappings", "no-such-folder");
    let run = run.finish().expect_code(2);
    assert_says(&run, &["no-such-folder"]);
    assert_nothing_written(&work);
    work.write("mappings/broken.json", b"\xff\xfe{");
    let run = crawl_command(&work).finish().expect_code(2);
    assert!(run.stderr.contains("broken.json"), "{}", run.stderr);
}

#[needs(namespaces)]
#[test]
fn a_crawl_of_public_addresses_needs_a_contact() {
    let work = Workplace::new();
    // The network is isolated, so that a faulty webfill would not reach public servers.
    run_isolated(
        "bad_usage::a_crawl_of_public_addresses_needs_a_contact",
        || {
            let run = work.plain_crawl().arg("http://93.184.216.34/").finish();
            let run = run.expect_code(2);
            assert_says(&run, &["--contact"]);
            assert_nothing_written(&work);
        },
    );
}

#[test]
fn an_unwritable_state_folder_is_named() {
    let work = Workplace::new();
    let file = work.write("input/a-file", "not a folder");
    let inside = file.join("state");
    let run = crawl_command(&work).replace_flag("--state", &inside);
    assert_says(&run.finish().expect_code(2), &["state", "a-file"]);
    assert!(!work.path("store.db").exists(), "nothing else was begun");
}

#[test]
fn an_unwritable_store_is_named() {
    let work = Workplace::new();
    let run = crawl_command(&work).replace_flag("--store", "sqlite:/no-such-folder/store.db");
    assert_says(&run.finish().expect_code(2), &["/no-such-folder/store.db"]);
    assert_nothing_written(&work);
}

#[test]
fn a_store_that_is_no_database_is_named_and_left_alone() {
    let work = Workplace::new();
    let content = "these are my notes, not a database\n".repeat(100);
    let notes = work.write("input/notes.txt", &content);
    let store = format!("sqlite:{}", notes.display());
    let run = crawl_command(&work)
        .replace_flag("--store", &store)
        .finish();
    assert_says(&run.expect_code(2), &["notes.txt"]);
    assert_nothing_written(&work);
    assert_eq!(
        std::fs::read_to_string(notes).expect("still there"),
        content
    );
}

#[test]
fn a_state_folder_in_use_is_named_and_its_crawl_continues() {
    let web = Web::start();
    let site = web.site("busy.example");
    site.serve_otherwise(|_| page("T").into());
    let work = Workplace::new();
    let urls: Vec<String> = (0..10)
        .map(|number| site.url(&format!("/{number}")))
        .collect();
    let running = work.crawl(&web).args(&urls).start();
    web.log()
        .wait_until("it is under way", |visits| visits.pages().len() > 1);
    let refused = work
        .crawl(&web)
        .replace_flag("--crawl", "second")
        .arg(site.url("/other"))
        .finish()
        .expect_code(1);
    assert_says(&refused, &["state", "in use"]);
    running.finish().expect_code(0);
    assert_eq!(site.visits().pages().len(), 10);
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let work = Workplace::new();
    let run = Run::new(["dispatcher", "--port", &port, "--state"])
        .arg(work.path("state"))
        .arg("--mappings")
        .arg(work.path("mappings"))
        .in_folder(work.path(""))
        .finish();
    assert!(
        matches!(run.status.code(), Some(1 | 2)),
        "{:?}: {}",
        run.status,
        run.stderr
    );
    assert_says(&run, &[&port, "in use"]);
}

#[test]
fn a_port_without_room_for_three_more_ports_is_refused() {
    let work = Workplace::new();
    let run = Run::new(["dispatcher", "--port", "65533", "--state"])
        .arg(work.path("state"))
        .finish()
        .expect_code(2);
    assert_says(&run, &["dispatcher.port = 65533", "65532"]);
    let run = Run::new(["status", "--dispatcher", "tcp://127.0.0.1:65533"]);
    assert_says(&run.finish().expect_code(2), &["a port from 1 to 65532"]);
}

#[test]
fn help_and_version_are_printed_on_request() {
    let help = Run::new(["crawl", "--help"]).finish().expect_code(0);
    for flag in [
        "--seeds",
        "--mappings",
        "--store",
        "--state",
        "--delay",
        "--contact",
        "--summary",
        "--ca-file",
    ] {
        assert!(help.stdout.contains(flag), "{flag} is not in the help");
    }
    let version = Run::new(["--version"]).finish().expect_code(0);
    assert!(version.stdout.starts_with("webfill "), "{}", version.stdout);
}
