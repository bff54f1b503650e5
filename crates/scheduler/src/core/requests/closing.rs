//! Closes crawls: one that was stopped by its application or has expired is over before its queue is empty. It goes
//! through these steps:
//!
//! 1. recall: leased tasks that have not started are called back;
//! 2. close: queued tasks are closed in slices of a few milliseconds, alternating with other work;
//! 3. answer: the waiting clients, and the subscribers of notifications, get the number of these tasks.
//!
//! The end of a crawl is stored. After a crash, closing continues from where it stopped; clients that waited are not
//! answered.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};
use webfill_api::{Refusal, Spider, Subject};
use webfill_wire::{CrawlKey, Outcome, RecallScope};

use super::crawl_answers::{action_answer, unknown_crawl_refusal};
use super::reply::Reply;
use super::waiting::RecallProgress;
use super::{crawl_answers, waiting};
use crate::core::context::Context;
use crate::effects::{Client, OutgoingMessage};
use crate::frontier::{CrawlStatus, FrontierError};

/// The maximum number of crawls that expire in one turn of the loop.
const MOST_AT_ONCE: usize = 100;

/// The maximum number of slices (parts of a crawl's queue) closed in one turn of the loop; each takes milliseconds.
const MOST_SLICES: usize = 4;

/// The maximum number of clients that wait for the ends of stops. Further ones are refused.
const MOST_WAITING: usize = 10_000;

/// The crawls that are being closed.
#[derive(Debug, Default)]
pub(in crate::core) struct ClosingCrawls {
    under_way: VecDeque<ClosingCrawl>,
    crawls: BTreeSet<CrawlKey>,
    /// When the next crawl expires; `None`: none will.
    pub(in crate::core) next_expiry_ms: Option<i64>,
}

#[derive(Debug)]
struct ClosingCrawl {
    crawl: CrawlKey,
    /// Whether the crawl has expired. Then its application is notified.
    has_expired: bool,
    /// How many of the crawl's tasks were closed before this closing began.
    before: u64,
    recalled: RecallProgress,
    /// The clients that wait, and the subjects of their requests.
    asked: Vec<(Client, Subject)>,
}

impl ClosingCrawls {
    pub(in crate::core) fn contains(&self, crawl: CrawlKey) -> bool {
        self.crawls.contains(&crawl)
    }

    /// All crawls that are being closed, including those that wait for a recall.
    pub(super) fn crawls(&self) -> impl Iterator<Item = CrawlKey> + '_ {
        self.crawls.iter().copied()
    }

    fn count_waiting_clients(&self) -> usize {
        self.under_way.iter().map(|one| one.asked.len()).sum()
    }

    fn begin(&mut self, closing: ClosingCrawl) {
        self.crawls.insert(closing.crawl);
        self.under_way.push_back(closing);
    }

    /// Whether a crawl's closing can advance in the next turn of the loop, without waiting for a recall of its leased
    /// tasks.
    pub(in crate::core) fn can_advance(&self) -> bool {
        self.under_way
            .iter()
            .any(|closing| closing.recalled.is_complete())
    }
}

impl ClosingCrawls {
    /// Stops a crawl permanently. An unknown crawl is refused, so that a mistyped id stays free.
    pub(super) fn stop_crawl(
        &mut self,
        cx: &mut Context,
        client: &Client,
        subject: Subject,
    ) -> Result<Reply, FrontierError> {
        let crawl_id = subject.crawl_id.as_deref().unwrap_or_default();
        let Some(crawl) = cx.frontier.crawls().find(&subject.app_id, crawl_id)? else {
            return Ok(unknown_crawl_refusal(cx, &subject.app_id, crawl_id)?.into());
        };
        if self.count_waiting_clients() >= MOST_WAITING {
            let why = "too many stops in progress: try again later";
            return Ok(Refusal::temporary("$", why).into());
        }
        cx.frontier.crawls().stop(crawl)?;
        let asked = (client.clone(), subject);
        let mut under_way = self.under_way.iter_mut();
        match under_way.find(|closing| closing.crawl == crawl) {
            Some(closing) => closing.asked.push(asked),
            None => self.begin_closing(cx, crawl, false, vec![asked])?,
        }
        Ok(Reply::Later)
    }

    /// After a start: continues to close the queues of crawls that were stopped or expired.
    pub(in crate::core) fn restore_closing_crawls(
        &mut self,
        cx: &mut Context,
    ) -> Result<(), FrontierError> {
        for crawl in cx.frontier.crawls().list_with_tasks_to_end()? {
            let has_expired = cx.frontier.crawls().end_outcome(crawl)? == Some(Outcome::Expired);
            self.begin_closing(cx, crawl, has_expired, Vec::new())?;
        }
        self.next_expiry_ms = cx.frontier.crawls().next_expiry_ms()?;
        Ok(())
    }

    /// Begins to close expired crawls, and closes the next slices of queues.
    pub(in crate::core) fn advance_closing(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let wall_ms = cx.wall_ms(now_ms);
        if self.next_expiry_ms.is_some_and(|at_ms| at_ms <= wall_ms) {
            for crawl in cx.frontier.crawls().list_expired(wall_ms, MOST_AT_ONCE)? {
                cx.frontier.crawls().expire(crawl)?;
                self.begin_closing(cx, crawl, true, Vec::new())?;
            }
            self.next_expiry_ms = cx.frontier.crawls().next_expiry_ms()?;
        }
        let mut slices = 0;
        for nth in 0..self.under_way.len() {
            if slices == MOST_SLICES || (nth > 0 && cx.surroundings.turn_end.is_over()) {
                break;
            }
            let Some(mut closing) = self.under_way.pop_front() else {
                break;
            };
            let mut is_over = waiting::update_recall_progress(cx, &mut closing.recalled);
            if is_over && cx.frontier.crawls().status(closing.crawl)?.queued > 0 {
                slices += 1;
                is_over = !cx
                    .frontier
                    .crawls()
                    .end_queued_tasks(closing.crawl, now_ms)?;
            }
            match is_over {
                true => self.finish_closing(cx, closing)?,
                false => self.under_way.push_back(closing),
            }
        }
        Ok(())
    }

    fn begin_closing(
        &mut self,
        cx: &mut Context,
        crawl: CrawlKey,
        has_expired: bool,
        asked: Vec<(Client, Subject)>,
    ) -> Result<(), FrontierError> {
        let status = cx.frontier.crawls().status(crawl)?;
        let recalled = match status.leased {
            0 => RecallProgress::Complete,
            _ => {
                let scope = RecallScope {
                    crawl: Some(crawl),
                    ..RecallScope::default()
                };
                waiting::begin_recall(cx, scope)
            }
        };
        self.begin(ClosingCrawl {
            crawl,
            has_expired,
            before: count_closed_tasks(&status),
            recalled,
            asked,
        });
        Ok(())
    }

    fn finish_closing(
        &mut self,
        cx: &mut Context,
        closing: ClosingCrawl,
    ) -> Result<(), FrontierError> {
        self.crawls.remove(&closing.crawl);
        let status = cx.frontier.crawls().status(closing.crawl)?;
        let purged = count_closed_tasks(&status).saturating_sub(closing.before);
        tracing::info!(
            event = "crawl_ended",
            crawl = closing.crawl,
            crawl_id = cx.frontier.crawls().spec(closing.crawl)?.crawl_id,
            has_expired = closing.has_expired,
            purged,
            "a crawl is over before its queue was empty"
        );
        let spider = crawl_answers::spider_of(cx, closing.crawl)?;
        for (client, subject) in closing.asked {
            let answer = action_answer("stop", &subject, spider, json!({"total_purged": purged}));
            cx.publish_notification(&subject.app_id, &answer);
            cx.outgoing.push(OutgoingMessage::ToClient(client, answer));
        }
        if closing.has_expired {
            let notification = expiry_notification(cx, closing.crawl, spider, purged)?;
            let app_id = cx.frontier.crawls().spec(closing.crawl)?.app_id.clone();
            cx.publish_notification(&app_id, &notification);
        }
        Ok(())
    }
}

fn expiry_notification(
    cx: &mut Context,
    crawl: CrawlKey,
    spider: Spider,
    purged: u64,
) -> Result<Value, FrontierError> {
    let spec = cx.frontier.crawls().spec(crawl)?;
    Ok(json!({
        "action": "expired",
        "total_expired": purged,
        "crawlid": spec.crawl_id,
        "spiderid": spider.as_str(),
        "appid": spec.app_id,
    }))
}

/// How many tasks of a crawl have ended in `stopped` or `expired`.
fn count_closed_tasks(status: &CrawlStatus) -> u64 {
    let of = |outcome| status.outcomes.get(&outcome).copied().unwrap_or(0);
    of(Outcome::Stopped) + of(Outcome::Expired)
}
