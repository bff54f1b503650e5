//! Reads a sitemap: its entries become the result of its task.

use std::time::Instant;

use serde_json::{Map, Value, json};
use webfill_mapping::MappingSet;
use webfill_urls::Url;
use webfill_wire::{Follow, LinkKind};

use crate::memory::MemoryPermit;
use crate::sitemaps::{self, Sitemap};
use crate::task_result::TaskResult;

/// Reads a body if it is a sitemap. Returns whether it is a sitemap.
pub(super) fn read(
    mappings: &MappingSet,
    result: &mut TaskResult,
    (url, body): (&Url, &[u8]),
    memory: &mut MemoryPermit,
    deadline: Instant,
) -> bool {
    let held = body.len();
    let is_named = sitemaps::is_named(&result.task, &result.crawl);
    let content_type = result.content_type.as_deref();
    let sitemap = sitemaps::read(body, content_type, url, is_named, |more| {
        memory.set(held + more);
    });
    let is_sitemap = sitemap.is_some();
    if is_named && !is_sitemap {
        tracing::warn!(
            event = "sitemap_unknown",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            "robots.txt lists this file as a sitemap, but it has no sitemap format; it is not read as one"
        );
    }
    if let Some(sitemap) = sitemap {
        add_entries(mappings, result, sitemap, deadline);
    }
    is_sitemap
}

/// Takes all entries of a sitemap index. Of any other sitemap, takes all entries or, in crawls that follow mapped links
/// only, those that a mapping matches. The site chooses the URLs and thereby how long matching takes, so matching stops
/// at the deadline.
fn add_entries(
    mappings: &MappingSet,
    result: &mut TaskResult,
    mut sitemap: Sitemap,
    deadline: Instant,
) {
    let entries = sitemap.urls.len();
    let by_mapping = sitemap.lists == LinkKind::Listed && result.crawl.follow == Follow::Mapped;
    let mut gave_up = 0;
    for url in std::mem::take(&mut sitemap.urls) {
        if by_mapping {
            if Instant::now() >= deadline {
                let why = "its URLs took too long to be compared with the mappings";
                sitemap.cut = Some(why.to_owned());
                break;
            }
            let is_mapped = mappings.has_mapping_for(url.as_str());
            gave_up += usize::from(is_mapped.is_none());
            if !is_mapped.unwrap_or(false) {
                continue;
            }
        }
        result.listed.push((sitemap.lists, url.into()));
    }
    result.document = Some(sitemap_metadata(&sitemap, entries, result.listed.len()));
    log_entries(result, &sitemap, entries, gave_up);
}

/// The metadata stored with a sitemap. It shows that this page is a sitemap, which no mapping needs to match.
fn sitemap_metadata(sitemap: &Sitemap, entries: usize, taken: usize) -> Map<String, Value> {
    let metadata = json!({
        "type": "sitemap",
        "entries": entries,
        "taken": taken,
        "left_out": sitemap.left_out,
        "reason": sitemap.cut,
    });
    let Value::Object(mut metadata) = metadata else {
        return Map::new();
    };
    metadata.retain(|_, value| !value.is_null());
    metadata
}

fn log_entries(result: &TaskResult, sitemap: &Sitemap, entries: usize, gave_up: usize) {
    tracing::info!(
        event = "sitemap",
        url = result.task.url,
        crawl_id = result.crawl.crawl_id,
        entries,
        taken = result.listed.len(),
        left_out = sitemap.left_out,
        "a sitemap was read"
    );
    if gave_up > 0 {
        tracing::warn!(
            event = "sitemap_unmatched",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            urls = gave_up,
            "URL patterns of mappings took too many steps on a sitemap's entries; counted as no match"
        );
    }
    if let Some(why) = &sitemap.cut {
        tracing::warn!(
            event = "sitemap_cut",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            reason = why,
            "a sitemap was not read to its end"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use webfill_mapping::Source;
    use webfill_store::Saved;
    use webfill_wire::{AddressBounds, CrawlSettings, Delivery, Feature, Lane, Outcome, Task};

    use super::*;

    fn mappings() -> MappingSet {
        let text = r#"{"name": "items", "url_patterns": [
            {"type": "prefix", "pattern": "http://a.org/item/"}]}"#;
        let source = Source {
            name: "items.json".into(),
            text: text.into(),
        };
        MappingSet::from_sources(vec![source]).unwrap()
    }

    fn result_of_task() -> TaskResult {
        let settings = CrawlSettings {
            key: 1,
            app_id: "app".into(),
            crawl_id: "c".into(),
            max_depth: 0,
            follow: Follow::Mapped,
            lane: Lane::Http,
            useragent: None,
            attrs: None,
            headers: false,
            body: false,
            features: vec![Feature::Sitemaps],
        };
        let task = Task {
            task: 1,
            delivery: Delivery::new(0, 1),
            crawl: 1,
            url: "http://a.org/map".into(),
            site: "a.org".into(),
            depth: 0,
            wait_ms: 0,
            last_request_ago_ms: None,
            parent: None,
            attrs: None,
            records: vec!["people/1".into()],
            priority: 50,
            delay_ms: None,
            failed_attempts: Vec::new(),
            unreachable: None,
            address_bounds: AddressBounds::None,
        };
        let crawl = Arc::new(settings);
        TaskResult::of_unfetched(task, crawl, Outcome::Ok)
    }

    fn result_with_deadline(deadline: Instant) -> TaskResult {
        let url = |text| Url::parse(text).unwrap();
        let sitemap = Sitemap {
            lists: LinkKind::Listed,
            urls: vec![url("http://a.org/item/1"), url("http://a.org/news")],
            cut: None,
            left_out: 3,
        };
        let mut result = result_of_task();
        add_entries(&mappings(), &mut result, sitemap, deadline);
        result
    }

    #[test]
    fn entries_that_a_mapping_matches_are_taken() {
        let result = result_with_deadline(Instant::now() + Duration::from_secs(60));
        let item = (LinkKind::Listed, String::from("http://a.org/item/1"));
        assert_eq!(result.listed, [item]);
        let metadata = json!({"type": "sitemap", "entries": 2, "taken": 1, "left_out": 3});
        assert_eq!(Value::Object(result.document.unwrap()), metadata);
    }

    #[test]
    fn the_comparison_with_mappings_ends_at_the_deadline() {
        let result = result_with_deadline(Instant::now());
        assert!(result.listed.is_empty());
        assert!(result.document.unwrap()["reason"].is_string());
    }

    #[test]
    fn entries_are_reported_even_after_the_records_are_complete() {
        let mut result = result_with_deadline(Instant::now() + Duration::from_secs(60));
        result.links = vec!["http://a.org/link".into()];
        let done = result.into_task_done(
            Saved {
                resolved: vec!["people/1".into()],
                ..Saved::default()
            },
            Instant::now(),
        );
        assert_eq!(done.links, ["listed http://a.org/item/1"]);
    }
}
