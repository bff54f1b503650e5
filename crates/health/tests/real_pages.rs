//! Tests with real pages how often alerts are false when nothing has changed. The pages of three software manuals are
//! checked each night, in a new order. Each manual has a mapping with fields that all, many or few of its pages have.
//!
//! `WEBFILL_REAL_PAGES=1000000 cargo test -p webfill-health --test real_pages -- --nocapture` prints the table of
//! `docs/explanation/health.md`. The number says how many pages of each manual are checked in each order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use webfill_health::{Event, GoodPage, MappingHealth, WarningKind};
use webfill_mapping::{Engine, Limits, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_test_needs::needs;
use webfill_urls::Url;

/// The number of pages that one list leads to. They are neighbours in the manual, and so more alike than other pages.
const CLUMP: usize = 10;

/// After this many nights, the health of a site starts from nothing, so that the test covers many baselines (learned
/// normal shares of pages with a value).
const NIGHTS: usize = 30;

/// The test fails if there are more false alerts than this in a million pages.
const MOST_IN_A_MILLION: usize = 20;

fn most_pages() -> usize {
    let reported = std::env::var("WEBFILL_REAL_PAGES").ok();
    reported.map_or(20_000, |text| text.parse().expect("a number of pages"))
}

/// What the mapping reads on one page of a manual.
struct ReadPage {
    template: Option<String>,
    fields: Map<String, Value>,
}

struct Manual {
    name: &'static str,
    /// The pages in the order of the manual.
    pages: Vec<ReadPage>,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// A new order each night, and every page has a source of its own.
    Random,
    /// Groups of neighbouring pages come together and share a source. The order of the groups is new each night.
    Clumps,
}

/// What was counted for one order of pages.
#[derive(Default)]
struct Report {
    pages: usize,
    alerts: usize,
    warnings: BTreeMap<&'static str, usize>,
}

fn collect_html_files(folder: &Path, all: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the package is installed");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect_html_files(&path, all);
        } else if path.extension().is_some_and(|ending| ending == "html") {
            all.push(path);
        }
    }
}

/// Reads all pages of a manual with a mapping of these fields.
fn read_manual(name: &'static str, folder: &str, fields: &[(&str, &str)]) -> Manual {
    let fields: Vec<Value> = fields
        .iter()
        .map(|(name, expression)| {
            let xpath = json!({"type": "xpath", "parameters": {"expression": expression}});
            json!({"name": name, "processors": [xpath]})
        })
        .collect();
    let mapping = json!({"name": name, "url_patterns": [{"type": "regex", "pattern": "^http://manual\\.example/"}], "fields": fields});
    let source = Source {
        name: format!("{name}.json"),
        text: mapping.to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).unwrap_or_else(|errors| panic!("{errors}"));
    let engine = Engine::new(Arc::new(set), Limits::default());
    let mut paths = Vec::new();
    collect_html_files(Path::new(folder), &mut paths);
    let page = |path: &PathBuf| {
        let text = String::from_utf8_lossy(&fs::read(path).expect("a readable page")).into_owned();
        let url = Url::parse("http://manual.example/page").expect("a URL");
        let page = PageInput {
            url: &url,
            kind: PageKind::Html,
            text: &text,
        };
        let read = engine
            .extract(page, RequestedParts::default())
            .expect("no deadline");
        assert!(read.mapping.is_some(), "the mapping matches");
        ReadPage {
            template: read.template,
            fields: read.fields,
        }
    };
    let pages = paths.iter().map(page).collect();
    Manual { name, pages }
}

/// The pages of one night in random order, each with its source.
fn random_page_order(
    order: Order,
    pages: usize,
    random: &mut fastrand::Rng,
) -> Vec<(usize, usize)> {
    if order == Order::Random {
        let mut night: Vec<(usize, usize)> = (0..pages).map(|page| (page, page)).collect();
        random.shuffle(&mut night);
        return night;
    }
    let mut clumps: Vec<usize> = (0..pages.div_ceil(CLUMP)).collect();
    random.shuffle(&mut clumps);
    let of_clump = |clump: usize| {
        let last = pages.min((clump + 1) * CLUMP);
        (clump * CLUMP..last).map(move |page| (page, pages + clump))
    };
    clumps.into_iter().flat_map(of_clump).collect()
}

fn kind_of(warning: WarningKind) -> &'static str {
    match warning {
        WarningKind::ValuesChanged => "values_changed",
        WarningKind::OtherLayout => "other_layout",
        WarningKind::OneContent => "one_content",
        WarningKind::AlternativeServes => "alternative_serves",
    }
}

/// Checks the pages of a manual night after night.
fn check_nights(manual: &Manual, order: Order, most: usize) -> Report {
    let mut random = fastrand::Rng::with_seed(7);
    let mut reported = Report::default();
    let nothing = Map::new();
    let mut health = MappingHealth::new(manual.name);
    for nth in 0.. {
        if nth % NIGHTS == 0 {
            health = MappingHealth::new(manual.name);
        }
        for (page, source) in random_page_order(order, manual.pages.len(), &mut random) {
            if reported.pages == most {
                return reported;
            }
            reported.pages += 1;
            let id = format!("watches/manual/{nth}-{page}");
            let read = &manual.pages[page];
            let events = health.note_page(&GoodPage {
                id: &id,
                url: &id,
                site: "manual.example",
                at: "2026-01-01T00:00:00.000Z",
                at_ms: 0,
                mapping_version: None,
                template: read.template.as_deref(),
                source: &source.to_string(),
                content_hash: None,
                attempts: 1,
                fields: &read.fields,
                rows: &[],
                alternatives: &nothing,
                known_values: &[],
            });
            for event in events {
                match event {
                    Event::LayoutChanged => {
                        let alert = health.alert().expect("it was raised");
                        println!("{}: {}", manual.name, alert.text());
                        reported.alerts += 1;
                        // After the alert, a user would have corrected the mapping. So the health starts from nothing.
                        health = MappingHealth::new(manual.name);
                        break;
                    }
                    Event::Warned(warning) => {
                        *reported.warnings.entry(kind_of(warning.kind)).or_default() += 1;
                    }
                    Event::MoreFell | Event::Cleared(_) => {}
                }
            }
        }
    }
    reported
}

/// Prints how many alerts and warnings unchanged pages cause, and asserts that there are few.
fn assert_few_false_alerts(manual: &Manual) {
    let count = manual.pages.len();
    let mut shares: BTreeMap<&str, usize> = BTreeMap::new();
    for name in manual.pages.iter().flat_map(|page| page.fields.keys()) {
        *shares.entry(name).or_default() += 1;
    }
    let shares: Vec<String> = shares
        .iter()
        .map(|(name, pages)| format!("{name} {:.2}", *pages as f64 / count as f64))
        .collect();
    println!("{}: {count} pages; {}", manual.name, shares.join(", "));
    for (order, word) in [(Order::Random, "random"), (Order::Clumps, "in clumps")] {
        let reported = check_nights(manual, order, most_pages());
        let per_million = |events: usize| events as f64 * 1e6 / reported.pages as f64;
        let warnings = reported.warnings.iter();
        let warnings: Vec<String> = warnings
            .map(|(kind, events)| format!("{kind} {:.1}", per_million(*events)))
            .collect();
        println!(
            "  {word}: {} pages, {:.1} false alarms in a million; warnings: {}",
            reported.pages,
            per_million(reported.alerts),
            warnings.join(", ")
        );
        // One false alert is always allowed, because there may be few pages.
        let most = 1 + reported.pages * MOST_IN_A_MILLION / 1_000_000;
        assert!(reported.alerts <= most, "{word}: {}", reported.alerts);
    }
}

#[needs(python3_doc)]
#[test]
fn pages_of_the_python_manual_raise_no_alert() {
    assert_few_false_alerts(&read_manual(
        "python",
        "/usr/share/doc/python3-doc/html",
        &[
            ("title", "//h1/text()"),
            ("code", "//div[contains(@class, 'highlight')]//pre"),
            ("function", "//dl[contains(@class, 'function')]/dt/@id"),
            ("class", "//dl[contains(@class, 'class')]/dt/@id"),
            ("note", "//div[contains(@class, 'note')]/p"),
            ("since", "//div[@class = 'versionadded']/p"),
            ("deprecated", "//div[@class = 'deprecated']/p"),
            ("see_also", "//div[contains(@class, 'seealso')]/p"),
        ],
    ));
}

#[needs(postgresql_doc)]
#[test]
fn pages_of_the_postgresql_manual_raise_no_alert() {
    assert_few_false_alerts(&read_manual(
        "postgresql",
        "/usr/share/doc/postgresql-doc-15/html",
        &[
            ("title", "//title/text()"),
            (
                "heading",
                "//div[@class = 'titlepage']//h2 | //span[@class = 'refentrytitle']",
            ),
            ("example", "//pre[@class = 'programlisting']"),
            ("synopsis", "//pre[@class = 'synopsis']"),
            ("table", "//p[@class = 'title']"),
            ("note", "//div[@class = 'note']//p"),
            ("tip", "//div[@class = 'tip']//p"),
            ("warning", "//div[@class = 'warning']//p"),
            ("parent", "//a[@accesskey = 'u']/@href"),
        ],
    ));
}

#[needs(sqlite3_doc)]
#[test]
fn pages_of_the_sqlite_manual_raise_no_alert() {
    assert_few_false_alerts(&read_manual(
        "sqlite",
        "/usr/share/doc/sqlite3",
        &[
            ("title", "//title/text()"),
            ("heading", "//h1/text()"),
            ("section", "//h2"),
            ("code", "//pre"),
            ("table", "//table//td"),
            ("list", "//ol/li"),
            ("released", "//h2[contains(., 'On')]"),
            ("sources", "//a[contains(@href, '.c')]/@href"),
        ],
    ));
}
