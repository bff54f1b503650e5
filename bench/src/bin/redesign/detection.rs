//! Whether the health of extractions notices a broken field, and after how many pages.
//!
//! A site here has ten pages or so; a crawl has thousands. So the pages come in turn, each time under a URL of its
//! own and from a source of its own, as if they were other pages of the same layouts. What they yield is what the
//! mapping reads on them.

use serde_json::{Map, Value};
use webfill_bench::repairs::Break;
use webfill_bench::sites::{Failure, Site, engine_of};
use webfill_health::{GoodPage, MappingHealth};
use webfill_mapping::{Engine, PageInput, PageKind, Wants};
use webfill_urls::Url;

/// Good pages before the redesign: enough for a baseline that is not provisional.
const PAGES_BEFORE: usize = 120;

/// A break that is not noticed by then is not noticed.
const PAGES_AFTER: usize = 200;

/// What a page yields.
struct Yield {
    fields: Map<String, Value>,
    template: Option<String>,
}

/// For each broken field the number of pages after which an alarm named it; for a redesign that broke nothing,
/// whether there was an alarm all the same.
#[derive(Debug, Default)]
pub struct Noticed {
    pub after_pages: Vec<Option<usize>>,
    pub is_false_alarm: bool,
}

pub fn notice(site: &Site, broken: &Break) -> Result<Noticed, Failure> {
    let engine = engine_of(&broken.mapping)?;
    let old = site
        .pages
        .iter()
        .map(|page| extracted(&engine, &page.url, &page.html));
    let new = broken
        .after
        .iter()
        .map(|page| extracted(&engine, &page.url, &page.html));
    let (old, new): (Vec<Yield>, Vec<Yield>) = (old.collect(), new.collect());
    let mut health = MappingHealth::new(&site.name);
    let mut number = 0;
    for page in old.iter().cycle().take(PAGES_BEFORE) {
        note(&mut health, page, number);
        number += 1;
    }
    let mut noticed = Noticed {
        after_pages: vec![None; broken.fields.len()],
        is_false_alarm: health.alarm().is_some(),
    };
    for (pages, page) in new.iter().cycle().take(PAGES_AFTER).enumerate() {
        note(&mut health, page, number);
        number += 1;
        let Some(alarm) = health.alarm() else {
            continue;
        };
        for (field, after) in broken.fields.iter().zip(&mut noticed.after_pages) {
            if alarm.names().contains(&field.as_str()) {
                after.get_or_insert(pages + 1);
            }
        }
        noticed.is_false_alarm |= broken.fields.is_empty();
    }
    Ok(noticed)
}

fn extracted(engine: &Engine, url: &Url, html: &str) -> Yield {
    let page = PageInput {
        url,
        kind: PageKind::Html,
        text: html,
    };
    let extraction = engine.extract(page, Wants::default()).unwrap_or_default();
    Yield {
        fields: extraction.fields,
        template: extraction.template,
    }
}

fn note(health: &mut MappingHealth, page: &Yield, number: usize) {
    let url = format!("https://site.example/{number}");
    health.note(&GoodPage {
        id: &url,
        url: &url,
        site: "site.example",
        at: &format!("2026-01-01T00:{:02}:{:02}Z", number / 60, number % 60),
        mapping_version: Some("1"),
        template: page.template.as_deref(),
        source: &url,
        content_hash: None,
        attempts: 1,
        fields: &page.fields,
        known_values: &[],
    });
}
