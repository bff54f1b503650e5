//! Tests datasets: the same id in two datasets of a store means two records. Lines of one dataset with the same id are
//! one record.

use serde_json::{Value, json};
use webfill_tests::Signal;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Site, Web, page};
use webfill_tests::workplace::{Workplace, files_open_to_others, files_under};

const ROWS: usize = 20;

/// Writes a seeds file with the ids 1 to 20, and serves a page with a name for each. Returns the path of the file.
fn create_dataset(kind: &str, web: &Web, work: &Workplace) -> std::path::PathBuf {
    let site = web.site(&format!("{kind}.example"));
    let mut csv = String::from("id,url,name\n");
    for id in 1..=ROWS {
        site.serve(
            &format!("/{id}"),
            page("P").field("name", &format!("{kind} {id}")),
        );
        csv += &format!("{id},{},\n", site.url(&format!("/{id}")));
    }
    work.write(&format!("{kind}.csv"), csv)
}

fn crawl_command(work: &Workplace, web: &Web) -> Run {
    work.crawl_without_delay(web).args(["--delay", "0"])
}

fn assert_dataset_is_complete(work: &Workplace, dataset: &str, kind: &str) {
    let records = work.stored().records_of(dataset);
    assert_eq!(records.len(), ROWS, "{dataset}");
    for (id, record) in records {
        assert_eq!(record.fields["name"], format!("{kind} {id}"));
        assert!(record.resolved, "{dataset} {id}");
        let url = record.sources["name"]["url"].as_str().unwrap_or_default();
        assert!(url.contains(&format!("{kind}.example")), "{url}");
    }
}

#[test]
fn no_file_of_the_state_folder_is_open_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let (web, work) = (Web::start(), Workplace::new());
    web.site("people.example")
        .serve_otherwise(|_| page("P").into());
    let csv = "id,url,name\n1,http://people.example/1,\n1,http://people.example/2,\n2,nonsense,\n";
    let seeds = work.write("people.csv", csv);
    let run = || {
        let run = crawl_command(&work, &web).arg("--seeds").arg(&seeds);
        run.args(["--max-pages", "1"]).finish().expect_code(12);
    };
    run();
    let state = work.path("state");
    assert!(files_under(&state).len() > 5);
    assert_eq!(files_open_to_others(&state), [""; 0]);
    // A copied state folder may have files that other users can read. The next run must change their modes.
    for path in files_under(&state).iter().filter(|path| !path.is_symlink()) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
    }
    run();
    assert_eq!(files_open_to_others(&state), [""; 0]);
}

#[test]
fn two_files_with_the_same_ids_fill_their_own_records() {
    let (web, work) = (Web::start(), Workplace::new());
    let (people, firms) = (
        create_dataset("people", &web, &work),
        create_dataset("firms", &web, &work),
    );
    let run = crawl_command(&work, &web).arg("--seeds").arg(people);
    let run = run.finish().expect_code(0);
    assert_eq!(run.summary().json["records"]["dataset"], "people");
    let run = crawl_command(&work, &web).replace_flag("--crawl", "second");
    let run = run.arg("--seeds").arg(firms).finish().expect_code(0);
    assert_eq!(run.summary().records(), (ROWS as u64, ROWS as u64));
    assert_dataset_is_complete(&work, "people", "people");
    assert_dataset_is_complete(&work, "firms", "firms");
    let csv = export_records(&work, &["--format", "csv", "--dataset", "firms"]);
    assert_eq!(csv.lines().count(), 1 + ROWS);
    assert!(csv.contains("\n7,firms 7,[],"), "{csv}");
}

/// The second file of seeds adds nothing to the values that were found for the first one.
#[test]
fn crawls_that_name_one_dataset_share_its_records() {
    let (web, work) = (Web::start(), Workplace::new());
    let people = create_dataset("people", &web, &work);
    let copy = work.write("copy.csv", std::fs::read(&people).unwrap());
    let seeds = |path| {
        let run = crawl_command(&work, &web).args(["--dataset", "mine"]);
        run.arg("--seeds").arg(path)
    };
    seeds(people).finish().expect_code(0);
    let run = seeds(copy)
        .replace_flag("--crawl", "second")
        .finish()
        .expect_code(0);
    assert_eq!(run.summary().records(), (ROWS as u64, ROWS as u64));
    assert_dataset_is_complete(&work, "mine", "people");
    assert_eq!(web.visits().pages().len(), ROWS, "all were complete");
}

/// Interrupts a crawl of the seeds `people` after some of their pages were stored.
fn interrupt_crawl(work: &Workplace, web: &Web, run: Run) {
    let people = create_dataset("people", web, work);
    let running = run
        .replace_flag("--delay", "0.2")
        .arg("--seeds")
        .arg(people)
        .start();
    web.log()
        .wait_until("some are found", |visits| visits.pages().len() > 2);
    running.signal(Signal::INT);
    running.finish().expect_code(11);
}

#[test]
fn a_crawl_is_not_resumed_with_another_dataset_by_mistake() {
    let (web, work) = (Web::start(), Workplace::new());
    let mine = |run: Run| run.args(["--dataset", "mine"]);
    interrupt_crawl(&work, &web, mine(crawl_command(&work, &web)));
    let people = || {
        crawl_command(&work, &web)
            .arg("--seeds")
            .arg(work.path("people.csv"))
    };
    let refused = people().finish().expect_code(2);
    let output = refused.one_sentence();
    for part in [
        "dataset `mine`",
        "`people`",
        "--dataset mine",
        "--crawl test",
    ] {
        assert!(output.contains(part), "{output}");
    }
    assert!(work.stored().records_of("people").is_empty());
    // This command names no seeds file, so it cannot take the name of another dataset from one.
    let resumed = crawl_command(&work, &web).finish().expect_code(0);
    assert_eq!(resumed.summary().json["records"]["dataset"], "mine");
    assert_dataset_is_complete(&work, "mine", "people");
    mine(people()).finish().expect_code(0);
    // A crawl that names another dataset gets all of its values from pages that were fetched before.
    let visits = web.visits().len();
    people()
        .args(["--dataset", "other"])
        .finish()
        .expect_code(0);
    assert_dataset_is_complete(&work, "other", "people");
    assert_eq!(web.visits().len(), visits);
}

#[test]
fn a_crawl_that_is_resumed_without_seeds_names_its_dataset() {
    let (web, work) = (Web::start(), Workplace::new());
    interrupt_crawl(&work, &web, crawl_command(&work, &web));
    let resumed = crawl_command(&work, &web).finish().expect_code(0);
    assert_eq!(resumed.summary().json["records"]["dataset"], "people");
    // Lists of URLs contain no records, so a list may be fed together with a dataset.
    let more = work.write("more.txt", web.site("people.example").url("/1") + "\n");
    crawl_command(&work, &web)
        .arg("--seeds")
        .arg(more)
        .finish()
        .expect_code(0);
}

#[test]
fn a_pipe_has_a_dataset_which_is_reported() {
    let (web, work) = (Web::start(), Workplace::new());
    let people = std::fs::read(create_dataset("people", &web, &work)).unwrap();
    let run = crawl_command(&work, &web)
        .args(["--seeds", "-"])
        .input(people);
    let run = run
        .replace_flag("--progress", "plain")
        .finish()
        .expect_code(0);
    assert!(run.stderr.contains("dataset `stdin`"), "{}", run.stderr);
    assert_dataset_is_complete(&work, "stdin", "people");
}

fn export_records(work: &Workplace, args: &[&str]) -> String {
    let store = format!("sqlite:{}", work.path("store.db").display());
    let run = Run::new(["export", "records", "--store", &store]).args(args);
    run.finish().expect_code(0).stdout
}

fn serve_field(site: &Site, path: &str, name: &str, value: &str) {
    site.serve(path, page("P").field(name, value));
}

fn crawl_csv(work: &Workplace, web: &Web, csv: &str, crawl_id: &str) -> Finished {
    let seeds = work.write("people.csv", csv);
    let run = crawl_command(work, web).replace_flag("--crawl", crawl_id);
    run.arg("--seeds").arg(seeds).finish().expect_code(0)
}

#[test]
fn lines_with_one_id_are_merged_and_reported() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("people.example");
    serve_field(&site, "/1", "name", "Ada");
    serve_field(&site, "/2", "location", "London");
    let csv = "id,url,name,location,mail\n\
        1,http://people.example/1,,,a@old.example\n\
        2,http://people.example/2,Bob,,\n\
        1,http://people.example/2,,,\n\
        1,http://people.example/1,,,a@new.example\n";
    let run = crawl_csv(&work, &web, csv, "test");
    let record = work.stored().record("1");
    let merged = json!({"name": "Ada", "location": "London", "mail": "a@new.example"});
    assert_eq!(Value::Object(record.fields), merged);
    let reported = &run.summary().json["repeated_seeds"];
    let expected =
        [(4, 2), (5, 2)].map(|(line, first)| json!({"line": line, "first_line": first, "id": "1"}));
    assert_eq!(
        (&reported["count"], &reported["first"]),
        (&json!(2), &json!(expected))
    );
    let listed = std::fs::read_to_string(reported["file"].as_str().unwrap()).unwrap();
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

#[test]
fn a_resumed_crawl_keeps_the_list_of_repeated_lines() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("people.example");
    site.serve_otherwise(|request| page(&request.path).into());
    // A resumed crawl recognises a file by its first 4096 bytes. The long note moves the end of the row beyond them.
    let note = "n".repeat(5_000);
    let csv = format!(
        "id,url,name,note\n1,http://people.example/1,,{note}\n1,http://people.example/2,,\n"
    );
    let seeds = work.write("people.csv", &csv);
    let run = |web: &Web| crawl_command(&work, web).arg("--seeds").arg(&seeds);
    let first = run(&web)
        .args(["--max-pages", "1"])
        .finish()
        .expect_code(12);
    let file = first.summary().json["repeated_seeds"]["file"].clone();
    let listed = || std::fs::read_to_string(file.as_str().unwrap()).unwrap();
    assert_eq!(listed().lines().count(), 1);
    let more = format!("{csv}1,http://people.example/3,,\n");
    work.write("people.csv", more);
    run(&web).finish().expect_code(0);
    let ids: Vec<Value> = listed()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["line"].clone())
        .collect();
    assert_eq!(ids, [json!(3), json!(4)]);
}

#[test]
fn a_corrected_value_in_the_seeds_is_taken() {
    let (web, work) = (Web::start(), Workplace::new());
    serve_field(&web.site("people.example"), "/1", "name", "Ada");
    let line = |name: &str, mail: &str| {
        format!("id,url,name,location,mail\n1,http://people.example/1,{name},,{mail}\n")
    };
    crawl_csv(&work, &web, &line("", "a@old.example"), "first");
    crawl_csv(&work, &web, &line("", "a@new.example"), "second");
    let record = work.stored().record("1");
    assert_eq!(
        (&record.fields["name"], &record.fields["mail"]),
        (&json!("Ada"), &json!("a@new.example"))
    );
    // The third file has a name, which replaces the name from the page.
    crawl_csv(&work, &web, &line("Augusta Ada", ""), "third");
    let record = work.stored().record("1");
    // An empty cell in the third file removes the value that the cell had before.
    assert_eq!(
        (&record.fields["name"], &record.fields["mail"]),
        (&json!("Augusta Ada"), &Value::Null)
    );
    assert!(record.sources.is_empty(), "{record:?}");
}
