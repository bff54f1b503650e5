//! A page: its history, its extracted values, its current state, and its body as text.

use encoding_rs::Encoding;
use serde_json::{Value, json};
use webfill_store::{Body, ChangeListFilter, CrawlId, page_id};
use webfill_wire::Outcome;

use super::reading::{data_or_fault, open_store, with_time_limit};
use super::{changes, reasons, words};
use crate::answer::{Problem, Shown};
use crate::visit::Visit;

/// How many bytes of a body are shown. The dashboard is not made for reading long texts.
const MOST_SHOWN: usize = 256 << 10;

/// The largest body that is decompressed, in bytes, even if its entry in the store gives a greater length.
const MOST_BODY: u64 = 64 << 20;

/// How many links of a page are listed.
const MOST_LINKS: usize = 200;

const CHANGES: u32 = 10;

/// The key of a page in the store, from the parts of its path.
fn page_key(app: &str, crawl: &str, hash: &str) -> String {
    format!("{app}/{crawl}/{hash}")
}

pub(crate) async fn show(visit: &Visit, app: &str, crawl: &str, hash: &str) -> Shown {
    visit.require_app(app)?;
    let (store, id) = (open_store(visit).await?, page_key(app, crawl, hash));
    let page = with_time_limit(store.browse.page(&id)).await?;
    let page = page.ok_or_else(|| {
        Problem::not_found(
            "page not stored: it is not fetched yet, or was dropped because of its age",
        )
    })?;
    let url = page["url"].as_str().unwrap_or_default();
    let crawl_id = CrawlId::new(app, crawl);
    let fleet_status = match visit.dashboard.fleet.is_some() {
        true => reasons::fleet_reason(visit, url, &crawl_id).await,
        false => None,
    };
    let filter = ChangeListFilter {
        page: Some(id.clone()),
        ..ChangeListFilter::default()
    };
    let (changes, body) = tokio::join!(
        with_time_limit(store.browse.changes(&filter, None, CHANGES)),
        with_time_limit(store.browse.body(&id)),
    );
    let (changes, changes_fault) = data_or_fault(changes);
    let (body, body_fault) = data_or_fault(body);
    let outcome = page["outcome"]
        .as_str()
        .and_then(|name| name.parse::<Outcome>().ok());
    let links = page["links"].as_array().map_or(0, Vec::len);
    let content = json!({
        "app": app, "crawl": crawl, "id": id,
        "meaning": outcome.map(Outcome::meaning),
        "is_failure": outcome.is_some_and(Outcome::is_failure),
        "group": outcome.map(words::outcome_group),
        "parent": page["parent"].as_str().map(|url| json!({"url": url, "id": page_id(app, crawl, url)})),
        "links": page["links"].as_array().map(|links| links.iter().take(MOST_LINKS).collect::<Vec<_>>()),
        "links_count": links,
        "fields": field_rows(&page),
        "records": record_ids(&page),
        "headers": page["headers"].is_object().then(|| format!("{:#}", page["headers"])),
        "attrs": (!page["attrs"].is_null()).then(|| format!("{:#}", page["attrs"])),
        "document": page["document"].is_object().then(|| format!("{:#}", page["document"])),
        "fleet_status": fleet_status, "changes_fault": changes_fault, "body_fault": body_fault,
        "changes": changes.iter().flat_map(|list_page| &list_page.rows).map(changes::change_row).collect::<Vec<_>>(),
        "body": body.flatten().map(|body| json!({"bytes": body.bytes, "is_rendered": body.is_rendered})),
        "can_bench": can_use_editor(visit),
        "page": page,
    });
    visit.render_page("page.html", "Page", content)
}

/// The extracted values of a page. If a value was found by an alternative chain, the number of the chain is added.
fn field_rows(page: &Value) -> Vec<Value> {
    let fields = page["fields"].as_object().into_iter().flatten();
    fields
        .map(|(name, value)| json!({"name": name, "value": value, "alternative": page["alternatives"].get(name)}))
        .collect()
}

/// The records that the page was fetched for.
fn record_ids(page: &Value) -> Vec<Value> {
    let keys = page["records"].as_array().into_iter().flatten();
    let keys = keys.filter_map(|key| key.as_str()?.split_once('/'));
    keys.map(|(dataset, id)| json!({"dataset": dataset, "id": id}))
        .collect()
}

/// Whether this visitor may use the mapping editor.
pub(super) fn can_use_editor(visit: &Visit) -> bool {
    let has_mappings = visit.dashboard.setup.mappings.is_some();
    has_mappings && visit.can_change() && !visit.visitor.rights.is_limited_to_apps()
}

/// Shows the body of a page as plain text. It is not parsed, and not sent with its own content type.
pub(crate) async fn show_body(visit: &Visit, app: &str, crawl: &str, hash: &str) -> Shown {
    visit.require_app(app)?;
    let (store, id) = (open_store(visit).await?, page_key(app, crawl, hash));
    let missing = || Problem::not_found("the body of this page is not kept");
    let page = with_time_limit(store.browse.page(&id))
        .await?
        .ok_or_else(missing)?;
    let body = with_time_limit(store.browse.body(&id))
        .await?
        .ok_or_else(missing)?;
    let kind = page["content_type"].as_str().unwrap_or_default().to_owned();
    let bytes = body.bytes;
    let read = tokio::task::spawn_blocking(move || decode_body_text(&body, &kind)).await;
    let text = read.map_err(Problem::internal_error)??;
    let content = json!({
        "app": app, "crawl": crawl, "id": id, "bytes": bytes,
        "url": page["url"],
        "content_type": page["content_type"],
        "is_binary": text.is_none(),
        "is_cut": bytes > MOST_SHOWN as u64,
        "text": text,
    });
    visit.render_page("body.html", "Body of a page", content)
}

/// The beginning of a body as text, decoded by its content type; `None` if the body is not text.
pub(super) fn decode_body_text(body: &Body, content_type: &str) -> Result<Option<String>, Problem> {
    let broken = || Problem::internal_error("the kept body of this page cannot be read");
    if body.bytes > MOST_BODY {
        return Err(broken());
    }
    let bytes = zstd::bulk::decompress(&body.body, body.bytes as usize).map_err(|_| broken())?;
    let shown = &bytes[..bytes.len().min(MOST_SHOWN)];
    if shown.contains(&0) {
        return Ok(None);
    }
    let named = charset(content_type).filter(|_| !body.is_rendered);
    let encoding = named.unwrap_or(encoding_rs::UTF_8);
    let (text, ..) = encoding.decode(shown);
    Ok(Some(text.into_owned()))
}

fn charset(content_type: &str) -> Option<&'static Encoding> {
    let parameters = content_type.split(';').skip(1);
    let mut named = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, label) = named.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    webfill_urls::encoding_of_label(label.trim().trim_matches('"').as_bytes())
}

#[cfg(test)]
mod tests {
    use webfill_wire::Delivery;

    use super::*;

    fn body(text: &[u8], bytes: u64) -> Body {
        Body {
            page_id: String::from("a/c/0"),
            content_hash: String::new(),
            is_rendered: false,
            at_ms: 0,
            task: 0,
            delivery: Delivery::new(0, 1),
            bytes,
            body: zstd::bulk::compress(text, 1).unwrap(),
        }
    }

    #[test]
    fn a_body_is_text_in_its_own_encoding() {
        let latin = b"Stra\xdfe";
        let kept = body(latin, 6);
        let text = decode_body_text(&kept, "text/html; Charset=\"ISO-8859-1\"").unwrap();
        assert_eq!(text.as_deref(), Some("Straße"));
        let text = decode_body_text(&kept, "text/html").unwrap();
        assert_eq!(text.as_deref(), Some("Stra\u{fffd}e"));
        let text = decode_body_text(&body(b"a\0b", 3), "application/pdf").unwrap();
        assert_eq!(text, None);
    }

    #[test]
    fn a_body_with_a_wrong_or_too_large_length_is_refused() {
        let bomb = vec![b'a'; 1 << 20];
        assert_eq!(
            decode_body_text(&body(&bomb, 10), "").unwrap_err().status,
            500
        );
        assert_eq!(
            decode_body_text(&body(&bomb, u64::MAX), "")
                .unwrap_err()
                .status,
            500
        );
        let text = decode_body_text(&body(&bomb, 1 << 20), "")
            .unwrap()
            .unwrap();
        assert_eq!(text.len(), MOST_SHOWN);
    }
}
