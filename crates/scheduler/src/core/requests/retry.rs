//! Retries on request: finished tasks of a crawl are queued again, in slices of a few milliseconds, alternating with
//! other work. Each slice is committed; the answer comes after the last.
//!
//! After a crash the tasks of the earlier slices are queued, and waiting clients get no answer; a repeated request
//! queues the rest. A request that equals one in progress joins it.

use std::collections::VecDeque;

use serde_json::json;
use webfill_api::{Refusal, RetryAction, Subject};
use webfill_wire::CrawlKey;

use super::crawl_answers;
use super::crawl_answers::action_answer;
use super::reply::Reply;
use super::sites::parse_site;
use crate::core::context::Context;
use crate::core::{auditing, outcomes};
use crate::effects::AuditedAction;
use crate::effects::OutgoingMessage;
use crate::frontier::{EndedTasks, FrontierError, ReopenWalk};
use crate::requester::Requester;

/// The maximum number of requests in progress. Further ones are refused.
const MOST_UNDER_WAY: usize = 1_000;

/// The crawls whose ended tasks are being queued again; they take turns.
#[derive(Debug, Default)]
pub(in crate::core) struct ReopeningCrawls {
    under_way: VecDeque<ReopeningCrawl>,
}

#[derive(Debug)]
struct ReopeningCrawl {
    walk: ReopenWalk,
    requeued: u64,
    /// The waiting clients, and the subjects of their requests.
    asked: Vec<(Requester, Subject)>,
    /// The request, for the audit log.
    audited: AuditedAction,
}

impl ReopeningCrawls {
    pub(in crate::core) fn can_advance(&self) -> bool {
        !self.under_way.is_empty()
    }

    pub(super) fn crawls(&self) -> impl Iterator<Item = CrawlKey> + '_ {
        self.under_way
            .iter()
            .map(|reopening| reopening.walk.wanted.crawl)
    }
}

impl ReopeningCrawls {
    pub(super) fn retry(
        &mut self,
        cx: &mut Context,
        requester: &Requester,
        action: RetryAction,
    ) -> Result<Reply, FrontierError> {
        let audited = AuditedAction::from_retry(&action);
        let subject = action.subject;
        let crawl = match crawl_answers::find_unfinished_crawl(cx, &subject)? {
            Ok(crawl) => crawl,
            Err(refusal) => return Ok(refusal.into()),
        };
        let site = match action.site.as_deref().map(parse_site).transpose() {
            Ok(site) => site,
            Err(refusal) => return Ok(refusal.into()),
        };
        let wanted = EndedTasks {
            crawl,
            outcomes: action.outcomes,
            status_codes: action.status_codes,
            site,
        };
        let asked = (requester.clone(), subject);
        let under_way = &mut self.under_way;
        if let Some(same) = under_way.iter_mut().find(|one| one.walk.wanted == wanted) {
            same.asked.push(asked);
            return Ok(Reply::Later);
        }
        if under_way.len() >= MOST_UNDER_WAY {
            let why = "too many retries in progress: try again later";
            return Ok(Refusal::temporary("$", why).into());
        }
        let walk = cx.frontier.reopening().begin_walk(wanted)?;
        self.under_way.push_back(ReopeningCrawl {
            walk,
            requeued: 0,
            asked: vec![asked],
            audited,
        });
        Ok(Reply::Later)
    }

    /// Queues the next part of the ended tasks again.
    pub(in crate::core) fn advance_reopening(
        &mut self,
        cx: &mut Context,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let Some(mut reopening) = self.under_way.pop_front() else {
            return Ok(());
        };
        let crawl = reopening.walk.wanted.crawl;
        if let Some(refusal) = crawl_answers::refusal_if_ended(cx, crawl)? {
            let answer = refusal.to_answer();
            for (requester, _) in reopening.asked {
                let audited = reopening.audited.clone();
                auditing::audit_failed_action(cx, requester.who, audited, &answer, now_ms);
                let message = OutgoingMessage::ToClient(requester.client, answer.clone());
                cx.outgoing.push(message);
            }
            return Ok(());
        }
        let tally = cx
            .frontier
            .reopening()
            .requeue_slice(&mut reopening.walk, now_ms)?;
        reopening.requeued += tally.requeued;
        outcomes::apply_feed_tally(cx, crawl, tally, now_ms)?;
        match reopening.walk.is_over() {
            true => report_reopened(cx, reopening, now_ms)?,
            false => self.under_way.push_back(reopening),
        }
        Ok(())
    }
}

fn report_reopened(
    cx: &mut Context,
    reopened: ReopeningCrawl,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let crawl = reopened.walk.wanted.crawl;
    tracing::info!(
        event = "retried",
        crawl,
        crawl_id = cx.frontier.crawls().spec(crawl)?.crawl_id,
        requeued = reopened.requeued,
        "finished tasks of a crawl re-queued"
    );
    let more = json!({
        "server_time": cx.wall_ms(now_ms) / 1_000,
        "total_requeued": reopened.requeued,
        "total_pending": cx.frontier.crawls().status(crawl)?.queued,
        "state": crawl_answers::state_name(cx, crawl, now_ms)?,
    });
    let spider = crawl_answers::spider_of(cx, crawl)?;
    for (requester, subject) in reopened.asked {
        let answer = action_answer("retry", &subject, spider, more.clone());
        cx.publish_notification(&subject.app_id, &answer);
        cx.outgoing
            .push(OutgoingMessage::ToClient(requester.client, answer));
    }
    Ok(())
}
