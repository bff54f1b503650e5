//! Crawls that are over before their queue is empty: stopped by their application, or expired.
//!
//! First what supervisors hold of them is called back, so that nothing starts any more; then what
//! is queued is closed, slice by slice, while everything else goes on; then whoever waits for it
//! hears how much that was. A restarted dispatcher goes on with the slices.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};
use webfill_wire::{CrawlKey, Outcome, RecallScope};

use super::Reply;
use super::actions::action_answer;
use super::waiting::RecallProgress;
use crate::control::{Spider, Subject};
use crate::core::Core;
use crate::crawl_spec::CrawlSpec;
use crate::frontier::{CrawlStatus, FrontierError};
use crate::outgoing::{Client, OutgoingMessage};

/// Crawls that expire in one turn, at most.
const MOST_AT_ONCE: usize = 100;

/// Slices of queues closed in one turn, at most: each takes milliseconds.
const MOST_SLICES: usize = 4;

/// The crawls that are being ended.
#[derive(Debug, Default)]
pub(in crate::core) struct ClosingCrawls {
    under_way: VecDeque<ClosingCrawl>,
    crawls: BTreeSet<CrawlKey>,
}

#[derive(Debug)]
struct ClosingCrawl {
    crawl: CrawlKey,
    /// Its time has come, which its application is to be told.
    has_expired: bool,
    /// How many of its tasks had been closed before.
    before: u64,
    recalled: RecallProgress,
    /// Who waits, and what they asked.
    asked: Vec<(Client, Subject)>,
}

impl ClosingCrawls {
    pub(super) fn contains(&self, crawl: CrawlKey) -> bool {
        self.crawls.contains(&crawl)
    }

    fn begin(&mut self, closing: ClosingCrawl) {
        self.crawls.insert(closing.crawl);
        self.under_way.push_back(closing);
    }

    /// Whether there is something to close in the next turn already.
    pub(in crate::core) fn have_work(&self) -> bool {
        self.under_way
            .iter()
            .any(|closing| closing.recalled.is_complete())
    }
}

impl Core {
    /// Ends a crawl for good. One that was never asked for is refused from now on.
    pub(super) fn stop(
        &mut self,
        client: &Client,
        subject: Subject,
    ) -> Result<Reply, FrontierError> {
        let crawl_id = subject.crawl_id.as_deref().unwrap_or_default();
        let crawl = match self.frontier.find_crawl(&subject.app_id, crawl_id)? {
            Some(crawl) => crawl,
            None => {
                let mut spec = CrawlSpec::on_demand(&subject.app_id, crawl_id);
                spec.lane = subject.spider.map_or(spec.lane, Spider::lane);
                self.frontier.upsert_crawl(None, spec)?
            }
        };
        self.frontier.stop_crawl(crawl)?;
        let asked = (client.clone(), subject);
        let mut under_way = self.closing_crawls.under_way.iter_mut();
        match under_way.find(|closing| closing.crawl == crawl) {
            Some(closing) => closing.asked.push(asked),
            None => self.begin_closing(crawl, false, vec![asked])?,
        }
        Ok(Reply::Later)
    }

    /// After a start: what was ended before has its queue closed.
    pub(in crate::core) fn restore_closing_crawls(&mut self) -> Result<(), FrontierError> {
        for crawl in self.frontier.unpurged_crawls()? {
            let has_expired = self.frontier.crawl_end(crawl)? == Some(Outcome::Expired);
            self.begin_closing(crawl, has_expired, Vec::new())?;
        }
        self.next_expiry_ms = self.frontier.next_expiry_ms()?;
        Ok(())
    }

    /// Crawls whose time has come, and slices of queues to close.
    pub(in crate::core) fn advance_closing(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        if self.next_expiry_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            for crawl in self.frontier.expired_crawls(now_ms, MOST_AT_ONCE)? {
                self.frontier.expire_crawl(crawl)?;
                self.begin_closing(crawl, true, Vec::new())?;
            }
            self.next_expiry_ms = self.frontier.next_expiry_ms()?;
        }
        let mut slices = 0;
        for _ in 0..self.closing_crawls.under_way.len() {
            if slices == MOST_SLICES {
                break;
            }
            let Some(mut closing) = self.closing_crawls.under_way.pop_front() else {
                break;
            };
            let mut is_over = self.poll_recall(&mut closing.recalled);
            if is_over && self.frontier.crawl_status(closing.crawl)?.queued > 0 {
                slices += 1;
                is_over = !self.frontier.end_queued(closing.crawl, now_ms)?;
            }
            match is_over {
                true => self.announce_closed(closing)?,
                false => self.closing_crawls.under_way.push_back(closing),
            }
        }
        Ok(())
    }

    fn begin_closing(
        &mut self,
        crawl: CrawlKey,
        has_expired: bool,
        asked: Vec<(Client, Subject)>,
    ) -> Result<(), FrontierError> {
        let status = self.frontier.crawl_status(crawl)?;
        let recalled = match status.leased {
            0 => RecallProgress::Complete,
            _ => {
                let scope = RecallScope {
                    crawl: Some(crawl),
                    ..RecallScope::default()
                };
                self.begin_recall(scope)
            }
        };
        self.closing_crawls.begin(ClosingCrawl {
            crawl,
            has_expired,
            before: closed(&status),
            recalled,
            asked,
        });
        Ok(())
    }

    fn announce_closed(&mut self, closing: ClosingCrawl) -> Result<(), FrontierError> {
        self.closing_crawls.crawls.remove(&closing.crawl);
        let status = self.frontier.crawl_status(closing.crawl)?;
        let purged = closed(&status).saturating_sub(closing.before);
        tracing::info!(
            event = "crawl_ended",
            crawl = closing.crawl,
            has_expired = closing.has_expired,
            purged,
            "a crawl is over before its queue was empty"
        );
        let spider = self.spider_of(closing.crawl)?;
        for (client, subject) in closing.asked {
            let answer = action_answer("stop", &subject, spider, json!({"total_purged": purged}));
            self.notify(&subject.app_id, &answer);
            self.outgoing
                .push(OutgoingMessage::ToClient(client, answer));
        }
        if closing.has_expired {
            let notice = self.expiry_notice(closing.crawl, spider, purged)?;
            let app_id = self.frontier.spec(closing.crawl)?.app_id.clone();
            self.notify(&app_id, &notice);
        }
        Ok(())
    }

    fn expiry_notice(
        &mut self,
        crawl: CrawlKey,
        spider: Spider,
        purged: u64,
    ) -> Result<Value, FrontierError> {
        let spec = self.frontier.spec(crawl)?;
        Ok(json!({
            "action": "expired",
            "total_expired": purged,
            "crawlid": spec.crawl_id,
            "spiderid": spider.as_str(),
            "appid": spec.app_id,
        }))
    }
}

/// How many tasks of a crawl were closed before they were handed out.
fn closed(status: &CrawlStatus) -> u64 {
    let of = |outcome| status.outcomes.get(&outcome).copied().unwrap_or(0);
    of(Outcome::Stopped) + of(Outcome::Expired)
}
