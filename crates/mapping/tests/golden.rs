//! Every mapping that ships has golden cases: a page, and its expected fields and links.
//!
//! `etl-mappings/golden/MAPPING/CASE.html` is the page; `CASE.json` holds its `url` and the expected result.
//! `UPDATE_GOLDEN=1 cargo nextest run -p webfill-mapping golden` writes the actual results into those files; review
//! them before you commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use webfill_mapping::{
    Engine, Limits, Listing, MappingSet, PageInput, PageKind, RequestedParts, case_schema,
};
use webfill_urls::Url;

fn mappings_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etl-mappings")
}

fn load_mappings() -> Arc<MappingSet> {
    let set = MappingSet::load_dir(&mappings_dir()).unwrap_or_else(|errors| panic!("{errors}"));
    Arc::new(set)
}

/// The JSON files of all cases.
fn case_files() -> Vec<PathBuf> {
    let mut cases = Vec::new();
    for mapping in fs::read_dir(mappings_dir().join("golden")).unwrap() {
        let mapping = mapping.unwrap().path();
        if mapping.is_dir() {
            let entries = fs::read_dir(mapping)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            cases
                .extend(entries.filter(|path| path.extension().is_some_and(|kind| kind == "json")));
        }
    }
    cases.sort();
    cases
}

fn read_case(path: &Path) -> Map<String, Value> {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fields, rows and links that are extracted from the page of a case, in the form of its JSON file.
fn extract_case(engine: &Engine, case: &Path, expected: &Map<String, Value>) -> Value {
    let url = expected["url"].as_str().expect("a case names its URL");
    let parsed = Url::parse(url).unwrap();
    let text = fs::read_to_string(case.with_extension("html")).unwrap();
    let page = PageInput {
        url: &parsed,
        kind: PageKind::Html,
        text: &text,
    };
    let wants = RequestedParts {
        mapped_links: true,
        row_links: true,
        ..RequestedParts::default()
    };
    let extraction = engine.extract(page, wants).unwrap();
    assert_eq!(extraction.warnings, [] as [&str; 0]);
    let mut found = json!({
        "url": url,
        "mapping": extraction.mapping,
        "fields": extraction.fields,
    });
    if !extraction.listings.is_empty() {
        found["rows"] = extraction.listings.iter().map(Listing::to_json).collect();
    }
    found["links"] = json!(extraction.links);
    found
}

#[test]
fn cases_have_only_keys_that_their_schema_knows() {
    let schema = case_schema();
    for path in case_files() {
        for key in read_case(&path).keys() {
            let is_known = schema["properties"].get(key).is_some();
            assert!(is_known, "{}: {key}", path.display());
        }
    }
}

#[test]
fn golden_cases_yield_their_expected_results() {
    let engine = Engine::new(load_mappings(), Limits::default());
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut report = String::new();
    for path in case_files() {
        let expected = read_case(&path);
        let found = extract_case(&engine, &path, &expected);
        let found = serde_json::to_string_pretty(&found).unwrap();
        let wanted = serde_json::to_string_pretty(&expected).unwrap();
        if found == wanted {
            continue;
        }
        if update {
            fs::write(&path, found + "\n").unwrap();
        } else {
            report += &format!("{}\n{}\n", path.display(), diff(&wanted, &found));
        }
    }
    assert!(
        report.is_empty(),
        "golden cases differ (- expected, + found):\n{report}"
    );
}

#[test]
fn every_mapping_has_a_golden_case() {
    let set = load_mappings();
    let covered: Vec<Value> = case_files()
        .iter()
        .map(|path| read_case(path)["mapping"].clone())
        .collect();
    for index in set.indexes() {
        let name = set.name(index);
        assert!(covered.contains(&json!(name)), "no golden case for {name}");
    }
}

#[test]
fn gravatar_pages_that_are_no_profiles_are_refused_by_look_ahead() {
    let set = load_mappings();
    let name = |url| set.find(url).map(|index| set.name(index).to_owned());
    for url in [
        "https://gravatar.com/ada",
        "http://www.gravatar.com/ada/",
        "https://fr.gravatar.com/a_1",
        "https://gravatar.com/mysupport",
    ] {
        assert_eq!(name(url).as_deref(), Some("gravatar"), "{url}");
    }
    for url in [
        "https://gravatar.com/",
        "https://gravatar.com/avatar",
        "https://gravatar.com/support/",
        "https://gravatar.com/site",
        "https://gravatar.com/connect",
        "https://gravatar.com/supporter",
        "https://gravatar.com/ada/photos",
        "https://gravatar.com/ada?page=2",
        "https://secure.gravatar.com/ada",
        "https://gravatar.community/ada",
        "https://evil.example/https://gravatar.com/ada",
    ] {
        assert_eq!(name(url), None, "{url}");
    }
}

/// The lines where two texts differ, with a line of context around them.
fn diff(expected: &str, found: &str) -> String {
    let (left, right): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), found.lines().collect());
    let common = common_lengths(&left, &right);
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            lines.push(format!("  {}", left[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == right.len() || (i < left.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(format!("- {}", left[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", right[j]));
            j += 1;
        }
    }
    let differs = |index: usize| lines.get(index).is_some_and(|line| !line.starts_with("  "));
    let near = (0..lines.len())
        .filter(|&at| differs(at) || differs(at + 1) || (at > 0 && differs(at - 1)));
    near.map(|at| lines[at].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// For each pair of positions in the two texts: how many lines the rest of both has in common, in the same order.
fn common_lengths(left: &[&str], right: &[&str]) -> Vec<Vec<usize>> {
    let mut lengths = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            lengths[i][j] = match left[i] == right[j] {
                true => lengths[i + 1][j + 1] + 1,
                false => lengths[i + 1][j].max(lengths[i][j + 1]),
            };
        }
    }
    lengths
}

#[test]
fn a_difference_is_shown_line_by_line() {
    assert_eq!(diff("a\nb\nc\nd\ne", "a\nb\nx\nd\ne"), "  b\n- c\n+ x\n  d");
    assert_eq!(diff("same", "same"), "");
}
