//! The desk of the fleet over the same state: how long a person waits for each of its places.

use std::time::Duration;

use webfill_bench::visit::visit;

use crate::state::{CRAWLS, Made, URLS_OF_SITE, crawl_id, url};
use crate::{Failure, Plan};

/// So often each place is looked at, at other sites, crawls and URLs each time.
const LOOKS: u64 = 10;

/// The longest wait for a place, with its name.
pub type Waited = (&'static str, Duration);

pub fn look_through(address: &str, plan: &Plan, made: &Made) -> Result<Vec<Waited>, Failure> {
    let sites = plan.urls / URLS_OF_SITE;
    // The first visitor waits for what all others get.
    let mut waits = vec![("first sight, at first", visit(address, "/desk/")?.0)];
    let supervisors = made.held.len();
    let places: [(&str, &dyn Fn(u64) -> String, &dyn Fn(u64) -> String); 7] = [
        ("first sight", &|_| "/desk/".into(), &|_| {
            crawl_id(CRAWLS - 1)
        }),
        (
            "a list of sites in trouble",
            &|_| "/desk/sites".into(),
            &|_| "</table>".into(),
        ),
        (
            "a list of all sites",
            &|look| format!("/desk/sites?state=all&after={}", sites * look / LOOKS),
            &|look| format!("shop-{}.com", sites * look / LOOKS + 7),
        ),
        (
            "a site",
            &|look| format!("/desk/site/shop-{}.com", sites * look / LOOKS),
            &|look| format!("shop-{}.com", sites * look / LOOKS),
        ),
        (
            "a crawl",
            &|look| format!("/desk/crawl/bench/{}", crawl_id(look)),
            &|look| crawl_id(look),
        ),
        (
            "a URL",
            &|look| format!("/desk/find?url={}", url(plan.urls * look / LOOKS)),
            &|look| url(plan.urls * look / LOOKS),
        ),
        ("machines", &|_| "/desk/machines".into(), &|_| {
            format!("supervisor-{}", supervisors - 1)
        }),
    ];
    for (name, place, shown) in places {
        let mut longest = Duration::ZERO;
        for look in 0..LOOKS {
            let (waited, page) = visit(address, &place(look))?;
            if !page.contains(&shown(look)) {
                return Err(
                    format!("{} does not show {}: {page}", place(look), shown(look)).into(),
                );
            }
            longest = longest.max(waited);
        }
        waits.push((name, longest));
    }
    Ok(waits)
}
