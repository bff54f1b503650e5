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
use crate::in_words::{because, counted, moment, seconds, span};
use crate::site_state::UNTIL_WOKEN_MS;

/// Why the tasks of a crawl at a site wait. The answer lists the reasons in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HeldFor {
    Leased,
    Turn,
    Delay,
    Group,
    Room,
    Aside,
    SetAside,
    Retry,
    Rest(BackoffReason),
    Block,
    Limit,
    /// A reason that holds the whole crawl.
    Crawl,
}

impl HeldFor {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            HeldFor::Leased => "fetch",
            HeldFor::Turn => "turn",
            HeldFor::Delay => "delay",
            HeldFor::Group => "address",
            HeldFor::Room => "room",
            HeldFor::Aside => "machine",
            HeldFor::SetAside => "set_aside",
            HeldFor::Retry => "retry",
            HeldFor::Rest(_) => "backoff",
            HeldFor::Block => "block",
            HeldFor::Limit => "limit",
            HeldFor::Crawl => "crawl",
        }
    }

    /// Whether time alone does not end the wait.
    fn has_no_end(self) -> bool {
        matches!(self, HeldFor::Limit | HeldFor::Crawl)
    }

    /// Whether the site may still refuse after the time at which it is tried again.
    fn may_last(self) -> bool {
        matches!(self, HeldFor::Rest(reason) if reason != BackoffReason::Busy)
    }
}

/// The progress of a crawl.
pub(super) struct Progress {
    pub(super) waits: Vec<Value>,
    pub(super) per_second: Option<f64>,
    /// The earliest end of the queued tasks that the delays of the sites allow.
    pub(super) not_before_ms: Option<i64>,
    pub(super) end_ms: Option<i64>,
    /// The estimates leave out these sites, which may stay in trouble, and their tasks.
    pub(super) left_out: Option<(u64, u64)>,
}

/// The sites that are held for one reason.
struct Held {
    by: HeldFor,
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
pub(super) fn progress(
    cx: &mut Context,
    crawl: CrawlKey,
    most_sites: usize,
    now_ms: i64,
) -> Result<Progress, FrontierError> {
    let status = cx.frontier.crawls().status(crawl)?;
    let left = status.queued + status.leased;
    let mut waits = Vec::new();
    if left > 0 {
        waits.extend(waits_of_fleet(cx, now_ms));
        waits.extend(waits_of_crawl(cx, crawl, now_ms)?);
    }
    let is_held = !waits.is_empty();
    let sites = cx.frontier.reports().queued_sites(crawl, most_sites)?;
    let is_whole = sites.len() < most_sites;
    let mut held: Vec<Held> = Vec::new();
    let mut slowest_ms = Some(now_ms);
    let (mut sites_left_out, mut tasks_left_out) = (0, 0);
    for site in &sites {
        let (by, until_ms, delay_ms) = held_for(cx, site, now_ms);
        add(&mut held, by, site, until_ms);
        if by.may_last() {
            sites_left_out += 1;
            tasks_left_out += site.queued;
            continue;
        }
        let spans_ms = i64::from(delay_ms).saturating_mul(site.queued as i64 - 1);
        let ends_ms = until_ms.max(now_ms).saturating_add(spans_ms);
        let is_endless = by.has_no_end() || until_ms >= UNTIL_WOKEN_MS;
        slowest_ms = slowest_ms
            .map(|so_far| so_far.max(ends_ms))
            .filter(|_| !is_endless);
    }
    held.sort_by_key(|held| held.by);
    let of_sites = held.iter().filter(|held| held.by != HeldFor::Crawl);
    waits.extend(of_sites.map(|held| held_json(held, is_whole, now_ms)));
    let per_second = cx.paces.per_second(crawl, status.done, now_ms);
    // A site that was not checked may be slower than all others, or have no end.
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
pub(super) fn waits_of_fleet(cx: &Context, now_ms: i64) -> Vec<Value> {
    let mut waits = Vec::new();
    let mut add = |what: &str, text: String| waits.push(json!({"for": what, "text": text}));
    if let Some(why) = cx.holds(now_ms) {
        add("dispatcher", format!("nothing is handed out: {why}"));
    }
    if let Some(why) = cx.surroundings.backends.store_fault() {
        add("store", format!("pages wait for the store: {why}"));
    }
    let mut supervisors = cx.dispatch.fleet.present_lanes().peekable();
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
    } else if let Some(cut_off) = machines::all_cut_off(cx) {
        let since = moment(cut_off.since_ms, now_ms);
        let text = format!(
            "all supervisors are offline since {since}: {}",
            cut_off.sign
        );
        add("egress", text);
    }
    waits
}

/// Why no task of the crawl is handed out.
pub(super) fn waits_of_crawl(
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
        let fill = limit.map_or(String::new(), |limit| format!(": {}", limit.in_words()));
        let text = match status.leased {
            0 => format!(
                "it has reached its limit of {}{fill}",
                counted(most, "page")
            ),
            _ => format!(
                "it reaches its limit of {} with the fetches in flight{fill}",
                counted(most, "page")
            ),
        };
        add("page_limit", text);
    }
    if let Some(lane) = cx.frontier.reports().lane_awaited(crawl)? {
        let text = format!("it waits for a supervisor of lane {lane}: none is connected");
        add("lane", text);
    }
    if status.queued > 0 {
        for limit in limits::awaited_limits(cx, &app) {
            let text = format!(
                "it waits for a limit of its application: {}",
                limit.in_words()
            );
            add("application_limits", text);
        }
    }
    Ok(waits)
}

/// Why a crawl's tasks wait at a site, until when (0: not known), and the site's delay.
pub(super) fn held_for(cx: &Context, site: &QueuedSite, now_ms: i64) -> (HeldFor, i64, u32) {
    let default_ms = cx.dispatch.schedule.default_delay_ms();
    let by_hand = site.rule_delay_ms;
    let stored_ms = site.delay_ms.or(by_hand).unwrap_or(default_ms);
    let stored_ms = stored_ms.max(by_hand.unwrap_or(0));
    let window = cx.dispatch.schedule.site_wait(site.id, now_ms);
    let delay_ms = window.map_or(stored_ms, |(_, delay_ms)| delay_ms);
    if let Some((SiteWait::Leased, _)) = window {
        return (HeldFor::Leased, 0, delay_ms);
    }
    if site.pages_left == Some(0) {
        return (HeldFor::Limit, 0, delay_ms);
    }
    if site.block_until_ms > now_ms {
        return (HeldFor::Block, site.block_until_ms, delay_ms);
    }
    if let Some((reason, _)) = site.rest.filter(|_| site.backoff_until_ms > now_ms) {
        return (HeldFor::Rest(reason), site.backoff_until_ms, delay_ms);
    }
    if site.is_held {
        return match site.next_try_ms {
            Some(at_ms) => (HeldFor::Retry, at_ms, delay_ms),
            None => (HeldFor::Crawl, 0, delay_ms),
        };
    }
    let (by, until_ms) = match window.map(|(wait, _)| wait) {
        Some(SiteWait::Time { until_ms }) => (HeldFor::Delay, until_ms),
        Some(SiteWait::Group) => (HeldFor::Group, 0),
        Some(SiteWait::Aside { until_ms }) => (HeldFor::Aside, until_ms),
        Some(SiteWait::SetAside { until_ms }) => (HeldFor::SetAside, until_ms),
        Some(SiteWait::Room) => (HeldFor::Room, 0),
        Some(SiteWait::Turn | SiteWait::Leased) => (HeldFor::Turn, 0),
        None if site.due_at_ms > now_ms => (HeldFor::Delay, site.due_at_ms),
        None => (HeldFor::Turn, 0),
    };
    (by, until_ms, delay_ms)
}

fn add(held: &mut Vec<Held>, by: HeldFor, site: &QueuedSite, until_ms: i64) {
    let since_ms = site.rest.map_or(0, |(_, since_ms)| since_ms);
    let Some(known) = held.iter_mut().find(|held| held.by == by) else {
        held.push(Held {
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

fn held_json(held: &Held, is_whole: bool, now_ms: i64) -> Value {
    let time = |at_ms: i64| (at_ms > 0 && at_ms < UNTIL_WOKEN_MS).then(|| seconds(at_ms));
    let mut row = json!({
        "for": held.by.as_str(),
        "sites": held.sites,
        "example": held.example,
        "text": sentence(held, is_whole, now_ms),
    });
    if held.first_ms > 0 {
        row["first"] = time(held.first_ms).into();
        row["last"] = time(held.last_ms).into();
    }
    if let HeldFor::Rest(reason) = held.by {
        row["reason"] = reason.as_str().into();
    }
    row
}

/// Describes sites that wait, such as `12 sites wait for their delay, such as a.example: the first for 3 s, the last
/// for 15 min`.
fn sentence(held: &Held, is_whole: bool, now_ms: i64) -> String {
    let one = held.sites == 1;
    let (site, its) = (&held.example, if one { "its" } else { "their" });
    let verb = |single: &'static str, several: &'static str| if one { single } else { several };
    let sites = match is_whole {
        true => counted(held.sites, "site"),
        false => format!("{} of those checked", counted(held.sites, "site")),
    };
    let such = match one {
        true => format!(" ({site})"),
        false => format!(", such as {site}"),
    };
    let until = ends(held, now_ms);
    match held.by {
        HeldFor::Leased => {
            let verb = verb("has", "have");
            format!("{sites} {verb} a task in flight{such}")
        }
        HeldFor::Turn => format!(
            "{sites} {} ready and {} for {its} turn{such}",
            verb("is", "are"),
            verb("waits", "wait")
        ),
        HeldFor::Delay => format!(
            "{sites} {} for {its} delay{such}{until}",
            verb("waits", "wait")
        ),
        HeldFor::Group => format!(
            "{sites} {} for others of {its} address or provider{such}",
            verb("waits", "wait")
        ),
        HeldFor::Room => format!(
            "{sites} {} for room at {its} supervisor{such}",
            verb("waits", "wait")
        ),
        HeldFor::Aside => format!(
            "{sites} {} because {its} supervisor is offline{such}{until}",
            verb("waits", "wait")
        ),
        HeldFor::SetAside => format!(
            "{sites} {} nothing to hand out in {its} turn (event site_set_aside in the dispatcher's log){such}{until}",
            verb("has", "have")
        ),
        HeldFor::Retry => format!(
            "{sites} {} until what has failed there is tried again{such}{until}",
            verb("waits", "wait")
        ),
        HeldFor::Rest(reason) if one => {
            let since = moment(held.since_ms, now_ms);
            format!(
                "1 site has been backing off since {since} because {}{such}{until}",
                because(reason)
            )
        }
        HeldFor::Rest(reason) => {
            format!(
                "{sites} are backing off, each because {}{such}{until}",
                because(reason)
            )
        }
        HeldFor::Block => format!("{sites} {} blocked by hand{such}{until}", verb("is", "are")),
        HeldFor::Limit => {
            let (left, most) = held.limit;
            let limit = limits::page_limit_of_site(site, left, most);
            let fill = limit.map_or(String::new(), |limit| format!(": {}", limit.in_words()));
            let verb = verb("has", "have");
            format!("{sites} {verb} reached {its} limit of pages{such}{fill}")
        }
        HeldFor::Crawl => format!("{sites} {} held with the crawl{such}", verb("is", "are")),
    }
}

/// When the wait of these sites ends, in words.
fn ends(held: &Held, now_ms: i64) -> String {
    if held.first_ms >= UNTIL_WOKEN_MS {
        return String::from(": until resumed manually");
    }
    if held.first_ms <= 0 {
        return String::new();
    }
    let first = span(held.first_ms - now_ms);
    match held.last_ms {
        _ if held.sites == 1 => format!(", {first} left"),
        last_ms if last_ms >= UNTIL_WOKEN_MS => {
            format!(": the first for {first}, some until resumed manually")
        }
        last_ms => format!(
            ": the first for {first}, the last for {}",
            span(last_ms - now_ms)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(by: HeldFor, sites: u64, first_ms: i64, last_ms: i64) -> Held {
        Held {
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
    fn what_sites_wait_for_is_said_with_numbers() {
        let said = |held: Held| sentence(&held, true, 1_000);
        assert_eq!(
            said(held(HeldFor::Delay, 12, 4_000, 901_000)),
            "12 sites wait for their delay, such as a.org: the first for 3 s, the last for 15 min"
        );
        assert_eq!(
            said(held(
                HeldFor::Rest(BackoffReason::Blocked),
                1,
                10_801_000,
                10_801_000
            )),
            "1 site has been backing off since 00:00:00 UTC because it blocks (a.org), about 3 h left"
        );
        let forever = UNTIL_WOKEN_MS;
        assert_eq!(
            said(held(
                HeldFor::Rest(BackoffReason::Blocked),
                2,
                5_000,
                forever
            )),
            "2 sites are backing off, each because it blocks, such as a.org: the first for 4 s, some until resumed manually"
        );
        assert_eq!(
            said(held(HeldFor::Turn, 1, 0, 0)),
            "1 site is ready and waits for its turn (a.org)"
        );
        assert_eq!(
            said(held(HeldFor::Limit, 2, 0, 0)),
            "2 sites have reached their limit of pages, such as a.org: 20 of 20 pages (--limit): \
             `webfill site a.org --limit N` allows N further pages"
        );
        let part = sentence(&held(HeldFor::Leased, 3, 0, 0), false, 0);
        assert_eq!(
            part,
            "3 sites of those checked have a task in flight, such as a.org"
        );
    }
}
