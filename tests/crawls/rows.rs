//! Tests rows: pages with many entries. Each entry becomes a record.

mod seeds_job;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bson::Bson;
use rusqlite::Connection;
use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::ratings::Ratings;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page, status};
use webfill_tests::workplace::Workplace;

/// The time limit of an export. It is long enough for a million rows on a busy machine.
const EXPORT_TIME_LIMIT: Duration = Duration::from_secs(600);

fn create_workplace(ratings: Ratings) -> Workplace {
    let work = Workplace::new();
    work.write_json("mappings/profile.json", &ratings.mapping(true));
    work.write_lines("users.jsonl", &ratings.seeds());
    work
}

fn crawl_command(work: &Workplace, web: &Web, store: &str) -> Run {
    let crawl = work.crawl_without_delay(web).args(["--delay", "0"]);
    let seeds = work.path("users.jsonl");
    crawl
        .replace_flag("--store", store)
        .args(["--dataset", "users", "--depth", "2", "--seeds"])
        .arg(seeds)
}

fn sqlite_uri(work: &Workplace) -> String {
    format!("sqlite:{}", work.path("store.db").display())
}

fn export_records(store: &str, args: &[&str]) -> String {
    let export = Run::new(["export", "records", "--store", store]).args(args);
    export
        .time_limit(EXPORT_TIME_LIMIT)
        .finish()
        .expect_code(0)
        .stdout
}

fn exported_lines(store: &str, args: &[&str]) -> Vec<Value> {
    let text = export_records(store, args);
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The stored rows, in the same form as [`Ratings::expected_records`].
fn stored_rows(store: &str) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    for record in exported_lines(store, &["--dataset", "ratings"]) {
        let (id, row) = (&record["record_id"], &record["row"]);
        let [user, item] = ["user", "item"].map(|name| record["fields"][name].as_str().unwrap());
        assert_eq!(*id, format!("{user}/{item}"), "{record}");
        let row = json!({
            "stars": record["fields"]["stars"],
            "url": row["url"],
            "position": row["position"],
            "parent": row["parent"],
        });
        let other = rows.insert(id.as_str().unwrap().to_owned(), row);
        assert!(other.is_none(), "twice: {id}");
    }
    rows
}

/// A query from docs/how-to/progress.md, exactly as written there except for the id of the crawl.
fn documented_query(heading: &str, language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/how-to/progress.md");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    let query = section.split(&format!("```{language}\n")).nth(1).unwrap();
    query.split("```").next().unwrap().replace("people", "test")
}

/// For each user, the number of finished pages and the number of all pages, by the documented SQL query.
fn progress_of_lists(store: &str) -> BTreeMap<String, (i64, i64)> {
    let path = store.strip_prefix("sqlite:").unwrap();
    let connection = Connection::open(path).unwrap();
    let query = documented_query("Pages of each list", "sql");
    let mut query = connection.prepare(&query).unwrap();
    let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<(String, (i64, i64))> {
        Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))
    };
    let rows = query.query_map([], row).unwrap();
    rows.map(|row| row.unwrap()).collect()
}

/// The same result as [`progress_of_lists`], by the documented query for MongoDB.
fn progress_in_mongodb(uri: &str) -> BTreeMap<String, (i64, i64)> {
    let query = documented_query("Pages of each list", "js");
    let stages = query.trim().strip_prefix("db.pages.aggregate(").unwrap();
    let stages: Vec<Value> = serde_json::from_str(stages.strip_suffix(')').unwrap()).unwrap();
    let stages = stages.into_iter().map(|stage| match Bson::try_from(stage) {
        Ok(Bson::Document(stage)) => stage,
        other => panic!("a stage is a document, not {other:?}"),
    });
    let found = Documents::open(uri).aggregate("pages", stages.collect());
    let row = |row: &Value| {
        let number = |name: &str| row[name].as_i64().unwrap();
        let record = row["_id"].as_str().unwrap().to_owned();
        (record, (number("done"), number("pages")))
    };
    found.iter().map(row).collect()
}

fn complete_progress(ratings: Ratings) -> BTreeMap<String, (i64, i64)> {
    let of_user = |user| {
        let pages = ratings.page_count(user) as i64;
        (format!("users/u{user}"), (pages, pages))
    };
    (0..ratings.users).map(of_user).collect()
}

fn rows_are_stored_each_once_and_none_shifted(store: &str, work: &Workplace) {
    let ratings = Ratings::small_site(9);
    let web = Web::start();
    ratings.serve(&web);
    let run = crawl_command(work, &web, store).finish().expect_code(0);
    assert_eq!(stored_rows(store), ratings.expected_records());
    assert_eq!(web.visits().pages().len(), ratings.total_page_count());
    let summary = run.summary().json.clone();
    assert_eq!(summary["records"]["resolved"], 9, "{summary}");
    let sorted = || {
        let mut all = exported_lines(store, &["--dataset", "ratings"]);
        all.sort_by_key(|record| record["_id"].to_string());
        all
    };
    let first = sorted();
    crawl_command(work, &web, store).finish().expect_code(0);
    assert_eq!(web.visits().pages().len(), ratings.total_page_count());
    assert_eq!(sorted(), first, "the same crawl again changes nothing");
    // A second crawl fetches the same pages. The users' records are already complete, but their lists are still read.
    crawl_command(work, &web, store)
        .replace_flag("--crawl", "again")
        .finish()
        .expect_code(0);
    assert_eq!(web.visits().pages().len(), 2 * ratings.total_page_count());
    assert_eq!(stored_rows(store), ratings.expected_records());
}

#[test]
fn rows_of_a_listing_are_stored_each_once_and_none_shifted() {
    let work = create_workplace(Ratings::small_site(9));
    rows_are_stored_each_once_and_none_shifted(&sqlite_uri(&work), &work);
}

#[needs(mongod)]
#[test]
fn rows_of_a_listing_are_stored_each_once_and_none_shifted_in_mongodb() {
    let database = fresh_database();
    let work = create_workplace(Ratings::small_site(9));
    rows_are_stored_each_once_and_none_shifted(database.uri(), &work);
}

fn kills_lose_and_double_no_row(store: &str, work: &Workplace) {
    let ratings = Ratings::small_site(9);
    let web = Web::start();
    ratings.serve(&web);
    for asked in [5, 12, 17] {
        let running = crawl_command(work, &web, store).start();
        web.log().wait_until("some pages are asked for", |visits| {
            visits.pages().len() >= asked
        });
        for process in running.processes() {
            process.signal(Signal::KILL);
        }
        running.finish();
        let truth = ratings.expected_records();
        for (id, row) in stored_rows(store) {
            assert_eq!(Some(&row), truth.get(&id), "{id}");
        }
    }
    crawl_command(work, &web, store).finish().expect_code(0);
    assert_eq!(stored_rows(store), ratings.expected_records());
}

#[test]
fn kills_lose_and_double_no_row_of_a_listing() {
    let work = create_workplace(Ratings::small_site(9));
    kills_lose_and_double_no_row(&sqlite_uri(&work), &work);
}

#[needs(mongod)]
#[test]
fn kills_lose_and_double_no_row_of_a_listing_in_mongodb() {
    let database = fresh_database();
    let work = create_workplace(Ratings::small_site(9));
    kills_lose_and_double_no_row(database.uri(), &work);
    let done = complete_progress(Ratings::small_site(9));
    assert_eq!(progress_in_mongodb(database.uri()), done);
}

fn exports_have_a_row_for_each_row(store: &str, work: &Workplace) {
    let web = Web::start();
    Ratings::small_site(2).serve(&web);
    crawl_command(work, &web, store).finish().expect_code(0);
    let rows = Ratings::small_site(2).expected_records().len();
    let args = ["--dataset", "ratings", "--with-parent=city,name"];
    let csv = export_records(store, &[&args[..], &["--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), rows + 1, "{csv}");
    let header = "id,item,stars,user,missing,resolved_at,dataset,parent,parent.city,parent.name";
    let mut columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    columns[1..4].sort_unstable();
    assert_eq!(columns.join(","), header);
    let first = csv.lines().find(|line| line.starts_with("u1/item0,"));
    let first = first.unwrap_or_else(|| panic!("{csv}"));
    assert!(first.ends_with(",ratings,u1,City 1,Name 1"), "{first}");
    for record in exported_lines(store, &args) {
        let user = record["fields"]["user"].as_str().unwrap();
        let number = user.trim_start_matches('u');
        assert_eq!(record["parent_fields"]["name"], format!("Name {number}"));
        assert!(record["row"]["url"].is_string() && record["row"]["position"].is_u64());
    }
    let file = work.path("ratings.parquet");
    let parquet = Run::new(["export", "records", "--store", store, "--format", "parquet"])
        .args(args)
        .arg("--output")
        .arg(&file);
    parquet.finish().expect_code(0);
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let refused = Run::new(["export", "pages", "--store", store, "--with-parent"]).finish();
    assert!(
        refused
            .expect_code(2)
            .one_sentence()
            .contains("--with-parent")
    );
}

#[test]
fn exports_have_a_row_for_each_row_of_a_listing() {
    let work = create_workplace(Ratings::small_site(2));
    exports_have_a_row_for_each_row(&sqlite_uri(&work), &work);
}

#[needs(mongod)]
#[test]
fn exports_have_a_row_for_each_row_of_a_listing_in_mongodb() {
    let database = fresh_database();
    let work = create_workplace(Ratings::small_site(2));
    exports_have_a_row_for_each_row(database.uri(), &work);
}

#[test]
fn excess_rows_are_left_out_and_reported() {
    let web = Web::start();
    let site = Ratings::small_site(1).serve(&web);
    let row = |item: &str| format!("<tr class=\"rating\"><td><a>{item}</a><td><b>1</b>");
    let large = "x".repeat((1 << 20) + 10);
    let table = format!("<table>{}{}{}</table>", row("a"), row(&large), row("b"));
    site.serve("/users/0", page("Ratings").html(table));
    let work = create_workplace(Ratings::small_site(1));
    crawl_command(&work, &web, &sqlite_uri(&work))
        .finish()
        .expect_code(0);
    let ids: Vec<String> = stored_rows(&sqlite_uri(&work)).into_keys().collect();
    assert_eq!(ids, ["u0/a", "u0/b"]);
    let logs = work.logs();
    let mut warnings = logs
        .values()
        .flatten()
        .filter_map(|line| line["warning"].as_str());
    assert!(
        warnings.any(|warning| warning.contains("rows of ratings")),
        "{logs:?}"
    );
}

#[test]
fn pages_of_a_listing_that_failed_are_fetched_again_by_one_command() {
    let ratings = Ratings::small_site(9);
    let web = Web::start();
    let site = ratings.serve(&web);
    for number in 2..=4 {
        site.serve(&format!("/users/1?page={number}"), status(404));
    }
    let work = create_workplace(ratings);
    let store = sqlite_uri(&work);
    crawl_command(&work, &web, &store).finish().expect_code(0);
    let mut expected = ratings.expected_records();
    expected.retain(|_, row| !row["url"].as_str().unwrap().contains("/users/1?"));
    assert_eq!(stored_rows(&store), expected);
    let mut done = complete_progress(ratings);
    done.insert("users/u1".to_owned(), (1, 4));
    assert_eq!(progress_of_lists(&store), done);
    ratings.serve(&web);
    for number in 2..=4 {
        site.serve(&format!("/users/1?page={number}"), ratings.page(1, number));
    }
    crawl_command(&work, &web, &store)
        .args(["--retry", "http_error"])
        .finish()
        .expect_code(0);
    assert_eq!(stored_rows(&store), ratings.expected_records());
    assert_eq!(progress_of_lists(&store), complete_progress(ratings));
    assert_eq!(web.visits().for_path("/users/0").len(), 1);
}
