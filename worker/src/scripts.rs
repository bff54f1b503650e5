//! Decides which pages that show nothing without their scripts are rendered in the browser, in crawls of the lane
//! `http`, and remembers the results.
//!
//! A page is *unread* if scripts run on it, and it is an empty shell or its mapping reads nothing from it. Of each kind
//! of unread pages of a site (one mapping, one layout) a sample is rendered. If the browser finds content on any of
//! them, further unread pages of the kind are rendered, as long as that helps often enough. Otherwise they are kept as
//! the server sent them. A page with content as its server sends it is never rendered.
//!
//! All state is in memory and bounded. A worker reports its findings with the outcome of the page ([`ScriptsReport`]).
//! The dispatcher keeps them and sends them with the next tasks of the site ([`SiteScripts`]), together with the site's
//! rule. So a restarted worker needs no new sample.

use std::collections::HashMap;

use webfill_health::is_similar;
use webfill_mapping::{MappingSet, PageLane};
use webfill_wire::{Evidence, Finding, KnownKind, Lane, ScriptsReport, SiteScripts};

use crate::browser::BrowserConfig;
use crate::memory::MemoryPermit;
use crate::task_result::TaskResult;

/// How many pages of a kind are rendered before it is decided whether to render further ones.
const SAMPLE: u32 = 3;

/// A kind of pages is rendered as long as at least one in this many of its rendered pages got content in the browser.
const ONE_IN: u32 = 4;

/// After the browser found nothing on this many pages of a site, the site's pages count as empty in a browser, too.
const MOST_IN_VAIN: u32 = 2 * SAMPLE;

/// How many pages of a mapping, on any sites, may be rendered without result in a row; empty shells do not count. After
/// that, the mapping is probably wrong, so only kinds of pages that scripts have filled are still rendered.
const MOST_UNFIT: u32 = 12;

/// How many kinds of pages are distinguished per site. Pages of further kinds are kept as the server sent them.
const MOST_KINDS: usize = 16;

/// How many sites are remembered. When there are more, all are forgotten, and their pages are tried again.
const MOST_SITES: usize = 20_000;

/// The longest page that is tried, in bytes. Longer ones would not fit into the memory for pages that wait for the
/// browser.
const MOST_BYTES: usize = 1 << 20;

/// A kind of pages of a site: pages with the same mapping and a similar layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageKind {
    /// The name of the mapping; empty if none matches.
    pub mapping: String,
    /// The layout of the page as the server sent it: a sketch of its tags, or the element that its scripts fill.
    pub layout: String,
}

/// A page that shows nothing without its scripts, with the data needed to try it in the browser.
#[derive(Debug)]
pub struct UnreadPage {
    pub kind: PageKind,
    /// Whether the page is an empty shell. If not, it has text, but its mapping reads nothing from it.
    pub is_shell: bool,
    /// Why the page counts as unread, in words for logs.
    pub seen: String,
    pub body: Vec<u8>,
    /// The permit for the memory that the body takes; the worker's memory is limited.
    pub memory: MemoryPermit,
}

/// Whether a page is rendered in the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendering {
    Never,
    Always,
    IfUnread,
}

/// The findings about pages that show nothing without their scripts.
#[derive(Debug)]
pub struct ScriptedPages {
    auto: bool,
    sites: Vec<String>,
    not_sites: Vec<String>,
    /// The lanes (`http` or `browser`) that the dispatcher sets for sites; they override the settings.
    rules: HashMap<String, Lane>,
    known: HashMap<String, Vec<TrialResults>>,
    /// By mapping: how many pages were rendered without result in a row, not counting empty shells.
    unfit: HashMap<String, u32>,
    /// Why the browser does not start.
    broken: Option<String>,
}

/// The results of rendering pages of one kind.
#[derive(Debug)]
struct TrialResults {
    kind: PageKind,
    rendered: u32,
    filled: u32,
}

impl TrialResults {
    /// The results for a kind that another process, or an earlier start of this one, has tried.
    fn from_known(known: KnownKind) -> Option<TrialResults> {
        let (rendered, filled) = match known.finding {
            Finding::Filled => (1, 1),
            Finding::Empty => (known.tries.max(SAMPLE), 0),
            Finding::Tried | Finding::Wanted => (known.tries, 0),
        };
        let kind = PageKind {
            mapping: known.mapping,
            layout: known.layout,
        };
        (rendered > 0).then_some(TrialResults {
            kind,
            rendered,
            filled,
        })
    }

    fn is_open(&self) -> bool {
        self.rendered < SAMPLE || self.filled.saturating_mul(ONE_IN) >= self.rendered
    }
}

impl ScriptedPages {
    pub fn new(config: &BrowserConfig) -> ScriptedPages {
        ScriptedPages {
            auto: config.auto,
            sites: config.sites.clone(),
            not_sites: config.not_sites.clone(),
            rules: HashMap::new(),
            known: HashMap::new(),
            unfit: HashMap::new(),
            broken: None,
        }
    }

    /// Whether a page is rendered. The first of these decides: the key of its mapping, the lane `browser` of its crawl,
    /// the rule of its site, the settings.
    pub fn rendering(&self, crawl: Lane, mapping: Option<PageLane>, site: &str) -> Rendering {
        let names = |sites: &[String]| sites.iter().any(|named| named == site);
        match (mapping, crawl) {
            (Some(PageLane::Http), _) => Rendering::Never,
            (Some(PageLane::Browser), _) | (None, Lane::Browser) => Rendering::Always,
            _ if self.rules.get(site) == Some(&Lane::Http) => Rendering::Never,
            _ if self.rules.get(site) == Some(&Lane::Browser) => Rendering::Always,
            _ if names(&self.not_sites) => Rendering::Never,
            _ if names(&self.sites) => Rendering::Always,
            _ if self.auto => Rendering::IfUnread,
            _ => Rendering::Never,
        }
    }

    /// Takes over the dispatcher's knowledge of a site. This worker's own findings are newer and stay.
    pub fn update_site(&mut self, known: SiteScripts) {
        let SiteScripts { site, lane, kinds } = known;
        match lane {
            Some(lane) => self.rules.insert(site.clone(), lane),
            None => self.rules.remove(&site),
        };
        let kinds: Vec<TrialResults> = kinds
            .into_iter()
            .filter_map(TrialResults::from_known)
            .collect();
        if kinds.is_empty() || self.known.contains_key(&site) {
            return;
        }
        self.make_room_for(&site);
        self.known.insert(site, kinds);
    }

    /// Forgets the findings about a site, and its rule.
    pub fn forget(&mut self, site: &str) {
        self.known.remove(site);
        self.rules.remove(site);
    }

    fn make_room_for(&mut self, site: &str) {
        if self.known.len() >= MOST_SITES && !self.known.contains_key(site) {
            self.known.clear();
        }
    }

    /// Whether scripts have filled pages of this site, and their kind is still rendered.
    pub fn may_fill_site(&self, site: &str) -> bool {
        let mut kinds = self.known.get(site).into_iter().flatten();
        kinds.any(|tried| tried.filled > 0 && tried.is_open())
    }

    /// Whether an unread page is rendered.
    pub fn may_try(&self, site: &str, kind: &PageKind, is_shell: bool) -> bool {
        let kinds = self.known.get(site).map_or(&[][..], Vec::as_slice);
        let known = kinds.iter().find(|tried| is_same(&tried.kind, kind));
        if let Some(tried) = known.filter(|tried| tried.filled > 0) {
            return tried.is_open();
        }
        let unfit = self.unfit.get(&kind.mapping).copied().unwrap_or(0);
        if !is_shell && unfit >= MOST_UNFIT {
            return false;
        }
        let is_filled = kinds.iter().any(|tried| tried.filled > 0);
        let in_vain: u32 = kinds.iter().map(|tried| tried.rendered).sum();
        let has_room = kinds.len() < MOST_KINDS && (is_filled || in_vain < MOST_IN_VAIN);
        known.map_or(has_room, TrialResults::is_open)
    }

    /// Whether a page of this kind was rendered.
    pub fn has_rendered_kind(&self, site: &str, kind: &PageKind) -> bool {
        let mut kinds = self.known.get(site).into_iter().flatten();
        kinds.any(|tried| is_same(&tried.kind, kind))
    }

    /// Whether scripts have filled pages of this kind.
    pub fn has_filled_kind(&self, site: &str, kind: &PageKind) -> bool {
        let mut kinds = self.known.get(site).into_iter().flatten();
        kinds.any(|tried| tried.filled > 0 && is_same(&tried.kind, kind))
    }

    /// Notes the result of rendering an unread page. Returns the finding about its kind, if it is new.
    pub fn note_result(
        &mut self,
        site: &str,
        kind: &PageKind,
        is_shell: bool,
        is_filled: bool,
    ) -> Option<Finding> {
        if !is_shell {
            let unfit = self.unfit.entry(kind.mapping.clone()).or_default();
            *unfit = if is_filled {
                0
            } else {
                unfit.saturating_add(1)
            };
        }
        self.make_room_for(site);
        let kinds = self.known.entry(site.to_owned()).or_default();
        let known = kinds.iter().position(|tried| is_same(&tried.kind, kind));
        let index = known.unwrap_or_else(|| {
            kinds.push(TrialResults {
                kind: kind.clone(),
                rendered: 0,
                filled: 0,
            });
            kinds.len() - 1
        });
        let tried = &mut kinds[index];
        tried.rendered = tried.rendered.saturating_add(1);
        tried.filled += u32::from(is_filled);
        match is_filled {
            true if tried.filled == 1 => Some(Finding::Filled),
            false if !tried.is_open() => Some(Finding::Empty),
            false if tried.filled == 0 => Some(Finding::Tried),
            _ => None,
        }
    }

    /// Notes that the browser does not start. From now on, pages are kept as the server sent them.
    pub fn note_broken(&mut self, why: String) {
        self.broken = Some(why);
    }

    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }
}

fn is_same(one: &PageKind, other: &PageKind) -> bool {
    one.mapping == other.mapping && is_similar(&one.layout, &other.layout)
}

/// Whether a page may turn out to be unread: scripts run on it.
pub fn has_scripts(body: &[u8]) -> bool {
    let starts = |tag: &[u8]| memchr::memmem::find(body, tag).is_some();
    body.len() <= MOST_BYTES && (starts(b"<script") || starts(b"<SCRIPT"))
}

/// The kind of an unread page, whether it is a shell, and why it is unread; `None` if it has content.
pub fn unread_kind(
    result: &TaskResult,
    mappings: &MappingSet,
    shell: Option<&webfill_mapping::Shell>,
) -> Option<(PageKind, bool, String)> {
    let name = result.mapping.as_deref().unwrap_or_default();
    let index = mappings.find_by_name(name);
    let fields = index.map_or(0, |index| mappings.fields_of(index).len());
    let lacks_all = match fields {
        _ if result.rows() > 0 => false,
        0 => result.links.is_empty(),
        _ => result.fields.is_empty(),
    };
    let lacks_something = lacks_all || result.fields.len() < fields;
    let shell = shell.filter(|_| lacks_something);
    let root = shell.map(|shell| &*shell.root);
    let layout = result.template.as_deref().or(root).unwrap_or_default();
    let seen = match shell {
        Some(shell) => format!(
            "an empty shell: {} characters of text, scripts: {}, root {}",
            shell.characters, shell.scripts, shell.root
        ),
        None if index.is_some() && lacks_all => format!("mapping {name} reads nothing of it"),
        None => return None,
    };
    let kind = PageKind {
        mapping: name.to_owned(),
        layout: layout.to_owned(),
    };
    Some((kind, shell.is_some(), seen))
}

/// The content that the browser added to a page, in words; `None` if there is none.
pub fn describe_gain(before: &TaskResult, after: &TaskResult) -> Option<String> {
    let new = after.fields.keys();
    let new: Vec<&str> = new
        .filter(|name| !before.fields.contains_key(*name))
        .map(String::as_str)
        .collect();
    if !new.is_empty() {
        return Some(format!("scripts fill {}", new.join(", ")));
    }
    if before.links.is_empty() && !after.links.is_empty() {
        return Some(format!("scripts bring {} links", after.links.len()));
    }
    None
}

/// Reports the finding about a page's kind, together with the outcome of the page. If the page has failed, its own
/// evidence stays.
pub fn report_finding(
    result: &mut TaskResult,
    finding: Finding,
    (kind, is_shell): (&PageKind, bool),
    seen: &str,
) {
    if result.evidence.is_some() {
        return;
    }
    let report = ScriptsReport {
        finding,
        is_shell,
        mapping: kind.mapping.clone(),
        layout: kind.layout.clone(),
        seen: seen.to_owned(),
    };
    let evidence: Evidence = report.into_evidence(&result.task.url, result.status_code);
    result.evidence = Some(evidence);
}

#[cfg(test)]
mod tests;
