//! Tests that `docs/reference/metrics.md` lists all metrics of the program, with their types and labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{DISPATCHER, SUPERVISOR, crawl_two_sites, fleet_with_metrics, scrape, scrape_text};
use crate::fleet::wait_for;

/// The type and the label names of each metric, by its name.
type Families = BTreeMap<String, (String, BTreeSet<String>)>;

/// A metric that appears only after the dispatcher has read its value from the store.
const READ_LATER: &str = "webfill_extraction_alerts";

/// The metrics that only a dispatcher with a journal has. The tests of standby dispatchers check them.
pub(crate) const OF_A_JOURNAL: [&str; 4] = [
    "webfill_journal_record",
    "webfill_standbys",
    "webfill_standby_behind_records",
    "webfill_standby_behind_seconds",
];

fn read_documented() -> Families {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).expect("the page of metrics");
    let mut families = Families::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", names, kind, labels, ..] = cells[..] else {
            continue;
        };
        if !["counter", "gauge", "histogram"].contains(&kind) {
            continue;
        }
        let code = |text: &str| -> Vec<String> {
            let spans = text.split('`').skip(1).step_by(2);
            spans.map(str::to_owned).collect()
        };
        for name in code(names) {
            let labels = code(labels).into_iter().collect();
            families.insert(name, (kind.to_owned(), labels));
        }
    }
    families
}

/// Adds the metrics in a page of metrics to `families`.
fn add_series(families: &mut Families, exposition: &str) {
    let mut current = String::new();
    for line in exposition.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').expect("a name and a type");
            current = name.to_owned();
            let family = families.entry(current.clone()).or_default();
            kind.clone_into(&mut family.0);
        } else if let Some((_, labels)) = line.split_once('{') {
            // The labels are split at commas and equals signs, because no value contains these characters.
            let labels = labels
                .split(',')
                .filter_map(|label| label.split('=').next());
            let labels = labels.filter(|label| *label != "le").map(str::to_owned);
            families
                .entry(current.clone())
                .or_default()
                .1
                .extend(labels);
        }
    }
}

#[test]
fn the_reference_lists_the_series_with_their_types_and_labels() {
    let fleet = fleet_with_metrics();
    crawl_two_sites(&fleet);
    wait_for("all pages are counted", || {
        let counts = scrape(&fleet, SUPERVISOR);
        let dispatcher = scrape(&fleet, DISPATCHER);
        let is_counted = counts.sum("webfill_fields_total") > 0.0
            && dispatcher.get("webfill_counts_age_seconds").is_some()
            && dispatcher.sum("webfill_tasks{state=\"done\"}") == 22.0;
        is_counted.then_some(())
    });
    let mut exposed = Families::new();
    for port in [DISPATCHER, SUPERVISOR] {
        add_series(&mut exposed, &scrape_text(&fleet, port));
    }
    let mut documented = read_documented();
    if !exposed.contains_key(READ_LATER) {
        documented.remove(READ_LATER);
    }
    for name in OF_A_JOURNAL {
        let listed = documented.remove(name);
        assert_eq!(
            listed,
            Some(("gauge".to_owned(), BTreeSet::new())),
            "{name}"
        );
    }
    // Without any rows, these two metrics have no values, so their labels are unknown.
    for without_series in ["webfill_rows_total", "webfill_pages_rows_cut_total"] {
        for families in [&mut exposed, &mut documented] {
            families
                .entry(without_series.to_owned())
                .or_default()
                .1
                .clear();
        }
    }
    let names = |families: &Families| families.keys().cloned().collect::<BTreeSet<_>>();
    let (shown, listed) = (names(&exposed), names(&documented));
    let unlisted: Vec<_> = shown.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&shown).collect();
    assert!(
        unlisted.is_empty() && unknown.is_empty(),
        "not in the page: {unlisted:?}; only in the page: {unknown:?}"
    );
    for (name, family) in &exposed {
        assert_eq!(Some(family), documented.get(name), "{name}");
    }
}
