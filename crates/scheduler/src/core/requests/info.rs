//! The answer to `info`: an application asks about all its crawls or about one. The answer has the same keys as Scrapy
//! Cluster's answer, and some more.

use serde_json::{Map, Value, json};
use webfill_api::{InfoQuestion, Spider, Subject};
use webfill_wire::CrawlKey;
use webfill_wire::keys::Rights;

use super::crawl_answers::{
    action_answer, spider_of, state_name, unknown_application, unknown_crawl_refusal,
};
use super::reply::Reply;
use super::{limits, scripts};
use crate::core::context::Context;
use crate::core::requests::reports::ReportCache;
use crate::frontier::FrontierError;

/// The maximum number of crawls on one page of the answer about an application. The totals count all crawls.
const CRAWLS_OF_A_PAGE: usize = 500;

pub(super) fn answer_info(
    cx: &mut Context,
    reports: &mut ReportCache,
    question: &InfoQuestion,
    rights: &Rights,
    now_ms: i64,
) -> Result<Reply, FrontierError> {
    let subject = &question.subject;
    let answer = match &subject.crawl_id {
        None => {
            let mut answer = app_info(cx, reports, subject, question.after.as_deref(), now_ms)?;
            // Scrapy Cluster answers with zeros, so an unknown application is no refusal here.
            if cx
                .frontier
                .crawls()
                .latest_ids(&subject.app_id, 1)?
                .is_empty()
            {
                answer["unknown"] = unknown_application(cx, &subject.app_id, rights)?;
            }
            answer
        }
        Some(crawl_id) => match cx.frontier.crawls().find(&subject.app_id, crawl_id)? {
            Some(crawl) => crawl_info(cx, reports, crawl, subject, now_ms)?,
            None => return Ok(unknown_crawl_refusal(cx, &subject.app_id, crawl_id)?.into()),
        },
    };
    cx.publish_notification(&subject.app_id, &answer);
    Ok(Reply::Now(answer))
}

/// The answer about an application. Reads only one page of its crawls, however many it has.
fn app_info(
    cx: &mut Context,
    reports: &mut ReportCache,
    subject: &Subject,
    after: Option<&str>,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let tally = cx.frontier.counts().count_application(&subject.app_id)?;
    let app_id = &subject.app_id;
    let page = cx
        .frontier
        .counts()
        .pending_crawls(app_id, after, CRAWLS_OF_A_PAGE + 1)?;
    let has_more = page.len() > CRAWLS_OF_A_PAGE;
    let mut crawls = Map::new();
    let mut last = String::new();
    for crawl in page.into_iter().take(CRAWLS_OF_A_PAGE) {
        let mut report = json!({
            "total": crawl.queued,
            "low_priority": crawl.low_priority,
            "high_priority": crawl.high_priority,
        });
        if let Some(at_ms) = crawl.expires_at_ms {
            report["expires"] = (at_ms / 1_000).into();
        }
        if crawl.leased > 0 {
            report["leased"] = crawl.leased.into();
        }
        last.clone_from(&crawl.crawl_id);
        crawls.insert(crawl.crawl_id, report);
    }
    let of_application = reports.application_sites(cx, app_id, now_ms)?;
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
    reports: &mut ReportCache,
    crawl: CrawlKey,
    subject: &Subject,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let report = reports.crawl_report(cx, crawl, now_ms)?;
    let status = cx.frontier.crawls().status(crawl)?;
    let mut more = json!({
        "server_time": cx.wall_ms(now_ms) / 1_000,
        "total_pending": status.queued,
        "total_domains": report["total_domains"],
        "low_priority": report["low_priority"],
        "high_priority": report["high_priority"],
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
    let limits = limits::limits_json(cx, crawl)?;
    if !limits.is_empty() {
        more["limits"] = limits.into();
    }
    scripts::add_scripts(cx, &mut more, crawl)?;
    if let (Value::Object(more), Value::Object(report)) = (&mut more, report) {
        more.extend(report);
    }
    Ok(action_answer("info", subject, spider_of(cx, crawl)?, more))
}
