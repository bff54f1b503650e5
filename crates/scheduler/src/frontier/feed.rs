//! Feeding: candidates (seeds, links, redirects) are judged, and those that are new become queued
//! tasks.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use rusqlite::{Result, params};
use webfill_urls::Url;
use webfill_wire::{CrawlKey, LinkKind, Reason};

use self::sums::FedSite;
use super::context::Context;
use super::crawl::Crawl;
use super::database::Database;
use super::lanes::Lanes;
use super::model::{Candidate, FeedTally, LinkContext, Refused, SiteId, TaskId};
use super::names::Names;
use super::new_tasks::{NewTask, NewTasks};
use super::page_checks::Ranks;
use super::parts::Tasks;
use super::schema::DONE;
use super::stored_urls::shorten_url;
use super::trickles::SlowedBranches;
use super::{FrontierError, journey_lines, records};
use crate::excluded_sites::ExcludedSites;
use crate::intake::{self, MAX_REDIRECTS, Refusal};
use crate::seen::SeenUrls;

mod sums;

/// Takes the place of the record in a pair of URL and record, to mark the URL as a sitemap. Records have positive
/// numbers.
const SITEMAP: i64 = -1;

impl Tasks<'_> {
    /// Judges candidates in order and queues those that are new to the crawl.
    pub fn feed(
        &mut self,
        crawl: CrawlKey,
        candidates: &[Candidate<'_>],
        now_ms: i64,
    ) -> Result<FeedTally, FrontierError> {
        self.0.crawl(crawl)?;
        self.0.run("queue URLs", |cx| {
            let records = unresolved_record_ids(cx, candidates)?;
            let mut batch = begin_feed(cx, crawl, now_ms);
            for (index, (candidate, records)) in candidates.iter().zip(&records).enumerate() {
                let context = LinkContext {
                    kind: LinkKind::Link,
                    depth: candidate.depth,
                    priority: candidate
                        .priority
                        .unwrap_or_else(|| batch.crawl.spec.priority_at(candidate.depth)),
                    redirects: 0,
                    parent: candidate.parent,
                    base: None,
                    records,
                    attrs: candidate.attrs,
                    is_of_repetition: false,
                };
                if batch.is_unwanted(candidate.records.len(), records) {
                    batch.tally.unwanted += 1;
                } else if let Some(refusal) = batch.feed_url(candidate.url, None, &context)? {
                    batch.note_refused(index, &refusal);
                }
                if candidate.depth == 0 {
                    batch.queue_sitemaps_of(candidate.url, &context)?;
                }
            }
            batch.write_sums()
        })
    }
}

/// The ids of each candidate's records that are still unresolved, that is, not complete.
fn unresolved_record_ids(cx: &mut Context, candidates: &[Candidate<'_>]) -> Result<Vec<Vec<i64>>> {
    let mut all = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let mut ids = Vec::with_capacity(candidate.records.len());
        for name in candidate.records {
            let id = cx.records.id_or_insert(&cx.db, name)?;
            if !records::is_resolved(&cx.db, id)? {
                ids.push(id);
            }
        }
        all.push(ids);
    }
    Ok(all)
}

/// Begins a batch of a crawl, which must be in memory.
pub(super) fn begin_feed(cx: &mut Context, key: CrawlKey, now_ms: i64) -> FeedBatch<'_> {
    let wall_ms = cx.wall_ms(now_ms);
    let crawl = cx
        .crawls
        .get_mut(&key)
        .expect("the caller has read the crawl");
    FeedBatch {
        db: &cx.db,
        seen: &mut cx.seen,
        trickles: &mut cx.trickles,
        site_names: &mut cx.sites,
        excluded: &cx.excluded,
        key,
        crawl,
        lanes: &mut cx.lanes,
        next_task: &mut cx.next_task,
        now_ms,
        wall_ms,
        last_turn: cx.last_turn,
        fed: BTreeMap::new(),
        queued: BTreeMap::new(),
        ranks: Ranks::default(),
        new_tasks: NewTasks::new(key),
        last_host: None,
        tally: FeedTally::default(),
        origins: HashSet::new(),
    }
}

/// A batch of candidates of one crawl. Its additions to the counts of sites are written once, when it is finished.
pub(super) struct FeedBatch<'a> {
    pub(super) db: &'a Database,
    pub(super) seen: &'a mut SeenUrls,
    trickles: &'a mut SlowedBranches,
    site_names: &'a mut Names,
    excluded: &'a ExcludedSites,
    pub(super) key: CrawlKey,
    pub(super) crawl: &'a mut Crawl,
    lanes: &'a mut Lanes,
    next_task: &'a mut i64,
    pub(super) now_ms: i64,
    /// The time of the wall clock.
    pub(super) wall_ms: i64,
    last_turn: i64,
    /// The batch's additions to the counts of sites, ordered by site, so that the order of later operations is
    /// repeatable.
    fed: BTreeMap<SiteId, FedSite>,
    /// The number of tasks that the batch queues, including ended ones that it queues again, by priority.
    queued: BTreeMap<u8, u64>,
    pub(super) ranks: Ranks,
    pub(super) new_tasks: NewTasks,
    /// The host of the last queued URL, and its site. The next URL mostly has the same ones.
    last_host: Option<(String, Site)>,
    pub(super) tally: FeedTally,
    /// The origins whose sitemaps this batch requests.
    origins: HashSet<String>,
}

#[derive(Debug, Clone)]
struct Site {
    id: SiteId,
    name: Rc<str>,
}

impl FeedBatch<'_> {
    /// Whether a candidate is useless, because all its records are complete or the crawl is over.
    pub(super) fn is_unwanted(&self, records: usize, unresolved: &[i64]) -> bool {
        (records > 0 && unresolved.is_empty()) || self.crawl.ending_outcome(self.wall_ms).is_some()
    }

    /// Judges a URL and queues it if it is new. Returns why it was refused, unless it is a duplicate. `key`: the key of
    /// the text, if it is known (see [`known_links`](super::known_links)).
    pub(super) fn feed_url(
        &mut self,
        text: &str,
        key: Option<u64>,
        context: &LinkContext<'_>,
    ) -> Result<Option<Refusal>> {
        let refusal = match self.try_queue(text, key, context)? {
            Ok(()) => return Ok(None),
            Err(refusal) => refusal,
        };
        let reason = refusal.reason();
        if reason == Reason::FragmentRoute && context.parent.is_some() {
            self.queue_page_of_route(text, context)?;
        }
        journey_lines::log_not_queued(self.crawl, text, reason, context.parent);
        self.crawl.count_skipped(reason);
        *self.tally.skipped.entry(reason).or_default() += 1;
        Ok((reason != Reason::Duplicate).then_some(refusal))
    }

    /// Queues the page that contains a route, for a link to a route that only scripts show. The server has only that
    /// page, and the page may lead to others. It serves no record, because a record would get the same values for every
    /// route.
    fn queue_page_of_route(&mut self, text: &str, context: &LinkContext<'_>) -> Result<()> {
        let page = text.split_once('#').map_or(text, |(page, _)| page);
        let context = LinkContext {
            records: &[],
            ..*context
        };
        // Only the refused route is counted, even if the page is refused, too.
        self.try_queue(page, None, &context).map(drop)
    }

    /// Queues a URL, or returns the refusal.
    fn try_queue(
        &mut self,
        text: &str,
        key: Option<u64>,
        context: &LinkContext<'_>,
    ) -> Result<std::result::Result<(), Refusal>> {
        // At the maximum depth, this cheap check refuses all links of a page before any other work.
        if !self.allows_depth_and_redirects(context) {
            return Ok(Err(Refusal::Scope(Reason::TooDeep)));
        }
        let looked_up = self.look_up_text(text, key)?;
        if self.is_plain_duplicate(looked_up, context) {
            return Ok(Err(Refusal::Scope(Reason::Duplicate)));
        }
        Ok(match self.check_url(text, context) {
            Ok(url) => match self.queue_in_scope(&url, Some(looked_up), context)? {
                None => Ok(()),
                Some(reason) => Err(Refusal::Scope(reason)),
            },
            Err(refusal) => Err(refusal),
        })
    }

    /// Whether a URL is within the crawl's depth, and within the number of consecutive redirects.
    pub(super) fn allows_depth_and_redirects(&self, context: &LinkContext<'_>) -> bool {
        self.crawl.scope.allows_depth(context.depth) && context.redirects <= MAX_REDIRECTS
    }

    pub(super) fn check_url(
        &self,
        text: &str,
        context: &LinkContext<'_>,
    ) -> std::result::Result<Url, Refusal> {
        if !self.allows_depth_and_redirects(context) {
            return Err(Refusal::Scope(Reason::TooDeep));
        }
        let judge = match context.kind {
            LinkKind::Link | LinkKind::Listed => intake::admit_url,
            LinkKind::Sitemap => intake::admit_sitemap,
        };
        judge(text, context.base, &self.crawl.scope, self.excluded)
    }

    /// Queues the robots.txt of a seed's origin if the crawl wants sitemaps; its task finds the sitemaps. It is queued
    /// regardless of its site's budget, because it takes no request. It is queued even if the seed is refused, unless
    /// its host is out of scope.
    fn queue_sitemaps_of(&mut self, seed: &str, seeds: &LinkContext<'_>) -> Result<()> {
        if !self.crawl.spec.sitemaps || self.is_unwanted(0, &[]) {
            return Ok(());
        }
        let context = LinkContext {
            kind: LinkKind::Sitemap,
            parent: None,
            records: &[],
            ..*seeds
        };
        let Ok(seed) = self.check_url(seed, &context) else {
            return Ok(());
        };
        if self.origins.insert(webfill_urls::origin(&seed))
            && let Ok(robots_txt) = seed.join("/robots.txt")
        {
            self.queue_in_scope(&robots_txt, None, &context)?;
        }
        Ok(())
    }

    /// Queues a URL that is in scope, or returns the reason of the refusal.
    fn queue_in_scope(
        &mut self,
        url: &Url,
        looked_up: Option<TextLookup<'_>>,
        context: &LinkContext<'_>,
    ) -> Result<Option<Reason>> {
        let (key, is_seen) = self.look_up_url(url, looked_up)?;
        if context.kind == LinkKind::Sitemap {
            let mark = self.seen.pair_key(key, SITEMAP);
            self.seen.note_pair(mark);
        }
        if is_seen && let Some(task) = self.find_task_before_run(key)? {
            let site = self.find_or_add_site(url)?;
            self.requeue_for_recheck(task, site.id, context)?;
            return Ok(None);
        }
        if is_seen && !self.is_stale(key)? {
            for record in context.records {
                self.attach_record(key, *record)?;
            }
            return Ok(Some(Reason::Duplicate));
        }
        let site = self.find_or_add_site(url)?;
        let lists_sitemaps = context.kind == LinkKind::Sitemap && context.parent.is_none();
        if !self.has_budget_left(site.id)? && !lists_sitemaps {
            return Ok(Some(Reason::Budget));
        }
        if context.is_of_repetition && !self.try_let_through(url, &site) {
            return Ok(Some(Reason::RepeatedPage));
        }
        self.enqueue(key, url, &site, context)?;
        Ok(None)
    }

    /// Whether to queue a new URL that was found on a page that only repeats others. Only one such URL is queued from
    /// time to time.
    fn try_let_through(&mut self, url: &Url, site: &Site) -> bool {
        let lets_through = self
            .trickles
            .try_pass((self.key, site.id), url.as_str(), self.now_ms);
        if lets_through {
            tracing::warn!(
                event = "branch_slowed",
                site = &*site.name,
                url = url.as_str(),
                crawl_id = self.crawl.spec.crawl_id,
                "pages of a site only repeat others: of what they lead to one URL a minute is queued, and the others are skipped (repeated_page)"
            );
        }
        lets_through
    }

    fn find_or_add_site(&mut self, url: &Url) -> Result<Site> {
        let host = url.host_str().unwrap_or_default();
        if let Some((last, site)) = &self.last_host
            && last == host
        {
            return Ok(site.clone());
        }
        let name = webfill_urls::site(url);
        let id = SiteId(self.site_names.id_or_insert(self.db, &name)?);
        let site = Site {
            id,
            name: name.into(),
        };
        self.last_host = Some((host.to_owned(), site.clone()));
        Ok(site)
    }

    /// Whether the stored page is older than the crawl's `refresh_after_ms`, so that it is to be fetched again.
    fn is_stale(&mut self, key: u64) -> Result<bool> {
        let Some(refresh_after_ms) = self.crawl.spec.refresh_after_ms else {
            return Ok(false);
        };
        self.new_tasks.write(self.db)?;
        let latest = self.now_ms.saturating_sub_unsigned(refresh_after_ms);
        let Some(task) = self.seen.task_of(key)? else {
            return Ok(false);
        };
        let sql = "SELECT 1 FROM tasks WHERE id = ?1 AND state = ?2 AND done_at_ms <= ?3";
        self.db
            .prepare_cached(sql)?
            .exists(params![task as i64, DONE, latest])
    }

    /// Whether a sitemap index has recently listed this URL as a sitemap. Not stored, so unknown after a restart.
    pub(super) fn was_listed_as_sitemap(&mut self, url: &str) -> bool {
        let key = self.seen.key(self.key, url);
        let mark = self.seen.pair_key(key, SITEMAP);
        self.seen.was_noted_recently(mark)
    }

    fn enqueue(
        &mut self,
        key: u64,
        url: &Url,
        site: &Site,
        context: &LinkContext<'_>,
    ) -> Result<()> {
        let task = *self.next_task;
        *self.next_task += 1;
        let crawl = (self.key, &self.crawl.spec);
        let rank = self
            .ranks
            .compute_rank(self.db, crawl, site.id, None, context.priority)?;
        let row = NewTask {
            id: task,
            site: site.id,
            priority: context.priority,
            depth: context.depth,
            redirects: context.redirects,
            parent: context.parent,
            rank,
            url: shorten_url(url.as_str(), &site.name).into_owned(),
            attrs: context.attrs,
        };
        self.new_tasks.add(self.db, row)?;
        let sql = "INSERT OR IGNORE INTO task_records (task, record) VALUES (?1, ?2)";
        for record in context.records {
            self.db.prepare_cached(sql)?.execute([task, *record])?;
            self.db.note_task_record(task as TaskId, *record);
        }
        self.seen.insert(key, task as u64);
        self.count_accepted(site.id, context.priority);
        journey_lines::log_queued(self.crawl, task as u64, url, context);
        Ok(())
    }

    fn note_refused(&mut self, index: usize, refusal: &Refusal) {
        let refused = Refused {
            index,
            reason: refusal.reason(),
            why: refusal.explain(),
        };
        self.tally.refused.push(refused);
    }
}

/// The result of looking up a text in the index of seen URLs, as if it were a canonical URL.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextLookup<'a> {
    pub(super) text: &'a str,
    pub(super) key: u64,
    pub(super) is_seen: bool,
}
