//! Sites that share a server: in some worlds all of them lie at one hosting company, half of them below
//! its suffix and the others at one of its addresses. Provider and address see the requests to all of
//! their sites, from all workers, and judge them by the bounds that the dispatcher was given
//! (`politeness.address_delay`, `politeness.address_in_flight`).

use std::net::{IpAddr, Ipv4Addr};

use webfill_dispatcher::GroupBounds;

use crate::dice::Dice;
use crate::plan::Plan;
use crate::sites::PagePlan;
use crate::web::Request;

/// Where all sites are that lie below no provider's suffix.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The dispatcher hands tasks out less than this long before the next start.
const LOOKAHEAD_MS: u64 = 1_000;

/// What a company has, for its sites to share.
const SERVERS: [&str; 2] = ["provider", "address"];

pub(crate) fn site_name(number: usize) -> String {
    match number % SERVERS.len() {
        0 => format!("s{number}.github.io"),
        _ => format!("s{number}.example"),
    }
}

/// What a name server says of a site that shares no provider's bounds.
pub(crate) fn addresses() -> [IpAddr; 1] {
    [ADDRESS]
}

impl Plan {
    /// In some worlds the bounds of groups are in force, and in some of those there are many more sites.
    pub(crate) fn add_group_bounds(&mut self, dice: &mut Dice) {
        if !dice.once_in(4) {
            return;
        }
        let bounds = GroupBounds {
            delay_ms: dice.one_of(&[0, 0, 200, 3_000]),
            in_flight: dice.between(1, 4) as u32,
            of_private: true,
        };
        if dice.once_in(3) {
            self.add_well_sites(dice, 40);
        }
        self.group_bounds = Some(bounds);
        self.estimate_ms = self.estimate_ms.max(self.estimate_of_groups_ms(bounds));
    }

    /// How long it takes if each request of a group waits for the others.
    fn estimate_of_groups_ms(&self, bounds: GroupBounds) -> u64 {
        let site_ms = |site: &crate::sites::SitePlan| {
            let requests = site.pages.iter().map(PagePlan::attempts).sum::<u32>() + 1;
            u64::from(requests) * (u64::from(bounds.delay_ms) + site.answers_within_ms)
        };
        self.sites.iter().map(site_ms).sum()
    }
}

/// What provider and address see of the requests to their sites.
#[derive(Debug)]
pub(crate) struct SharedServers {
    bounds: Option<GroupBounds>,
    servers: [Server; SERVERS.len()],
}

#[derive(Debug, Default)]
struct Server {
    /// Sites with the ends of the requests that are under way there.
    under_way: Vec<(usize, u64)>,
    /// When as many pages as were requested could all have been, each the delay after the one before.
    earliest_ms: u64,
}

impl SharedServers {
    pub(crate) fn new(bounds: Option<GroupBounds>) -> SharedServers {
        SharedServers {
            bounds,
            servers: Default::default(),
        }
    }

    /// A request arrives. Returns what is wrong with it.
    pub(crate) fn begins(
        &mut self,
        site: usize,
        request: Request,
        (now_ms, ends_ms): (u64, u64),
    ) -> Option<String> {
        let bounds = self.bounds?;
        let kind = site % SERVERS.len();
        let server = &mut self.servers[kind];
        server.under_way.retain(|(_, until_ms)| *until_ms > now_ms);
        server.under_way.push((site, ends_ms));
        if server.under_way.len() > bounds.in_flight as usize {
            let together = &server.under_way;
            let (kind, most) = (SERVERS[kind], bounds.in_flight);
            return Some(format!(
                "the {kind} may be asked {most} times at once, and has {together:?}"
            ));
        }
        if matches!(request, Request::Page { .. }) {
            let delay_ms = u64::from(bounds.delay_ms);
            // What was handed out and waits for its turn at its site comes later than planned, all at once.
            let in_hand_ms = (u64::from(bounds.in_flight) + 1) * delay_ms + LOOKAHEAD_MS;
            server.earliest_ms = server.earliest_ms.max(now_ms) + delay_ms;
            if server.earliest_ms > now_ms + in_hand_ms {
                let ahead_ms = server.earliest_ms - now_ms;
                let kind = SERVERS[kind];
                return Some(format!("the {kind}'s pages are {ahead_ms} ms too early"));
            }
        }
        None
    }

    /// The worker that asks a site is gone, and its connection is closed.
    pub(crate) fn cut(&mut self, site: usize) {
        let server = &mut self.servers[site % SERVERS.len()];
        server.under_way.retain(|(asked, _)| *asked != site);
    }
}
