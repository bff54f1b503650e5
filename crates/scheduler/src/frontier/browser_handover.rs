//! Stores what workers find out about pages that need their scripts, and hands such pages on to workers with browsers;
//! see [`scripts`](super::scripts).

use rusqlite::{OptionalExtension, Result, params};
use serde_json::Value;
use webfill_wire::{CrawlKey, Finding, KnownKind, ScriptsReport, SiteScripts, TaskDone};

use super::context::Context;
use super::crawl_rows;
use super::error::FrontierError;
use super::lanes::SiteLane;
use super::model::SiteId;
use super::parts::Sites;
use super::scripts::{PREFIX, ScriptedKind, needs_browser};
use super::task_rows::HeldTask;

/// Stores whether a worker has found that a page is empty without its scripts. Returns whether the page is handed on to
/// a worker with a browser.
pub(super) fn note_scripts_and_decide_handover(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    now_ms: i64,
) -> Result<bool> {
    let Some(found) = ScriptsReport::from_outcome(report) else {
        return Ok(false);
    };
    let url = report
        .evidence
        .as_ref()
        .map_or("", |evidence| &evidence.url);
    if !add_finding(cx, task, &found, url, now_ms) {
        return Ok(false);
    }
    store_scripts(cx, task.site)?;
    let wall_ms = cx.wall_ms(now_ms);
    let is_over = crawl_rows::load_known_crawl(cx, task.crawl)?
        .ending_outcome(wall_ms)
        .is_some();
    let has_browser = cx.lanes.has_browsers() && cx.lanes.is_scripted(task.site);
    Ok(found.finding == Finding::Wanted && has_browser && !is_over)
}

/// Keeps a finding about a kind of pages, such as: they need a browser. Returns false if there is nothing new to keep:
/// browsers are known not to help this kind, or there are too many kinds.
pub(super) fn add_finding(
    cx: &mut Context,
    task: &HeldTask,
    found: &ScriptsReport,
    url: &str,
    now_ms: i64,
) -> bool {
    if cx.scripted.len() >= MOST_SITES && !cx.scripted.contains_key(&task.site) {
        return false;
    }
    let is_wanted = found.finding == Finding::Wanted;
    let unfit = cx.unfit_mappings.get(&found.mapping).copied();
    if is_wanted && !found.is_shell && unfit.unwrap_or(0) >= MOST_UNFIT {
        return false;
    }
    let kinds = cx.scripted.entry(task.site).or_default();
    let index = match kinds.iter().position(|kind| kind.matches(found)) {
        Some(index) => index,
        None if kinds.len() >= MOST_KINDS => return false,
        None => {
            kinds.push(new_kind(found, task.crawl));
            kinds.len() - 1
        }
    };
    let kind = &mut kinds[index];
    if is_wanted && kind.has_finding(Finding::Empty) {
        return false;
    }
    if !is_wanted && !found.is_shell {
        let unfit = cx
            .unfit_mappings
            .entry(truncate(&found.mapping))
            .or_default();
        *unfit = match found.finding {
            Finding::Empty if !kind.has_finding(Finding::Empty) => unfit.saturating_add(1),
            Finding::Filled => 0,
            _ => *unfit,
        };
    }
    update_kind(kind, found, url);
    (kind.at_ms, kind.crawl) = (now_ms, task.crawl);
    true
}

fn new_kind(found: &ScriptsReport, crawl: CrawlKey) -> ScriptedKind {
    ScriptedKind {
        mapping: truncate(&found.mapping),
        layout: truncate(&found.layout),
        finding: Finding::Wanted.as_str().to_owned(),
        is_shell: found.is_shell,
        pages: 0,
        tries: 0,
        url: String::new(),
        seen: String::new(),
        at_ms: 0,
        crawl,
    }
}

fn update_kind(kind: &mut ScriptedKind, found: &ScriptsReport, url: &str) {
    let is_wanted = found.finding == Finding::Wanted;
    kind.pages += u64::from(is_wanted);
    let is_vain = match found.finding {
        Finding::Tried => true,
        // `Empty`: browsers do not help. Counted only if a page was tried (the last one of a sample), not if it was
        // skipped because browsers had not helped similar pages.
        Finding::Empty => kind.has_finding(Finding::Tried),
        _ => false,
    };
    kind.tries = kind.tries.saturating_add(u32::from(is_vain));
    // Pages that lacked a browser, or were rendered without a result so far, are weaker evidence than pages with a
    // result.
    let is_shown = matches!(found.finding, Finding::Filled | Finding::Empty);
    let is_open =
        kind.has_finding(Finding::Wanted) || (kind.has_finding(Finding::Tried) && !is_wanted);
    if is_shown || is_open {
        found.finding.as_str().clone_into(&mut kind.finding);
        (kind.url, kind.seen) = (truncate(url), truncate(&found.seen));
    }
}

pub(super) fn store_scripts(cx: &mut Context, site: SiteId) -> Result<()> {
    let kinds = cx.scripted.get(&site).map_or(&[][..], Vec::as_slice);
    // A list of plain texts and numbers can always be written as JSON.
    let value = serde_json::to_string(kinds).unwrap_or_default();
    let sql = "INSERT OR REPLACE INTO meta VALUES (?1, ?2)";
    let name = format!("{PREFIX}{}", site.0);
    cx.db.prepare_cached(sql)?.execute(params![name, value])?;
    update_lane(cx, site);
    Ok(())
}

/// Decides again whether a site's pages go to a browser, after the evidence has changed.
pub(super) fn update_lane(cx: &mut Context, site: SiteId) {
    let kinds = cx.scripted.get(&site).map_or(&[][..], Vec::as_slice);
    let wants = needs_browser(cx.lanes.rule(site), kinds);
    if cx.lanes.set_scripted(site, wants) {
        cx.holding.changed_sites.push(site);
    }
}

/// Drops what is known about scripts on a site's pages.
pub(super) fn forget_scripts(cx: &mut Context, site: SiteId) -> Result<()> {
    if cx.scripted.remove(&site).is_none() {
        return Ok(());
    }
    let name = format!("{PREFIX}{}", site.0);
    let sql = "DELETE FROM meta WHERE name = ?1";
    cx.db.prepare_cached(sql)?.execute([name])?;
    update_lane(cx, site);
    Ok(())
}

/// What is known about the scripts on a site's pages, for the worker that gets the site's tasks; `None` if nothing is
/// known.
pub(super) fn findings_for_worker(cx: &Context, site: SiteId, name: &str) -> Option<SiteScripts> {
    let rule = cx.lanes.rule(site);
    let kinds = cx.scripted.get(&site).map_or(&[][..], Vec::as_slice);
    let known = |kind: &ScriptedKind| {
        Some(KnownKind {
            mapping: kind.mapping.clone(),
            layout: kind.layout.clone(),
            finding: Finding::from_name(&kind.finding)?,
            tries: kind.tries,
        })
    };
    let is_known = rule.is_some() || !kinds.is_empty();
    is_known.then(|| SiteScripts {
        site: name.to_owned(),
        lane: rule.and_then(SiteLane::fixed_lane),
        kinds: kinds.iter().filter_map(known).collect(),
    })
}

/// The maximum number of kinds of pages distinguished per site.
pub(super) const MOST_KINDS: usize = 16;

/// The maximum number of sites with a record of whether pages need their scripts. Pages of further sites are kept as
/// they are without a browser.
pub(super) const MOST_SITES: usize = 50_000;

/// If this many consecutive kinds of a mapping's pages were not helped by browsers, its pages are no longer handed on,
/// except empty shells: the mapping does not fit them.
pub(super) const MOST_UNFIT: u32 = 12;

/// The maximum length of kept texts, in bytes.
pub(super) const MOST_BYTES: usize = 300;

pub(super) fn truncate(text: &str) -> String {
    text[..text.floor_char_boundary(MOST_BYTES)].to_owned()
}

impl Sites<'_> {
    /// Which kinds of a site's pages are empty without their scripts, as far as is known. `name`: the site's name.
    pub fn scripts_of(&mut self, name: &str) -> std::result::Result<Vec<Value>, FrontierError> {
        self.0
            .run("read the findings about a site's scripts", |cx| {
                let sql = "SELECT id FROM sites WHERE name = ?1";
                let mut select = cx.db.prepare_cached(sql)?;
                let site: Option<SiteId> = select.query_row([name], |row| row.get(0)).optional()?;
                let kinds = site.and_then(|site| cx.scripted.get(&site));
                Ok(kinds
                    .into_iter()
                    .flatten()
                    .map(ScriptedKind::json)
                    .collect())
            })
    }

    /// The sites of these crawls with this finding about scripts (such as: a browser is needed), up to `most`, and
    /// their total number. `is_shell`: only kinds of pages that are, or are not, empty shells.
    pub fn list_scripted_sites(
        &mut self,
        crawls: &[CrawlKey],
        (finding, is_shell): (Finding, Option<bool>),
        most: usize,
    ) -> std::result::Result<(u64, Vec<Value>), FrontierError> {
        self.0.run("read the findings about scripts", |cx| {
            let (mut sites, mut first) = (0, Vec::new());
            let is_asked = |kind: &&ScriptedKind| {
                kind.has_finding(finding)
                    && is_shell.is_none_or(|asked| asked == kind.is_shell)
                    && crawls.contains(&kind.crawl)
            };
            for (site, kinds) in &cx.scripted {
                let Some(kind) = kinds.iter().find(is_asked) else {
                    continue;
                };
                sites += 1;
                if first.len() < most {
                    let mut listed = kind.json();
                    let name = super::site_states::site_name(&cx.db, *site)?;
                    listed["site"] = name.into();
                    first.push(listed);
                }
            }
            Ok((sites, first))
        })
    }
}
