//! Tests sites of few pages that are checked night after night: how soon a redesign is noticed, and how often an alert
//! is false.

use serde_json::{Map, Value, json};
use webfill_health::{Event, GoodPage, MappingHealth};

const NIGHT_MS: i64 = 86_400_000;

struct Site {
    health: MappingHealth,
    pages: usize,
    night: i64,
    template: &'static str,
    /// Whether one listing links to all pages; otherwise each page is a seed.
    is_listed: bool,
}

impl Site {
    fn new(pages: usize, is_listed: bool) -> Site {
        Site {
            health: MappingHealth::new("shop"),
            pages,
            night: 0,
            template: "aaaaaaaaaaaaaaaa",
            is_listed,
        }
    }

    /// Checks all pages once, as in one night. `has` returns whether a page has a value for a field. The result is
    /// whether an alert was raised.
    fn check_pages(&mut self, mut has: impl FnMut(usize, &str) -> bool) -> bool {
        self.night += 1;
        let mut is_alerting = false;
        for number in 0..self.pages {
            let values = ["name", "price", "phone"]
                .into_iter()
                .filter(|name| has(number, name));
            let fields: Map<String, Value> = values
                .map(|name| (name.to_owned(), json!(format!("{name} {number}"))))
                .collect();
            let id = format!("w/shop/{number}");
            let content = format!("{number} {}", self.night);
            let at_ms = self.night * NIGHT_MS + number as i64 * 15_000;
            let events = self.health.note_page(&GoodPage {
                id: &id,
                url: &id,
                at: &format!("{at_ms:020}"),
                at_ms,
                mapping_version: Some("v1"),
                template: Some(self.template),
                source: if self.is_listed { "listing" } else { &id },
                content_hash: Some(&content),
                attempts: self.night.unsigned_abs(),
                site: "shop.example",
                fields: &fields,
                rows: &[],
                alternatives: &Map::new(),
                known_values: &[],
            });
            is_alerting |= events.contains(&Event::LayoutChanged);
        }
        is_alerting
    }
}

/// Redesigns: the number of pages, whether a listing links to them, and the number of healthy nights before; then
/// whether the redesign has a new template, and the most nights it may take until it is reported.
const REDESIGNS: &[(usize, bool, usize, bool, usize)] = &[
    (6, false, 1, true, 2),
    (6, true, 1, true, 2),
    (6, true, 22, true, 2),
    (6, false, 22, false, 2),
    (3, false, 10, true, 3),
    (4, true, 10, true, 2),
    (20, false, 1, true, 1),
    (20, true, 1, false, 1),
    (20, true, 18, true, 1),
    (46, true, 3, true, 1),
    (200, true, 2, true, 1),
];

#[test]
fn a_redesign_of_a_small_site_is_reported_on_its_first_nights() {
    let mut late = Vec::new();
    for &(pages, is_listed, before, is_new, most) in REDESIGNS {
        let mut site = Site::new(pages, is_listed);
        for _ in 0..before {
            assert!(!site.check_pages(|_, _| true), "{pages} pages, before it");
        }
        if is_new {
            site.template = "bbbbbbbbbbbbbbbb";
        }
        let reported = (1..=30).find(|_| site.check_pages(|_, name| name == "name"));
        if reported.is_none_or(|night| night > most) {
            late.push(format!(
                "{pages} pages, listed {is_listed}, after {before} nights: {reported:?}"
            ));
            continue;
        }
        let alert = site.health.alert().unwrap();
        let mut names = alert.field_names();
        names.sort_unstable();
        assert_eq!(names, ["phone", "price"], "{pages} pages");
        // The alert is cleared when the values are back.
        let over = (1..=10).find(|_| {
            site.check_pages(|_, _| true);
            site.health.alert().is_none()
        });
        assert!(over.is_some(), "{pages} pages: it stands for ever");
    }
    assert!(late.is_empty(), "{}", late.join("\n"));
}

#[test]
fn a_crawl_of_few_pages_reports_a_field_missing_from_its_second_half() {
    let mut site = Site::new(46, false);
    assert!(site.check_pages(|number, name| number < 24 || name == "name"));
}

/// Probabilities that a check draws again, by chance, whether a page has a field.
const COMES_AND_GOES: &[f64] = &[0.0, 0.01, 0.03];

#[test]
fn fields_that_come_and_go_on_single_pages_raise_no_alert() {
    for rate in COMES_AND_GOES {
        let (mut alerts, mut checks) = (0, 0);
        for number in 0..60 {
            let pages = [3, 6, 20, 46][number % 4];
            let mut rng = fastrand::Rng::with_seed(number as u64);
            let mut site = Site::new(pages, number % 2 == 0);
            let shares = [1.0, 0.8, 0.4];
            let mut has: Vec<[bool; 3]> = (0..pages)
                .map(|_| shares.map(|share| rng.f64() < share))
                .collect();
            for _ in 0..200 {
                for of_page in &mut has {
                    for (has, share) in of_page.iter_mut().zip(shares) {
                        if rng.f64() < *rate {
                            *has = rng.f64() < share;
                        }
                    }
                }
                let names = ["name", "price", "phone"];
                let at = |name: &str| names.iter().position(|one| *one == name).unwrap();
                alerts += usize::from(site.check_pages(|number, name| has[number][at(name)]));
                checks += pages;
            }
        }
        println!("{rate}: {alerts} alerts in {checks} checks");
        assert!(alerts <= 1, "{rate}: {alerts} alerts in {checks} checks");
    }
}
