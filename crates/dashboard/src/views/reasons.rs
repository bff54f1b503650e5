//! Why fields of a record are missing: the results of its URLs, and whether the mappings that read them have such
//! fields.
//!
//! To limit the cost, only some URLs are checked: the first ones that the record came with or was filled from, in the
//! first crawls of the record.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};
use webfill_mapping::MappingSet;
use webfill_store::{BrowseHandles, CrawlId, page_id};
use webfill_wire::Outcome;

use super::reading::with_time_limit;
use super::words::outcome_group;
use crate::answer::Problem;
use crate::visit::Visit;

const MOST_URLS: usize = 5;
const MOST_CRAWLS: usize = 3;

/// Why some fields of a record are missing.
#[derive(Debug, Default, Serialize)]
pub(super) struct Reasons {
    /// The results of the record's URLs in its crawls.
    results: Vec<Value>,
    fields: Vec<FieldReasons>,
    /// Whether the record has more URLs or crawls than were checked.
    is_cut: bool,
}

/// A group of fields that are missing for the same reasons.
#[derive(Debug, PartialEq, Serialize)]
struct FieldReasons {
    names: Vec<String>,
    reasons: Vec<String>,
}

/// The result of one URL in one crawl.
struct UrlResult {
    url: String,
    crawl: CrawlId,
    page: Option<Value>,
    /// What the fleet says about a URL that has no page yet.
    fleet_status: Option<String>,
}

pub(super) async fn find_reasons(
    visit: &Visit,
    store: &BrowseHandles,
    document: &Value,
    missing: &[&str],
    crawls: &[&CrawlId],
) -> Result<Reasons, Problem> {
    let urls = urls_in_record(document);
    let mut results = Vec::new();
    for url in urls.iter().take(MOST_URLS) {
        for crawl in crawls.iter().take(MOST_CRAWLS) {
            results.push(load_url_result(visit, store, url, crawl).await?);
        }
    }
    let set = visit.dashboard.mapping_files.get().await;
    let set = set.as_ref().and_then(|set| set.as_ref().as_ref().ok());
    let fields = missing
        .iter()
        .map(|name| (*name, reasons_for_field(name, &results, set)));
    let fields = group_by_reasons(fields);
    let is_cut = urls.len() > MOST_URLS || crawls.len() > MOST_CRAWLS;
    let results = results.iter().map(UrlResult::to_json).collect();
    Ok(Reasons {
        results,
        fields,
        is_cut,
    })
}

/// The URLs of a record: first those given with it, then those of the pages that have filled it.
fn urls_in_record(document: &Value) -> Vec<String> {
    let given = document["urls"].as_array().into_iter().flatten();
    let sources = document["sources"].as_object().into_iter().flatten();
    let filled = sources.map(|(_, source)| &source["url"]);
    let mut urls: Vec<String> = Vec::new();
    for url in given.chain(filled).filter_map(Value::as_str) {
        if let Ok(url) = webfill_urls::canonical_url(url, None) {
            let url = url.to_string();
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
    }
    urls
}

async fn load_url_result(
    visit: &Visit,
    store: &BrowseHandles,
    url: &str,
    crawl: &CrawlId,
) -> Result<UrlResult, Problem> {
    let id = page_id(&crawl.app_id, &crawl.crawl_id, url);
    let page = with_time_limit(store.browse.page(&id)).await?;
    let fleet_status = match (&page, visit.dashboard.fleet.is_some()) {
        (None, true) => fleet_reason(visit, url, crawl).await,
        _ => None,
    };
    Ok(UrlResult {
        url: url.to_owned(),
        crawl: crawl.clone(),
        page,
        fleet_status,
    })
}

/// What the fleet says about a URL in a crawl; `None` without a fleet or an answer.
pub(crate) async fn fleet_reason(visit: &Visit, url: &str, crawl: &CrawlId) -> Option<String> {
    let question =
        json!({"action": "why", "url": url, "appid": crawl.app_id, "crawlid": crawl.crawl_id});
    let answer = visit.run_action(question).await.ok()?;
    let text = answer["crawls"][0]["text"].as_str()?;
    Some(text.to_owned())
}

impl UrlResult {
    fn to_json(&self) -> Value {
        let page = self.page.as_ref();
        json!({
            "url": self.url,
            "app": self.crawl.app_id,
            "crawl": self.crawl.crawl_id,
            "id": page.map(|_| page_id(&self.crawl.app_id, &self.crawl.crawl_id, &self.url)),
            "outcome": page.map(|page| &page["outcome"]),
            "group": page.and_then(|page| page["outcome"].as_str()?.parse().ok()).map(outcome_group),
            "status_code": page.map(|page| &page["status_code"]),
            "mapping": page.map(|page| &page["mapping"]),
            "fleet_status": self.fleet_status,
        })
    }

    /// Why this URL has not filled the field, as a clause.
    fn reason_for(&self, field: &str, set: Option<&MappingSet>) -> String {
        let Some(page) = &self.page else {
            return String::from("one of its URLs has not been fetched yet");
        };
        let outcome = page["outcome"].as_str().unwrap_or_default();
        if !outcome.parse::<Outcome>().is_ok_and(Outcome::is_page) {
            return format!("one of its pages ended in {outcome}");
        }
        let Some(mapping) = page["mapping"].as_str() else {
            return String::from("no mapping reads its page: no pattern matches the URL");
        };
        let reads = set.and_then(|set| {
            let index = set.find_by_name(mapping)?;
            Some(set.fields_of(index).contains(&field))
        });
        match reads {
            Some(false) => format!("mapping {mapping} reads its page, but has no such field"),
            _ => format!("mapping {mapping} found no value of it on its page"),
        }
    }
}

/// Groups fields with the same list of reasons.
fn group_by_reasons<'a>(fields: impl Iterator<Item = (&'a str, Vec<String>)>) -> Vec<FieldReasons> {
    let mut groups: Vec<FieldReasons> = Vec::new();
    for (name, reasons) in fields {
        match groups.iter_mut().find(|group| group.reasons == reasons) {
            Some(group) => group.names.push(name.to_owned()),
            None => groups.push(FieldReasons {
                names: vec![name.to_owned()],
                reasons,
            }),
        }
    }
    groups
}

/// Why a field is missing, without repeated reasons.
fn reasons_for_field(field: &str, results: &[UrlResult], set: Option<&MappingSet>) -> Vec<String> {
    let mut reasons = Vec::new();
    if set.is_some_and(|set| !set.field_names().contains(field)) {
        reasons.push(String::from("no mapping has a field of this name"));
    }
    if results.is_empty() {
        reasons.push(String::from("the record has no known URL"));
    }
    let mut known = BTreeSet::new();
    for why in results.iter().map(|result| result.reason_for(field, set)) {
        if known.insert(why.clone()) {
            reasons.push(why);
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use webfill_mapping::Source;

    use super::*;

    fn url_result(page: Option<Value>) -> UrlResult {
        UrlResult {
            url: String::from("http://a.org/"),
            crawl: CrawlId::new("a", "c"),
            page,
            fleet_status: None,
        }
    }

    fn mapping_set() -> MappingSet {
        let text = json!({
            "name": "people",
            "url_patterns": [{"type": "host", "pattern": "a.org"}],
            "fields": [{"name": "city", "processors": [
                {"type": "xpath", "parameters": {"expression": "//h1/text()"}}]}],
        });
        let source = Source {
            name: "people.json".into(),
            text: text.to_string(),
        };
        MappingSet::from_sources(vec![source]).unwrap()
    }

    #[test]
    fn each_reason_for_a_missing_field_has_its_sentence() {
        let set = mapping_set();
        let why = |field: &str, page: Option<Value>| url_result(page).reason_for(field, Some(&set));
        let page = |outcome: &str, mapping: Option<&str>| {
            Some(json!({"outcome": outcome, "mapping": mapping}))
        };
        assert!(why("city", None).contains("has not been fetched"));
        assert!(why("city", page("timeout", None)).contains("ended in timeout"));
        assert!(why("city", page("ok", None)).contains("no mapping reads"));
        assert!(why("town", page("ok", Some("people"))).contains("has no such field"));
        assert!(why("city", page("ok", Some("people"))).contains("found no value"));
        assert!(why("city", page("ok", Some("gone"))).contains("found no value"));
    }

    #[test]
    fn the_same_reason_is_shown_once_and_a_record_without_urls_has_one() {
        let set = mapping_set();
        let results = [url_result(None), url_result(None)];
        assert_eq!(reasons_for_field("city", &results, Some(&set)).len(), 1);
        let reasons = reasons_for_field("town", &[], Some(&set));
        assert_eq!(reasons.len(), 2);
        assert!(reasons[0].contains("no mapping has a field of this name"));
    }

    #[test]
    fn fields_with_the_same_reasons_are_one_entry() {
        let of = |name, why: &str| (name, vec![why.to_owned()]);
        let fields = [
            of("name", "dead"),
            of("city", "no mapping"),
            of("born", "dead"),
        ];
        let groups = group_by_reasons(fields.into_iter());
        let names: Vec<&[String]> = groups.iter().map(|one| one.names.as_slice()).collect();
        assert_eq!(names, [vec!["name", "born"], vec!["city"]]);
    }

    #[test]
    fn the_urls_that_a_record_came_with_are_checked_first() {
        let document = json!({
            "urls": ["http://A.org", "no url"],
            "sources": {"name": {"url": "http://b.org/"}, "age": {"url": "http://a.org/"}},
        });
        assert_eq!(
            urls_in_record(&document),
            ["http://a.org/", "http://b.org/"]
        );
    }
}
