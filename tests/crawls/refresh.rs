//! Tests `--refresh`: records from files are filled again, with every kind of store, and their former values are kept.

use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

const URL: &str = "http://people.example/ada";

/// The seeds file in each format. All files contain the same record.
fn seed_files() -> [(&'static str, String); 3] {
    let fields = json!({"name": null, "location": "Paris", "notes": "mine"});
    let mut record = json!({"id": "1", "urls": [URL], "fields": fields});
    let plain = record.to_string();
    record["want"] = json!(["name", "location"]);
    let csv = format!("id,url,name,location,notes\n1,{URL},,Paris,mine\n");
    [
        ("plain.jsonl", plain),
        ("listed.jsonl", record.to_string()),
        ("table.csv", csv),
    ]
}

fn the_only_record(store: &str) -> Value {
    let export = Run::new(["export", "records", "--store", store]).finish();
    let text = export.expect_code(0).stdout;
    serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"))
}

/// The former values of a field, without the times.
fn field_history(record: &Value, field: &str) -> Vec<(Value, Value)> {
    let former = record["history"][field].as_array();
    let former = former.into_iter().flatten();
    former
        .map(|one| (one["value"].clone(), one["url"].clone()))
        .collect()
}

/// The options for starting the second crawl.
#[derive(Debug, Clone, Copy)]
enum Later {
    Plain,
    Refresh,
    RefreshAfter(&'static str),
    SameRefreshAfter(&'static str),
}

impl Later {
    const ALL: [Later; 6] = [
        Later::Plain,
        Later::Refresh,
        Later::RefreshAfter("1s"),
        Later::RefreshAfter("1h"),
        Later::SameRefreshAfter("1s"),
        Later::SameRefreshAfter("1h"),
    ];

    fn args(self) -> Vec<&'static str> {
        match self {
            Later::Plain => vec![],
            Later::Refresh => vec!["--refresh"],
            Later::RefreshAfter(after) | Later::SameRefreshAfter(after) => {
                vec!["--refresh-after", after]
            }
        }
    }

    fn crawl_id(self) -> &'static str {
        match self {
            Later::SameRefreshAfter(_) => "first",
            _ => "second",
        }
    }

    /// Whether the second crawl reads values from pages again, even for complete records.
    fn fetches_again(self) -> bool {
        match self {
            Later::Refresh => true,
            Later::Plain => false,
            Later::RefreshAfter(after) | Later::SameRefreshAfter(after) => after == "1s",
        }
    }
}

/// The place of a store, which is removed when the test ends.
enum Place {
    File(tempfile::TempDir),
    Server(webfill_test_mongod::Database),
}

impl Place {
    fn store_uri(&self) -> String {
        match self {
            Place::File(folder) => format!("sqlite:{}", folder.path().join("store.db").display()),
            Place::Server(database) => database.uri().to_owned(),
        }
    }
}

/// Crawls one record, changes the record's page, and crawls the record again.
fn check_later_crawl(place: &Place, file: &str, seeds: &str, later: Later) {
    let case = format!("{file}, {later:?}");
    let store = place.store_uri();
    let web = Web::start();
    let site = web.site("people.example");
    let ada = |name: &str| page("Ada").field("name", name).field("location", "London");
    site.serve("/ada", ada("Ada Byron"));
    let work = Workplace::new();
    let seeds = work.write(file, seeds);
    let crawl = |id: &str| {
        let crawl = work.crawl(&web).replace_flag("--store", &store);
        crawl.replace_flag("--crawl", id).arg("--seeds").arg(&seeds)
    };
    // The file `listed.jsonl` lists `location` as missing although it has a value, so the crawl reads it again.
    let is_listed = file == "listed.jsonl";
    let (location, old_locations) = match is_listed {
        true => ("London", vec![(json!("Paris"), Value::Null)]),
        false => ("Paris", vec![]),
    };
    crawl("first").finish().expect_code(0);
    let first = the_only_record(&store);
    let known = json!({"name": "Ada Byron", "location": location, "notes": "mine"});
    assert_eq!(first["fields"], known, "{case}");
    assert_eq!(field_history(&first, "name"), [], "{case}");
    assert_eq!(field_history(&first, "location"), old_locations, "{case}");

    site.serve("/ada", ada("Ada Lovelace"));
    wait_until_older_than_a_second(&web);
    crawl(later.crawl_id())
        .args(later.args())
        .finish()
        .expect_code(0);
    let second = the_only_record(&store);
    let is_fetched = later.fetches_again() || (is_listed && later.crawl_id() == "second");
    assert_eq!(
        web.visits().pages().len(),
        1 + usize::from(is_fetched),
        "{case}"
    );
    let name = if later.fetches_again() {
        "Ada Lovelace"
    } else {
        "Ada Byron"
    };
    assert_eq!(second["fields"]["name"], name, "{case}");
    let by_page = (json!("Ada Byron"), json!(URL));
    let old_names = if later.fetches_again() {
        vec![by_page]
    } else {
        vec![]
    };
    assert_eq!(field_history(&second, "name"), old_names, "{case}");
    let takes_location = is_listed || matches!(later, Later::Refresh);
    let location = if takes_location { "London" } else { "Paris" };
    assert_eq!(second["fields"]["location"], location, "{case}");
    assert_eq!(second["fields"]["notes"], "mine", "{case}");
}

/// Checks all combinations. The file formats are tested in parallel, because the tests mostly wait.
fn check_all_later_crawls(place: impl Fn() -> Place + Sync) {
    let place = &place;
    std::thread::scope(|scope| {
        for (file, seeds) in seed_files() {
            scope.spawn(move || {
                for later in Later::ALL {
                    check_later_crawl(&place(), file, &seeds, later);
                }
            });
        }
    });
}

/// Sleeps until earlier fetches are too old for `--refresh-after 1s`.
fn wait_until_older_than_a_second(web: &Web) {
    assert!(!web.visits().pages().is_empty());
    std::thread::sleep(std::time::Duration::from_millis(1_100));
}

#[test]
fn later_crawls_work_with_every_form_of_seeds_in_a_file() {
    check_all_later_crawls(|| Place::File(tempfile::tempdir().unwrap()));
}

#[needs(mongod)]
#[test]
fn later_crawls_work_with_every_form_of_seeds_in_mongodb() {
    check_all_later_crawls(|| Place::Server(fresh_database()));
}

#[test]
fn a_refresh_that_is_repeated_changes_nothing_more() {
    let web = Web::start();
    let site = web.site("people.example");
    site.serve("/ada", page("Ada").field("name", "Ada Byron"));
    let work = Workplace::new();
    let (file, seeds) = &seed_files()[0];
    let seeds = work.write(file, seeds);
    let crawl = |id: &str| {
        let crawl = work.crawl(&web).replace_flag("--crawl", id);
        crawl.args(["--refresh", "--seeds"]).arg(&seeds)
    };
    crawl("first").finish().expect_code(0);
    site.serve("/ada", page("Ada").field("name", "Ada Lovelace"));
    // The crawl `second` runs twice, and the crawl `third` finds the same value as before.
    for (id, fetched) in [("second", 2), ("second", 2), ("third", 3)] {
        crawl(id).finish().expect_code(0);
        let store = format!("sqlite:{}", work.path("store.db").display());
        let fresh = the_only_record(&store);
        assert_eq!(fresh["fields"]["name"], "Ada Lovelace");
        let by_page = (json!("Ada Byron"), json!(URL));
        assert_eq!(field_history(&fresh, "name"), [by_page]);
        assert_eq!(web.visits().pages().len(), fetched, "once for each crawl");
    }
}

/// A list of URLs in each format of seeds without records.
fn list_seed_files() -> [(&'static str, String); 3] {
    let list = "http://people.example/list";
    let request = json!({"url": list, "appid": "prices", "crawlid": "monday", "maxdepth": 1});
    [
        ("urls.txt", format!("{list}\n")),
        ("table.csv", format!("url\n{list}\n")),
        ("requests.jsonl", request.to_string()),
    ]
}

#[test]
fn old_pages_of_a_finished_list_are_fetched_again_with_their_links() {
    for (file, seeds) in list_seed_files() {
        let web = Web::start();
        let site = web.site("people.example");
        site.serve("/list", page("List").mapped_link("/ada"));
        site.serve("/ada", page("Ada").field("name", "Ada Byron"));
        let work = Workplace::new();
        let seeds = work.write(file, seeds);
        let crawl = |after: &str| {
            let crawl = work.crawl(&web).args(["--refresh-after", after]);
            crawl.arg("--seeds").arg(&seeds).finish().expect_code(0)
        };
        crawl("1s");
        wait_until_older_than_a_second(&web);
        crawl("1h");
        let pages = web.visits().pages().len();
        assert_eq!(pages, 2, "{file}: they are not old enough");
        crawl("1s");
        let pages = web.visits().pages().len();
        assert_eq!(pages, 4, "{file}: the list, and the page behind it");
    }
}
