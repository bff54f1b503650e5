//! The simulated web: how its sites answer, and which requests they get. It sees every request with its times, but
//! nothing of webfill's state.

use std::collections::BTreeMap;
use std::ops::Range;

use webfill_wire::{CrawlKey, Outcome};

use crate::judge::Judge;
use crate::plan::Plan;
use crate::request::{Process, Request, Response};
use crate::robots::RobotsPlan;
use crate::shared_servers::SharedServers;
use crate::sites::PageFailure;

/// The sites of the web.
#[derive(Debug)]
pub(crate) struct Web {
    robots: Vec<RobotsPlan>,
    blocks: Vec<Option<Range<u64>>>,
    pub(crate) judge: Judge,
    pub(crate) shared_servers: SharedServers,
    /// For each page of a crawl, the number of its requests. Requests during a block are not counted.
    pub(crate) asked: BTreeMap<(CrawlKey, usize, usize), u32>,
}

impl Web {
    pub(crate) fn new(plan: &Plan) -> Web {
        let plans = &plan.sites;
        Web {
            robots: plans.iter().map(|plan| plan.robots.clone()).collect(),
            blocks: plans.iter().map(|plan| plan.blocks.clone()).collect(),
            judge: Judge::new(plans, plan.default_delay_ms),
            shared_servers: SharedServers::new(plan.group_bounds),
            asked: BTreeMap::new(),
        }
    }

    /// Handles a request that arrives. Returns its answer, which will be complete at `ends_ms`.
    pub(crate) fn answer_request(
        &mut self,
        site: usize,
        request: Request,
        (now_ms, ends_ms): (u64, u64),
        (process, who): (Process, &str),
        failure: Option<(u32, PageFailure)>,
    ) -> Response {
        self.judge
            .on_request_begun(site, request, (now_ms, ends_ms), (process, who));
        let times = (now_ms, ends_ms);
        if let Some(fault) = self.shared_servers.on_request_begun(site, request, times) {
            let fault = format!("{fault}: site {site}, {request:?} by {who} at {now_ms}");
            self.judge.faults.push(fault);
        }
        match request {
            Request::Robots { hop } => self.robots[site].response(hop, now_ms),
            Request::Page { .. } if self.is_blocking(site, now_ms) => Response::blocked(),
            Request::Page { crawl, page, .. } => {
                let times = self.asked.entry((crawl, site, page)).or_default();
                *times += 1;
                match failure.filter(|(fails, _)| *times <= *fails) {
                    Some((_, failure)) => failure.response(),
                    None => Response::with_status(200, Outcome::Ok),
                }
            }
        }
    }

    /// Whether a site currently blocks everyone.
    fn is_blocking(&self, site: usize, now_ms: u64) -> bool {
        let blocks = self.blocks[site].as_ref();
        blocks.is_some_and(|while_ms| while_ms.contains(&now_ms))
    }
}
