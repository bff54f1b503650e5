//! Tests the commands that help to write mappings, with mappings that have rows.

use serde_json::{Value, json};
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

const URL: &str = "https://ratings.example/users/7?page=2";

const PAGE: &str = "<h1>Ada</h1><ul>
    <li class=rating><a href=/1>Emma</a><b class=stars>4</b>
    <li class=rating><a href=/2>Persuasion</a>
    <li class=rating><a href=/3>Sanditon</a><b class=stars>1</b></ul>";

fn css(selector: &str) -> Value {
    json!([{"type": "css", "parameters": {"selector": selector}}])
}

/// Writes a mapping file for the ratings of a user. `stars` is the CSS selector of the stars.
fn write_ratings_mapping(work: &Workplace, stars: &str) -> String {
    let mapping = json!({
        "name": "ratings",
        "url_patterns": [{"type": "host", "pattern": "ratings.example"}],
        "rows": {
            "dataset": "ratings",
            "select": css("li.rating"),
            "fields": [
                {"name": "item", "processors": css("a::attr(href)")},
                {"name": "stars", "processors": css(stars)},
                {"name": "user", "from": "record", "record_field": "_id"},
            ],
            "key": ["user", "item"],
        },
    });
    let file = work.write_json("mine/ratings.json", &mapping);
    file.display().to_string()
}

fn run_mapping(args: &[&str]) -> Finished {
    Run::new(["mapping"]).args(args).finish()
}

fn json_of(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
}

#[test]
fn mapping_test_shows_rows_as_json_and_as_a_table() {
    let work = Workplace::new();
    let file = write_ratings_mapping(&work, ".stars");
    let page = work.write("page.html", PAGE).display().to_string();
    let run = run_mapping(&["test", &file, &page, "--url", URL]).expect_code(0);
    let row = |item: &str, stars: Value| json!({"item": item, "stars": stars, "user": null});
    assert_eq!(
        json_of(&run)["rows"],
        json!([{"dataset": "ratings", "rows": [row("/1", json!("4")), row("/2", json!(null)), row("/3", json!("1"))]}])
    );
    let run = run_mapping(&["test", &file, &page, "--url", URL, "--format", "text"]).expect_code(0);
    let table = "rows of ratings: 3 rows
row  item  stars  user
  0  /1        4     -
  1  /2        -     -
  2  /3        1     -
user: `_id` of the record for which a crawl fetches the page";
    assert!(run.stdout.contains(table), "{}", run.stdout);
}

#[test]
fn a_trace_shows_the_chains_of_chosen_rows() {
    let work = Workplace::new();
    let file = write_ratings_mapping(&work, ".stars");
    let page = work.write("page.html", PAGE).display().to_string();
    let traced = |more: &[&str]| {
        let trace = ["test", &file, &page, "--url", URL, "--trace"];
        run_mapping(&[&trace, more].concat()).expect_code(0)
    };
    let positions = |run: &Finished| -> Vec<Value> {
        let rows = json_of(run)["rows"][0]["rows"].clone();
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["position"].clone()).collect()
    };
    let run = traced(&[]);
    assert_eq!(
        positions(&run),
        [0, 1],
        "the first, and the first that lacks a field"
    );
    let rows = &json_of(&run)["rows"][0];
    assert_eq!(rows["count"], 3);
    let stars = &rows["rows"][1]["fields"][1];
    assert_eq!(stars["name"], "stars");
    assert_eq!(
        stars["empty_because"],
        json!(["step 1, css, found nothing in the row"])
    );
    let run = traced(&["--row", "2", "--row", "9"]);
    assert_eq!(positions(&run), [2]);
    let found = &json_of(&run)["rows"][0]["rows"][0]["fields"][0]["alternatives"][0][0];
    assert_eq!(found["output"]["shown"], json!(["/3"]));
    let run = traced(&["--row", "1", "--format", "text"]);
    for part in [
        "rows of ratings: 3 selected",
        "row 1\n",
        "field item: \"/2\"",
        "field stars: empty",
        "empty because step 1, css, found nothing in the row",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

#[test]
fn golden_cases_hold_rows_and_say_which_row_and_field_differ() {
    let work = Workplace::new();
    let file = write_ratings_mapping(&work, ".stars");
    let page = work.write("page.html", PAGE).display().to_string();
    let run = run_mapping(&["save", &file, &page, "--url", URL, "--as", "two"]).expect_code(0);
    assert!(
        run.stdout.contains("rows of ratings: 3 rows"),
        "{}",
        run.stdout
    );
    let case = std::fs::read_to_string(work.path("mine/golden/ratings/two.json")).unwrap();
    let case: Value = serde_json::from_str(&case).unwrap();
    assert_eq!(
        case["rows"][0]["rows"][1],
        json!({"item": "/2", "stars": null, "user": null})
    );
    let all = |expected: i32| run_mapping(&["test", "--all", &file]).expect_code(expected);
    assert!(all(0).stdout.contains("1 golden case, all as expected"));

    write_ratings_mapping(&work, "a");
    let output = all(1).stdout;
    for line in [
        "- ratings, row 1: stars: null",
        "+ ratings, row 1: stars: \"Persuasion\"",
        "- ratings, row 2: stars: \"1\"",
        "+ ratings, row 2: stars: \"Sanditon\"",
        "1 golden case, 1 differs",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
    let run = run_mapping(&["test", "--all", &file, "--format", "json"]).expect_code(1);
    let differing = &json_of(&run)["differing"][0];
    assert_eq!(differing["rows"][0], "- ratings, row 0: stars: \"4\"");
    assert_eq!(differing["found"]["rows"][0]["rows"][0]["stars"], "Emma");
}

#[test]
fn over_several_pages_it_counts_rows_and_missing_fields() {
    let work = Workplace::new();
    let file = write_ratings_mapping(&work, ".stars");
    work.write("pages/a.html", PAGE);
    work.write("pages/b.html", "<h1>Bob</h1>");
    let pages = work.path("pages").display().to_string();
    let run = run_mapping(&["test", &file, &pages]).expect_code(0);
    let last: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    let rows = &last["mappings"]["ratings"]["rows"][0];
    assert_eq!(rows["rows"], 3);
    assert_eq!(rows["pages_without"], 1);
    assert_eq!(rows["fields"]["stars"]["filled"], 2);
    assert_eq!(rows["fields"]["stars"]["empty"], 1);
    let run = run_mapping(&["test", &file, &pages, "--format", "text"]).expect_code(0);
    assert!(
        run.stdout.contains("rows of ratings: 3; none on "),
        "{}",
        run.stdout
    );
}

#[test]
fn a_field_of_rows_can_be_selected_by_its_name() {
    let work = Workplace::new();
    let file = write_ratings_mapping(&work, ".stars");
    let page = work.write("page.html", PAGE).display().to_string();
    let asked = |field: &str| run_mapping(&["test", &file, &page, "--url", URL, "--field", field]);
    assert_eq!(
        json_of(&asked("stars").expect_code(0))["rows"][0]["rows"][2]["stars"],
        "1"
    );
    let run = asked("star").expect_code(2);
    assert!(
        run.stderr.contains("no field `star`; there are stars"),
        "{}",
        run.stderr
    );
}

/// The output of `webfill mapping check` for a mapping with these fields. Each of the `pages` is the HTML of a golden
/// case.
fn check_lists(work: &Workplace, fields: &Value, pages: &[&str]) -> String {
    let listed = json!({
        "name": "listed",
        "url_patterns": [{"type": "host", "pattern": "listed.example"}],
        "fields": fields,
    });
    let file = work.write_json("listed/listed.json", &listed);
    for (number, page) in pages.iter().enumerate() {
        work.write(&format!("listed/golden/listed/{number}.html"), page);
        let case = json!({"url": format!("https://listed.example/{number}"), "mapping": "listed"});
        work.write_json(&format!("listed/golden/listed/{number}.json"), &case);
    }
    run_mapping(&["check", &file.display().to_string()])
        .expect_code(0)
        .stdout
}

fn list_fields(selectors: &[(&str, &str)]) -> Value {
    let field = |(name, selector): &(&str, &str)| json!({"name": name, "multiple": true, "processors": css(selector)});
    selectors.iter().map(field).collect()
}

#[test]
fn mapping_check_shows_the_rows_to_write_instead_of_lists_beside_each_other() {
    let work = Workplace::new();
    let fields = list_fields(&[
        ("items", "li.rating a::attr(href)"),
        ("stars", "li.rating .stars"),
    ]);
    let reported = check_lists(&work, &fields, &[]);
    assert!(reported.contains("1 mapping, 1 warning"), "{reported}");
    assert!(
        reported.contains("fields items, stars are lists of parts of the same entries"),
        "{reported}"
    );
    let rewrite: String = reported
        .lines()
        .skip_while(|line| !line.contains("\"rows\": {"))
        .take_while(|line| line.starts_with("    "))
        .collect();
    let pasted = format!(
        r#"{{"name": "listed", "url_patterns": [{{"type": "host", "pattern": "listed.example"}}], {rewrite}}}"#
    );
    let file = work.write("pasted.json", pasted).display().to_string();
    let reported = run_mapping(&["check", &file]).expect_code(0).stdout;
    assert!(reported.contains("1 mapping, all good"), "{reported}");
    let page = work.write("page.html", PAGE).display().to_string();
    let found = json_of(&run_mapping(&["test", &file, &page]).expect_code(0));
    assert_eq!(
        found["rows"][0]["rows"][1],
        json!({"items": "/2", "stars": null})
    );
    assert_eq!(
        found["rows"][0]["rows"][2],
        json!({"items": "/3", "stars": "1"})
    );
}

#[test]
fn mapping_check_finds_parallel_lists_in_golden_cases() {
    let work = Workplace::new();
    let page = "<div><section><h3>A</h3><p class=v>1</p></section><section><h3>B</h3></section>\
        <section><h3>C</h3><p class=v>3</p></section></div>";
    let fields = list_fields(&[("names", "h3"), ("values", ".v")]);
    let reported = check_lists(&work, &fields, &[page]);
    assert!(
        reported.contains("fields names, values are lists of parts of the same entries"),
        "{reported}"
    );
    assert!(
        reported.contains("\"expression\": \"/html/body/div/section\""),
        "{reported}"
    );

    let honest = |tags: usize, authors: usize| {
        let list = |class: &str, count: usize| {
            format!(
                "<p class={class}>{}</p>",
                format!("<a>{class}</a>").repeat(count)
            )
        };
        list("tags", tags) + &list("authors", authors)
    };
    let pages = [honest(3, 3), honest(2, 4), honest(5, 1)];
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let fields = list_fields(&[("tags", ".tags a"), ("authors", ".authors a")]);
    let reported = check_lists(&work, &fields, &pages);
    assert!(reported.contains("1 mapping, all good"), "{reported}");

    let alike = [2, 3, 4, 5, 6].map(|count| honest(count, count));
    let alike: Vec<&str> = alike.iter().map(String::as_str).collect();
    let reported = check_lists(&work, &fields, &alike);
    assert!(
        reported.contains("the lists of fields tags, authors are as long as each other"),
        "{reported}"
    );
}

#[test]
fn mapping_check_warns_of_rows_without_a_key_of_their_own_and_of_rules_that_find_nothing() {
    let work = Workplace::new();
    let file = write_ratings_mapping(&work, ".stars");
    let page = "<ul><li class=rating><a href=/1>A</a><b class=stars>4</b>\
        <li class=rating><b class=stars>2</b><li class=rating><a href=/1>A</a></ul>";
    work.write("mine/golden/ratings/a.html", page);
    work.write_json("mine/golden/ratings/a.json", &json!({"url": URL}));
    let output = run_mapping(&["check", &file]).expect_code(0).stdout;
    for warning in [
        "1 mapping, 2 warnings",
        "rows of ratings: 1 of 3 rows of the golden cases have no item, which is in the key, and are not stored",
        "rows of ratings: 1 of 3 rows of the golden cases have the key of another row of their page, such as [\"/1\"]",
    ] {
        assert!(output.contains(warning), "{warning}: {output}");
    }
    work.write("mine/golden/ratings/a.html", "<p>nothing</p>");
    let output = run_mapping(&["check", &file]).expect_code(0).stdout;
    assert!(
        output.contains("rows of ratings: `select` finds nothing on any golden case"),
        "{output}"
    );
}

#[test]
fn mapping_check_warns_of_lists_that_cannot_say_which_rows_are_gone() {
    let work = Workplace::new();
    let rule = |complete: bool| {
        json!({
            "dataset": "ratings",
            "select": [{"type": "css", "parameters": {"selector": "li"}}],
            "fields": [{"name": "item", "processors": [{"type": "css", "parameters": {"selector": "b"}}]}],
            "key": ["item"],
            "complete": complete,
        })
    };
    let write = |name: &str, pattern: &str, complete: bool| {
        let mapping = json!({
            "name": name,
            "url_patterns": [{"type": "glob", "pattern": pattern}],
            "rows": rule(complete),
            "url_parsers": [{"processors": [{"type": "css", "parameters": {"selector": "a::attr(href)"}}]}],
        });
        work.write_json(&format!("mine/{name}.json"), &mapping);
    };
    write("all", "https://ratings.example/users/7", true);
    let page = "<ul><li><b>x</b></ul><a href=\"?page=2\">next</a>";
    work.write("mine/golden/all/a.html", page);
    let case = json!({"url": "https://ratings.example/users/7"});
    work.write_json("mine/golden/all/a.json", &case);
    let folder = work.path("mine").display().to_string();
    let check = || run_mapping(&["check", &folder]).expect_code(0).stdout;
    let reported = check();
    let warning = "no link of the golden cases leads to a page that this mapping reads";
    assert!(reported.contains(warning), "{reported}");
    write("further", "https://ratings.example/users/7?page=*", false);
    let reported = check();
    let warning = "mapping further: rows of ratings: another rule for this dataset has `complete`";
    assert!(reported.contains(warning), "{reported}");
    write("all", "https://ratings.example/users/7*", true);
    std::fs::remove_file(work.path("mine/further.json")).unwrap();
    let reported = check();
    assert!(reported.contains("all good"), "{reported}");
}

/// The code block in docs/how-to/listings.md that begins with this text.
fn block_of_how_to(beginning: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/listings.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("\n```").skip(1).step_by(2);
    let mut blocks = blocks.filter_map(|block| block.split_once('\n').map(|(_, block)| block));
    let block = blocks.find(|block| block.starts_with(beginning));
    block.expect("the how-to shows it").to_owned()
}

#[test]
fn the_crawl_and_the_export_of_the_how_to_work_as_shown() {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("ratings.example");
    let pages = |rows: &[&[(&str, &str)]]| -> Vec<String> {
        let count: usize = rows.iter().map(|rows| rows.len()).sum();
        let page = |rows: &&[(&str, &str)]| {
            let row = |(item, stars): &(&str, &str)| {
                format!("<tr><td><a class=title href=/books/{item}>B</a><td>{stars}")
            };
            let rows: String = rows.iter().map(row).collect();
            format!(
                "<span class=count>{count}</span><table class=ratings><thead><tr><th>Title<th>Stars</thead><tbody>{rows}</table>"
            )
        };
        rows.iter().map(page).collect()
    };
    let ada = pages(&[
        &[("11", "4"), ("12", ""), ("13", "1"), ("14", "5")],
        &[("15", ""), ("16", "2")],
    ]);
    site.serve("/users/ada", page("Ada").html(&ada[0]));
    site.serve("/users/ada?page=2", page("Ada").html(&ada[1]));
    site.serve("/users/bob", page("Bob").html(&pages(&[&[]])[0]));
    let here = |text: String| text.replace("https://ratings.example/", &site.url("/"));
    work.write(
        "mine/ratings.json",
        here(block_of_how_to("{\n    \"name\"")).replace("\"size\": 30", "\"size\": 4"),
    );
    work.write(
        "users.txt",
        here(block_of_how_to("https://ratings.example/users/ada")),
    );
    for command in [
        "$ webfill crawl --seeds users.txt --mappings mine",
        "$ webfill export records --dataset ratings",
    ] {
        block_of_how_to(command);
    }
    let store = format!("sqlite:{}", work.path("store.db").display());
    work.crawl(&web)
        .arg("--seeds")
        .arg(work.path("users.txt"))
        .replace_flag("--mappings", work.path("mine"))
        .replace_flag("--store", &store)
        .finish()
        .expect_code(0);
    let run = Run::new([
        "export",
        "records",
        "--dataset",
        "ratings",
        "--store",
        &store,
    ])
    .finish();
    let mut rows: Vec<Value> = run
        .expect_code(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    rows.sort_by_key(|row| row["record_id"].to_string());
    let found: Vec<(&str, &Value)> = rows
        .iter()
        .map(|row| (row["record_id"].as_str().unwrap(), &row["fields"]["stars"]))
        .collect();
    let none = Value::Null;
    let wanted = [
        ("ada/11", &json!(4)),
        ("ada/12", &none),
        ("ada/13", &json!(1)),
        ("ada/14", &json!(5)),
        ("ada/15", &none),
        ("ada/16", &json!(2)),
    ];
    assert_eq!(found, wanted);
    assert_eq!(rows[5]["row"]["url"], site.url("/users/ada?page=2"));
    assert_eq!(rows[5]["row"]["position"], 1);
}
