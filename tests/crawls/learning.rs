//! Tests `webfill mapping learn`: a mapping is learned from partly filled records and the pages that they link to. A
//! crawl then fills the missing values by this mapping.

mod bounds;
mod made_site;
mod repairing;
mod rows;
mod statements;

use std::time::Duration;

use mongodb::bson::doc;
use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use self::made_site::{
    HOST, PEOPLE, birth_year, page_count, person_city, person_html, person_name, person_url,
    records_with_gaps, serve_register,
};

/// A workplace whose only mapping matches no page of the test site.
fn workplace() -> Workplace {
    let work = Workplace::new();
    let other = json!({"name": "other", "url_patterns": [{"type": "host", "pattern": "other.example"}],
        "fields": [{"name": "title", "processors": [{"type": "css", "parameters": {"selector": "h1"}}]}]});
    work.write_json("mappings/profile.json", &other);
    work
}

fn learn_command(work: &Workplace, args: &[&str]) -> Run {
    Run::new(["mapping", "learn"])
        .args(args)
        .in_folder(work.path("."))
}

/// Checks that the written mapping is valid, and that after a crawl with it no record lacks a value.
fn assert_fills(work: &Workplace, web: &Web, mapping: &str) {
    let mapping = work.path(mapping);
    Run::new(["mapping", "check"])
        .arg(&mapping)
        .finish()
        .expect_code(0);
    let target = work.path("learned/people.json");
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    std::fs::copy(&mapping, target).unwrap();
    let seeds = work.write_lines("fill.jsonl", &records_with_gaps());
    work.crawl_without_delay(web)
        .args(["--delay", "0", "--dataset", "filled"])
        .replace_flag("--crawl", "fill")
        .arg("--seeds")
        .arg(seeds)
        .replace_flag("--mappings", work.path("learned"))
        .finish()
        .expect_code(0);
    let store = format!("sqlite:{}", work.path("store.db").display());
    let exported = Run::new([
        "export",
        "records",
        "--dataset",
        "filled",
        "--store",
        &store,
    ])
    .finish();
    let exported = exported.expect_code(0).stdout;
    let stored: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(stored.len(), PEOPLE);
    for record in stored {
        let number: usize = record["record_id"].as_str().unwrap().parse().unwrap();
        let fields = json!({"name": person_name(number), "born": birth_year(number), "city": person_city(number)});
        assert_eq!(record["fields"], fields, "record {number}");
        assert_eq!(record["missing"], json!([]), "record {number}");
    }
}

fn parse_report(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
}

#[test]
fn a_mapping_is_learned_from_a_folder_and_csv() {
    let (work, web) = (workplace(), Web::start());
    serve_register(&web);
    made_site::write_folder(&work, "saved");
    let mut csv = String::from("id,url,name,born,city\n");
    for record in records_with_gaps() {
        let fields = &record["fields"];
        let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
        let (id, url) = (
            record["id"].as_str().unwrap(),
            record["urls"][0].as_str().unwrap(),
        );
        csv += &format!(
            "{id},{url},{},{},{}\n",
            text("name"),
            text("born"),
            text("city")
        );
    }
    work.write("people.csv", csv);
    let args = [
        "--records",
        "people.csv",
        "--pages",
        "saved",
        "--output",
        "people.json",
    ];
    let run = learn_command(&work, &args).finish().expect_code(0);
    for reported in [
        "name",
        "born",
        "city",
        "confidence",
        "written to people.json",
    ] {
        assert!(run.stdout.contains(reported), "{reported}: {}", run.stdout);
    }
    assert_fills(&work, &web, "people.json");
    // The file exists now, so the command refuses to overwrite it without a flag.
    let again = learn_command(&work, &args).finish().expect_code(2);
    assert!(
        again.stderr.contains("use --force to replace it"),
        "{}",
        again.stderr
    );
    learn_command(&work, &args)
        .arg("--force")
        .finish()
        .expect_code(0);
    // Without an output file, the command prints the mapping and nothing else to standard output.
    let printed = learn_command(&work, &args[..4]).finish().expect_code(0);
    let written = std::fs::read_to_string(work.path("people.json")).unwrap();
    assert_eq!(printed.stdout, written);
    let reported = learn_command(&work, &args[..4])
        .args(["--format", "json"])
        .finish()
        .expect_code(0);
    let reported = parse_report(&reported);
    assert_eq!(
        reported["mappings"][0]["mapping"],
        serde_json::from_str::<Value>(&written).unwrap()
    );
    assert_eq!(reported["records"]["joined"], PEOPLE);
}

#[test]
fn each_learned_mapping_is_named_after_its_own_site() {
    let work = Workplace::new();
    let (mut list, mut records) = (String::new(), String::new());
    for (site, host) in ["alpha.example", "beta.example"].iter().enumerate() {
        for number in 0..10 {
            let name = format!("Person {site}{number}");
            let html = match site {
                0 => format!("<body><h1 class=name>{name}</h1><p>on page {number}</body>"),
                _ => format!("<body><dl><dt>Name<dd>{name}<dt>Seat<dd>{number}</dl></body>"),
            };
            let file = format!("{site}-{number}.html");
            work.write(&format!("saved/{file}"), html);
            let url = format!("https://{host}/person/{number}");
            list += &format!("{}\n", json!({"url": url, "file": file}));
            let id = format!("{site}-{number}");
            let record = json!({"id": id, "urls": [url], "fields": {"name": name}});
            records += &format!("{record}\n");
        }
    }
    work.write("saved/pages.jsonl", list);
    work.write("people.jsonl", records);
    let args = [
        "--records",
        "people.jsonl",
        "--pages",
        "saved",
        "--format",
        "json",
    ];
    let reported = parse_report(&learn_command(&work, &args).finish().expect_code(0));
    let mappings = reported["mappings"].as_array().unwrap();
    assert_eq!(mappings.len(), 2, "{reported}");
    for mapping in mappings {
        let mapping = &mapping["mapping"];
        let name = mapping["name"].as_str().unwrap();
        let patterns = mapping["url_patterns"].to_string();
        let host = ["alpha", "beta"].iter().find(|host| name.contains(**host));
        let host = host.unwrap_or_else(|| panic!("{name} is named after no site"));
        assert!(patterns.contains(*host), "{name}: {patterns}");
    }
}

#[test]
fn a_mapping_is_learned_from_an_archive_with_redirects() {
    let (work, web) = (workplace(), Web::start());
    serve_register(&web);
    // These records link to addresses that redirect to the pages.
    let old = |record: &Value| {
        let mut record = record.clone();
        record["urls"] = json!([record["urls"][0].as_str().unwrap().replace("/p/", "/old/")]);
        record
    };
    let records: Vec<Value> = records_with_gaps().iter().map(old).collect();
    let seeds = work.write_lines("people.jsonl", &records);
    work.crawl_without_delay(&web)
        .args(["--delay", "0", "--warc"])
        .arg(work.path("warc"))
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let args = [
        "--records",
        "people.jsonl",
        "--warc",
        "warc",
        "--output",
        "people.json",
    ];
    learn_command(&work, &args).finish().expect_code(0);
    assert_fills(&work, &web, "people.json");
}

fn assert_learns_from_kept_bodies(store: &str, work: &Workplace) {
    let web = Web::start();
    serve_register(&web);
    let seeds = work.write_lines("people.jsonl", &records_with_gaps());
    work.crawl_without_delay(&web)
        .args(["--delay", "0", "--keep-bodies"])
        .arg("--seeds")
        .arg(seeds)
        .replace_flag("--store", store)
        .finish()
        .expect_code(0);
    let before = web.visits().len();
    let args = [
        "--records",
        "people.jsonl",
        "--crawl",
        "test",
        "--store",
        store,
        "--output",
        "people.json",
    ];
    learn_command(work, &args).finish().expect_code(0);
    assert_eq!(web.visits().len(), before, "nothing is fetched");
    assert_fills(work, &web, "people.json");
}

/// Writes a mapping that matches the pages, so that their bodies are stored, but reads none of their fields.
fn write_plain_mapping(work: &Workplace) {
    let plain = json!({"name": "plain", "url_patterns": [{"type": "host", "pattern": HOST}],
        "fields": [{"name": "heading", "processors": [{"type": "css", "parameters": {"selector": "title"}}]}]});
    work.write_json("mappings/plain.json", &plain);
}

#[test]
fn a_mapping_is_learned_from_the_kept_bodies_of_a_crawl() {
    let work = workplace();
    write_plain_mapping(&work);
    assert_learns_from_kept_bodies(
        &format!("sqlite:{}", work.path("store.db").display()),
        &work,
    );
    let none = [
        "--records",
        "people.jsonl",
        "--crawl",
        "none",
        "--store",
        "sqlite:store.db",
    ];
    let run = learn_command(&work, &none).finish().expect_code(1);
    assert!(run.stderr.contains("no crawl local/none"), "{}", run.stderr);
}

#[needs(mongod)]
#[test]
fn a_mapping_is_learned_from_the_kept_bodies_of_a_crawl_in_mongodb() {
    let database = fresh_database();
    let work = workplace();
    write_plain_mapping(&work);
    assert_learns_from_kept_bodies(database.uri(), &work);
}

#[needs(mongod)]
#[test]
fn a_mapping_is_learned_from_records_in_mongodb_and_pages_that_are_fetched_politely() {
    let (work, web) = (workplace(), Web::start());
    serve_register(&web).serve_robots("User-agent: *\nDisallow: /p/2\n");
    let database = fresh_database();
    let documents = records_with_gaps().into_iter().map(|record| {
        let of = |name: &str| record["fields"][name].as_str().map(str::to_owned);
        doc! {"_id": record["id"].as_str().unwrap(), "url": record["urls"][0].as_str().unwrap(),
        "name": of("name"), "born": of("born"), "city": of("city")}
    });
    let documents: Vec<_> = documents.collect();
    Documents::open(database.uri()).run(doc! {"insert": "people", "documents": documents});
    let resolve: Vec<String> = web.resolve_args();
    let resolve: Vec<&str> = resolve
        .iter()
        .map(String::as_str)
        .filter(|one| *one != "--resolve")
        .collect();
    let run = || {
        let args = [
            "--records",
            database.uri(),
            "--records-collection",
            "people",
            "--fetch",
            "9",
        ];
        learn_command(&work, &args)
            .args([
                "--allow-private-networks",
                "--output",
                "people.json",
                "--force",
            ])
            .env("WEBFILL_FETCH_RESOLVE", resolve.join(","))
            .env("WEBFILL_POLITENESS_DELAY", "0.3")
            .finish()
            .expect_code(0)
    };
    let reported = run();
    assert!(
        reported.stderr.contains("disallowed by the robots.txt"),
        "{}",
        reported.stderr
    );
    let visits = web.visits();
    assert_eq!(visits.robots().len(), 1);
    assert_eq!(visits.pages().len(), 8, "{:?}", visits.paths());
    assert_eq!(visits.for_path("/p/2").len(), 0);
    visits.assert_polite(Duration::from_millis(300));
    run();
    assert_eq!(web.visits().pages().len(), 8, "pages are kept");
    web.site(HOST).serve_robots("");
    assert_fills(&work, &web, "people.json");
}

#[test]
fn a_wrong_value_among_many_does_not_mislead() {
    let work = workplace();
    made_site::write_folder(&work, "saved");
    let mut wrong = records_with_gaps();
    wrong[1]["fields"]["name"] = json!("Somebody Else");
    wrong[2]["fields"]["born"] = json!("2999");
    work.write_lines("people.jsonl", &wrong);
    let args = [
        "--records",
        "people.jsonl",
        "--pages",
        "saved",
        "--output",
        "people.json",
    ];
    let reported = learn_command(&work, &args)
        .args(["--format", "json"])
        .finish()
        .expect_code(0);
    let fields = parse_report(&reported)["mappings"][0]["fields"].clone();
    let named = fields
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["field"] == "name")
        .unwrap();
    let doubted = named["doubted"].as_array().unwrap();
    assert_eq!(doubted.len(), 1, "{named:#}");
    assert_eq!(
        (&doubted[0]["url"], &doubted[0]["known"]),
        (&json!(person_url(1)), &json!(["Somebody Else"]))
    );
    let read = doubted[0]["read"][0].as_str().unwrap();
    assert!(read.eq_ignore_ascii_case(person_name(1)), "{read}");
    let page = work.write("one.html", person_html(1));
    let tried = Run::new(["mapping", "test"])
        .arg(work.path("people.json"))
        .arg(page)
        .args(["--url", &person_url(1)])
        .finish()
        .expect_code(0);
    assert_eq!(parse_report(&tried)["fields"]["name"], person_name(1));
    assert_eq!(parse_report(&tried)["fields"]["born"], birth_year(1));
}

#[test]
fn useless_input_is_refused_with_a_reason() {
    let work = workplace();
    made_site::write_folder(&work, "saved");
    work.write_lines("people.jsonl", &records_with_gaps());
    let elsewhere =
        json!({"id": "1", "urls": ["https://other.example/"], "fields": {"name": "Ada"}});
    work.write_lines("elsewhere.jsonl", &[elsewhere]);
    let empty = json!({"id": "1", "urls": [person_url(1)], "fields": {"name": null}});
    work.write_lines("empty.jsonl", &[empty]);
    work.write("links.txt", "https://people.example/p/1\n");
    work.write("bare/x.html", "<h1>x</h1>");
    let people = ["--records", "people.jsonl"];
    let saved = ["--pages", "saved"];
    for (args, code, reported) in [
        (&saved[..], 2, "no known values"),
        (&people[..], 2, "no pages: give --pages DIR"),
        (
            &[
                "--records",
                "people.jsonl",
                "--pages",
                "saved",
                "--fields",
                "nmae",
            ],
            2,
            "did you mean name",
        ),
        (
            &["--records", "elsewhere.jsonl", "--pages", "saved"],
            1,
            "none of 1 records links to one of the",
        ),
        (
            &["--records", "empty.jsonl", "--pages", "saved"],
            1,
            "have no known values",
        ),
        (
            &["--records", "links.txt", "--pages", "saved"],
            2,
            "only links, no known fields",
        ),
        (
            &["--records", "missing.csv", "--pages", "saved"],
            2,
            "missing.csv",
        ),
        (
            &["--records", "people.jsonl", "--pages", "bare"],
            2,
            "pages.jsonl",
        ),
        (
            &["--records", "people.jsonl", "--pages", "nowhere"],
            2,
            "not a folder",
        ),
        (
            &["--records", "people.jsonl", "--warc", "nowhere"],
            2,
            "--warc nowhere",
        ),
        (
            &[
                "--records",
                "people.jsonl",
                "--pages",
                "saved",
                "--correct",
                "https://people.example/p/77",
                "name=X",
            ],
            2,
            "one of the pages; the nearest is",
        ),
        (
            &["--pages", "saved", "--example", "name=X", "born=Y"],
            2,
            "expected the page's URL",
        ),
    ] {
        let run = learn_command(&work, args).finish().expect_code(code);
        assert!(run.stderr.contains(reported), "{reported}: {}", run.stderr);
    }
    assert_eq!(page_count(), PEOPLE + made_site::BOOKS);
}
