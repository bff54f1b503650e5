//! Reports, in answers about crawls, sites whose pages have no content without their scripts.

use serde_json::{Map, Value, json};
use webfill_wire::{CrawlKey, Finding};

use crate::core::context::Context;
use crate::frontier::FrontierError;
use crate::wording::pluralize;

/// The maximum number of sites to report whose pages may need their scripts.
const MOST_SCRIPTED: usize = 10;

/// What is known about pages of these crawls that need their scripts, with examples: how many sites need a browser
/// (`wanted`), may need one, or are fetched with one (`filled`).
pub(super) fn scripts_json(cx: &mut Context, crawls: &[CrawlKey]) -> Result<Value, FrontierError> {
    let mut found = Map::new();
    for (name, finding, is_shell) in [
        ("wanted", Finding::Wanted, Some(true)),
        ("perhaps", Finding::Wanted, Some(false)),
        ("filled", Finding::Filled, None),
    ] {
        let asked = (finding, is_shell);
        let (sites, first) =
            cx.frontier
                .sites()
                .list_scripted_sites(crawls, asked, MOST_SCRIPTED)?;
        found.insert(name.to_owned(), json!({"sites": sites, "first": first}));
    }
    Ok(found.into())
}

/// Adds which sites of a crawl need a browser, in the form of the crawl's summary. Their stored pages were fetched
/// without one, and stay as they are until the next fetch.
pub(super) fn add_scripts(
    cx: &mut Context,
    row: &mut Value,
    crawl: CrawlKey,
) -> Result<(), FrontierError> {
    let scripts = scripts_json(cx, &[crawl])?;
    let sites = |name: &str| scripts[name]["sites"].as_u64().unwrap_or(0);
    if sites("wanted") + sites("perhaps") + sites("filled") == 0 {
        return Ok(());
    }
    let spec = cx.frontier.crawls().spec(crawl)?;
    let again = format!(
        "webfill retry {} {} --outcome ok --site",
        spec.app_id, spec.crawl_id
    );
    row["scripts"] = json!({
        "needs_browser": scripts["wanted"],
        "may_need_browser": scripts["perhaps"],
        "rendered": scripts["filled"],
    });
    if sites("wanted") > 0 {
        let text = describe_browser_need(&scripts["wanted"], cx.frontier.has_browsers(), &again);
        row["scripts"]["text"] = text.into();
    }
    Ok(())
}

/// Why a browser is needed, in words, such as `2 sites need a browser, such as a.example (an empty shell: ...): no
/// supervisor of lane browser is connected; ...`.
fn describe_browser_need(wanted: &Value, has_browsers: bool, again: &str) -> String {
    let text = |key: &str| wanted["first"][0][key].as_str().unwrap_or_default();
    let (site, seen) = (text("site"), text("seen"));
    let sites = wanted["sites"].as_u64().unwrap_or(0);
    let need = if sites == 1 { "needs" } else { "need" };
    let sites = pluralize(sites, "site");
    let such = match sites.starts_with("1 ") {
        true => format!("{site} ({seen})"),
        false => format!("such as {site} ({seen})"),
    };
    let why = match has_browsers {
        true => "their pages came when no supervisor of lane browser was connected",
        false => "no supervisor of lane browser is connected; once one is,",
    };
    let joint = if has_browsers { ";" } else { "" };
    format!(
        "{sites} {need} a browser, {such}: {why}{joint} `{again} {site}` fetches its pages again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_that_need_a_browser_are_reported_with_what_to_do() {
        let wanted =
            |sites: u64| json!({"sites": sites, "first": [{"site": "a.org", "seen": "a shell"}]});
        assert_eq!(
            describe_browser_need(&wanted(1), false, "webfill retry a c --outcome ok --site"),
            "1 site needs a browser, a.org (a shell): no supervisor of lane browser is connected; once one is, \
             `webfill retry a c --outcome ok --site a.org` fetches its pages again"
        );
        assert_eq!(
            describe_browser_need(&wanted(11), true, "webfill retry a c --outcome ok --site"),
            "11 sites need a browser, such as a.org (a shell): their pages came when no supervisor of lane \
             browser was connected; `webfill retry a c --outcome ok --site a.org` fetches its pages again"
        );
    }
}
