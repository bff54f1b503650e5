//! Tests that every filled value can be extracted again: from the archived page and by the chain of processors that the
//! evidence names.

use std::collections::BTreeMap;

use serde_json::json;
use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, fill_command, gap_count, read_evidence, serve_books, table_with_gaps,
};

#[test]
fn each_filled_value_is_extracted_again_by_its_chain() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    fill_command(&work, &web).finish().expect_code(0);
    let lines = read_evidence(&work);
    let filled: Vec<_> = lines
        .iter()
        .filter(|line| line["state"] == "filled")
        .collect();
    assert_eq!(filled.len(), gap_count());
    // For each chain of processors in the evidence, a mapping with this chain is run on the stored pages, by other code
    // than the one that filled the gaps.
    let mut by_chain: BTreeMap<String, Vec<&serde_json::Value>> = BTreeMap::new();
    for line in &filled {
        assert!(
            line["excerpt"]
                .as_str()
                .unwrap()
                .contains(line["value"].as_str().unwrap()),
            "{line}"
        );
        by_chain
            .entry(line["chain"].to_string())
            .or_default()
            .push(line);
    }
    let store = format!("sqlite:{}", work.path("books.webfill/webfill.db").display());
    let mut made = 0;
    for (number, (chain, lines)) in by_chain.into_iter().enumerate() {
        let chain: serde_json::Value = serde_json::from_str(&chain).unwrap();
        let mapping = json!({"name": "again", "url_patterns": [{"type": "regex", "pattern": "."}],
            "fields": [{"name": "value", "processors": chain}]});
        let folder = format!("again{number}");
        work.write_json(&format!("{folder}/again.json"), &mapping);
        let copy = work.path(&format!("copy{number}.db"));
        std::fs::copy(work.path("books.webfill/webfill.db"), &copy).unwrap();
        std::fs::copy(
            work.path("books.webfill/webfill.db.bodies"),
            copy.with_extension("db.bodies"),
        )
        .unwrap();
        let uri = format!("sqlite:{}", copy.display());
        Run::new(["extract", "--crawl", "fill", "--store", &uri, "--mappings"])
            .arg(work.path(&folder))
            .finish()
            .expect_code(0);
        let pages = Run::new(["export", "pages", "--store", &uri])
            .finish()
            .expect_code(0)
            .stdout;
        let values: BTreeMap<String, serde_json::Value> = pages
            .lines()
            .map(|line| {
                let page: serde_json::Value = serde_json::from_str(line).unwrap();
                (
                    page["url"].as_str().unwrap().to_owned(),
                    page["fields"]["value"].clone(),
                )
            })
            .collect();
        for line in lines {
            assert_eq!(
                values[line["url"].as_str().unwrap()],
                line["value"],
                "{line}"
            );
            made += 1;
        }
    }
    assert_eq!(made, gap_count(), "{store}");
}
