//! Kinds of pages that say nothing without their scripts, by site: what workers have found out about them
//! ([`ScriptsReport`]), with the evidence. It is kept in `meta`, a row for each such site.
//!
//! A page whose worker had no browser is *handed on* to one that has: its task is queued again, and its site's tasks
//! go to supervisors of the lane `browser` from then on, whose workers render what is unread and nothing else. That
//! ends when they have found that a browser does not help. While no supervisor of the lane is connected, nothing is
//! handed on, and nothing waits for one: the pages stay as they came.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webfill_health::is_similar;
use webfill_wire::{CrawlKey, Finding, KnownKind, Lane, ScriptsReport, SiteScripts, TaskDone};

use super::context::Context;
use super::lanes::SiteLane;
use super::model::SiteId;
use super::site_queue::Sites;
use super::task_rows::HeldTask;
use super::{FrontierError, crawls};

/// What the names of the rows begin with; the site's id follows.
const PREFIX: &str = "scripts/";

/// Kinds of one site that are told apart.
const MOST_KINDS: usize = 16;

/// Sites that are remembered; pages of others stay as they came.
const MOST_SITES: usize = 50_000;

/// Where browsers did not help with so many kinds of a mapping's pages in a row, its pages are not handed on any
/// more, except shells: the mapping does not fit them.
const MOST_UNFIT: u32 = 12;

/// Texts of reports are cut to this many bytes.
const MOST_BYTES: usize = 300;

/// A kind of pages of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScriptedKind {
    mapping: String,
    layout: String,
    /// The name of a [`Finding`].
    finding: String,
    /// They are empty shells; if not, it is only their mapping that reads nothing.
    #[serde(default)]
    is_shell: bool,
    /// How many pages wanted a browser where there was none.
    pages: u64,
    /// How many pages of the sample were rendered in vain.
    #[serde(default)]
    tries: u32,
    /// The page that was reported last, what was seen of it, when, and in which crawl.
    url: String,
    seen: String,
    at_ms: i64,
    crawl: CrawlKey,
}

/// By site.
pub(super) type ScriptedSites = BTreeMap<SiteId, Vec<ScriptedKind>>;

/// By mapping: with how many kinds of pages that are no shells browsers did not help, one after another.
pub(super) type UnfitMappings = BTreeMap<String, u32>;

/// What is known of all sites.
pub(super) fn load(db: &Connection) -> Result<ScriptedSites> {
    let sql = "SELECT name, value FROM meta WHERE name >= 'scripts/' AND name < 'scripts0'";
    let mut select = db.prepare(sql)?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut sites = ScriptedSites::new();
    for row in rows {
        let (name, value): (String, String) = row?;
        let site = name.strip_prefix(PREFIX).and_then(|id| id.parse().ok());
        // A row that a later release has written in another way is found out again.
        if let (Some(site), Ok(kinds)) = (site, serde_json::from_str(&value)) {
            sites.insert(SiteId(site), kinds);
        }
    }
    Ok(sites)
}

impl ScriptedKind {
    fn is(&self, finding: Finding) -> bool {
        self.finding == finding.as_str()
    }

    fn may_gain(&self) -> bool {
        match self.is(Finding::Tried) {
            // If none was handed on, a worker of the lane `http` has a browser, and tries them itself.
            true => self.pages > 0,
            false => !self.is(Finding::Empty),
        }
    }

    fn is_of(&self, report: &ScriptsReport) -> bool {
        self.mapping == report.mapping && is_similar(&self.layout, &report.layout)
    }

    /// For people and programs.
    fn told(&self) -> Value {
        json!({
            "finding": self.finding,
            "mapping": (!self.mapping.is_empty()).then_some(&self.mapping),
            "pages": self.pages,
            "tries": self.tries,
            "url": self.url,
            "seen": self.seen,
            "at": self.at_ms as f64 / 1_000.0,
        })
    }
}

impl Sites<'_> {
    /// What is known of the scripts of a site's pages, by the site's name.
    pub fn scripts_of(&mut self, name: &str) -> std::result::Result<Vec<Value>, FrontierError> {
        self.0
            .guarded("read what is known of a site's scripts", |cx| {
                let sql = "SELECT id FROM sites WHERE name = ?1";
                let mut select = cx.db.prepare_cached(sql)?;
                let site: Option<SiteId> = select.query_row([name], |row| row.get(0)).optional()?;
                let kinds = site.and_then(|site| cx.scripted.get(&site));
                Ok(kinds
                    .into_iter()
                    .flatten()
                    .map(ScriptedKind::told)
                    .collect())
            })
    }

    /// The sites of which these crawls have found something out about scripts, up to `most`, and how many there
    /// are: those that want a browser, because their pages are shells or perhaps, or those whose pages scripts have
    /// filled.
    pub fn scripted(
        &mut self,
        crawls: &[CrawlKey],
        (finding, is_shell): (Finding, Option<bool>),
        most: usize,
    ) -> std::result::Result<(u64, Vec<Value>), FrontierError> {
        self.0.guarded("read what is known of scripts", |cx| {
            let (mut sites, mut first) = (0, Vec::new());
            let is_asked = |kind: &&ScriptedKind| {
                kind.is(finding)
                    && is_shell.is_none_or(|asked| asked == kind.is_shell)
                    && crawls.contains(&kind.crawl)
            };
            for (site, kinds) in &cx.scripted {
                let Some(kind) = kinds.iter().find(is_asked) else {
                    continue;
                };
                sites += 1;
                if first.len() < most {
                    let mut told = kind.told();
                    let name = super::site_states::site_name(&cx.db, *site)?;
                    told["site"] = name.into();
                    first.push(told);
                }
            }
            Ok((sites, first))
        })
    }
}

/// Keeps what an outcome tells of scripts. Returns whether its page is handed on to a browser.
pub(super) fn note_scripts(
    cx: &mut Context,
    task: &HeldTask,
    report: &TaskDone,
    now_ms: i64,
) -> Result<bool> {
    let Some(found) = ScriptsReport::of(report) else {
        return Ok(false);
    };
    let url = report
        .evidence
        .as_ref()
        .map_or("", |evidence| &evidence.url);
    if !keep_kind(cx, task, &found, url, now_ms) {
        return Ok(false);
    }
    store_scripts(cx, task.site)?;
    let wall_ms = cx.wall_ms(now_ms);
    let is_over = crawls::known_crawl(cx, task.crawl)?
        .ending(wall_ms)
        .is_some();
    let has_browser = cx.lanes.has_browsers() && cx.lanes.is_scripted(task.site);
    Ok(found.finding == Finding::Wanted && has_browser && !is_over)
}

/// False if nothing was learned: the kind is known to gain nothing, or there are too many.
fn keep_kind(
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
    let index = match kinds.iter().position(|kind| kind.is_of(found)) {
        Some(index) => index,
        None if kinds.len() >= MOST_KINDS => return false,
        None => {
            kinds.push(ScriptedKind {
                mapping: cut(&found.mapping),
                layout: cut(&found.layout),
                finding: Finding::Wanted.as_str().to_owned(),
                is_shell: found.is_shell,
                pages: 0,
                tries: 0,
                url: String::new(),
                seen: String::new(),
                at_ms: 0,
                crawl: task.crawl,
            });
            kinds.len() - 1
        }
    };
    let kind = &mut kinds[index];
    if is_wanted && kind.is(Finding::Empty) {
        return false;
    }
    if !is_wanted && !found.is_shell {
        let unfit = cx.unfit_mappings.entry(cut(&found.mapping)).or_default();
        *unfit = match found.finding {
            Finding::Empty if !kind.is(Finding::Empty) => unfit.saturating_add(1),
            Finding::Filled => 0,
            _ => *unfit,
        };
    }
    kind.pages += u64::from(is_wanted);
    let is_vain = match found.finding {
        Finding::Tried => true,
        // The last of a sample; or it was not tried, as others like it were in vain.
        Finding::Empty => kind.is(Finding::Tried),
        _ => false,
    };
    kind.tries = kind.tries.saturating_add(u32::from(is_vain));
    (kind.at_ms, kind.crawl) = (now_ms, task.crawl);
    // That a browser is missing, or has shown nothing so far, says less than what one has shown.
    let is_shown = matches!(found.finding, Finding::Filled | Finding::Empty);
    let is_open = kind.is(Finding::Wanted) || (kind.is(Finding::Tried) && !is_wanted);
    if is_shown || is_open {
        found.finding.as_str().clone_into(&mut kind.finding);
        (kind.url, kind.seen) = (cut(url), cut(&found.seen));
    }
    true
}

fn store_scripts(cx: &mut Context, site: SiteId) -> Result<()> {
    let kinds = cx.scripted.get(&site).map_or(&[][..], Vec::as_slice);
    // A list of plain texts and numbers is always JSON.
    let value = serde_json::to_string(kinds).unwrap_or_default();
    let sql = "INSERT OR REPLACE INTO meta VALUES (?1, ?2)";
    let name = format!("{PREFIX}{}", site.0);
    cx.db.prepare_cached(sql)?.execute(params![name, value])?;
    choose_lane(cx, site);
    Ok(())
}

/// Decides whether a site's pages go to a browser, after what decides that has changed.
pub(super) fn choose_lane(cx: &mut Context, site: SiteId) {
    let kinds = cx.scripted.get(&site).map_or(&[][..], Vec::as_slice);
    let wants = want_browser(cx.lanes.rule(site), kinds);
    if cx.lanes.set_scripted(site, wants) {
        cx.holding.changed_sites.push(site);
    }
}

/// Forgets what is known of a site's scripts.
pub(super) fn forget_scripts(cx: &mut Context, site: SiteId) -> Result<()> {
    if cx.scripted.remove(&site).is_none() {
        return Ok(());
    }
    let name = format!("{PREFIX}{}", site.0);
    let sql = "DELETE FROM meta WHERE name = ?1";
    cx.db.prepare_cached(sql)?.execute([name])?;
    choose_lane(cx, site);
    Ok(())
}

/// Whether a site's pages go to a browser: by its rule, else if one helps some of its kinds as far as is known. With
/// the rule `http`, only pages whose mapping wants a browser do.
pub(super) fn want_browser(rule: Option<SiteLane>, kinds: &[ScriptedKind]) -> bool {
    match rule.and_then(SiteLane::fixed) {
        Some(Lane::Browser) => true,
        Some(Lane::Http) => kinds.iter().any(|kind| kind.layout == Finding::SET),
        None => kinds.iter().any(ScriptedKind::may_gain),
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MOST_BYTES)].to_owned()
}

/// What the worker that gets a site's tasks needs to know; `None` if nothing is known.
pub(super) fn for_worker(cx: &Context, site: SiteId, name: &str) -> Option<SiteScripts> {
    let rule = cx.lanes.rule(site);
    let kinds = cx.scripted.get(&site).map_or(&[][..], Vec::as_slice);
    let known = |kind: &ScriptedKind| {
        Some(KnownKind {
            mapping: kind.mapping.clone(),
            layout: kind.layout.clone(),
            finding: Finding::of_name(&kind.finding)?,
            tries: kind.tries,
        })
    };
    let is_known = rule.is_some() || !kinds.is_empty();
    is_known.then(|| SiteScripts {
        site: name.to_owned(),
        lane: rule.and_then(SiteLane::fixed),
        kinds: kinds.iter().filter_map(known).collect(),
    })
}
