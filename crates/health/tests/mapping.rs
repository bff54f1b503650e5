//! Tests the health of whole mappings: fields that lose their values together, redesigns, new kinds of pages, recovery,
//! new versions.

use serde_json::{Map, Value, json};
use webfill_health::{Event, GoodPage, MappingHealth, Sign, WarningKind};

const OLD: &str = "aaaaaaaaaaaaaaaa";
const NEW: &str = "bbbbbbbbbbbbbbbb";

/// A simulated site whose pages are read by one mapping.
struct Site {
    health: MappingHealth,
    number: u64,
    version: &'static str,
    known: Vec<(String, bool)>,
    template: &'static str,
    /// The content that all URLs return; `None` if each URL has its own content.
    content: Option<&'static str>,
    /// The fields whose value comes from an alternative chain, each with the number of the alternative.
    alternatives: Map<String, Value>,
}

impl Site {
    fn new() -> Site {
        Site {
            health: MappingHealth::new("shop"),
            number: 0,
            version: "v1",
            known: Vec::new(),
            template: OLD,
            content: None,
            alternatives: Map::new(),
        }
    }

    fn with_known_pages(template: &'static str, pages: u64) -> Site {
        let mut site = Site::new();
        site.template = template;
        assert_eq!(site.serve(pages, &["name", "price"]), []);
        site
    }

    /// Judges this many new pages with these fields, and returns the events.
    fn serve(&mut self, pages: u64, fields: &[&str]) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..pages {
            self.number += 1;
            let of = |name: &&str| ((*name).to_owned(), json!(format!("{name} {}", self.number)));
            let fields: Map<String, Value> = fields.iter().map(of).collect();
            let id = format!("a/1/{}", self.number);
            events.extend(self.health.note_page(&GoodPage {
                id: &id,
                url: &id,
                at: "2026-01-01T00:00:00.000Z",
                at_ms: 0,
                mapping_version: Some(self.version),
                template: Some(self.template),
                source: &id,
                content_hash: self.content.or(Some(&id)),
                attempts: 1,
                site: "shop.example",
                fields: &fields,
                rows: &[],
                alternatives: &self.alternatives,
                known_values: &self.known,
            }));
        }
        events
    }
}

#[test]
fn fields_that_fall_together_make_one_alert_with_pages_from_before_and_after() {
    let mut site = Site::with_known_pages(OLD, 200);
    assert_eq!(site.serve(100, &[]), [Event::LayoutChanged]);
    let alert = site.health.alert().unwrap();
    assert_eq!(alert.field_names(), ["name", "price"]);
    assert_eq!((alert.before.len(), alert.after.len()), (20, 20));
    assert!(alert.before.iter().all(|page| page.fields.len() == 2));
    assert!(alert.after.iter().all(|page| page.fields.is_empty()));
    assert_eq!(alert.fields[0].before, 1.0);
}

#[test]
fn a_redesign_with_new_pages_is_noticed() {
    let mut site = Site::with_known_pages(OLD, 200);
    site.template = NEW;
    assert_eq!(site.serve(10, &["name"]), [Event::LayoutChanged]);
    assert_eq!(site.health.alert().unwrap().field_names(), ["price"]);
}

#[test]
fn another_kind_of_page_beside_the_known_one_only_causes_a_warning() {
    let mut site = Site::with_known_pages(OLD, 200);
    let mut events = Vec::new();
    for _ in 0..200 {
        site.template = NEW;
        events.extend(site.serve(1, &["name"]));
        site.template = OLD;
        events.extend(site.serve(1, &["name", "price"]));
    }
    let [Event::Warned(warning)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(warning.kind, WarningKind::OtherLayout);
    // For a long time, only pages of the new layout come, which never had the field.
    site.template = NEW;
    assert_eq!(site.serve(500, &["name"]), []);
}

#[test]
fn an_alert_is_cleared_when_the_values_are_back() {
    let mut site = Site::with_known_pages(OLD, 200);
    site.serve(50, &["name"]);
    let events = site.serve(30, &["name", "price"]);
    let [Event::Cleared(alert)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(alert.cleared_by.as_deref(), Some("recovered"));
    assert_eq!(
        site.serve(20, &[]),
        [Event::LayoutChanged],
        "and may be raised again"
    );
}

/// A site with two layouts. The pages of the old layout have lost their prices.
fn half_fallen_site() -> Site {
    let mut site = Site::with_known_pages(OLD, 200);
    site.template = NEW;
    assert_eq!(site.serve(200, &["name", "price"]), []);
    site.template = OLD;
    assert_eq!(site.serve(20, &["name"]), [Event::LayoutChanged]);
    site
}

#[test]
fn an_alert_about_one_lost_field_does_not_hide_others() {
    let mut site = half_fallen_site();
    site.template = NEW;
    let mut events = site.serve(1_100, &["name", "price"]);
    events.retain(|event| !matches!(event, Event::Warned(_)));
    let [Event::Cleared(alert)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(alert.cleared_by.as_deref(), Some("not_seen"));
    assert_eq!(site.serve(20, &["name"]), [Event::LayoutChanged]);
}

#[test]
fn a_field_that_falls_while_an_alert_stands_is_reported_too() {
    let mut site = half_fallen_site();
    site.template = NEW;
    assert_eq!(
        site.serve(20, &["name"]),
        [Event::MoreFell],
        "of another template"
    );
    assert_eq!(site.serve(20, &[]), [Event::MoreFell], "another field");
    let alert = site.health.alert().unwrap();
    assert_eq!(alert.field_names(), ["price", "name"]);
    let of: Vec<_> = alert.fields.iter().map(|one| &one.template).collect();
    assert_eq!(
        of,
        [&Some(OLD.into()), &Some(NEW.into()), &Some(NEW.into())]
    );
    assert_eq!(alert.text().matches("price").count(), 1, "{}", alert.text());
}

#[test]
fn the_alert_of_a_redesign_stands_as_long_as_its_pages_come() {
    let mut site = Site::with_known_pages(OLD, 200);
    site.template = NEW;
    assert_eq!(site.serve(5_000, &["name"]), [Event::LayoutChanged]);
    assert!(site.health.alert().is_some());
}

#[test]
fn a_cleared_alert_is_remembered_without_its_pages() {
    let mut site = Site::with_known_pages(OLD, 200);
    site.serve(50, &["name"]);
    site.serve(50, &["name", "price"]);
    let [past] = site.health.cleared_alerts() else {
        panic!("{:?}", site.health.cleared_alerts());
    };
    assert!(past.before.is_empty() && past.after.is_empty());
    assert_eq!((past.urls_before.len(), past.urls_after.len()), (3, 3));
    let notification = past.notification();
    assert_eq!(notification["urls_after"].as_array().map(Vec::len), Some(3));
}

#[test]
fn an_alert_that_is_held_back_is_not_reported_until_it_is_released() {
    let mut site = Site::with_known_pages(OLD, 200);
    site.serve(10, &["name"]);
    site.health.hold_alert();
    assert!(site.health.alert().is_none() && !site.health.evidence().is_empty());
    assert!(site.health.report()["alert"].is_null());
    assert_eq!(site.health.withdraw_alert(), None);
    assert_eq!(site.serve(10, &["name"]), [Event::LayoutChanged]);
    site.health.hold_alert();
    assert!(site.health.release_alert() && site.health.alert().is_some());
    let withdrawn = site.health.withdraw_alert();
    assert!(
        matches!(withdrawn, Some(Event::Cleared(_))),
        "{withdrawn:?}"
    );
    assert_eq!(site.health.cleared_alerts().len(), 1);
}

#[test]
fn a_site_that_becomes_one_page_for_every_url_is_reported_once() {
    let mut site = Site::with_known_pages(OLD, 200);
    site.content = Some("shell");
    let events = site.serve(500, &[]);
    let [Event::Warned(warning)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(warning.kind, WarningKind::OneContent);
    assert_eq!(warning.detail, "21 URLs in a row were served one content");
    assert_eq!(site.health.report()["pages"], 201);
}

#[test]
fn a_new_version_of_the_mapping_resets_the_state() {
    let mut site = Site::with_known_pages(OLD, 200);
    site.serve(50, &["name"]);
    site.version = "v2";
    assert!(matches!(site.serve(1, &["name"])[..], [Event::Cleared(_)]));
    assert_eq!(site.serve(500, &["name"]), []);
    // A few late pages of the former version do not count, but many pages in a row make that version current again.
    site.version = "v1";
    assert_eq!(site.serve(10, &[]), []);
    assert_eq!(site.health.report()["mapping_version"], "v2");
    assert_eq!(site.serve(50, &[]), []);
    assert_eq!(site.health.report()["mapping_version"], "v1");
}

#[test]
fn losing_known_values_raises_an_alert() {
    let mut site = Site::new();
    site.known = vec![("price".into(), true)];
    assert_eq!(site.serve(200, &["name", "price"]), []);
    site.known = vec![("price".into(), false)];
    assert_eq!(site.serve(20, &["name", "price"]), [Event::LayoutChanged]);
    assert_eq!(
        site.health.alert().unwrap().fields[0].sign,
        Sign::WrongValues
    );
}

#[test]
fn state_is_bounded_and_survives_serialisation() {
    let mut site = Site::new();
    let names: Vec<String> = (0..1_000).map(|n| format!("field {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    site.serve(300, &names);
    let text = serde_json::to_string(&site.health).unwrap();
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    let back: MappingHealth = serde_json::from_str(&text).unwrap();
    assert_eq!(back, site.health);
}

fn price_from_second_chain() -> Map<String, Value> {
    Map::from_iter([("price".to_owned(), json!(2))])
}

#[test]
fn an_alternative_that_begins_to_yield_values_causes_one_warning() {
    for template in [OLD, NEW] {
        let mut site = Site::new();
        site.number = 10_000;
        assert_eq!(site.serve(200, &["name", "price"]), []);
        site.template = template;
        site.alternatives = price_from_second_chain();
        let events = site.serve(500, &["name", "price"]);
        let [Event::Warned(warning)] = events.as_slice() else {
            panic!("{template}: {events:?}");
        };
        assert_eq!(warning.kind, WarningKind::AlternativeServes);
        assert_eq!(
            warning.text(),
            "field price of mapping shop: its first chain yields nothing any more; its alternative 2 serves"
        );
        assert_eq!(site.health.warnings(), std::slice::from_ref(warning));
        assert!(site.health.alert().is_none());
        // The old layout returns, and then disappears again. The second disappearance is reported too.
        site.template = OLD;
        site.alternatives.clear();
        assert_eq!(site.serve(1_000, &["name", "price"]), []);
        site.alternatives = price_from_second_chain();
        assert_eq!(site.serve(500, &["name", "price"]).len(), 1, "{template}");
    }
}

#[test]
fn an_alternative_that_always_yielded_some_values_causes_no_warning() {
    let mut site = Site::new();
    site.number = 10_000;
    for number in 0..3_000_u64 {
        // On a quarter of the pages, in irregular order, the price comes from an alternative.
        let is_second = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33 & 3 == 0;
        site.alternatives = if is_second {
            price_from_second_chain()
        } else {
            Map::new()
        };
        assert_eq!(site.serve(1, &["name", "price"]), [], "{number}");
    }
    let mut site = Site::new();
    site.number = 10_000;
    site.alternatives = price_from_second_chain();
    assert_eq!(site.serve(1_000, &["name", "price"]), []);
}

#[test]
fn an_alternative_for_a_second_layout_causes_no_warning() {
    let mut site = Site::with_known_pages(OLD, 200);
    for _ in 0..300 {
        site.template = NEW;
        site.alternatives = price_from_second_chain();
        assert_eq!(site.serve(1, &["name", "price"]), []);
        site.template = OLD;
        site.alternatives.clear();
        assert_eq!(site.serve(1, &["name", "price"]), []);
    }
    // For a long time, only pages of the second layout come. The first chain never yielded a value on them.
    site.template = NEW;
    site.alternatives = price_from_second_chain();
    assert_eq!(site.serve(300, &["name", "price"]), []);
}

#[test]
fn a_lost_field_raises_an_alert_and_no_warning_about_alternatives() {
    let mut site = Site::with_known_pages(OLD, 200);
    assert_eq!(site.serve(50, &["name"]), [Event::LayoutChanged]);
    assert!(site.health.warnings().is_empty());
}
