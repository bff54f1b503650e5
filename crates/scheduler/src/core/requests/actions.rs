//! Actions: applications ask about their crawls, pause, resume and stop them. The answers have the
//! keys of Scrapy Cluster's, and some more.

use serde_json::{Map, Value, json};
use webfill_api::{InfoQuestion, Refusal, Spider, Subject};
use webfill_wire::{CrawlKey, Outcome, RecallScope};

use super::Reply;
use super::waiting::AnswerKind;
use super::{awaited, limits, scripts, status, waiting};
use crate::core::{Context, Reports, WaitingAnswers};
use crate::effects::Client;
use crate::frontier::FrontierError;

/// So many crawls are on a page of the answer about an application; totals count all.
const CRAWLS_OF_A_PAGE: usize = 500;

pub(super) fn info(
    cx: &mut Context,
    reports: &mut Reports,
    question: &InfoQuestion,
    now_ms: i64,
) -> Result<Reply, FrontierError> {
    let subject = &question.subject;
    let answer = match &subject.crawl_id {
        None => app_info(cx, reports, subject, question.after.as_deref(), now_ms)?,
        Some(crawl_id) => match cx.frontier.crawls().find(&subject.app_id, crawl_id)? {
            Some(crawl) => crawl_info(cx, reports, crawl, subject, now_ms)?,
            None => return Ok(no_such_crawl().into()),
        },
    };
    cx.notify(&subject.app_id, &answer);
    Ok(Reply::Now(answer))
}

/// Whatever the application has, this reads a page of its crawls and no more.
fn app_info(
    cx: &mut Context,
    reports: &mut Reports,
    subject: &Subject,
    after: Option<&str>,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let tally = cx.frontier.counts().of_application(&subject.app_id)?;
    let app_id = &subject.app_id;
    let page = cx
        .frontier
        .counts()
        .pending_crawls(app_id, after, CRAWLS_OF_A_PAGE + 1)?;
    let has_more = page.len() > CRAWLS_OF_A_PAGE;
    let mut crawls = Map::new();
    let mut last = String::new();
    for crawl in page.into_iter().take(CRAWLS_OF_A_PAGE) {
        let mut told = json!({
            "total": crawl.queued,
            "low_priority": crawl.low_priority,
            "high_priority": crawl.high_priority,
        });
        if let Some(at_ms) = crawl.expires_at_ms {
            told["expires"] = (at_ms / 1_000).into();
        }
        if crawl.leased > 0 {
            told["leased"] = crawl.leased.into();
        }
        last.clone_from(&crawl.crawl_id);
        crawls.insert(crawl.crawl_id, told);
    }
    let of_application = reports.application_told(cx, app_id, now_ms)?;
    let mut more = json!({
        "server_time": cx.wall_ms(now_ms) / 1_000,
        "total_pending": tally.queued,
        "total_domains": of_application.sites.count,
        "total_crawlids": tally.crawls,
        "leased": tally.leased,
        "crawlids": crawls,
    });
    if of_application.sites.has_more {
        more["total_domains_at_least"] = true.into();
    }
    if has_more {
        more["next"] = last.into();
    }
    if let Some(awaited) = of_application.waiting_for {
        more["waiting_for"] = awaited.into();
    }
    let spider = subject.spider.unwrap_or(Spider::Link);
    Ok(action_answer("info", subject, spider, more))
}

fn crawl_info(
    cx: &mut Context,
    reports: &mut Reports,
    crawl: CrawlKey,
    subject: &Subject,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let looked_at = reports.crawl_told(cx, crawl, now_ms)?;
    let status = cx.frontier.crawls().status(crawl)?;
    let mut more = json!({
        "server_time": cx.wall_ms(now_ms) / 1_000,
        "total_pending": status.queued,
        "total_domains": looked_at["total_domains"],
        "low_priority": looked_at["low_priority"],
        "high_priority": looked_at["high_priority"],
        "state": state_name(cx, crawl, now_ms)?,
        "leased": status.leased,
        "done": status.done,
        "pages": status.pages,
        "outcomes": status.outcomes,
        "skipped": status.skipped,
        "unmatched": status.unmatched,
        "rows": status.rows,
        "rows_stored": status.rows_stored,
    });
    if let Some(at_ms) = cx.frontier.crawls().spec(crawl)?.expires_at_ms {
        more["expires"] = (at_ms / 1_000).into();
    }
    let limits = limits::limits_told(cx, crawl)?;
    if !limits.is_empty() {
        more["limits"] = limits.into();
    }
    scripts::add_scripts(cx, &mut more, crawl)?;
    if let (Value::Object(more), Value::Object(looked_at)) = (&mut more, looked_at) {
        more.extend(looked_at);
    }
    Ok(action_answer("info", subject, spider_of(cx, crawl)?, more))
}

/// What of a crawl takes a look at its sites, so many at most, and at what is leased.
pub(super) fn look_at_crawl(
    cx: &mut Context,
    crawl: CrawlKey,
    most_sites: usize,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let pending = cx.frontier.crawls().pending(crawl)?;
    let mut told = json!({
        "total_domains": pending.sites.count,
        "low_priority": pending.low_priority,
        "high_priority": pending.high_priority,
    });
    if pending.sites.has_more {
        told["total_domains_at_least"] = true.into();
    }
    if let Some(awaited) = awaited::awaited_by_crawl(cx, crawl, most_sites, now_ms)? {
        told["waiting_for"] = awaited.into();
    }
    status::add_progress(cx, &mut told, crawl, most_sites, now_ms)?;
    let oldest = status::oldest_leases(cx, &[crawl]).remove(&crawl);
    status::add_oldest_lease(cx, &mut told, oldest)?;
    Ok(told)
}

/// Pauses a crawl: none of its fetches starts after the answer, until it is resumed.
pub(super) fn pause(
    cx: &mut Context,
    waiting: &mut WaitingAnswers,
    client: &Client,
    subject: Subject,
) -> Result<Reply, FrontierError> {
    if let Some(refusal) = waiting.refusal_if_too_many_wait() {
        return Ok(refusal.into());
    }
    let crawl = match crawl_that_goes_on(cx, &subject)? {
        Ok(crawl) => crawl,
        Err(refusal) => return Ok(refusal.into()),
    };
    let was_paused = cx.frontier.crawls().is_paused(crawl)?;
    cx.frontier.crawls().pause(crawl)?;
    // While it is paused nothing more is handed out, so all who pause it wait for the same recall.
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
    waiting.answer_when(client, recalled, AnswerKind::Pause(crawl, subject));
    Ok(Reply::Later)
}

pub(super) fn resume(
    cx: &mut Context,
    subject: Subject,
    now_ms: i64,
) -> Result<Reply, FrontierError> {
    let crawl = match crawl_that_goes_on(cx, &subject)? {
        Ok(crawl) => crawl,
        Err(refusal) => return Ok(refusal.into()),
    };
    cx.frontier.crawls().resume(crawl)?;
    cx.window.next_site_ms = Some(now_ms);
    let answer = pause_answer(cx, "resume", crawl, &subject, now_ms)?;
    cx.notify(&subject.app_id, &answer);
    Ok(Reply::Now(answer))
}

pub(super) fn pause_answer(
    cx: &mut Context,
    action: &str,
    crawl: CrawlKey,
    subject: &Subject,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let status = cx.frontier.crawls().status(crawl)?;
    let more = json!({
        "server_time": cx.wall_ms(now_ms) / 1_000,
        "total_pending": status.queued,
        "state": state_name(cx, crawl, now_ms)?,
    });
    Ok(action_answer(action, subject, spider_of(cx, crawl)?, more))
}

pub(super) fn spider_of(cx: &mut Context, crawl: CrawlKey) -> Result<Spider, FrontierError> {
    Ok(Spider::of(cx.frontier.crawls().spec(crawl)?.lane))
}

/// The crawl that is to be paused, resumed or retried; refused if it is unknown or over.
pub(super) fn crawl_that_goes_on(
    cx: &mut Context,
    subject: &Subject,
) -> Result<Result<CrawlKey, Refusal>, FrontierError> {
    let crawl_id = subject.crawl_id.as_deref().unwrap_or_default();
    let Some(crawl) = cx.frontier.crawls().find(&subject.app_id, crawl_id)? else {
        return Ok(Err(no_such_crawl()));
    };
    let over = refusal_if_over(cx, crawl)?;
    Ok(over.map_or(Ok(crawl), Err))
}

pub(super) fn refusal_if_over(
    cx: &mut Context,
    crawl: CrawlKey,
) -> Result<Option<Refusal>, FrontierError> {
    let why = match cx.frontier.crawls().end_of(crawl)? {
        None => return Ok(None),
        Some(Outcome::Expired) => "the crawl has expired",
        Some(_) => "the crawl was stopped for good; `webfill prune` frees its id",
    };
    Ok(Some(Refusal::new("$.crawlid", why)))
}

pub(super) fn state_name(
    cx: &mut Context,
    crawl: CrawlKey,
    now_ms: i64,
) -> Result<&'static str, FrontierError> {
    let wall_ms = cx.wall_ms(now_ms);
    let state = cx.crawls.state(&mut cx.frontier, crawl, true, wall_ms)?;
    Ok(state.as_str())
}

pub(super) fn no_such_crawl() -> Refusal {
    Refusal::new("$.crawlid", "the application has no crawl of this id")
}

/// The answer to an action, with the ids of the request.
pub(super) fn action_answer(action: &str, subject: &Subject, spider: Spider, more: Value) -> Value {
    let spider = spider.as_str();
    let mut answer = json!({"action": action, "appid": subject.app_id, "spiderid": spider});
    if let Some(crawl_id) = &subject.crawl_id {
        answer["crawlid"] = crawl_id.as_str().into();
    }
    if let Some(uuid) = &subject.uuid {
        answer["uuid"] = uuid.as_str().into();
    }
    if let (Value::Object(answer), Value::Object(more)) = (&mut answer, more) {
        answer.extend(more);
    }
    answer
}
