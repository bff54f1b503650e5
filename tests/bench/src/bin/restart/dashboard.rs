//! Measures how long a person waits for each view of a fleet's dashboard, with the same large state.

use std::time::Duration;

use webfill_bench::visit::timed_get;

use crate::state::{CRAWLS, MadeState, URLS_OF_SITE, crawl_id, supervisor_name, url};
use crate::{Failure, Plan};

/// The number of requests for each view. Each request is about another site, crawl or URL.
const CHECKS: u64 = 10;

/// The name of a view, and the longest wait for it.
pub type Waited = (&'static str, Duration);

struct Place {
    name: &'static str,
    path: String,
    /// The text that the view must contain.
    shows: String,
}

pub fn time_views(address: &str, plan: &Plan, made: &MadeState) -> Result<Vec<Waited>, Failure> {
    // The first visitor waits while the overview is read from the store. Later visitors get the same result.
    let mut waits = vec![(
        "the overview, at first",
        timed_get(address, "/dashboard/")?.0,
    )];
    for check in 0..CHECKS {
        for place in views_to_request(check, plan, made) {
            let (waited, page) = timed_get(address, &place.path)?;
            if !page.contains(&place.shows) {
                return Err(format!("{} does not show {}", place.path, place.shows).into());
            }
            match waits.iter_mut().find(|(name, _)| *name == place.name) {
                Some((_, longest)) => *longest = waited.max(*longest),
                None => waits.push((place.name, waited)),
            }
        }
    }
    Ok(waits)
}

fn views_to_request(check: u64, plan: &Plan, made: &MadeState) -> [Place; 7] {
    // The requested URLs are spread evenly over all URLs.
    let nth = plan.urls / CHECKS * check;
    let site = nth / URLS_OF_SITE;
    let crawl = crawl_id(CRAWLS / CHECKS * check);
    let place = |name, path: String, shows: String| Place { name, path, shows };
    [
        place("the overview", "/dashboard/".into(), crawl_id(CRAWLS - 1)),
        place(
            "a list of sites in trouble",
            "/dashboard/sites".into(),
            "shop-0.com".into(),
        ),
        place(
            "a list of all sites",
            format!("/dashboard/sites?state=all&after={site}"),
            format!("shop-{}.com", site + 7),
        ),
        place(
            "a site",
            format!("/dashboard/site/shop-{site}.com"),
            format!("shop-{site}.com"),
        ),
        place("a crawl", format!("/dashboard/crawl/bench/{crawl}"), crawl),
        place(
            "a URL",
            format!("/dashboard/find?url={}", url(nth)),
            url(nth),
        ),
        place(
            "machines",
            "/dashboard/machines".into(),
            supervisor_name(made.held.len() - 1),
        ),
    ]
}
