//! Simulates pages to measure how often an alert is false, and how many pages it takes to notice a loss.
//!
//! `WEBFILL_SIMULATION_PAGES=10000000 cargo test -p webfill-health --test simulation -- --nocapture` prints the tables
//! of `docs/explanation/health.md`. The number says how many pages are simulated for each share of pages with a value.

use serde_json::{Map, Value, json};
use webfill_health::{
    Event, GoodPage, MappingHealth, Series, Sources, Step, Witness, weight_of_nth_page,
};

const RATES: [f64; 5] = [0.99, 0.95, 0.80, 0.50, 0.20];

/// How many pages a list leads to on average, if pages come in groups.
const CLUMP: f64 = 10.0;

/// A loss that is not noticed after this many pages counts as never noticed.
const NEVER: u64 = 5_000;

fn page_count() -> u64 {
    let reported = std::env::var("WEBFILL_SIMULATION_PAGES").ok();
    reported.map_or(300_000, |text| text.parse().expect("a number of pages"))
}

/// A source of simulated pages: whether each has a value, and which source led to it.
struct Web {
    rng: fastrand::Rng,
    rate: f64,
    /// The probability that a page is like its list: it has a value if and only if the list has. Otherwise, `rate`
    /// decides.
    alike: f64,
    source: u64,
    of_list: bool,
    sources: Sources,
    /// Whether one list leads to all pages.
    one_list: bool,
}

impl Web {
    fn new(seed: u64, rate: f64, alike: f64) -> Web {
        let mut rng = fastrand::Rng::with_seed(seed);
        let of_list = rng.f64() < rate;
        Web {
            rng,
            rate,
            alike,
            source: 0,
            of_list,
            sources: Sources::default(),
            one_list: false,
        }
    }

    fn next(&mut self) -> (bool, Witness) {
        if self.alike == 0.0 && !self.one_list || self.alike > 0.0 && self.rng.f64() < 1.0 / CLUMP {
            self.source += 1;
            self.of_list = self.rng.f64() < self.rate;
        }
        let is_filled = match self.rng.f64() < self.alike {
            true => self.of_list,
            false => self.rng.f64() < self.rate,
        };
        let witness = Witness {
            source: self.source,
            number: 0,
            weight: weight_of_nth_page(self.sources.note_page(self.source)),
            is_known_layout: false,
        };
        (is_filled, witness)
    }
}

/// The number of false alerts in this many pages, if the share `rate` of them has a value.
fn count_false_alerts(rate: f64, alike: f64, pages: u64) -> u64 {
    let mut alerts = 0;
    // Each site has only 10,000 pages, so that many baselines (learned normal shares of pages with a value) are tested.
    for site in 0..pages.div_ceil(10_000) {
        let mut web = Web::new(site * 31 + (rate * 100.0) as u64, rate, alike);
        let mut series = Series::default();
        for _ in 0..10_000 {
            let (is_filled, witness) = web.next();
            alerts += u64::from(series.note_page(is_filled, witness) == Step::Fell);
        }
    }
    alerts
}

/// How many pages it takes to notice that only the share `left` of values is left: the median and the 95th percentile
/// of 1,000 sites.
fn pages_until_alert(rate: f64, left: f64, known: u64, one_list: bool) -> (u64, u64) {
    let mut all: Vec<u64> = (0..1_000)
        .map(|site| {
            let mut web = Web::new(site, rate, 0.0);
            web.one_list = one_list;
            let mut series = Series::default();
            for _ in 0..known {
                let (is_filled, witness) = web.next();
                series.note_page(is_filled, witness);
            }
            web.rate = rate * left;
            let mut pages = 0;
            while pages < NEVER {
                pages += 1;
                let (is_filled, witness) = web.next();
                if series.note_page(is_filled, witness) == Step::Fell {
                    break;
                }
            }
            pages
        })
        .collect();
    all.sort_unstable();
    (all[500], all[950])
}

#[test]
fn alerts_are_rarely_false_and_come_soon() {
    let pages = page_count();
    let per_million = |alerts: u64| alerts as f64 * 1e6 / pages as f64;
    println!(
        "filled  false/million  in clumps  all lost: median  95 %  after 30 pages  a third left  one list"
    );
    for rate in RATES {
        let alone = per_million(count_false_alerts(rate, 0.0, pages));
        let clumped = per_million(count_false_alerts(rate, 0.5, pages));
        let (median, most) = pages_until_alert(rate, 0.0, 1_000, false);
        let (provisional, _) = pages_until_alert(rate, 0.0, 30, false);
        let (third, _) = pages_until_alert(rate, 1.0 / 3.0, 1_000, false);
        let (one_list, _) = pages_until_alert(rate, 0.0, 1_000, true);
        println!(
            "{rate:>6.2}  {alone:>13.1}  {clumped:>9.1}  {median:>16}  {most:>4}  {provisional:>14}  {third:>12}  {one_list:>8}"
        );
        assert!(clumped <= 20.0, "{rate}: {clumped} in clumps");
        assert!(
            alone <= 4.0,
            "{rate}: {alone} false alarms in a million pages"
        );
        let notes = [(0.99, 4), (0.95, 6), (0.80, 13), (0.50, 35), (0.20, 118)];
        let (_, expected) = notes.into_iter().find(|(of, _)| *of == rate).unwrap();
        assert!(median <= expected * 2, "{rate}: {median} pages");
    }
}

/// A page of a mapping, as a crawl would deliver it.
fn page<'a>(
    fields: &'a Map<String, Value>,
    alternatives: &'a Map<String, Value>,
    id: &'a str,
    template: &'a str,
) -> GoodPage<'a> {
    GoodPage {
        id,
        url: id,
        at: "2026-01-01T00:00:00.000Z",
        at_ms: 0,
        mapping_version: Some("v1"),
        template: Some(template),
        source: id,
        content_hash: Some(id),
        attempts: 1,
        site: "shop.example",
        fields,
        rows: &[],
        alternatives,
        known_values: &[],
    }
}

#[test]
fn whole_mappings_raise_no_false_alert_and_warn_rarely() {
    let pages = page_count() / 10;
    let (mut alerts, mut warnings) = (0, 0);
    let names = ["name", "price", "phone", "mail", "note"];
    for site in 0..pages.div_ceil(5_000) {
        let mut rng = fastrand::Rng::with_seed(site);
        let mut health = MappingHealth::new("m");
        for number in 0..5_000 {
            let mut fields = Map::new();
            for (name, rate) in names.iter().zip(RATES) {
                if rng.f64() < rate {
                    let value = format!("{} {}", "x".repeat(rng.usize(3..30)), rng.u32(0..100_000));
                    fields.insert((*name).to_owned(), json!(value));
                }
            }
            let template = ["aaaaaaaa", "bbbbbbbb", "cccccccc"][rng.usize(0..3)];
            for event in health.note_page(&page(
                &fields,
                &Map::new(),
                &format!("a/1/{number}"),
                template,
            )) {
                match event {
                    Event::LayoutChanged => alerts += 1,
                    Event::Warned(_) => warnings += 1,
                    Event::MoreFell => {}
                    Event::Cleared(_) => {}
                }
            }
        }
    }
    println!(
        "five fields, three templates, {pages} pages: {alerts} false alarms, {warnings} warnings"
    );
    assert!(
        alerts <= 1 + pages * 10 / 1_000_000,
        "{alerts} false alarms"
    );
    assert!(
        warnings <= 2 + pages * 30 / 1_000_000,
        "{warnings} warnings"
    );
}

/// Judges pages with one field, whose first chain yields the value on the share `rate` of pages. Otherwise an
/// alternative does. Returns the number of warnings.
fn serve_alternatives(
    health: &mut MappingHealth,
    rng: &mut fastrand::Rng,
    rate: f64,
    numbers: std::ops::Range<u64>,
) -> u64 {
    let mut warnings = 0;
    for number in numbers {
        let id = format!("m/c/{number}");
        let fields = Map::from_iter([("price".to_owned(), json!(id))]);
        let mut alternatives = Map::new();
        if rng.f64() >= rate {
            alternatives.insert("price".to_owned(), json!(2));
        }
        let events = health.note_page(&page(&fields, &alternatives, &id, "aaaaaaaa"));
        warnings += events.len() as u64;
    }
    warnings
}

#[test]
fn alternatives_with_a_stable_share_cause_no_warning_but_a_lost_first_chain_does() {
    const PAGES: u64 = 10_000;
    let pages = page_count() / 10;
    println!("first chain serves  false/million  all lost: median  95 %");
    for rate in RATES {
        let (mut false_warnings, mut delays) = (0, Vec::new());
        for site in 0..pages.div_ceil(PAGES).max(40) {
            let mut rng = fastrand::Rng::with_seed(site);
            let mut health = MappingHealth::new("m");
            let known = if site < pages.div_ceil(PAGES) {
                PAGES
            } else {
                1_000
            };
            false_warnings += serve_alternatives(&mut health, &mut rng, rate, 0..known);
            let mut at = known;
            while at < known + NEVER
                && serve_alternatives(&mut health, &mut rng, 0.0, at..at + 1) == 0
            {
                at += 1;
            }
            delays.push(at - known + 1);
        }
        delays.sort_unstable();
        let (median, late) = (delays[delays.len() / 2], delays[delays.len() * 95 / 100]);
        let share = false_warnings as f64 * 1e6 / pages as f64;
        println!("{rate:<18}  {share:13.1}  {median:16}  {late:4}");
        assert_eq!(false_warnings, 0, "{rate}");
        assert!(late < 300, "{rate}: {late} pages");
    }
}
