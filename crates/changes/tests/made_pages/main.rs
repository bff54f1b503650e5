//! Measures change detection on generated pages, each checked ten times at random hours. For each kind of page
//! furniture (parts that differ between fetches), the rate of false reports is measured. For each kind of true change,
//! the rate of missed changes is measured.
//!
//! `WEBFILL_CHECKS=100000 cargo test -p webfill-changes --test made_pages -- --nocapture` prints the tables of
//! `docs/explanation/changes.md`. The variable is the number of checks of unchanged pages.
//!
//! A check works as in a worker: a page that is new, or differs from everything known, is fetched again moments later.

mod changes;
mod furniture;

use std::collections::BTreeMap;

use serde_json::Map;
use webfill_changes::{
    Answer, CheckKey, CheckedPage, PageContent, PageVersions, SiteBlocks, Verdict,
};
use webfill_document::{Document, Limits};

use crate::changes::CHANGES;
use crate::furniture::{Fetch, KINDS, Kind};

/// How many pages a site has.
const PAGES: usize = 40;
const CHECKS: usize = 10;
const HOUR_MS: i64 = 3_600_000;
/// The earliest time of a first check: 2026-11-01T02:00:00Z.
const FIRST_MS: i64 = 1_793_498_400_000;

const WORDS: [&str; 40] = [
    "river", "stone", "quiet", "market", "window", "report", "garden", "bridge", "winter",
    "letter", "engine", "paper", "summer", "harbour", "village", "copper", "signal", "lantern",
    "meadow", "teacher", "station", "silver", "planet", "kitchen", "forest", "orchard", "mirror",
    "ticket", "basket", "captain", "museum", "pepper", "violin", "canyon", "blanket", "turbine",
    "ladder", "pencil", "island", "cotton",
];

fn random_words(rng: &mut fastrand::Rng, count: usize) -> String {
    let some: Vec<&str> = (0..count)
        .map(|_| WORDS[rng.usize(..WORDS.len())])
        .collect();
    some.join(" ")
}

/// When a site is checked: the first check, and nine more.
fn times_of_checks(rng: &mut fastrand::Rng, is_hourly: bool) -> Vec<i64> {
    let mut at_ms = FIRST_MS + rng.i64(0..24 * 60) * 60_000;
    (0..CHECKS)
        .map(|_| {
            let now_ms = at_ms;
            at_ms += match is_hourly {
                true => HOUR_MS,
                false => rng.i64(60..40 * 60) * 60_000 + rng.i64(0..60_000),
            };
            now_ms
        })
        .collect()
}

/// The text of a page, without furniture.
struct Page {
    number: usize,
    paragraphs: Vec<String>,
    items: Vec<String>,
}

impl Page {
    fn new(number: usize, rng: &mut fastrand::Rng) -> Page {
        let count = 3 + rng.usize(..6);
        Page {
            number,
            paragraphs: (0..count).map(|_| random_words(rng, 25)).collect(),
            items: (0..5).map(|_| random_words(rng, 3)).collect(),
        }
    }

    /// The response to a fetch, with furniture, and with the text that may change.
    fn render(&self, furniture: &[Kind], fetch: &mut Fetch<'_>, changing: &str) -> String {
        let mut html = format!(
            "<html><head><title>Thing {0}</title></head><body><main><h1>Thing {0}</h1>",
            self.number
        );
        for (number, paragraph) in self.paragraphs.iter().enumerate() {
            html.push_str(&format!("<p>{paragraph}</p>"));
            for kind in furniture.iter().filter(|kind| kind.is_between) {
                if number == 1 {
                    html.push_str(&(kind.html)(fetch));
                }
            }
        }
        html.push_str("<ul class='items'>");
        for item in &self.items {
            html.push_str(&format!("<li>{item}</li>"));
        }
        html.push_str("</ul>");
        html.push_str(changing);
        html.push_str("</main>");
        for kind in furniture.iter().filter(|kind| !kind.is_between) {
            html.push_str(&(kind.html)(fetch));
        }
        html.push_str("</body></html>");
        html
    }
}

fn parse_content(html: &str) -> PageContent {
    PageContent::from_tree(&Document::parse_html(html, &Limits::default()))
}

/// A page, and what is known about it.
struct KnownPage {
    page: Page,
    versions: PageVersions,
    /// The number of visits to the page, which includes other visitors between checks.
    visits: u64,
}

impl KnownPage {
    fn new(number: usize, rng: &mut fastrand::Rng) -> KnownPage {
        KnownPage {
            page: Page::new(number, rng),
            versions: PageVersions::default(),
            visits: rng.u64(100..100_000),
        }
    }

    fn fetch(
        &mut self,
        furniture: &[Kind],
        at_ms: i64,
        changing: &str,
        rng: &mut fastrand::Rng,
    ) -> PageContent {
        self.visits += 1;
        let mut fetch = Fetch {
            at_ms,
            page: self.page.number,
            visits: self.visits,
            rng,
        };
        parse_content(&self.page.render(furniture, &mut fetch, changing))
    }

    /// Checks the page as a worker does.
    fn check(
        &mut self,
        (check, at_ms): (usize, i64),
        furniture: &[Kind],
        changing: &str,
        site: &mut SiteBlocks,
        rng: &mut fastrand::Rng,
    ) -> Verdict {
        self.visits += rng.u64(..50);
        let mut found = self.fetch(furniture, at_ms, changing, rng);
        if self.versions.has_news(&found, at_ms, site) {
            let mut second_ms = at_ms + 5_000;
            if let Some(step_ms) = found.clock_step_ms(at_ms, site) {
                second_ms = second_ms.max((at_ms / step_ms + 1) * step_ms + 1_000);
            }
            let second = self.fetch(furniture, second_ms, changing, rng);
            found = found.merge_second_fetch(&second);
        }
        let check = CheckedPage {
            key: CheckKey {
                task: check as u64 + 1,
                number: 1,
                at_ms,
                ..CheckKey::default()
            },
            run_began_ms: None,
            answer: Answer::Page,
            content_hash: None,
            mapping: None,
            mapping_version: None,
            fields: &Map::new(),
            seen: found,
        };
        self.versions.compare_check(&check, site).unwrap().verdict
    }
}

/// Checks a site whose pages never change. Returns the number of checks after the first, and how many of them reported
/// a change.
fn count_false_alerts(furniture: &[Kind], seed: u64, is_hourly: bool) -> (u64, u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut site = SiteBlocks::default();
    let mut pages: Vec<KnownPage> = (0..PAGES)
        .map(|number| KnownPage::new(number, &mut rng))
        .collect();
    let (mut checks, mut false_alerts) = (0, 0);
    for (check, began_ms) in times_of_checks(&mut rng, is_hourly).into_iter().enumerate() {
        for (number, page) in pages.iter_mut().enumerate() {
            let at_ms = began_ms + number as i64 * 15_000;
            let verdict = page.check((check, at_ms), furniture, "", &mut site, &mut rng);
            checks += u64::from(check > 0);
            false_alerts += u64::from(verdict == Verdict::Changed);
        }
    }
    (checks, false_alerts)
}

/// Checks a site with furniture. On each page, one text changes once. Counts the changes that were not reported at the
/// next check, by kind.
fn count_misses(seed: u64, is_hourly: bool, missed: &mut BTreeMap<&'static str, u64>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut site = SiteBlocks::default();
    let mut furniture: Vec<Kind> = KINDS.to_vec();
    rng.shuffle(&mut furniture);
    furniture.truncate(5);
    let mut pages: Vec<(KnownPage, usize)> = (0..CHANGES.len())
        .map(|number| {
            (
                KnownPage::new(number, &mut rng),
                1 + rng.usize(..CHECKS - 1),
            )
        })
        .collect();
    for (check, began_ms) in times_of_checks(&mut rng, is_hourly).into_iter().enumerate() {
        for (number, (page, changes_at)) in pages.iter_mut().enumerate() {
            let (kind, before, after) = CHANGES[number];
            let changing = if check < *changes_at { before } else { after };
            let at_ms = began_ms + number as i64 * 15_000;
            let verdict = page.check((check, at_ms), &furniture, changing, &mut site, &mut rng);
            if check == *changes_at && verdict != Verdict::Changed {
                *missed.entry(kind).or_default() += 1;
            }
        }
    }
}

fn site_count_per_kind() -> u64 {
    let checks = std::env::var("WEBFILL_CHECKS").ok();
    let checks: usize = checks.map_or(30_000, |text| text.parse().expect("a number of checks"));
    (checks / (KINDS.len() * PAGES * (CHECKS - 1)) + 1) as u64
}

#[test]
fn furniture_raises_no_alert() {
    println!("| furniture | false alarms in 1,000 checks |\n|---|---|");
    let (mut checks, mut alerts) = (0, 0);
    for kind in KINDS {
        let (mut of_kind, mut false_of_kind) = (0, 0);
        for site in 0..site_count_per_kind() {
            let (checks, found) = count_false_alerts(&[*kind], 4_711 + site, site % 4 == 3);
            of_kind += checks;
            false_of_kind += found;
        }
        let share = 1_000.0 * false_of_kind as f64 / of_kind as f64;
        println!("| {} | {share:.1} |", kind.name);
        checks += of_kind;
        alerts += false_of_kind;
    }
    let share = 1_000.0 * alerts as f64 / checks as f64;
    println!(
        "| all {} kinds, {checks} checks | {share:.2} |",
        KINDS.len()
    );
    assert!(KINDS.len() >= 40);
    assert!(share <= 1.0, "{share:.2} false alarms in 1,000 checks");
}

#[test]
fn no_kind_of_change_is_missed() {
    let mut missed = BTreeMap::new();
    let sites = site_count_per_kind() * 10;
    for site in 0..sites {
        count_misses(815 + site, site % 3 == 2, &mut missed);
    }
    println!(
        "{} kinds of change, each {sites} times; missed: {missed:?}",
        CHANGES.len()
    );
    assert!(CHANGES.len() >= 40);
    assert!(missed.is_empty(), "{missed:?}");
}
