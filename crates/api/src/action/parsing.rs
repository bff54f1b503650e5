//! Parses the JSON of a request into a valid [`Action`].

use serde::Deserialize;
use serde_json::Value;
use webfill_wire::Outcome;

use crate::refusal::Refusal;
use crate::rule::{Key, check_members};
use crate::spider::Spider;
use crate::watch::parse_watch_action;

use super::keys::{
    DRAIN_KEYS, FLEET_KEYS, INFO_KEYS, PRUNE_KEYS, RETRY_KEYS, SITE_KEYS, SITES_KEYS, SUBJECT_KEYS,
    WHY_KEYS,
};
use super::{
    Action, InfoQuestion, PruneAction, RetryAction, SiteAction, SitesQuestion, Subject, WhyQuestion,
};

#[derive(Deserialize)]
struct TypedSubject {
    appid: String,
    crawlid: Option<String>,
    uuid: Option<String>,
    spiderid: Option<Spider>,
}

/// The members of `retry`, besides those of its subject.
#[derive(Deserialize)]
struct TypedRetry {
    outcome: Vec<Outcome>,
    status: Option<Vec<u16>>,
    site: Option<String>,
}

/// The names of all actions, for refusals.
const ACTIONS: &str = "info, stop, pause, resume, retry, prune, status, reload, drain, site, sites, \
     why, watch_add, watch_list, watch_show, watch_run, watch_pause, watch_resume, watch_remove";

/// The names of all actions.
pub fn action_names() -> impl Iterator<Item = &'static str> {
    ACTIONS.split(", ")
}

/// Parses an object that has the key `action`.
pub fn parse_action(request: Value) -> Result<Action, Refusal> {
    let Some(action) = request.get("action").and_then(Value::as_str) else {
        return Err(Refusal::new("$.action", "expected text"));
    };
    match action {
        "info" => {
            let subject = parse_subject(INFO_KEYS, &request, false)?;
            let after = get_text(&request, "after");
            Ok(Action::Info(InfoQuestion { subject, after }))
        }
        "stop" => parse_subject(SUBJECT_KEYS, &request, true).map(Action::Stop),
        "pause" => parse_subject(SUBJECT_KEYS, &request, true).map(Action::Pause),
        "resume" => parse_subject(SUBJECT_KEYS, &request, true).map(Action::Resume),
        "retry" => parse_retry(&request).map(Action::Retry),
        "prune" => parse_prune(&request).map(Action::Prune),
        "status" => parse_fleet_action_uuid(&request).map(|uuid| Action::Status { uuid }),
        "reload" => parse_fleet_action_uuid(&request).map(|uuid| Action::Reload { uuid }),
        "drain" => {
            check_members(DRAIN_KEYS, members(&request), "$")?;
            let (supervisor, uuid) = (get_text(&request, "supervisor"), get_text(&request, "uuid"));
            Ok(Action::Drain { supervisor, uuid })
        }
        "site" => parse_site(&request).map(Action::Site),
        "sites" => parse_sites(&request).map(Action::Sites),
        "why" => parse_why(&request).map(Action::Why),
        _ => match parse_watch_action(action, members(&request))? {
            Some(action) => Ok(Action::Watch(action)),
            None => Err(Refusal::new(
                "$.action",
                format!("unknown action, known are {ACTIONS}"),
            )),
        },
    }
}

fn members(request: &Value) -> &serde_json::Map<String, Value> {
    request
        .as_object()
        .expect("parse_action has found a member in it")
}

fn get_text(request: &Value, key: &str) -> Option<String> {
    request.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Checks the keys of an action that concerns the whole fleet, and returns its `uuid`.
fn parse_fleet_action_uuid(request: &Value) -> Result<Option<String>, Refusal> {
    check_members(FLEET_KEYS, members(request), "$")?;
    Ok(get_text(request, "uuid"))
}

fn parse_subject(keys: &[Key], request: &Value, needs_crawl: bool) -> Result<Subject, Refusal> {
    check_members(keys, members(request), "$")?;
    let typed = TypedSubject::deserialize(request).map_err(|error| Refusal::new("$", error))?;
    if needs_crawl && typed.crawlid.is_none() {
        return Err(Refusal::new("$.crawlid", "missing, it is required"));
    }
    Ok(Subject {
        app_id: typed.appid,
        crawl_id: typed.crawlid,
        uuid: typed.uuid,
        spider: typed.spiderid,
    })
}

fn parse_retry(request: &Value) -> Result<RetryAction, Refusal> {
    let subject = parse_subject(RETRY_KEYS, request, true)?;
    let typed = TypedRetry::deserialize(request).map_err(|error| Refusal::new("$", error))?;
    Ok(RetryAction {
        subject,
        outcomes: typed.outcome,
        status_codes: typed.status,
        site: typed.site,
    })
}

fn parse_prune(request: &Value) -> Result<PruneAction, Refusal> {
    let subject = parse_subject(PRUNE_KEYS, request, false)?;
    let older_than_s = request.get("older_than").and_then(Value::as_u64);
    if subject.crawl_id.is_none() && older_than_s.is_none() {
        let why = "missing, it is required where no `crawlid` is given";
        return Err(Refusal::new("$.older_than", why));
    }
    Ok(PruneAction {
        subject,
        older_than_s: older_than_s.unwrap_or(0),
    })
}

fn parse_site(request: &Value) -> Result<SiteAction, Refusal> {
    check_members(SITE_KEYS, members(request), "$")?;
    let millis = |key| {
        request
            .get(key)
            .map(|value| value.as_f64().map(|s| s * 1_000.0))
    };
    Ok(SiteAction {
        site: get_text(request, "site").unwrap_or_default(),
        uuid: get_text(request, "uuid"),
        delay_ms: millis("delay").map(|delay| delay.map(|ms| ms.ceil() as u32)),
        block_until_ms: millis("block_until").map(|until| until.map(|ms| ms.ceil() as i64)),
        limit: request.get("limit").map(Value::as_u64),
        // `auto` is not the name of a lane, so it parses as `None` and removes the rule.
        lane: get_text(request, "lane").map(|lane| lane.parse().ok()),
        forget: request.get("forget") == Some(&Value::Bool(true)),
        wake: request.get("wake") == Some(&Value::Bool(true)),
    })
}

fn parse_sites(request: &Value) -> Result<SitesQuestion, Refusal> {
    check_members(SITES_KEYS, members(request), "$")?;
    Ok(SitesQuestion {
        uuid: get_text(request, "uuid"),
        backing_off: request.get("backing_off") == Some(&Value::Bool(true)),
        after: request.get("after").and_then(Value::as_u64).unwrap_or(0),
    })
}

fn parse_why(request: &Value) -> Result<WhyQuestion, Refusal> {
    check_members(WHY_KEYS, members(request), "$")?;
    let after = get_text(request, "after").map(|after| after.parse());
    let after = after.transpose();
    let after = after.map_err(|_| Refusal::new("$.after", "is the `next` of no answer"))?;
    Ok(WhyQuestion {
        uuid: get_text(request, "uuid"),
        url: get_text(request, "url").unwrap_or_default(),
        app_id: get_text(request, "appid"),
        crawl_id: get_text(request, "crawlid"),
        after,
    })
}
