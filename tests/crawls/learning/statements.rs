//! Tests statements of a user about pages: examples, corrections, refusals.

use serde_json::{Value, json};
use webfill_tests::site::Web;

use super::made_site::{
    self, PEOPLE, birth_year, person_city, person_name, person_url, records_with_gaps,
    serve_register,
};
use super::{learn_command, parse_report, workplace};

/// The values that the learned mapping reads for a field, one for each person's page in order.
fn read_field(work: &webfill_tests::workplace::Workplace, field: &str) -> Vec<Value> {
    let mut values = Vec::new();
    for number in 0..PEOPLE {
        let page = format!("saved/p{number}.html");
        let run = webfill_tests::run::Run::new(["mapping", "test", "people.json", &page])
            .args(["--url", &person_url(number)])
            .in_folder(work.path("."))
            .finish()
            .expect_code(0);
        values.push(parse_report(&run)["fields"][field].clone());
    }
    values
}

#[test]
fn examples_need_no_records() {
    let work = workplace();
    made_site::write_folder(&work, "saved");
    let mut args: Vec<String> = [
        "--pages",
        "saved",
        "--output",
        "people.json",
        "--name",
        "persons",
    ]
    .map(String::from)
    .into();
    for number in 0..4 {
        args.extend([
            "--example".into(),
            person_url(number),
            format!("name={}", person_name(number)),
            format!("born={}", birth_year(number)),
        ]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    learn_command(&work, &args).finish().expect_code(0);
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(work.path("people.json")).unwrap()).unwrap();
    assert_eq!(written["name"], "persons");
    let names: Vec<Value> = (0..PEOPLE)
        .map(|number| json!(person_name(number)))
        .collect();
    assert_eq!(read_field(&work, "name"), names);
    let years: Vec<Value> = (0..PEOPLE)
        .map(|number| json!(birth_year(number)))
        .collect();
    assert_eq!(read_field(&work, "born"), years);
}

#[test]
fn the_pages_of_examples_are_fetched_if_there_are_no_others() {
    let (work, web) = (workplace(), Web::start());
    serve_register(&web);
    let resolve: Vec<String> = web.resolve_args();
    let resolve: Vec<&str> = resolve
        .iter()
        .map(String::as_str)
        .filter(|one| *one != "--resolve")
        .collect();
    let mut run = learn_command(
        &work,
        &["--output", "people.json", "--allow-private-networks"],
    );
    for number in 0..3 {
        run = run.args([
            "--example",
            &person_url(number),
            &format!("city={}", person_city(number)),
        ]);
    }
    run.env("WEBFILL_FETCH_RESOLVE", resolve.join(","))
        .env("WEBFILL_POLITENESS_DELAY", "0.2")
        .finish()
        .expect_code(0);
    assert_eq!(web.visits().pages().len(), 3);
    web.visits()
        .assert_polite(std::time::Duration::from_millis(200));
    made_site::write_folder(&work, "saved");
    let cities: Vec<Value> = (0..PEOPLE)
        .map(|number| json!(person_city(number)))
        .collect();
    assert_eq!(read_field(&work, "city"), cities);
}

#[test]
fn statements_of_a_person_win_over_values_of_records() {
    let work = workplace();
    made_site::write_folder(&work, "saved");
    // In these records, the field `born` contains the year of death. The pages show both years.
    let wrong = |record: &Value| {
        let mut record = record.clone();
        let number: usize = record["id"].as_str().unwrap().parse().unwrap();
        record["fields"]["born"] = json!((1900 + number * 9).to_string());
        record
    };
    let wrong: Vec<Value> = records_with_gaps().iter().map(wrong).collect();
    work.write_lines("people.jsonl", &wrong);
    let args = [
        "--records",
        "people.jsonl",
        "--pages",
        "saved",
        "--output",
        "people.json",
        "--force",
    ];
    learn_command(&work, &args).finish().expect_code(0);
    assert_eq!(read_field(&work, "born")[3], json!("1927"));
    let mut run = learn_command(&work, &args);
    for number in 0..3 {
        run = run.args([
            "--correct",
            &person_url(number),
            &format!("born={}", birth_year(number)),
        ]);
    }
    let died = (1900 + 3 * 9).to_string();
    run.args(["--reject", &person_url(3), &format!("born={died}")])
        .finish()
        .expect_code(0);
    let years: Vec<Value> = (0..PEOPLE)
        .map(|number| json!(birth_year(number)))
        .collect();
    assert_eq!(read_field(&work, "born"), years);
}
