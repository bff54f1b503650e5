//! Tests how rows of pages are judged: fewer rows, fields of rows that lose their values, and healthy lists.

use serde_json::Map;
use webfill_health::{Event, GoodPage, MappingHealth, RowsOfPage, split_rows_name};

const LAYOUT: &str = "aaaaaaaaaaaaaaaa";

/// How many rows a page has, and how many of them have the field `stars`.
type Page = (u64, u64);

struct Site {
    health: MappingHealth,
    number: u64,
    rng: fastrand::Rng,
}

impl Site {
    fn new() -> Site {
        Site {
            health: MappingHealth::new("ratings"),
            number: 0,
            rng: fastrand::Rng::with_seed(7),
        }
    }

    /// Judges a page with this URL, and returns the events.
    fn serve_page(&mut self, url: &str, (rows, stars): Page) -> Vec<Event> {
        let filled = [("item", rows), ("stars", stars)];
        let filled = filled.map(|(name, filled)| (name.to_owned(), (filled, rows)));
        let listed = RowsOfPage {
            dataset: "ratings".to_owned(),
            rows,
            filled: filled.into(),
        };
        self.number += 1;
        let at = format!("2026-01-01T00:00:00.{}Z", self.number);
        self.health.note_page(&GoodPage {
            id: url,
            url,
            site: "ratings.example",
            at: &at,
            at_ms: i64::try_from(self.number).unwrap() * 10_000_000,
            mapping_version: Some("v1"),
            template: Some(LAYOUT),
            source: url,
            content_hash: Some(&at),
            attempts: 1,
            fields: &Map::new(),
            rows: &[listed],
            alternatives: &Map::new(),
            known_values: &[],
        })
    }

    /// Judges this many new pages, and returns the events.
    fn serve(
        &mut self,
        pages: u64,
        mut page: impl FnMut(&mut fastrand::Rng) -> Page,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..pages {
            let url = format!("a/1/{}", self.number);
            let served = page(&mut self.rng);
            events.extend(self.serve_page(&url, served));
        }
        events
    }

    fn fallen_names(&self) -> Vec<&str> {
        let alert = self.health.alert();
        alert.map(|alert| alert.field_names()).unwrap_or_default()
    }
}

/// A page of `rows` rows. Each has the field `stars` with the probability `share`.
fn page_with_stars(rng: &mut fastrand::Rng, rows: u64, share: f64) -> Page {
    let stars = (0..rows).filter(|_| rng.f64() < share).count();
    (rows, stars as u64)
}

/// A page of a list with thirty rows per page. Every fourth page on average is the last one of its list and has fewer
/// rows.
fn page_of_thirty(rng: &mut fastrand::Rng) -> Page {
    let rows = match rng.f64() < 0.25 {
        true => rng.u64(1..30),
        false => 30,
    };
    page_with_stars(rng, rows, 0.95)
}

#[test]
fn a_list_that_loses_most_rows_raises_an_alert() {
    for left in [0, 3, 8] {
        let mut site = Site::new();
        assert_eq!(site.serve(100, page_of_thirty), []);
        assert_eq!(
            site.serve(20, |_| (left, left)),
            [Event::LayoutChanged],
            "{left}"
        );
        assert_eq!(site.fallen_names(), ["ratings[]"], "{left}");
        let alert = site.health.alert().unwrap();
        assert!(
            alert.text().contains("ratings[] (15 or more on "),
            "{}",
            alert.text()
        );
        assert_eq!(
            (
                alert.page_field_names().len(),
                alert.row_field_names().len()
            ),
            (0, 1)
        );
        let events = site.serve(60, page_of_thirty);
        assert!(
            matches!(events.as_slice(), [Event::Cleared(_)]),
            "{events:?}"
        );
    }
}

#[test]
fn a_field_of_rows_that_loses_its_values_raises_an_alert() {
    for share in [0.0, 0.1] {
        let mut site = Site::new();
        assert_eq!(site.serve(100, page_of_thirty), []);
        let events = site.serve(30, |rng| page_with_stars(rng, 30, share));
        assert_eq!(events, [Event::LayoutChanged], "{share}");
        assert_eq!(site.fallen_names(), ["ratings[].stars"], "{share}");
        assert!(
            site.health
                .alert()
                .unwrap()
                .text()
                .contains("of the rows or more on 0 %")
        );
    }
}

#[test]
fn pages_that_teach_the_usual_numbers_are_counted_too() {
    let mut site = Site::new();
    assert_eq!(site.serve(20, |_| (30, 30)), []);
    assert_eq!(site.serve(20, |_| (0, 0)), [Event::LayoutChanged]);
}

#[test]
fn pages_without_rows_are_no_evidence_about_fields_of_rows() {
    let mut site = Site::new();
    let mostly_empty = |rng: &mut fastrand::Rng| match rng.f64() < 0.6 {
        true => (0, 0),
        false => page_with_stars(rng, 20, 0.9),
    };
    assert_eq!(site.serve(300, mostly_empty), []);
    let lost = |rng: &mut fastrand::Rng| match rng.f64() < 0.6 {
        true => (0, 0),
        false => (20, 0),
    };
    assert_eq!(site.serve(60, lost), [Event::LayoutChanged]);
    assert_eq!(site.fallen_names(), ["ratings[].stars"]);
}

#[test]
fn a_small_site_that_is_checked_again_needs_no_baseline() {
    let mut site = Site::new();
    let urls: Vec<String> = (0..8).map(|number| format!("a/1/{number}")).collect();
    for url in &urls {
        assert_eq!(site.serve_page(url, (10, 9)), []);
    }
    let mut events = Vec::new();
    for url in urls.iter().chain(&urls) {
        events.extend(site.serve_page(url, (0, 0)));
    }
    assert_eq!(events, [Event::LayoutChanged]);
    assert_eq!(site.fallen_names(), ["ratings[]"]);
}

/// Tests many kinds of healthy lists.
#[test]
fn healthy_lists_raise_no_alert() {
    const PAGES: u64 = 40_000;
    let heavy = |rng: &mut fastrand::Rng| (1.0 / (1.0 - rng.f64()).max(1e-4)) as u64;
    type Kind = fn(&mut fastrand::Rng) -> Page;
    let kinds: [(&str, Kind); 6] = [
        ("thirty to a page", page_of_thirty),
        ("any number", |rng| {
            let rows = rng.u64(0..60);
            page_with_stars(rng, rows, 0.5)
        }),
        ("rare stars", |rng| page_with_stars(rng, 30, 0.03)),
        ("one or two", |rng| {
            let rows = rng.u64(1..3);
            page_with_stars(rng, rows, 0.8)
        }),
        ("two kinds of lists", |rng| match rng.bool() {
            true => page_with_stars(rng, 100, 0.9),
            false => page_with_stars(rng, 8, 0.2),
        }),
        ("mostly none", |rng| match rng.f64() < 0.9 {
            true => (0, 0),
            false => page_with_stars(rng, 5, 0.5),
        }),
    ];
    for (kind, page) in kinds {
        let mut site = Site::new();
        let events = site.serve(PAGES, page);
        let alerts = events
            .iter()
            .filter(|event| event.concerns_standing_alert())
            .count();
        assert_eq!(alerts, 0, "{kind}: {events:?}");
    }
    let mut site = Site::new();
    let events = site.serve(PAGES, |rng| {
        let rows = heavy(rng);
        (rows, rows)
    });
    let alerts = events
        .iter()
        .filter(|event| event.concerns_standing_alert())
        .count();
    assert_eq!(alerts, 0, "very different lengths: {events:?}");
}

#[test]
fn names_of_rows_differ_from_names_of_fields() {
    assert_eq!(split_rows_name("stars"), None);
    assert_eq!(split_rows_name("ratings[]"), Some(("ratings", None)));
    assert_eq!(
        split_rows_name("a[].b[].stars"),
        Some(("a[].b", Some("stars")))
    );
}
