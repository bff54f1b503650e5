//! Why a crawl waits, in sentences with numbers: because of the fleet, of the crawl itself, or of its sites. Also
//! estimates the end of the queued tasks, as far as possible.
//!
//! The cost is bounded: a limited number of the crawl's sites is checked, and no task.

use serde_json::{Value, json};
use webfill_store::CrawlState;
use webfill_wire::{BackoffReason, CrawlKey};

use super::limits;
use crate::core::context::Context;
use crate::core::machines;
use crate::dispatch::SiteWait;
use crate::frontier::{FrontierError, QueuedSite};
use crate::site_state::UNTIL_WOKEN_MS;
use crate::wording::{explain_backoff, format_duration, format_time, pluralize, to_seconds};

/// Why the tasks of a crawl at a site wait. The answer lists the reasons in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitReason {
    Leased,
    Turn,
    Delay,
    Group,
    Credit,
    Aside,
    SetAside,
    Retry,
    Backoff(BackoffReason),
    Block,
    Limit,
    /// A reason that concerns the whole crawl, not a single site.
    Crawl,
}

impl WaitReason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            WaitReason::Leased => "fetch",
            WaitReason::Turn => "turn",
            WaitReason::Delay => "delay",
            WaitReason::Group => "address",
            WaitReason::Credit => "credit",
            WaitReason::Aside => "machine",
            WaitReason::SetAside => "set_aside",
            WaitReason::Retry => "retry",
            WaitReason::Backoff(_) => "backoff",
            WaitReason::Block => "block",
            WaitReason::Limit => "limit",
            WaitReason::Crawl => "crawl",
        }
    }

    /// Whether the wait ends only by an event, not by time alone.
    fn needs_other_event(self) -> bool {
        matches!(self, WaitReason::Limit | WaitReason::Crawl)
    }

    /// Whether the site may still refuse once it is tried again.
    fn may_refuse_again(self) -> bool {
        matches!(self, WaitReason::Backoff(reason) if reason != BackoffReason::Busy)
    }
}

/// The progress of a crawl: why it waits, its pace, and its estimated end.
pub(super) struct Progress {
    pub(super) waits: Vec<Value>,
    pub(super) per_second: Option<f64>,
    /// The earliest end of the queued tasks that the delays of the sites allow.
    pub(super) not_before_ms: Option<i64>,
    pub(super) end_ms: Option<i64>,
    /// The numbers of sites and of their tasks that the estimates leave out, because these sites may stay in trouble.
    pub(super) left_out: Option<(u64, u64)>,
}

/// The sites of a crawl that wait for the same reason.
struct WaitingGroup {
    by: WaitReason,
    sites: u64,
    example: String,
    /// For a limit: what is left of it and its original number, if known.
    limit: (Option<u64>, Option<u64>),
    /// For a backoff: when it began.
    since_ms: i64,
    /// When the first and the last of these sites stop waiting.
    first_ms: i64,
    last_ms: i64,
}

/// Why a crawl waits, its pace, and the estimated end of its queue. Checks at most this many of its sites.
pub(super) fn crawl_progress(
    cx: &mut Context,
    crawl: CrawlKey,
    most_sites: usize,
    now_ms: i64,
) -> Result<Progress, FrontierError> {
    let status = cx.frontier.crawls().status(crawl)?;
    let left = status.queued + status.leased;
    let mut waits = Vec::new();
    if left > 0 {
        waits.extend(fleet_waits_json(cx, now_ms));
        waits.extend(crawl_waits_json(cx, crawl, now_ms)?);
    }
    let is_held = !waits.is_empty();
    let sites = cx.frontier.reports().queued_sites(crawl, most_sites)?;
    let is_whole = sites.len() < most_sites;
    let mut held: Vec<WaitingGroup> = Vec::new();
    let mut slowest_ms = Some(now_ms);
    let (mut sites_left_out, mut tasks_left_out) = (0, 0);
    for site in &sites {
        let (by, until_ms, delay_ms) = wait_reason_at(cx, site, now_ms);
        add_site_to_group(&mut held, by, site, until_ms);
        if by.may_refuse_again() {
            sites_left_out += 1;
            tasks_left_out += site.queued;
            continue;
        }
        let spans_ms = i64::from(delay_ms).saturating_mul(site.queued as i64 - 1);
        let ends_ms = until_ms.max(now_ms).saturating_add(spans_ms);
        let is_endless = by.needs_other_event() || until_ms >= UNTIL_WOKEN_MS;
        slowest_ms = slowest_ms
            .map(|so_far| so_far.max(ends_ms))
            .filter(|_| !is_endless);
    }
    held.sort_by_key(|held| held.by);
    let of_sites = held.iter().filter(|held| held.by != WaitReason::Crawl);
    waits.extend(of_sites.map(|held| waiting_group_json(held, is_whole, now_ms)));
    let per_second = cx.paces.per_second(crawl, status.done, now_ms);
    // There is no estimate unless all sites were checked: an unchecked site may be slower, or wait without end.
    let not_before_ms =
        slowest_ms.filter(|_| is_whole && !is_held && status.queued > tasks_left_out);
    let at_pace = per_second.filter(|pace| *pace > 0.0);
    let end_ms = at_pace.and_then(|pace| {
        let left = left.saturating_sub(tasks_left_out);
        let by_pace_ms = now_ms.saturating_add((left as f64 * 1_000.0 / pace) as i64);
        not_before_ms.map(|least_ms| least_ms.max(by_pace_ms))
    });
    Ok(Progress {
        waits,
        per_second,
        not_before_ms,
        end_ms,
        left_out: (sites_left_out > 0).then_some((sites_left_out, tasks_left_out)),
    })
}

/// Why nothing at all is handed out.
pub(super) fn fleet_waits_json(cx: &Context, now_ms: i64) -> Vec<Value> {
    let mut waits = Vec::new();
    let mut add = |what: &str, text: String| waits.push(json!({"for": what, "text": text}));
    if let Some(why) = cx.hold_reason(now_ms) {
        add("dispatcher", format!("nothing is handed out: {why}"));
    }
    if let Some(why) = cx.surroundings.backends.store_fault() {
        add("store", format!("pages wait for the store: {why}"));
    }
    let mut supervisors = cx.dispatch.fleet.connected_lanes().peekable();
    if supervisors.peek().is_none() {
        add(
            "supervisor",
            "it waits for a supervisor: none is connected".into(),
        );
    } else if supervisors.all(|(name, _)| cx.dispatch.fleet.presence(name, now_ms).is_draining) {
        add(
            "supervisor",
            "it waits for a supervisor: all connected ones are draining".into(),
        );
    } else if let Some(offline) = machines::longest_outage_if_all_offline(cx) {
        let since = format_time(offline.since_ms, now_ms);
        let text = format!(
            "all supervisors are offline since {since}: {}",
            offline.sign
        );
        add("egress", text);
    }
    waits
}

/// Why no task of the crawl is handed out.
pub(super) fn crawl_waits_json(
    cx: &mut Context,
    crawl: CrawlKey,
    now_ms: i64,
) -> Result<Vec<Value>, FrontierError> {
    let mut waits = Vec::new();
    let mut add = |what: &str, text: String| waits.push(json!({"for": what, "text": text}));
    let status = cx.frontier.crawls().status(crawl)?;
    let spec = cx.frontier.crawls().spec(crawl)?;
    let (app, id, most_pages) = (spec.app_id.clone(), spec.crawl_id.clone(), spec.max_pages);
    let wall_ms = cx.wall_ms(now_ms);
    match cx.crawls.state(&mut cx.frontier, crawl, true, wall_ms)? {
        CrawlState::Stopped => add("stopped", "it was stopped permanently".into()),
        CrawlState::Expired => add("expired", "it has expired".into()),
        CrawlState::Paused => {
            let text = format!("it is paused: resume it with `webfill resume {app} {id}`");
            add("paused", text);
        }
        _ => {}
    }
    if let Some(most) = most_pages.filter(|most| status.pages + status.leased >= *most) {
        let limit = limits::page_limit_of_crawl(
            cx.frontier.crawls().spec(crawl)?,
            status.pages + status.leased,
        );
        let fill = limit.map_or(String::new(), |limit| format!(": {}", limit.describe()));
        let text = match status.leased {
            0 => format!(
                "it has reached its limit of {}{fill}",
                pluralize(most, "page")
            ),
            _ => format!(
                "it reaches its limit of {} with the fetches in flight{fill}",
                pluralize(most, "page")
            ),
        };
        add("page_limit", text);
    }
    if let Some(lane) = cx.frontier.reports().unserved_lane_of(crawl)? {
        let text = format!("it waits for a supervisor of lane {lane}: none is connected");
        add("lane", text);
    }
    if status.queued > 0 {
        for limit in limits::limits_awaited_by(cx, &app) {
            let text = format!(
                "it waits for a limit of its application: {}",
                limit.describe()
            );
            add("application_limits", text);
        }
    }
    Ok(waits)
}

/// Why a crawl's tasks wait at a site, until when (0: not known), and the site's delay.
pub(super) fn wait_reason_at(
    cx: &Context,
    site: &QueuedSite,
    now_ms: i64,
) -> (WaitReason, i64, u32) {
    let default_ms = cx.dispatch.schedule.default_delay_ms();
    let by_hand = site.rule_delay_ms;
    let stored_ms = site.delay_ms.or(by_hand).unwrap_or(default_ms);
    let stored_ms = stored_ms.max(by_hand.unwrap_or(0));
    let window = cx.dispatch.schedule.wait_reason_and_delay(site.id, now_ms);
    let delay_ms = window.map_or(stored_ms, |(_, delay_ms)| delay_ms);
    if let Some((SiteWait::Leased, _)) = window {
        return (WaitReason::Leased, 0, delay_ms);
    }
    if site.pages_left == Some(0) {
        return (WaitReason::Limit, 0, delay_ms);
    }
    if site.block_until_ms > now_ms {
        return (WaitReason::Block, site.block_until_ms, delay_ms);
    }
    if let Some((reason, _)) = site.rest.filter(|_| site.backoff_until_ms > now_ms) {
        return (WaitReason::Backoff(reason), site.backoff_until_ms, delay_ms);
    }
    if site.is_held {
        return match site.next_try_ms {
            Some(at_ms) => (WaitReason::Retry, at_ms, delay_ms),
            None => (WaitReason::Crawl, 0, delay_ms),
        };
    }
    let (by, until_ms) = match window.map(|(wait, _)| wait) {
        Some(SiteWait::Time { until_ms }) => (WaitReason::Delay, until_ms),
        Some(SiteWait::Group) => (WaitReason::Group, 0),
        Some(SiteWait::Aside { until_ms }) => (WaitReason::Aside, until_ms),
        Some(SiteWait::SetAside { until_ms }) => (WaitReason::SetAside, until_ms),
        Some(SiteWait::Credit) => (WaitReason::Credit, 0),
        Some(SiteWait::Turn | SiteWait::Leased) => (WaitReason::Turn, 0),
        None if site.due_at_ms > now_ms => (WaitReason::Delay, site.due_at_ms),
        None => (WaitReason::Turn, 0),
    };
    (by, until_ms, delay_ms)
}

fn add_site_to_group(
    held: &mut Vec<WaitingGroup>,
    by: WaitReason,
    site: &QueuedSite,
    until_ms: i64,
) {
    let since_ms = site.rest.map_or(0, |(_, since_ms)| since_ms);
    let Some(known) = held.iter_mut().find(|held| held.by == by) else {
        held.push(WaitingGroup {
            by,
            sites: 1,
            example: site.name.clone(),
            limit: (site.pages_left, site.most_pages),
            since_ms,
            first_ms: until_ms,
            last_ms: until_ms,
        });
        return;
    };
    known.sites += 1;
    known.first_ms = known.first_ms.min(until_ms);
    known.last_ms = known.last_ms.max(until_ms);
}

fn waiting_group_json(held: &WaitingGroup, is_whole: bool, now_ms: i64) -> Value {
    let time = |at_ms: i64| (at_ms > 0 && at_ms < UNTIL_WOKEN_MS).then(|| to_seconds(at_ms));
    let mut row = json!({
        "for": held.by.as_str(),
        "sites": held.sites,
        "example": held.example,
        "text": describe_waiting_group(held, is_whole, now_ms),
    });
    if held.first_ms > 0 {
        row["first"] = time(held.first_ms).into();
        row["last"] = time(held.last_ms).into();
    }
    if let WaitReason::Backoff(reason) = held.by {
        row["reason"] = reason.as_str().into();
    }
    row
}

/// Describes sites that wait, such as `12 sites wait for their delay, such as a.example: the first for 3 s, the last
/// for 15 min`.
fn describe_waiting_group(held: &WaitingGroup, is_whole: bool, now_ms: i64) -> String {
    let one = held.sites == 1;
    let (site, its) = (&held.example, if one { "its" } else { "their" });
    let verb = |single: &'static str, several: &'static str| if one { single } else { several };
    let sites = match is_whole {
        true => pluralize(held.sites, "site"),
        false => format!("{} of those checked", pluralize(held.sites, "site")),
    };
    let such = match one {
        true => format!(" ({site})"),
        false => format!(", such as {site}"),
    };
    let until = describe_wait_end(held, now_ms);
    match held.by {
        WaitReason::Leased => {
            let verb = verb("has", "have");
            format!("{sites} {verb} a task in flight{such}")
        }
        WaitReason::Turn => format!(
            "{sites} {} ready and {} for {its} turn{such}",
            verb("is", "are"),
            verb("waits", "wait")
        ),
        WaitReason::Delay => format!(
            "{sites} {} for {its} delay{such}{until}",
            verb("waits", "wait")
        ),
        WaitReason::Group => format!(
            "{sites} {} for others of {its} address or provider{such}",
            verb("waits", "wait")
        ),
        WaitReason::Credit => format!(
            "{sites} {} until {its} supervisor accepts more tasks{such}",
            verb("waits", "wait")
        ),
        WaitReason::Aside => format!(
            "{sites} {} because {its} supervisor is offline{such}{until}",
            verb("waits", "wait")
        ),
        WaitReason::SetAside => format!(
            "{sites} {} nothing to hand out in {its} turn (event site_set_aside in the dispatcher's log){such}{until}",
            verb("has", "have")
        ),
        WaitReason::Retry => format!(
            "{sites} {} until {its} failed pages are retried{such}{until}",
            verb("waits", "wait")
        ),
        WaitReason::Backoff(reason) if one => {
            let since = format_time(held.since_ms, now_ms);
            format!(
                "1 site has been backing off since {since} because {}{such}{until}",
                explain_backoff(reason)
            )
        }
        WaitReason::Backoff(reason) => {
            format!(
                "{sites} are backing off, each because {}{such}{until}",
                explain_backoff(reason)
            )
        }
        WaitReason::Block => format!("{sites} {} blocked by hand{such}{until}", verb("is", "are")),
        WaitReason::Limit => {
            let (left, most) = held.limit;
            let limit = limits::page_limit_of_site(site, left, most);
            let fill = limit.map_or(String::new(), |limit| format!(": {}", limit.describe()));
            let verb = verb("has", "have");
            format!("{sites} {verb} reached {its} limit of pages{such}{fill}")
        }
        WaitReason::Crawl => format!("{sites} {} held with the crawl{such}", verb("is", "are")),
    }
}

/// When the wait of these sites ends, in words.
fn describe_wait_end(held: &WaitingGroup, now_ms: i64) -> String {
    if held.first_ms >= UNTIL_WOKEN_MS {
        return String::from(": until resumed manually");
    }
    if held.first_ms <= 0 {
        return String::new();
    }
    let first = format_duration(held.first_ms - now_ms);
    match held.last_ms {
        _ if held.sites == 1 => format!(", {first} left"),
        last_ms if last_ms >= UNTIL_WOKEN_MS => {
            format!(": the first for {first}, some until resumed manually")
        }
        last_ms => format!(
            ": the first for {first}, the last for {}",
            format_duration(last_ms - now_ms)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting_group(by: WaitReason, sites: u64, first_ms: i64, last_ms: i64) -> WaitingGroup {
        WaitingGroup {
            by,
            sites,
            example: "a.org".into(),
            limit: (Some(0), Some(20)),
            since_ms: 0,
            first_ms,
            last_ms,
        }
    }

    #[test]
    fn the_reasons_for_waits_of_sites_are_reported_with_numbers() {
        let said = |held: WaitingGroup| describe_waiting_group(&held, true, 1_000);
        assert_eq!(
            said(waiting_group(WaitReason::Delay, 12, 4_000, 901_000)),
            "12 sites wait for their delay, such as a.org: the first for 3 s, the last for 15 min"
        );
        assert_eq!(
            said(waiting_group(
                WaitReason::Backoff(BackoffReason::Blocked),
                1,
                10_801_000,
                10_801_000
            )),
            "1 site has been backing off since 00:00:00 UTC because it blocks (a.org), about 3 h left"
        );
        let forever = UNTIL_WOKEN_MS;
        assert_eq!(
            said(waiting_group(
                WaitReason::Backoff(BackoffReason::Blocked),
                2,
                5_000,
                forever
            )),
            "2 sites are backing off, each because it blocks, such as a.org: the first for 4 s, some until resumed manually"
        );
        assert_eq!(
            said(waiting_group(WaitReason::Turn, 1, 0, 0)),
            "1 site is ready and waits for its turn (a.org)"
        );
        assert_eq!(
            said(waiting_group(WaitReason::Limit, 2, 0, 0)),
            "2 sites have reached their limit of pages, such as a.org: 20 of 20 pages (--limit): \
             `webfill site a.org --limit N` allows N further pages"
        );
        let part = describe_waiting_group(&waiting_group(WaitReason::Leased, 3, 0, 0), false, 0);
        assert_eq!(
            part,
            "3 sites of those checked have a task in flight, such as a.org"
        );
    }
}
