//! The state of a URL, and the reason: `webfill why`. The URL is looked up in each crawl that the question includes,
//! in the same form as at intake. A URL that no crawl has is judged as if it were fed.

use serde_json::{Value, json};
use webfill_api::{Refusal, WhyQuestion};
use webfill_wire::CrawlKey;

use super::limits;
use super::reply::Reply;
use super::waits::WaitReason;
use super::{crawl_answers, waits};
use crate::core::context::Context;
use crate::frontier::{
    FrontierError, MOST_COUNTED, QueuedSite, TaskReport, TaskStage, TasksAhead, ignore_pruned,
};
use crate::site_state::UNTIL_WOKEN_MS;
use crate::task_json::{explain_end, task_json};
use crate::wording::{explain_backoff, format_duration, format_time, pluralize, to_seconds};

/// The maximum number of crawls searched for one answer. The next request continues after them.
const CRAWLS_AT_ONCE: usize = 10_000;

/// The maximum number of crawls with the URL in one answer. The next request continues with the others.
const MOST_LISTED: usize = 20;

/// A URL that no crawl has is judged for at most this many crawls: the latest opened ones.
const MOST_JUDGED: usize = 10;

pub(super) fn answer_why(
    cx: &mut Context,
    question: &WhyQuestion,
    now_ms: i64,
) -> Result<Reply, FrontierError> {
    let (url, site) = match webfill_urls::canonical_url_with_route(&question.url, None) {
        Ok(url) => (url.to_string(), webfill_urls::site(&url)),
        Err(refusal) => return Ok(Refusal::new("$.url", refusal).into()),
    };
    let asked = (question.app_id.as_deref(), question.crawl_id.as_deref());
    let after = question.after;
    let page = cx
        .frontier
        .reports()
        .crawls_at_site(&site, asked, after, CRAWLS_AT_ONCE)?;
    let (mut tasks, mut next) = (Vec::new(), page.next);
    for crawl in &page.crawls {
        if tasks.len() == MOST_LISTED {
            break;
        }
        tasks.extend(cx.frontier.reports().task_of_url(*crawl, &url)?);
        if tasks.len() == MOST_LISTED {
            next = Some(*crawl);
        }
    }
    let most_counted = MOST_COUNTED / tasks.len().max(1) as u64;
    let mut explained = Vec::new();
    for task in &tasks {
        let one = explain_task(cx, task, most_counted, now_ms).map(Some);
        explained.extend(ignore_pruned(one, None)?);
    }
    if explained.is_empty() && next.is_none() {
        for crawl in cx
            .frontier
            .reports()
            .find_crawls(asked.0, asked.1, MOST_JUDGED)?
        {
            let one = explain_unknown_url(cx, crawl, &question.url, now_ms).map(Some);
            explained.extend(ignore_pruned(one, None)?);
        }
    }
    let mut answer = json!({
        "action": "why",
        "server_time": cx.wall_ms(now_ms) / 1_000,
        "url": url,
        "crawls": explained,
        "crawls_checked": page.checked,
        "next": next.map(|crawl| crawl.to_string()),
    });
    if let Some(uuid) = &question.uuid {
        answer["uuid"] = uuid.as_str().into();
    }
    Ok(Reply::Now(answer))
}

/// The state of a task, with a sentence that explains it. Counts at most this many tasks ahead of it.
fn explain_task(
    cx: &mut Context,
    task: &TaskReport,
    most_counted: u64,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let spec = cx.frontier.crawls().spec(task.crawl)?;
    let mut answer = task_json(task, &spec.app_id, &spec.crawl_id);
    let text = match task.stage {
        TaskStage::Done {
            outcome,
            status_code,
            at_ms,
        } => explain_end(task, (outcome, status_code, at_ms), now_ms),
        TaskStage::Leased => {
            let lease = cx.dispatch.leases.get(task.id);
            let supervisor = lease.map(|lease| lease.supervisor.clone());
            let since_ms = lease.map(|lease| lease.since_ms);
            answer["supervisor"] = supervisor.as_deref().into();
            answer["since"] = since_ms.map(to_seconds).into();
            explain_leased_task(task, supervisor.as_deref(), since_ms, now_ms)
        }
        TaskStage::Queued { .. } => {
            let ahead = cx
                .frontier
                .reports()
                .count_tasks_ahead(task, most_counted)?;
            answer["ahead"] = json!({"own": ahead.own, "others": ahead.others});
            let reasons = explain_queued_task(cx, task, ahead, now_ms)?;
            let first = reasons.first().cloned();
            answer["waits_for"] = first.map(|(what, _)| what).into();
            let reasons: Vec<String> = reasons.into_iter().map(|(_, text)| text).collect();
            format!("it is queued: {}", reasons.join("; "))
        }
    };
    answer["text"] = text.into();
    Ok(answer)
}

/// Why a task is not handed out, by importance: because of the fleet, its crawl, itself, or its site.
fn explain_queued_task(
    cx: &mut Context,
    task: &TaskReport,
    ahead: TasksAhead,
    now_ms: i64,
) -> Result<Vec<(String, String)>, FrontierError> {
    let mut held = waits::fleet_waits_json(cx, now_ms);
    held.extend(waits::crawl_waits_json(cx, task.crawl, now_ms)?);
    let text = |wait: &Value, key: &str| wait[key].as_str().unwrap_or_default().to_owned();
    let mut reasons: Vec<(String, String)> = held
        .iter()
        .map(|wait| match wait["for"].as_str() {
            Some("paused" | "stopped" | "expired" | "page_limit" | "lane") => {
                let said = text(wait, "text").replacen("it ", "its crawl ", 1);
                (
                    text(wait, "for"),
                    said.replacen("its limit", "the crawl's limit", 1),
                )
            }
            _ => (text(wait, "for"), text(wait, "text")),
        })
        .collect();
    let not_before_ms = match task.stage {
        TaskStage::Queued { not_before_ms } => not_before_ms,
        TaskStage::Leased | TaskStage::Done { .. } => 0,
    };
    if let Some(last) = task.failed_attempts.last().filter(|_| not_before_ms > 0) {
        reasons.push((
            "retry".into(),
            format!(
                "it has failed {}, last with `{}`; next retry at {}, {} left",
                format_times(task.failed_attempts.len()),
                last.outcome,
                format_time(not_before_ms, now_ms),
                format_duration(not_before_ms - now_ms),
            ),
        ));
    }
    if let Some(site) = cx.frontier.reports().queued_site(task.crawl, task.site)? {
        let (by, until_ms, delay_ms) = waits::wait_reason_at(cx, &site, now_ms);
        let is_explained =
            matches!(by, WaitReason::Crawl | WaitReason::Retry) && !reasons.is_empty();
        if !is_explained {
            let said = explain_site_wait(&site, by, until_ms, delay_ms, now_ms);
            reasons.push((by.as_str().into(), said));
        }
    }
    if not_before_ms == 0 {
        reasons.push(("queue".into(), describe_tasks_ahead(ahead)));
    }
    Ok(reasons)
}

/// How a crawl would judge a URL that it does not have: queue or refuse it, and why.
fn explain_unknown_url(
    cx: &mut Context,
    crawl: CrawlKey,
    url: &str,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let judged = cx.frontier.reports().check_as_seed(crawl, url)?;
    let state = crawl_answers::state_name(cx, crawl, now_ms)?;
    let spec = cx.frontier.crawls().spec(crawl)?;
    let mut answer = json!({
        "appid": spec.app_id,
        "crawlid": spec.crawl_id,
        "state": "unknown",
        "reason": judged.as_ref().err().map(|refusal| refusal.reason().as_str()),
    });
    let text = match judged {
        Err(refusal) => format!(
            "never queued: out of scope, `{}`: {}",
            refusal.reason(),
            refusal.explain()
        ),
        Ok(_) => format!(
            "not known: it is in scope, but was not fed, and no page read up to depth {} has a link to it \
             that is followed; or its link was refused for depth or budget (the crawl is {state})",
            spec.max_depth.saturating_sub(1),
        ),
    };
    answer["text"] = text.into();
    Ok(answer)
}

fn explain_leased_task(
    task: &TaskReport,
    supervisor: Option<&str>,
    since_ms: Option<i64>,
    now_ms: i64,
) -> String {
    let whom = supervisor
        .filter(|name| !name.is_empty())
        .unwrap_or("a supervisor");
    let since = since_ms.map_or(String::new(), |ms| {
        format!(
            " since {}, for {}",
            format_time(ms, now_ms),
            format_duration(now_ms - ms)
        )
    });
    format!(
        "it is leased to {whom}{since}, by its {}",
        format_ordinal_delivery(task.deliveries)
    )
}

fn explain_site_wait(
    site: &QueuedSite,
    by: WaitReason,
    until_ms: i64,
    delay_ms: u32,
    now_ms: i64,
) -> String {
    let name = &site.name;
    let left = match until_ms {
        ..=0 => String::new(),
        UNTIL_WOKEN_MS.. => format!(", until resumed manually (`webfill site {name} --wake`)"),
        _ => format!(", {} left", format_duration(until_ms - now_ms)),
    };
    match by {
        WaitReason::Leased => format!("another task of its site {name} is in flight"),
        WaitReason::Turn => format!("its site {name} is ready and waits for its turn"),
        WaitReason::Delay => format!(
            "its site {name} waits for its delay of {}{left}",
            format_duration(delay_ms.into())
        ),
        WaitReason::Group => format!("its site {name} waits for others of its address or provider"),
        WaitReason::Credit => {
            format!("its site {name} waits until its supervisor accepts more tasks")
        }
        WaitReason::Aside => format!("the supervisor of its site {name} is offline{left}"),
        WaitReason::SetAside => format!(
            "its site {name} had nothing to hand out in its turn (event site_set_aside in the dispatcher's log){left}"
        ),
        WaitReason::Retry => {
            format!("all queued tasks of the crawl at its site {name} will be retried{left}")
        }
        WaitReason::Backoff(reason) => {
            let since = site.rest.map_or(String::new(), |(_, since_ms)| {
                format!(" since {}", format_time(since_ms, now_ms))
            });
            format!(
                "its site {name} has been backing off{since} because {}{left}",
                explain_backoff(reason)
            )
        }
        WaitReason::Block => format!("its site {name} is blocked by hand{left}"),
        WaitReason::Limit => {
            let limit = limits::page_limit_of_site(name, site.pages_left, site.most_pages);
            let fill = limit.map_or(String::new(), |limit| format!(": {}", limit.describe()));
            format!("its site {name} has reached its limit of pages{fill}")
        }
        WaitReason::Crawl => format!("its site {name} hands out nothing of the crawl for now"),
    }
}

fn describe_tasks_ahead(ahead: TasksAhead) -> String {
    let own = match ahead.own {
        0 => "it is the next of its crawl there".into(),
        n if n >= ahead.most => format!("{n} others of its crawl or more go before it there"),
        1 => "1 other of its crawl goes before it there".into(),
        n => format!("{n} others of its crawl go before it there"),
    };
    match ahead.others {
        0 => own,
        n => format!(
            "{own}, and {} of other crawls there take turns with them",
            pluralize(n, "task")
        ),
    }
}

fn format_ordinal_delivery(n: u32) -> String {
    match (n % 10, n % 100) {
        (1, rest) if rest != 11 => format!("{n}st delivery"),
        (2, rest) if rest != 12 => format!("{n}nd delivery"),
        (3, rest) if rest != 13 => format!("{n}rd delivery"),
        _ => format!("{n}th delivery"),
    }
}

fn format_times(n: usize) -> String {
    match n {
        1 => "once".into(),
        2 => "twice".into(),
        n => format!("{n} times"),
    }
}
