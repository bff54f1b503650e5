//! A site: its state and the evidence, its queue, the rules set by hand, its last pages.

use serde_json::{Value, json};
use webfill_store::PageFilter;

use super::reading::{part, store, within};
use super::{pages, sites, words};
use crate::answer::{Problem, Shown, see_other};
use crate::templates::encoded;
use crate::visit::Visit;

/// The number of its pages shown.
const PAGES: u32 = 20;

pub(crate) async fn show(visit: &Visit, site: &str) -> Shown {
    let named = named(site)?;
    if named != site {
        return Ok(see_other(&format!("/dashboard/site/{}", encoded(&named))));
    }
    let (fleet, read) = tokio::join!(fleet_status(visit, site), stored(visit, site));
    let (fleet, fleet_fault) = part(fleet);
    let (read, store_fault) = part(read);
    let (kept, rows) = read.unwrap_or_default();
    let fleet = fleet.flatten();
    let reason = fleet.as_ref().and_then(|fleet| fleet["reason"].as_str());
    let content = json!({
        "site": site,
        "because": reason.map(words::of_backoff),
        "rule": fleet.as_ref().map(rule),
        "fleet": fleet, "kept": kept, "fleet_fault": fleet_fault, "store_fault": store_fault, "rows": rows,
        "is_bound": visit.visitor.rights.is_bound(),
    });
    visit.page("site.html", &format!("Site {site}"), content)
}

/// The site that people mean: they may type one of its hosts, or a URL, and use non-ASCII letters.
pub(super) fn named(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    let url = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}/"),
    };
    match webfill_urls::canonical(&url, None) {
        Ok(url) => Ok(webfill_urls::site(&url)),
        Err(_) => Err(Problem::missing(
            "not a site: expected a name such as example.org",
        )),
    }
}

/// Rules and states concern all applications.
async fn fleet_status(visit: &Visit, site: &str) -> Result<Option<Value>, Problem> {
    if visit.dashboard.fleet.is_none() || visit.visitor.rights.is_bound() {
        return Ok(None);
    }
    visit
        .ask(json!({"action": "site", "site": site}))
        .await
        .map(Some)
}

async fn stored(visit: &Visit, site: &str) -> Result<(Option<Value>, Vec<Value>), Problem> {
    let store = store(visit).await?;
    let is_bound = visit.visitor.rights.is_bound();
    let kept = match is_bound {
        true => None,
        false => within(store.store.site_state(site)).await?,
    };
    let filter = PageFilter {
        site: Some(site.to_owned()),
        apps: visit.apps(),
        ..PageFilter::default()
    };
    let slice = within(store.browse.pages(&filter, None, PAGES)).await?;
    let rows = slice.rows.iter().map(pages::row).collect();
    Ok((kept.as_ref().map(sites::stored_row), rows))
}

/// The current rules, if there are any.
fn rule(fleet: &Value) -> Value {
    let of = |name: &str| (!fleet[name].is_null()).then(|| fleet[name].clone());
    json!({"delay": of("delay"), "block_until": of("block_until"), "limit": of("limit")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_found_by_a_host_or_a_url() {
        for (text, site) in [
            ("example.org", "example.org"),
            (" www.Example.org ", "example.org"),
            ("https://www.example.co.uk/a?b", "example.co.uk"),
            ("bücher.de", "xn--bcher-kva.de"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(named(text), Ok(site.to_owned()), "{text}");
        }
        for wrong in ["", "a b", "http://", "<script>"] {
            assert_eq!(named(wrong).unwrap_err().status, 404, "{wrong}");
        }
    }
}
