//! The checks at the end of a world: which pages became tasks, how each task ended, and how often each page was
//! requested.
//!
//! The links of a page are followed if the page ended well. So which pages are reached depends on how other pages
//! ended, and this depends on robots.txt files and records.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use webfill_wire::CrawlKey;

use crate::faults::is_failure;
use crate::names::{CRAWLS, site_and_page_of, url};
use crate::plan::Plan;
use crate::robots::RobotsState;
use crate::sites::{FAILS_FOR_GOOD, PageFailure, PagePlan, SitePlan};
use crate::store::Store;
use crate::world::World;

/// For each page of a crawl, how its task ended; `None` for a task without an outcome.
type Outcomes = BTreeMap<(usize, usize), Option<String>>;

/// A page, by the number of its site and its own number.
type Place = (usize, usize);

pub(crate) fn check_end(world: &mut World) {
    if !world.client.is_finished() {
        return;
    }
    let all = world.coordinator.open_witness().outcomes();
    let records = world.coordinator.open_witness().records();
    let mut faults = Vec::new();
    for number in 0..world.plan.priorities.len() {
        // The client opens the crawls in order, which determines their keys.
        let crawl = number as CrawlKey + 1;
        let of_crawl = all.iter().filter(|((key, _), _)| *key == crawl);
        let outcomes: Outcomes = of_crawl
            .map(|((_, url), outcome)| (site_and_page_of(url), outcome.clone()))
            .collect();
        let served = |place: Place| records.get(&(crawl, url(place.0, place.1)));
        faults.extend(check_reach(world, number, &outcomes, &served));
        for (place, outcome) in &outcomes {
            let is_complete = is_complete(&world.store, served(*place));
            let outcome = outcome.as_deref();
            faults.extend(check_page(world, crawl, *place, outcome, is_complete));
        }
    }
    world.faults.append(&mut faults);
}

/// Whether all records that list this page as one of their URLs are complete.
fn is_complete(store: &Store, records: Option<&Vec<String>>) -> bool {
    records.is_some_and(|records| records.iter().all(|record| store.is_resolved(record)))
}

/// Checks which pages became tasks. These are the seeds, and the links of pages that ended with `ok`. The links of a
/// page are excepted if all records that it serves are complete.
fn check_reach<'a>(
    world: &World,
    number: usize,
    outcomes: &Outcomes,
    served: &impl Fn(Place) -> Option<&'a Vec<String>>,
) -> Vec<String> {
    let is_ok = |place: Place| outcomes.get(&place).cloned().flatten().as_deref() == Some("ok");
    let goes_on = |place: Place| is_ok(place) && !is_complete(&world.store, served(place));
    let tasks: BTreeSet<Place> = outcomes.keys().copied().collect();
    // A page may be in the store although its task was stopped: its worker died before the outcome arrived, and
    // meanwhile the records were completed. If another record is fed later, the crawl follows the links of this page
    // for it.
    let is_saved = |(site, page)| world.store.has_page(CRAWLS[number], &url(site, page));
    let reachable = reachable_pages(&world.plan, |place| is_ok(place) || is_saved(place));
    let due = reachable_pages(&world.plan, goes_on);
    let mut faults = Vec::new();
    if let Some(place) = tasks.difference(&reachable).next() {
        faults.push(format!("nothing links to {place:?} in crawl {number}"));
    }
    if let Some(place) = due.difference(&tasks).next()
        && !world.plan.ends_early(number)
    {
        faults.push(format!("{place:?} was not reached in crawl {number}"));
    }
    faults
}

/// The pages that are reached from the seeds, if only the links of pages accepted by `follows` are followed.
fn reachable_pages(plan: &Plan, follows: impl Fn(Place) -> bool) -> BTreeSet<Place> {
    let mut found: BTreeSet<Place> = (0..plan.sites.len()).map(|site| (site, 0)).collect();
    let mut unread: VecDeque<Place> = found.iter().copied().collect();
    while let Some((site, page)) = unread.pop_front() {
        let links = plan.sites[site].pages[page].links.iter();
        for link in links.filter(|_| follows((site, page))) {
            if found.insert(*link) {
                unread.push_back(*link);
            }
        }
    }
    found
}

/// Checks how the task of a page ended in a crawl, and how often the page was requested.
fn check_page(
    world: &World,
    crawl: CrawlKey,
    (site, page): Place,
    outcome: Option<&str>,
    is_complete: bool,
) -> Vec<String> {
    let (of_site, url) = (&world.plan.sites[site], url(site, page));
    let planned = &of_site.pages[page];
    let was_stopped = world.plan.ends_early(crawl as usize - 1);
    let expected = expected_outcome(planned);
    let is_tried_in_vain = world.lost_ways.was_tried_offline((crawl, site, page));
    if outcome != Some(expected) {
        // A crawl that was stopped or has expired retries nothing, so these outcomes are possible.
        let may_be_missed = match outcome {
            None => was_stopped,
            Some("stopped") => was_stopped || is_complete,
            Some("expired") => was_stopped,
            Some("blocked") => was_stopped && of_site.blocks.is_some(),
            Some(outcome) if Some(outcome) == failure_outcome(planned) => {
                was_stopped || is_complete
            }
            Some(_) => false,
        };
        let fault = format!("{url} of crawl {crawl} ended as {outcome:?} instead of {expected}");
        // With backoffs, the dispatcher retries tasks that failed because a machine was offline, even if it cannot
        // judge the machine. Only the attempts during two losses of the connection may add up to a failure.
        let may_be_machines = is_tried_in_vain
            && (was_stopped
                || is_complete
                || !world.plan.backoff
                || world.plan.loses_egress_twice()
                || of_site.is_ever_in_trouble());
        let is_permitted = |outcome| {
            is_explained_by_robots(of_site, page, planned, outcome)
                || (world.plan.backoff && is_unreachable(of_site, planned, outcome))
                || (world.plan.dead_hosts.is_some()
                    && may_become_unreachable_with(of_site, planned, outcome))
                || (may_be_machines
                    && (is_failure(outcome) || Some(outcome) == failure_outcome(planned)))
        };
        let is_permitted = may_be_missed || outcome.is_some_and(is_permitted);
        return (!is_permitted).then_some(fault).into_iter().collect();
    }
    let asked = world.web.asked.get(&(crawl, site, page)).copied();
    let may_become_unreachable = world.plan.backoff || is_tried_in_vain;
    if asked.is_none() && may_become_unreachable && planned.fails == FAILS_FOR_GOOD {
        // The site had already become unreachable, so the page was not requested.
        return Vec::new();
    }
    let attempts = planned.attempts();
    let is_exact = world.plan.is_peaceful()
        // A page that was fetched before a block may be fetched once more.
        && of_site.blocks.is_none()
        && !of_site.robots.ever_fails()
        && !(world.plan.backoff && of_site.ever_fails());
    if asked.is_none() || (is_exact && asked != Some(attempts)) {
        return vec![format!(
            "{url} of crawl {crawl} was requested {asked:?} times"
        )];
    }
    Vec::new()
}

/// The expected outcome of a page that robots.txt always allows.
fn expected_outcome(page: &PagePlan) -> &'static str {
    match (page.kills_its_worker, page.fails) {
        (true, _) => "crashed",
        (_, FAILS_FOR_GOOD) => failure_outcome(page).unwrap_or("ok"),
        _ => "ok",
    }
}

/// The outcome of a failed request for a page; `None` if no request for it fails.
fn failure_outcome(page: &PagePlan) -> Option<&'static str> {
    let failure = match page.failure {
        PageFailure::Overloaded { .. } => "http_error",
        PageFailure::NoAnswer => "timeout",
    };
    (page.fails > 0).then_some(failure)
}

/// Whether a site may have become unreachable because of a page that always fails. The failure of this page may be the
/// last one in a row in two cases: it is the first page after the backoffs that robots.txt has caused, or it is the
/// only page left besides `planned`, which always fails as well.
fn is_unreachable(site: &SitePlan, planned: &PagePlan, outcome: &str) -> bool {
    let for_good = |page: &&PagePlan| page.fails == FAILS_FOR_GOOD;
    let mut failing = site.pages.iter().filter(for_good);
    (site.robots.ever_fails() || for_good(&planned))
        && failing.any(|page| match page.failure {
            PageFailure::Overloaded { .. } => outcome == "http_error",
            PageFailure::NoAnswer => outcome == "network_error",
        })
}

/// Whether a task may have this outcome, if sites in temporary trouble become unreachable after few backoffs. The task
/// then ends either without a request, or with the last failure itself.
fn may_become_unreachable_with(site: &SitePlan, planned: &PagePlan, outcome: &str) -> bool {
    let outcomes = [
        "robots_unreachable",
        "network_error",
        "dns_error",
        "http_error",
    ];
    site.is_ever_in_trouble()
        && (outcomes.contains(&outcome) || Some(outcome) == failure_outcome(planned))
}

/// Whether the robots.txt of the site explains why a page has another outcome than planned.
fn is_explained_by_robots(site: &SitePlan, number: usize, page: &PagePlan, outcome: &str) -> bool {
    let states = || site.robots.states();
    match outcome {
        "disallowed" => states().any(|state| state.disallows(number)),
        "dns_error" => states().any(|state| *state == RobotsState::NoName),
        "robots_unreachable" => site.robots.ever_fails(),
        // The page may have ended so because its site was unreachable.
        "network_error" => page.fails == FAILS_FOR_GOOD,
        // Failures of robots.txt have used up attempts that the page would have needed.
        outcome => site.robots.ever_fails() && failure_outcome(page) == Some(outcome),
    }
}
