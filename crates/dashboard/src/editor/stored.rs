//! Pages from the store for drafts: stored bodies, the page samples of an alert, and the values of the pages' records.

use std::collections::BTreeMap;

use serde_json::Value;
use webfill_health::{Alert, MappingHealth};
use webfill_store::{Body, Browse, CrawlFilter, CrawlId, PageFilter, Store, StoreError, page_id};
use webfill_wire::Outcome;

use super::drafts::{MOST_PAGE_BYTES, NewPage, Repairs};
use super::known::known_values;

/// The largest stored text of a sample, in bytes.
const MOST_TEXT: usize = 2 << 20;

/// Alerts shorten values to this number of characters. A value of this length or more may be incomplete, and is not
/// used.
const SHORTENED_CHARS: usize = 200;

/// How many pages of a crawl are searched for pages with stored bodies.
const MOST_EXAMINED: u32 = 200;

/// How many crawls are searched for a page from before the change of a site, the latest first.
const MOST_CRAWLS: u32 = 20;

/// The values of fields, by field name.
type Values = BTreeMap<String, Vec<String>>;

/// Loads a page with its stored body, and the values of its records. The error is a text for users.
pub(super) async fn load_page(browse: &dyn Browse, page_id: &str) -> Result<NewPage, String> {
    let unread = |error: StoreError| format!("the store cannot be read: {error}");
    let page = browse.page(page_id).await.map_err(unread)?;
    let page = page.ok_or("page not found in the store")?;
    let url = page["final_url"].as_str().or(page["url"].as_str());
    let url = url.unwrap_or_default().to_owned();
    let body = browse.body(page_id).await.map_err(unread)?;
    let body = body.ok_or_else(|| {
        format!("{url}: its body was not kept: crawl with --keep-bodies, or fetch the URL here")
    })?;
    // The text of a rendered page is always UTF-8, whatever the server has declared.
    let content_type = match body.is_rendered {
        true => Some("text/html; charset=utf-8"),
        false => page["content_type"].as_str(),
    };
    Ok(NewPage {
        from: format!("crawl {}", page["crawl_id"].as_str().unwrap_or_default()),
        content_type: content_type.map(str::to_owned),
        body: decompress_body(&body).map_err(|why| format!("{url}: {why}"))?,
        known: load_known_values(browse, &page).await,
        url,
        ..NewPage::default()
    })
}

fn decompress_body(body: &Body) -> Result<Vec<u8>, String> {
    let bytes = usize::try_from(body.bytes).unwrap_or(usize::MAX);
    if bytes > MOST_PAGE_BYTES {
        return Err(format!(
            "its body of {bytes} bytes is too large for the mapping editor"
        ));
    }
    zstd::bulk::decompress(&body.body, bytes)
        .map_err(|error| format!("its kept body is damaged: {error}"))
}

/// Values that the page is known to have: those of the records that it was fetched for.
async fn load_known_values(browse: &dyn Browse, page: &Value) -> Values {
    let mut known = Values::new();
    let keys = page["records"].as_array().into_iter().flatten();
    for key in keys.filter_map(Value::as_str) {
        // If the record cannot be read, the page can still be used.
        let Ok(Some(record)) = browse.record(key).await else {
            continue;
        };
        if let Some(fields) = record.document["fields"].as_object() {
            for (field, values) in known_values(fields) {
                known.entry(field).or_insert(values);
            }
        }
    }
    known
}

/// Loads pages of a crawl that were fetched successfully and whose bodies are stored, the last ones first.
pub(super) async fn load_pages_of_crawl(
    browse: &dyn Browse,
    crawl: CrawlId,
    mapping: Option<String>,
    most: usize,
) -> Result<Vec<NewPage>, String> {
    let filter = PageFilter {
        crawl: Some(crawl.clone()),
        mapping,
        outcomes: vec![Outcome::Ok, Outcome::NotModified],
        ..PageFilter::default()
    };
    let list_page = browse.pages(&filter, None, MOST_EXAMINED).await;
    let list_page = list_page.map_err(|error| format!("the store cannot be read: {error}"))?;
    let (mut pages, mut last) = (Vec::new(), None);
    for row in list_page.rows {
        if pages.len() >= most {
            break;
        }
        match load_page(browse, &row.id).await {
            Ok(page) => pages.push(page),
            Err(why) => last = Some(why),
        }
    }
    match (pages.is_empty(), last) {
        (false, _) => Ok(pages),
        (true, Some(why)) => Err(why),
        (true, None) => Err(format!(
            "crawl {crawl} has no such page with the outcome ok"
        )),
    }
}

/// Loads the current alert of a mapping, if it has one.
pub(super) async fn load_alert(
    store: &dyn Store,
    mapping: &str,
) -> Result<Option<Alert>, StoreError> {
    let states = store.health().await?;
    let mut read = states.iter().filter_map(|state| {
        let is_of_mapping = state.id.starts_with("mapping/");
        let health: MappingHealth =
            is_of_mapping.then(|| serde_json::from_str(&state.state).ok())??;
        (health.mapping() == mapping).then_some(health)
    });
    Ok(read.find_map(|health| health.alert().cloned()))
}

/// Describes the repair that an alert asks for. The change of the site is dated by the first page after it, or by the
/// alert if there is none.
pub(super) fn repairs_for_alert(alert: &Alert) -> Repairs {
    let first = alert.after.iter().map(|page| &page.at).min();
    Repairs {
        mapping: alert.mapping.clone(),
        changed_at: first.unwrap_or(&alert.raised_at).clone(),
    }
}

/// Adds to each page the values that the mapping read on it before the change of the site. Pages from before the change
/// stay as they are.
pub(super) async fn add_previous_values(
    browse: &dyn Browse,
    repairs: &Repairs,
    pages: &mut [NewPage],
) -> Result<(), StoreError> {
    let crawls = browse
        .crawls(&CrawlFilter::default(), None, MOST_CRAWLS)
        .await?;
    for page in pages.iter_mut().filter(|page| !page.is_former) {
        for crawl in &crawls.rows {
            let id = page_id(&crawl.id.app_id, &crawl.id.crawl_id, &page.url);
            let stored = browse.page(&id).await?.unwrap_or_default();
            let started_at = stored["started_at"].as_str().unwrap_or_default();
            let is_before = !started_at.is_empty() && *started_at < *repairs.changed_at;
            if !is_before || stored["mapping"].as_str() != Some(&repairs.mapping) {
                continue;
            }
            for (field, values) in stored["fields"]
                .as_object()
                .map(known_values)
                .unwrap_or_default()
            {
                page.known.entry(field).or_insert(values);
            }
            break;
        }
    }
    Ok(())
}

/// Loads the URL and the text of a page that is kept with the current alert of a mapping.
pub(super) async fn load_sample_text(
    store: &dyn Store,
    mapping: &str,
    page: &str,
) -> Result<Option<(String, Vec<u8>)>, StoreError> {
    let samples = store.samples(mapping).await?.into_iter();
    let own = samples.filter(|sample| sample.alert.is_some() && sample.page == page);
    let ids: Vec<String> = own.map(|sample| sample.id).collect();
    let found = store.samples_with_texts(ids).await?.into_iter().last();
    Ok(found.and_then(|sample| {
        let text = zstd::bulk::decompress(&sample.text, MOST_TEXT).ok()?;
        Some((sample.url, text))
    }))
}

/// Loads the pages that are kept with an alert, from before and after the change of the site. Those from after it get
/// the values that were read before.
pub(super) async fn load_pages_of_alert(
    store: &dyn Store,
    browse: &dyn Browse,
    alert: &Alert,
) -> Result<Vec<NewPage>, StoreError> {
    let samples = store.samples(&alert.mapping).await?;
    let is_of_alert =
        |sample: &webfill_store::Sample| sample.alert.as_deref() == Some(&*alert.raised_at);
    let ids = samples
        .into_iter()
        .filter(is_of_alert)
        .map(|sample| sample.id);
    let mut texts = store.samples_with_texts(ids.collect()).await?;
    texts.sort_by(|one, other| one.id.cmp(&other.id));
    let before = values_before_change(alert);
    let mut pages = Vec::new();
    for sample in texts {
        let is_former = sample.id.rsplit('/').nth(1) == Some("before");
        let Ok(body) = zstd::bulk::decompress(&sample.text, MOST_TEXT) else {
            continue;
        };
        let mut known = before.get(&sample.url).cloned().unwrap_or_default();
        if !is_former {
            for (field, values) in load_given_values(store, browse, &sample.page).await? {
                known.insert(field, values);
            }
        }
        pages.push(NewPage {
            from: match is_former {
                true => "before the change".to_owned(),
                false => "after the change".to_owned(),
            },
            url: sample.url,
            // The text was decoded when it was stored, so it is UTF-8 here.
            content_type: Some("text/html; charset=utf-8".to_owned()),
            body,
            known,
            is_former,
            ..NewPage::default()
        });
    }
    add_previous_values(browse, &repairs_for_alert(alert), &mut pages).await?;
    Ok(pages)
}

/// For each URL, the values that were read before the change of the site. Values that may be shortened are left out.
fn values_before_change(alert: &Alert) -> BTreeMap<String, Values> {
    let is_whole = |text: &String| text.chars().count() < SHORTENED_CHARS && text != "\u{2026}";
    let of_page = |page: &webfill_health::KeptPage| {
        let mut values = known_values(&page.fields);
        values.retain(|_, values| values.iter().all(is_whole));
        (page.url.clone(), values)
    };
    alert.before.iter().map(of_page).collect()
}

/// Loads the values that users have given for the records of a page. They do not come from pages, so they are right
/// even after a change of the site.
async fn load_given_values(
    store: &dyn Store,
    browse: &dyn Browse,
    page_id: &str,
) -> Result<Values, StoreError> {
    let page = browse.page(page_id).await?.unwrap_or_default();
    let keys = page["records"].as_array().into_iter().flatten();
    let keys: Vec<String> = keys
        .filter_map(|key| key.as_str().map(str::to_owned))
        .collect();
    if keys.is_empty() {
        return Ok(Values::new());
    }
    let given = store.given_values(keys).await?;
    Ok(given.iter().flat_map(known_values).collect())
}
