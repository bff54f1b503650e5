//! Feeds long batches of crawl requests in pieces of some milliseconds, alternating with other work. A batch is
//! answered after its last piece.
//!
//! A list is accepted or refused as a whole: all of it is judged before any of it is fed. Then it is fed piece by
//! piece, each in the commit of its turn. If one of its crawls is stopped in between, the stop counts as coming after
//! the list, so the rest of the list is dropped for that crawl. After a crash, the committed pieces stay fed. The
//! client got no answer and sends the list again; each URL is still fed only once.

use std::collections::VecDeque;

use serde_json::Value;
use webfill_api::{Batch, CrawlOrder, Refusal};

use super::feeding;
use super::feeding::FedBatch;
use crate::control::ControlRequest;
use crate::core::context::Context;
use crate::core::requests::closing::ClosingCrawls;
use crate::effects::{ActionEnd, AuditedAction};
use crate::effects::{Client, OutgoingMessage};
use crate::frontier::FrontierError;
use crate::requester::Requester;

/// The maximum number of requests in one piece. A batch of at most this many is fed as a whole.
const PIECE: usize = 400;

/// The maximum number of crawls judged or fed in one piece.
const MOST_CRAWLS: usize = 100;

/// The batches in progress, which take turns.
#[derive(Default)]
pub(in crate::core) struct FeedsUnderWay(VecDeque<Feed>);

struct Feed {
    requester: Requester,
    audited: Option<AuditedAction>,
    /// The batch without its crawls, which are in `orders`.
    batch: Batch,
    orders: VecDeque<CrawlOrder>,
    /// How many crawls of the batch were judged. Until all are, it can still be refused as a whole; afterwards it is
    /// accepted, whatever happens to its crawls.
    judged: usize,
    fed: FedBatch,
    is_whole: bool,
}

impl FeedsUnderWay {
    /// Keeps a long batch, to feed it piece by piece. Returns any other request.
    pub(super) fn enqueue_if_long(
        &mut self,
        cx: &mut Context,
        requester: &Requester,
        asked: ControlRequest,
        audited: &Option<AuditedAction>,
    ) -> Option<ControlRequest> {
        match asked {
            ControlRequest::Feed {
                mut batch, whole, ..
            } if batch.len() > PIECE && cx.surroundings.low_disk.is_none() => {
                self.0.push_back(Feed {
                    requester: requester.clone(),
                    audited: audited.clone(),
                    orders: std::mem::take(&mut batch.crawls).into(),
                    batch,
                    judged: 0,
                    fed: FedBatch::default(),
                    is_whole: whole,
                });
                None
            }
            asked => Some(asked),
        }
    }

    /// Whether a batch is in progress.
    pub(in crate::core) fn is_feeding(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether a batch of this client is in progress: its later messages wait for it.
    pub(in crate::core) fn is_feeding_of(&self, client: &Client) -> bool {
        let mut feeds = self.0.iter();
        feeds.any(|feed| feed.requester.client == *client)
    }

    /// Feeds the next piece of one batch; the batches take turns. Returns false if no batch is in progress.
    pub(in crate::core) fn advance_feeds(
        &mut self,
        cx: &mut Context,
        closing: &mut ClosingCrawls,
        now_ms: i64,
    ) -> Result<bool, FrontierError> {
        let Some(mut feed) = self.0.pop_front() else {
            return Ok(false);
        };
        let _fed_by = feed.requester.who.feed_span().entered();
        if feed.is_whole && feed.judged < feed.orders.len() {
            let refusal = check_piece(cx, closing, &mut feed, now_ms)?;
            match refusal {
                Some(answer) => end_feed(cx, feed, answer, now_ms),
                None => self.0.push_back(feed),
            }
            return Ok(true);
        }
        let refused = match feed_piece(cx, closing, &mut feed, now_ms) {
            Ok(()) => None,
            Err(FrontierError::Scope(error)) => Some(Refusal::new("spec", error).to_answer()),
            Err(pruned @ FrontierError::UnknownCrawl(_)) => {
                Some(Refusal::new("crawl", pruned).to_answer())
            }
            Err(fault) => return Err(fault),
        };
        match refused {
            Some(answer) => end_feed(cx, feed, answer, now_ms),
            None if feed.orders.is_empty() => {
                let answer = std::mem::take(&mut feed.fed).into_answer();
                end_feed(cx, feed, answer, now_ms);
            }
            None => self.0.push_back(feed),
        }
        Ok(true)
    }
}

/// Judges the next crawls of a batch. Returns a refusal of the whole batch, if there is one.
fn check_piece(
    cx: &mut Context,
    closing: &ClosingCrawls,
    feed: &mut Feed,
    now_ms: i64,
) -> Result<Option<Value>, FrontierError> {
    for order in feed.orders.iter().skip(feed.judged).take(MOST_CRAWLS) {
        if let Err(closed) = feeding::plan_order(cx, closing, order, None, now_ms)? {
            return Ok(Some(closed.refusal(&feed.batch, order).to_answer()));
        }
        feed.judged += 1;
    }
    Ok(None)
}

fn feed_piece(
    cx: &mut Context,
    closing: &mut ClosingCrawls,
    feed: &mut Feed,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let mut requests = 0;
    for _ in 0..MOST_CRAWLS {
        let Some(order) = feed.take_next_order(PIECE - requests) else {
            break;
        };
        requests += order.seeds.len();
        match feeding::plan_order(cx, closing, &order, None, now_ms)? {
            Ok(plan) => {
                feeding::feed_order(cx, closing, &order, plan, &mut feed.fed, now_ms)?;
            }
            Err(_) if feed.is_whole => feed.fed.accepted += order.seeds.len(),
            Err(closed) => feed.fed.refuse_order(&order, &closed),
        }
    }
    Ok(())
}

fn end_feed(cx: &mut Context, feed: Feed, answer: Value, now_ms: i64) {
    let audited = feed.audited.map(|mut audited| {
        audited.count_answer(&answer);
        audited
    });
    let who = feed.requester.who;
    cx.audit(who, audited, ActionEnd::from_answer(&answer), now_ms);
    cx.outgoing
        .push(OutgoingMessage::ToClient(feed.requester.client, answer));
}

impl Feed {
    /// The next requests of one crawl, at most `most` of them.
    fn take_next_order(&mut self, most: usize) -> Option<CrawlOrder> {
        let first = self.orders.front_mut()?;
        if most == 0 {
            return None;
        }
        if first.seeds.len() <= most {
            return self.orders.pop_front();
        }
        Some(CrawlOrder {
            app_id: first.app_id.clone(),
            crawl_id: first.crawl_id.clone(),
            changes: first.changes.clone(),
            seeds: first.seeds.drain(..most).collect(),
        })
    }
}
