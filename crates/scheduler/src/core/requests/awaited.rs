//! Why pending tasks make no progress, for the answers to `info`.

use webfill_store::CrawlState;
use webfill_wire::CrawlKey;

use super::limits;
use crate::core::context::Context;
use crate::core::machines;
use crate::frontier::{FrontierError, HeldBy, HeldSites, HeldSitesScope};
use crate::wording::pluralize;

/// The maximum number of a crawl's sites read for one answer.
pub(super) const MOST_SITES: usize = 10_000;

/// Why a running crawl waits, for people.
pub(super) fn explain_crawl_wait(
    cx: &mut Context,
    crawl: CrawlKey,
    most_sites: usize,
    now_ms: i64,
) -> Result<Option<String>, FrontierError> {
    let wall_ms = cx.wall_ms(now_ms);
    let state = cx.crawls.state(&mut cx.frontier, crawl, true, wall_ms)?;
    let is_running = state == CrawlState::Running;
    if !is_running || cx.frontier.crawls().queued_counts(crawl)?.total == 0 {
        return Ok(None);
    }
    let lane = cx.frontier.reports().unserved_lane_of(crawl)?;
    let lane = lane.map(|lane| format!("a supervisor of lane {lane}"));
    let app_id = cx.frontier.crawls().spec(crawl)?.app_id.clone();
    describe_waits(
        cx,
        lane,
        HeldSitesScope::Crawl(crawl),
        &app_id,
        most_sites,
        now_ms,
    )
}

/// Why queued tasks of an application wait, for people.
pub(super) fn explain_application_wait(
    cx: &mut Context,
    app_id: &str,
    now_ms: i64,
) -> Result<Option<String>, FrontierError> {
    if cx.frontier.counts().count_application(app_id)?.queued == 0 {
        return Ok(None);
    }
    let lane = cx.frontier.reports().has_crawl_awaiting_browser(app_id)?;
    let lane = lane.then(|| String::from("a supervisor of lane browser"));
    let (paused, example) = cx.frontier.counts().count_paused_crawls(app_id)?;
    let awaited = match cx.frontier.counts().count_application(app_id)?.crawls > paused {
        true => describe_waits(
            cx,
            lane,
            HeldSitesScope::Application(app_id),
            app_id,
            MOST_SITES,
            now_ms,
        )?,
        false => None,
    };
    let resumption = match paused {
        0 => None,
        1 => Some(format!("the resumption of {example}")),
        _ => Some(format!(
            "the resumption of {paused} crawls, such as {example}"
        )),
    };
    let all: Vec<String> = resumption.into_iter().chain(awaited).collect();
    Ok((!all.is_empty()).then(|| all.join("; ")))
}

fn describe_waits(
    cx: &mut Context,
    lane: Option<String>,
    asked: HeldSitesScope<'_>,
    app_id: &str,
    most_sites: usize,
    now_ms: i64,
) -> Result<Option<String>, FrontierError> {
    let mut awaited: Vec<String> = lane.into_iter().collect();
    if awaited.is_empty() && cx.dispatch.fleet.connected_lanes().next().is_none() {
        awaited.push("a supervisor".into());
    }
    if machines::longest_outage_if_all_offline(cx).is_some() {
        awaited.push("a supervisor that is online".into());
    }
    let limits = limits::limits_awaited_by(cx, app_id);
    awaited.extend(
        limits
            .iter()
            .map(|limit| format!("a limit of its application: {}", limit.describe())),
    );
    let held = cx
        .frontier
        .reports()
        .held_sites(asked, most_sites, now_ms)?;
    for held in &held {
        awaited.push(describe_held_sites(cx, held)?);
    }
    Ok((!awaited.is_empty()).then(|| awaited.join("; ")))
}

fn describe_held_sites(cx: &mut Context, held: &HeldSites) -> Result<String, FrontierError> {
    let what = match held.by {
        HeldBy::Limit => "a higher limit of",
        HeldBy::BlockUntil => "the end of the block of",
        HeldBy::Backoff => "the end of the backoff of",
        HeldBy::Retries => "the time of the next tries at",
    };
    let example = &held.example;
    let sites = match (held.sites, held.has_more) {
        (1, false) => format!("{what} {example}"),
        (sites, false) => format!("{what} {sites} sites, such as {example}"),
        (sites, true) => {
            let sites = pluralize(sites, "site");
            format!("{what} at least {sites}, such as {example}")
        }
    };
    if held.by != HeldBy::Limit {
        return Ok(sites);
    }
    let left = cx
        .frontier
        .sites()
        .rule(example)?
        .and_then(|rule| rule.pages_left);
    let most = cx.frontier.sites().max_pages(example)?;
    let limit = limits::page_limit_of_site(example, left, most);
    Ok(limit.map_or_else(
        || sites.clone(),
        |limit| format!("{sites}: {}", limit.describe()),
    ))
}
