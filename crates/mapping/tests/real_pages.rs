//! The mappings for real sites, on pages of these sites from Debian packages. Each test prints how often each field is
//! filled, and fails if a field is missing that every page has.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts};
use webfill_test_needs::needs;
use webfill_urls::Url;

/// What a mapping has extracted from all its pages.
#[derive(Default)]
struct Filled {
    pages: usize,
    links: usize,
    fields: BTreeMap<String, usize>,
    time: Duration,
}

impl Filled {
    fn filled_percent(&self, field: &str) -> f64 {
        100.0 * self.fields.get(field).copied().unwrap_or(0) as f64 / self.pages.max(1) as f64
    }
}

/// Extracts every page of `folder`, as if its URL were below `base`. Returns the results by mapping.
fn extract_pages(folder: &str, base: &str) -> BTreeMap<String, Filled> {
    let mappings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etl-mappings");
    let set = MappingSet::load_dir(&mappings).unwrap_or_else(|errors| panic!("{errors}"));
    let engine = Engine::new(Arc::new(set), Limits::default());
    let mut filled: BTreeMap<String, Filled> = BTreeMap::new();
    for path in pages(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let url = Url::parse(&format!("{base}{name}")).expect("a file name makes a URL");
        let bytes = fs::read(&path).expect("the page is readable");
        let text = String::from_utf8_lossy(&bytes);
        let page = PageInput {
            url: &url,
            kind: PageKind::Html,
            text: &text,
        };
        let start = Instant::now();
        let wants = RequestedParts {
            mapped_links: true,
            ..RequestedParts::default()
        };
        let extraction = engine.extract(page, wants).expect("there is no deadline");
        assert_eq!(extraction.warnings, [] as [&str; 0], "{url}");
        let of_mapping = filled
            .entry(extraction.mapping.unwrap_or_default())
            .or_default();
        of_mapping.time += start.elapsed();
        of_mapping.pages += 1;
        of_mapping.links += extraction.links.len();
        for (field, _) in extraction.fields {
            *of_mapping.fields.entry(field).or_default() += 1;
        }
    }
    filled
}

fn pages(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the package is installed");
    let paths = entries.map(|entry| entry.expect("the folder is readable").path());
    let mut pages: Vec<PathBuf> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "html")
        })
        .collect();
    pages.sort();
    pages
}

/// Prints how often each field is filled, and asserts the lowest expected rate of some fields, in percent.
fn assert_filled(filled: &BTreeMap<String, Filled>, mapping: &str, least: &[(&str, f64)]) {
    let of_mapping = &filled[mapping];
    let each_ms = of_mapping.time.as_secs_f64() * 1000.0 / of_mapping.pages as f64;
    println!(
        "{mapping}: {} pages, {} links, {each_ms:.2} ms each",
        of_mapping.pages, of_mapping.links
    );
    for field in of_mapping.fields.keys() {
        println!("  {field:<18}{:>6.1} %", of_mapping.filled_percent(field));
    }
    for (field, least) in least {
        let percent = of_mapping.filled_percent(field);
        assert!(
            percent >= *least,
            "{field} of {mapping} is filled on {percent:.1} % of pages"
        );
    }
}

#[needs(python3_doc)]
#[test]
fn python_library_pages_are_filled() {
    let filled = extract_pages(
        "/usr/share/doc/python3-doc/html/library",
        "https://docs.python.org/3/library/",
    );
    assert_filled(
        &filled,
        "python-library",
        &[("title", 100.0), ("module", 85.0), ("synopsis", 84.0)],
    );
}

#[needs(postgresql_doc)]
#[test]
fn postgresql_reference_pages_are_filled() {
    let filled = extract_pages(
        "/usr/share/doc/postgresql-doc-15/html",
        "https://www.postgresql.org/docs/15/",
    );
    let least = [
        ("command", 98.0),
        ("purpose", 98.0),
        ("synopsis", 97.0),
        ("description", 97.0),
    ];
    assert_filled(&filled, "postgresql-command", &least);
    assert_filled(&filled, "postgresql-contents", &[]);
    assert!(filled["postgresql-contents"].links > 190);
}

#[needs(sqlite3_doc)]
#[test]
fn sqlite_pages_are_filled() {
    let filled = extract_pages(
        "/usr/share/doc/sqlite3/c3ref",
        "https://www.sqlite.org/c3ref/",
    );
    let least = [
        ("title", 99.0),
        ("declarations", 99.0),
        ("names", 99.0),
        ("summary", 99.0),
    ];
    assert_filled(&filled, "sqlite-interface", &least);
    let filled = extract_pages(
        "/usr/share/doc/sqlite3/releaselog",
        "https://www.sqlite.org/releaselog/",
    );
    assert_filled(
        &filled,
        "sqlite-release",
        &[("version", 99.0), ("released", 99.0), ("changes", 95.0)],
    );
}
