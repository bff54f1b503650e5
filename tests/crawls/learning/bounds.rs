//! Tests the limits of learning: files outside of the folder are not read, the first fault of this machine ends
//! fetching, and pages of other kinds are not matched.

use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_site::{
    HOST, person_html, person_name, person_url, records_with_gaps, serve_register,
};
use super::{learn_command, workplace};

/// A list of pages may come from a stranger, together with its folder. It must not cause files outside of the folder to
/// be read.
#[test]
fn a_list_of_pages_names_no_file_outside_of_its_folder() {
    let work = workplace();
    work.write("secret.html", person_html(1));
    work.write("saved/page.html", person_html(2));
    std::os::unix::fs::symlink("../secret.html", work.path("saved/link.html")).unwrap();
    work.write_lines("people.jsonl", &records_with_gaps());
    let absolute = work.path("secret.html").display().to_string();
    for file in ["../secret.html", "link.html", &absolute] {
        let page = json!({"url": person_url(1), "file": file});
        let kept = json!({"url": person_url(1), "asked_at_ms": 0, "page": {"file": file, "url": person_url(1)}});
        for line in [page, kept.clone()] {
            work.write_lines("saved/pages.jsonl", &[line]);
            let args = ["--records", "people.jsonl", "--pages", "saved"];
            let run = learn_command(&work, &args).finish().expect_code(2);
            assert!(run.stderr.contains("pages.jsonl:1: "), "{}", run.stderr);
            assert!(
                run.stderr.contains("is outside of the folder"),
                "{}",
                run.stderr
            );
        }
        // `webfill mapping test` can read the same list of pages.
        work.write_lines("saved/pages.jsonl", &[kept]);
        let mapping = work.path("mappings/profile.json");
        let run = Run::new(["mapping", "test"])
            .arg(mapping)
            .arg(work.path("saved"));
        let run = run.finish().expect_code(2);
        assert!(
            run.stderr.contains("is outside of the folder"),
            "{}",
            run.stderr
        );
    }
}

/// If fetching did not end, pages that cannot be stored would be fetched again and again.
#[test]
fn a_fault_of_this_machine_ends_fetching() {
    let (work, web) = (workplace(), Web::start());
    serve_register(&web);
    work.write_lines("people.jsonl", &records_with_gaps());
    let fetch = |most: &str, keep: &str| {
        learn_command(&work, &["--records", "people.jsonl", "--fetch", most])
            .args(["--allow-private-networks", "--keep", keep])
            .env("WEBFILL_FETCH_RESOLVE", resolve_value(&web))
            .env("WEBFILL_POLITENESS_DELAY", "0.1")
            .finish()
    };
    fetch("2", "free");
    let kept = std::fs::read_to_string(work.path("free/pages.jsonl")).unwrap();
    let second: Value = serde_json::from_str(kept.lines().nth(1).unwrap()).unwrap();
    let file = second["page"]["file"].as_str().unwrap();
    work.write(&format!("kept/.{file}/taken"), "");
    let before = web.visits().paths().len();
    let run = fetch("6", "kept").expect_code(1);
    assert!(run.stderr.contains("cannot write"), "{}", run.stderr);
    let asked = ["/robots.txt", "/p/0", "/p/1"].map(|path| format!("{HOST}{path}"));
    assert_eq!(web.visits().paths()[before..], asked);
}

fn resolve_value(web: &Web) -> String {
    let all = web.resolve_args();
    let pairs: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .filter(|one| *one != "--resolve")
        .collect();
    pairs.join(",")
}

/// The URLs of people have one path segment, and so has the URL of another document on the site. The learned patterns
/// must not match this document.
#[test]
fn other_documents_are_matched_by_no_pattern() {
    let work = workplace();
    let address =
        |number: usize| format!("http://{HOST}/{}", person_name(number).replace(' ', "_"));
    let (mut pages, mut people) = (Vec::new(), records_with_gaps());
    for (number, person) in people.iter_mut().enumerate() {
        let file = format!("p{number}.html");
        work.write(&format!("saved/{file}"), person_html(number));
        pages.push(json!({"url": address(number), "file": file}));
        person["urls"] = json!([address(number)]);
    }
    let register = format!("http://{HOST}/The_Register");
    work.write("saved/register.pdf", "%PDF-1.4\n");
    pages.push(json!({"url": register, "file": "register.pdf", "content_type": "application/pdf"}));
    work.write_lines("saved/pages.jsonl", &pages);
    work.write_lines("people.jsonl", &people);
    let args = [
        "--records",
        "people.jsonl",
        "--pages",
        "saved",
        "--output",
        "people.json",
    ];
    learn_command(&work, &args).finish().expect_code(0);
    let test = |work: &Workplace, url: &str| {
        let page = work.path("saved/p1.html");
        let run = Run::new(["mapping", "test"])
            .arg(work.path("people.json"))
            .arg(page);
        run.args(["--url", url]).finish()
    };
    test(&work, &format!("http://{HOST}/Someone_New")).expect_code(0);
    let refused = test(&work, &register).expect_code(2);
    assert!(
        refused.stderr.contains("no url_pattern matches"),
        "{}",
        refused.stderr
    );
}
