//! Draws the limits on groups of sites that share a server.

use webfill_scheduler::GroupBounds;

use crate::dice::Dice;
use crate::drawn_sites;
use crate::plan::Plan;
use crate::sites::{PagePlan, SitePlan};

/// In some worlds, sets limits on groups of sites. In some of these worlds, also adds many sites.
pub(crate) fn add_group_bounds(plan: &mut Plan, dice: &mut Dice) {
    if !dice.once_in(4) {
        return;
    }
    let bounds = GroupBounds {
        delay_ms: dice.one_of(&[0, 0, 200, 3_000]),
        in_flight: dice.between(1, 4) as u32,
        of_private: true,
    };
    if dice.once_in(3) {
        drawn_sites::add_healthy_sites(plan, dice, 40);
    }
    plan.group_bounds = Some(bounds);
    plan.estimate_ms = plan.estimate_ms.max(estimate_of_groups_ms(plan, bounds));
}

/// The duration of the crawl in the slowest case: all sites are in one group, so requests are made one after another.
fn estimate_of_groups_ms(plan: &Plan, bounds: GroupBounds) -> u64 {
    let site_ms = |site: &SitePlan| {
        let requests = site.pages.iter().map(PagePlan::attempts).sum::<u32>() + 1;
        u64::from(requests) * (u64::from(bounds.delay_ms) + site.answers_within_ms)
    };
    plan.sites.iter().map(site_ms).sum()
}
