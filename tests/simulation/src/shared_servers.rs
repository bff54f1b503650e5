//! Sites that share a server. In some worlds all sites belong to one hosting company: half of them are below its
//! suffix, and the others are at one of its addresses. Both the provider and the address see the requests to all of
//! their sites, from all workers. They check these requests against the limits given to the dispatcher
//! (`politeness.address_delay`, `politeness.address_in_flight`).

use std::net::{IpAddr, Ipv4Addr};

use webfill_scheduler::GroupBounds;

use crate::names::SERVERS;
use crate::request::Request;

/// The address of all sites that are not below a provider's suffix.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The dispatcher hands out a task at most this long before its request may start, in milliseconds.
const LOOKAHEAD_MS: u64 = 1_000;

/// The answer of a name server for a site that is not below the provider's suffix.
pub(crate) fn server_addresses() -> [IpAddr; 1] {
    [ADDRESS]
}

/// The requests to the sites of the provider, and to the sites at the address.
#[derive(Debug)]
pub(crate) struct SharedServers {
    bounds: Option<GroupBounds>,
    servers: [Server; SERVERS.len()],
}

#[derive(Debug, Default)]
struct Server {
    /// The sites with a request in progress, each with the time when the request ends.
    under_way: Vec<(usize, u64)>,
    /// When the last page could have been requested, if all pages so far had been requested as early as the delay
    /// permits.
    earliest_ms: u64,
}

impl SharedServers {
    pub(crate) fn new(bounds: Option<GroupBounds>) -> SharedServers {
        SharedServers {
            bounds,
            servers: Default::default(),
        }
    }

    /// Checks a request that arrives at a server against the limits. Returns a description of the violation, if there
    /// is one.
    pub(crate) fn on_request_begun(
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
            // Tasks that were handed out wait for their turn at their sites. All of them may be late and start at the
            // same time, which is permitted.
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

    /// Notes the death of a worker that was requesting this site. Its connection is closed, so the request is over.
    pub(crate) fn on_worker_gone(&mut self, site: usize) {
        let server = &mut self.servers[site % SERVERS.len()];
        server.under_way.retain(|(asked, _)| *asked != site);
    }
}
