//! What is checked when a world has come to its end: how each page ended, and how often it was asked
//! for.

use std::collections::{BTreeSet, VecDeque};

use webfill_wire::CrawlKey;

use crate::plan::{FAILS_FOR_GOOD, Plan};
use crate::worker::url;
use crate::world::World;

/// All that links lead to was fetched, and ended once, in each crawl.
pub(crate) fn check_end(world: &mut World) {
    if !world.client.is_finished() {
        return;
    }
    let outcomes = world.coordinator.witness().outcomes();
    let reachable = reachable(&world.plan);
    let mut faults = Vec::new();
    for crawl in 0..world.plan.priorities.len() {
        // In order of their opening.
        let key = crawl as CrawlKey + 1;
        for (site, page) in &reachable {
            let outcome = outcomes.get(&(key, url(*site, *page))).cloned();
            faults.extend(check_page(world, key, (*site, *page), outcome.as_ref()));
        }
        let tasks = outcomes.keys().filter(|(of, _)| *of == key).count();
        if tasks != reachable.len() && !world.plan.stops(crawl) {
            faults.push(format!("{tasks} tasks of {} URLs", reachable.len()));
        }
    }
    if world.plan.is_peaceful() && !world.plan.cache_fails {
        for site in 0..world.plan.sites.len() {
            let asked = world.web.robots_asked(site);
            if asked != 1 {
                faults.push(format!(
                    "robots.txt of site {site} was asked for {asked} times"
                ));
            }
        }
    }
    world.faults.append(&mut faults);
}

/// How a page ended in a crawl, and how often it was asked for.
fn check_page(
    world: &World,
    crawl: CrawlKey,
    (site, page): (usize, usize),
    outcome: Option<&Option<String>>,
) -> Vec<String> {
    let url = url(site, page);
    let plan = &world.plan.sites[site].pages[page];
    let expected = match (plan.kills_its_worker, plan.fails) {
        (true, _) => "crashed",
        (_, FAILS_FOR_GOOD) => "http_error",
        _ => "ok",
    };
    let was_stopped = world.plan.stops(crawl as usize - 1);
    let ended = outcome.and_then(Option::as_deref);
    if ended != Some(expected) {
        // A crawl that is over tries nothing again.
        let failed = plan.fails > 0 && ended == Some("http_error");
        let may_miss = was_stopped && (failed || matches!(ended, None | Some("stopped")));
        let fault = format!("{url} of crawl {crawl} ended as {ended:?} instead of {expected}");
        return (!may_miss).then_some(fault).into_iter().collect();
    }
    let asked = world.web.asked.get(&(crawl, site, page)).copied();
    let attempts = plan.attempts();
    if asked.is_none() || (world.plan.is_peaceful() && asked != Some(attempts)) {
        return vec![format!(
            "{url} of crawl {crawl} was asked for {asked:?} times"
        )];
    }
    Vec::new()
}

/// Pages that links lead to from the seeds, sites and pages, but for those behind pages that kill
/// whoever reads them.
fn reachable(plan: &Plan) -> BTreeSet<(usize, usize)> {
    let mut found: BTreeSet<(usize, usize)> = (0..plan.sites.len()).map(|site| (site, 0)).collect();
    let mut unread: VecDeque<(usize, usize)> = found.iter().copied().collect();
    while let Some((site, page)) = unread.pop_front() {
        let page = &plan.sites[site].pages[page];
        for link in page.links.iter().filter(|_| page.is_read()) {
            if found.insert(*link) {
                unread.push_back(*link);
            }
        }
    }
    found
}
