//! Measures whether the health check of mappings notices a field that a redesign has broken, and after how many pages.
//!
//! A site here has about ten pages, but a crawl has thousands. So the pages are repeated with new URLs, as if they were
//! other pages with the same layout. Their values are those that the mapping reads on them.

use webfill_bench::repairs::{Break, compare_with_known};
use webfill_bench::sites::{Failure, Site, Values, build_engine, texts_by_field};
use webfill_health::{GoodPage, MappingHealth};
use webfill_mapping::{Engine, Extraction, PageInput, PageKind, RequestedParts};
use webfill_urls::Url;

/// The number of good pages before the redesign. They are enough for the health check to know the normal state.
const PAGES_BEFORE: usize = 120;

/// If a break is not noticed within this many pages, it counts as unnoticed.
const PAGES_AFTER: usize = 200;

/// The extracted values of a page.
struct Yield {
    extraction: Extraction,
    /// For each field with a known value, whether the page has that value.
    known_values: Vec<(String, bool)>,
}

/// For each broken field, the number of pages until an alert named it. If nothing was broken, whether there was an
/// alert nevertheless.
#[derive(Debug, Default)]
pub struct AlertDelays {
    pub after_pages: Vec<Option<usize>>,
    pub is_false_alert: bool,
}

/// Measures when alerts name the fields that a redesign has broken. With `with_records`, the pages belong to records
/// that already have every value.
pub fn measure_alerts(
    site: &Site,
    broken: &Break,
    with_records: bool,
) -> Result<AlertDelays, Failure> {
    let engine = build_engine(&broken.mapping)?;
    let known = |read: &Values, truth: &Values| match with_records {
        true => compare_with_known(read, truth),
        false => Vec::new(),
    };
    let old = site.pages.iter().zip(&broken.known).map(|(page, truth)| {
        let extraction = extract(&engine, &page.url, &page.html);
        let known_values = known(&texts_by_field(&extraction.fields), truth);
        Yield {
            extraction,
            known_values,
        }
    });
    let new = broken.after.iter().map(|page| {
        let extraction = extract(&engine, &page.url, &page.html);
        let read = page.to_old_form(texts_by_field(&extraction.fields));
        let known_values = known(&read, &page.truth);
        Yield {
            extraction,
            known_values,
        }
    });
    let (old, new): (Vec<Yield>, Vec<Yield>) = (old.collect(), new.collect());
    let mut health = MappingHealth::new(&site.name);
    let mut number = 0;
    for page in old.iter().cycle().take(PAGES_BEFORE) {
        note_page(&mut health, page, number);
        number += 1;
    }
    let mut noticed = AlertDelays {
        after_pages: vec![None; broken.fields.len()],
        is_false_alert: health.alert().is_some(),
    };
    for (pages, page) in new.iter().cycle().take(PAGES_AFTER).enumerate() {
        note_page(&mut health, page, number);
        number += 1;
        let Some(alert) = health.alert() else {
            continue;
        };
        for (field, after) in broken.fields.iter().zip(&mut noticed.after_pages) {
            if alert.field_names().contains(&field.as_str()) {
                after.get_or_insert(pages + 1);
            }
        }
        noticed.is_false_alert |= broken.is_unharmed;
    }
    Ok(noticed)
}

fn extract(engine: &Engine, url: &Url, html: &str) -> Extraction {
    let page = PageInput {
        url,
        kind: PageKind::Html,
        text: html,
    };
    engine
        .extract(page, RequestedParts::default())
        .unwrap_or_default()
}

fn note_page(health: &mut MappingHealth, page: &Yield, number: usize) {
    let url = format!("https://site.example/{number}");
    health.note_page(&GoodPage {
        id: &url,
        url: &url,
        site: "site.example",
        at: &format!("2026-01-01T00:{:02}:{:02}Z", number / 60, number % 60),
        at_ms: 0,
        mapping_version: Some("1"),
        template: page.extraction.template.as_deref(),
        source: &url,
        content_hash: None,
        attempts: 1,
        fields: &page.extraction.fields,
        rows: &[],
        alternatives: &page.extraction.alternatives,
        known_values: &page.known_values,
    });
}
