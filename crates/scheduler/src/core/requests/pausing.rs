//! Pauses and resumes crawls at the request of a client.

use webfill_api::Subject;
use webfill_wire::RecallScope;

use super::crawl_answers::{find_unfinished_crawl, pause_answer};
use super::reply::Reply;
use super::waiting;
use super::waiting::{AnswerKind, WaitingAnswers};
use crate::core::context::Context;
use crate::effects::Client;
use crate::frontier::FrontierError;

/// Pauses a crawl. None of its fetches starts after the answer, until it is resumed.
pub(super) fn pause(
    cx: &mut Context,
    waiting: &mut WaitingAnswers,
    client: &Client,
    subject: Subject,
) -> Result<Reply, FrontierError> {
    if let Some(refusal) = waiting.refusal_if_full() {
        return Ok(refusal.into());
    }
    let crawl = match find_unfinished_crawl(cx, &subject)? {
        Ok(crawl) => crawl,
        Err(refusal) => return Ok(refusal.into()),
    };
    let was_paused = cx.frontier.crawls().is_paused(crawl)?;
    cx.frontier.crawls().pause(crawl)?;
    // A paused crawl gets nothing more handed out, so all clients that pause it can wait for the same recall of its
    // leased tasks.
    let recalled = waiting.recall_of_pause(crawl).filter(|_| was_paused);
    let recalled = recalled.unwrap_or_else(|| {
        waiting::begin_recall(
            cx,
            RecallScope {
                crawl: Some(crawl),
                ..RecallScope::default()
            },
        )
    });
    waiting.answer_after_recall(client, recalled, AnswerKind::Pause(crawl, subject));
    Ok(Reply::Later)
}

pub(super) fn resume(
    cx: &mut Context,
    subject: Subject,
    now_ms: i64,
) -> Result<Reply, FrontierError> {
    let crawl = match find_unfinished_crawl(cx, &subject)? {
        Ok(crawl) => crawl,
        Err(refusal) => return Ok(refusal.into()),
    };
    cx.frontier.crawls().resume(crawl)?;
    cx.window.next_site_ms = Some(now_ms);
    let answer = pause_answer(cx, "resume", crawl, &subject, now_ms)?;
    cx.publish_notification(&subject.app_id, &answer);
    Ok(Reply::Now(answer))
}
