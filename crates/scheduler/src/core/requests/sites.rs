//! Site rules set by hand: the delay between two requests, no request before a time (`block_until`), at most N further
//! pages (`limit`), and the lane of the site's pages (`lane`). A rule is stored before it takes effect. Once a request
//! for a rule is answered, the rule is in force on all supervisors: tasks of the site that had not started were
//! recalled. On responsive supervisors that takes milliseconds; for others the answer waits until their leases are
//! over.

use serde_json::{Value, json};
use webfill_api::scope::{canonical_domain, printable_beginning};
use webfill_api::{Refusal, SiteAction, SitesQuestion};
use webfill_wire::RecallScope;

use super::limits;
use super::reply::Reply;
use super::waiting::AnswerKind;
use crate::core::context::Context;
use crate::core::requests::waiting::WaitingAnswers;
use crate::effects::Client;
use crate::frontier::{FrontierError, SiteLane, SiteReport};
use crate::site_state::{Phase, backoff_end_seconds};

pub(super) fn control_site(
    cx: &mut Context,
    waiting: &mut WaitingAnswers,
    client: &Client,
    mut action: SiteAction,
    now_ms: i64,
) -> Result<Reply, FrontierError> {
    action.site = match parse_site(&action.site) {
        Ok(site) => site,
        Err(refusal) => return Ok(refusal.into()),
    };
    if !action.changes_something() {
        return site_rule_answer(cx, &action, now_ms).map(Reply::Now);
    }
    if let Some(refusal) = waiting.refusal_if_full() {
        return Ok(refusal.into());
    }
    if action.forget {
        let default_delay_ms = cx.settings.default_delay_ms;
        cx.frontier
            .sites()
            .reset_site(&action.site, default_delay_ms)?;
    }
    let mut rule = cx.frontier.sites().rule(&action.site)?.unwrap_or_default();
    rule.delay_ms = action.delay_ms.unwrap_or(rule.delay_ms);
    rule.block_until_ms = action.block_until_ms.unwrap_or(rule.block_until_ms);
    rule.pages_left = action.limit.unwrap_or(rule.pages_left);
    cx.frontier.sites().set_rule(&action.site, &rule)?;
    if let Some(most) = action.limit {
        cx.frontier.sites().set_max_pages(&action.site, most)?;
    }
    if let Some(lane) = action.lane {
        let lane = lane.map_or(SiteLane::Auto, SiteLane::Fixed);
        cx.frontier.sites().set_lane(&action.site, lane)?;
    }
    if action.wake {
        cx.frontier
            .site_states()
            .end_backoff(&action.site, now_ms)?;
    }
    cx.window.next_site_ms = Some(now_ms);
    let scope = RecallScope {
        site: Some(action.site.clone()),
        forget: action.forget,
        ..RecallScope::default()
    };
    waiting.answer_after_new_recall(cx, client, scope, AnswerKind::Site(action));
    Ok(Reply::Later)
}

/// The rule in force for the site, as an answer.
pub(super) fn site_rule_answer(
    cx: &mut Context,
    action: &SiteAction,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let rule = cx.frontier.sites().rule(&action.site)?.unwrap_or_default();
    let mut answer = json!({
        "action": "site",
        "site": action.site,
        "delay": rule.delay_ms.map(|ms| f64::from(ms) / 1_000.0),
        "block_until": rule.block_until_ms.map(|ms| ms as f64 / 1_000.0),
        "limit": rule.pages_left,
        "lane": cx.frontier.sites().lane(&action.site)?.as_str(),
    });
    let most = cx.frontier.sites().max_pages(&action.site)?;
    if let Some(limit) = limits::page_limit_of_site(&action.site, rule.pages_left, most) {
        answer["limits"] = vec![limit.json()].into();
    }
    let report = cx.frontier.site_states().find_report(&action.site)?;
    add_site_state(&mut answer, report.as_ref(), now_ms);
    let scripts = cx.frontier.sites().scripts_of(&action.site)?;
    if !scripts.is_empty() {
        answer["scripts"] = scripts.into();
    }
    if let Some(uuid) = &action.uuid {
        answer["uuid"] = uuid.as_str().into();
    }
    Ok(answer)
}

/// The maximum number of sites listed in one answer.
const MOST_LISTED: usize = 1_000;

pub(super) fn list_sites(
    cx: &mut Context,
    question: &SitesQuestion,
    now_ms: i64,
) -> Result<Value, FrontierError> {
    let after = i64::try_from(question.after).unwrap_or(i64::MAX);
    let (reports, next) =
        cx.frontier
            .site_states()
            .list_reports(question.backing_off, after, MOST_LISTED)?;
    let sites: Vec<Value> = reports
        .iter()
        .map(|report| {
            let mut row = json!({"site": report.name});
            add_site_state(&mut row, Some(report), now_ms);
            row
        })
        .collect();
    let mut answer = json!({"action": "sites", "sites": sites, "next": next});
    if let Some(uuid) = &question.uuid {
        answer["uuid"] = uuid.as_str().into();
    }
    Ok(answer)
}

/// Adds a site's state: `state` (`open`, `backing_off`, `unreachable`), its `reason`, since when and until when
/// (seconds since the epoch; null: until resumed manually), the evidence, and how many tasks are queued.
pub(super) fn add_site_state(row: &mut Value, report: Option<&SiteReport>, now_ms: i64) {
    let trouble = report.and_then(|report| report.trouble.as_ref());
    row["queued"] = report.map_or(0, |report| report.queued).into();
    let by_hand = report.and_then(|report| report.blocked_until_ms);
    if let Some(until_ms) = by_hand.filter(|until_ms| *until_ms > now_ms) {
        row["state"] = "backing_off".into();
        row["reason"] = "by_hand".into();
        row["until"] = backoff_end_seconds(until_ms).into();
        return;
    }
    row["state"] = match trouble.map(|trouble| trouble.phase) {
        None | Some(Phase::Open) => "open".into(),
        Some(Phase::BackingOff { .. }) => "backing_off".into(),
        Some(Phase::Unreachable) => "unreachable".into(),
    };
    let Some(trouble) = trouble else { return };
    row["reason"] = trouble.reason.as_str().into();
    row["since"] = backoff_end_seconds(trouble.since_ms).into();
    if let Phase::BackingOff { until_ms } = trouble.phase {
        row["until"] = backoff_end_seconds(until_ms).into();
    }
    let evidence = &trouble.evidence;
    row["evidence"] = json!({
        "url": evidence.url,
        "status_code": evidence.status_code,
        "sign": evidence.sign,
    });
}

/// The site that a request names, in the form that tasks use.
pub(super) fn parse_site(text: &str) -> Result<String, Refusal> {
    let named = match text.starts_with('[') {
        true => Some(text.to_owned()),
        false => canonical_domain(text),
    };
    let refuse = |why: String| Refusal::new("$.site", why);
    let url =
        named.and_then(|host| webfill_urls::canonical_url(&format!("http://{host}/"), None).ok());
    let Some(url) = url else {
        let shown = printable_beginning(text);
        return Err(refuse(format!(
            "`{shown}` is not a site: expected a name such as `example.com`"
        )));
    };
    let site = webfill_urls::site(&url);
    match url.host_str() == Some(&site) {
        true => Ok(site),
        false => Err(refuse(format!(
            "its site is `{site}`, with all hosts below it: use that name"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_named_by_its_registrable_domain_or_address() {
        for (text, site) in [
            ("example.com", "example.com"),
            ("Example.COM.", "example.com"),
            ("bücher.de", "xn--bcher-kva.de"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(parse_site(text).unwrap(), site, "{text}");
        }
        for wrong in ["", "http://example.com/", "a b", "example.com:80", "[::1"] {
            assert_eq!(parse_site(wrong).unwrap_err().path, "$.site", "{wrong}");
        }
        let refusal = parse_site("www.example.co.uk").unwrap_err();
        assert!(
            refusal.message.contains("`example.co.uk`"),
            "{}",
            refusal.message
        );
    }
}
