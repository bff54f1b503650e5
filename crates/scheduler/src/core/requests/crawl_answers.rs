//! Parts that the answers about one crawl share.

use serde_json::{Value, json};
use webfill_api::{Refusal, Spider, Subject};
use webfill_wire::keys::Rights;
use webfill_wire::{CrawlKey, Outcome};

use crate::core::context::Context;
use crate::frontier::FrontierError;

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
    Ok(Spider::for_lane(cx.frontier.crawls().spec(crawl)?.lane))
}

/// The crawl to pause, resume or retry. Refused if it is unknown or over.
pub(super) fn find_unfinished_crawl(
    cx: &mut Context,
    subject: &Subject,
) -> Result<Result<CrawlKey, Refusal>, FrontierError> {
    let crawl_id = subject.crawl_id.as_deref().unwrap_or_default();
    let Some(crawl) = cx.frontier.crawls().find(&subject.app_id, crawl_id)? else {
        return Ok(Err(unknown_crawl_refusal(cx, &subject.app_id, crawl_id)?));
    };
    let over = refusal_if_ended(cx, crawl)?;
    Ok(over.map_or(Ok(crawl), Err))
}

pub(super) fn refusal_if_ended(
    cx: &mut Context,
    crawl: CrawlKey,
) -> Result<Option<Refusal>, FrontierError> {
    let why = match cx.frontier.crawls().end_outcome(crawl)? {
        None => return Ok(None),
        Some(Outcome::Expired) => "the crawl has expired",
        Some(_) => "the crawl was stopped permanently; `webfill prune` frees its id",
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

/// How many crawls and applications are compared with an unknown id.
const MOST_COMPARED: usize = 200;

/// The refusal of a request about a crawl that does not exist. It names a crawl of the application with a similar id.
pub(super) fn unknown_crawl_refusal(
    cx: &mut Context,
    app_id: &str,
    crawl_id: &str,
) -> Result<Refusal, FrontierError> {
    let known = cx.frontier.crawls().latest_ids(app_id, MOST_COMPARED)?;
    let advice = match nearest_name(crawl_id, &known) {
        _ if known.is_empty() => String::from(", and no other crawl"),
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; its latest crawl is `{}`", known[0]),
    };
    let message = format!("the application has no crawl of this id{advice}");
    Ok(Refusal::new("$.crawlid", message))
}

/// The refusal of a request about an application that has no crawl. It names an application with a similar id if the
/// sender may know about it.
pub(super) fn unknown_application(
    cx: &mut Context,
    app_id: &str,
    rights: &Rights,
) -> Result<Value, FrontierError> {
    let known = cx.frontier.crawls().applications(MOST_COMPARED)?;
    let permitted: Vec<String> = known
        .into_iter()
        .filter(|id| rights.permits_app(id))
        .collect();
    let mut of_id = None;
    for app in &permitted {
        if cx.frontier.crawls().find(app, app_id)?.is_some() {
            of_id = Some(app.clone());
        }
    }
    Ok(json!({"similar": nearest_name(app_id, &permitted), "crawl_of": of_id}))
}

fn nearest_name<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let edits = (name.chars().count() / 3).clamp(1, 3);
    webfill_api::nearest_known_name(name, known.iter().map(String::as_str), edits)
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
