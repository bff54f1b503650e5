//! The simulated web: how its sites answer, and which requests they see. It sees every request with its times, and
//! nothing of webfill's state.

use std::collections::BTreeMap;
use std::ops::Range;

use webfill_wire::{CrawlKey, Outcome};
use webfill_worker::Answer;

use crate::judge::{Judge, Process};
use crate::plan::Plan;
use crate::robots::{RobotsPlan, overload};
use crate::shared_servers::SharedServers;
use crate::sites::PageFailure;

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// A request for robots.txt, `hop` redirects after the first one.
    Robots { hop: u32 },
    /// A request for a page of a crawl, permitted at `decided_ms`.
    Page {
        crawl: CrawlKey,
        page: usize,
        decided_ms: u64,
    },
}

/// The answer of a site.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) outcome: Outcome,
    pub(crate) status: Option<u16>,
    pub(crate) body: String,
    pub(crate) redirect: Option<String>,
    pub(crate) answer: Answer,
    /// Why there was no answer.
    pub(crate) error: Option<String>,
    /// Whether the requesting machine may be the cause.
    pub(crate) no_route: bool,
    /// Whether the requesting machine has lost its way out, so that the site is not the cause.
    pub(crate) is_lost: bool,
}

impl Response {
    pub(crate) fn with_status(status: u16, outcome: Outcome) -> Response {
        Response {
            outcome,
            status: Some(status),
            body: String::new(),
            redirect: None,
            answer: Answer::Served,
            error: None,
            no_route: false,
            is_lost: false,
        }
    }

    pub(crate) fn overloaded(status: u16, retry_after_ms: Option<u64>) -> Response {
        Response {
            answer: overload(retry_after_ms),
            ..Response::with_status(status, Outcome::HttpError)
        }
    }

    /// A challenge instead of the page.
    pub(crate) fn blocked() -> Response {
        Response {
            outcome: Outcome::Blocked,
            ..Response::overloaded(403, None)
        }
    }

    /// The result of a request that gets no answer.
    pub(crate) fn without_answer(outcome: Outcome) -> Response {
        Response {
            status: None,
            answer: Answer::Silent,
            error: Some(format!("{outcome} of the site")),
            ..Response::with_status(0, outcome)
        }
    }
}

/// The sites of the web.
#[derive(Debug)]
pub(crate) struct Web {
    robots: Vec<RobotsPlan>,
    blocks: Vec<Option<Range<u64>>>,
    pub(crate) judge: Judge,
    pub(crate) shared_servers: SharedServers,
    /// How often each page of a crawl was requested while its site did not block.
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

    /// Handles an arriving request, and returns its answer, which will be complete at `ends_ms`.
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
            Request::Page { .. } if self.blocks(site, now_ms) => Response::blocked(),
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
    fn blocks(&self, site: usize, now_ms: u64) -> bool {
        let blocks = self.blocks[site].as_ref();
        blocks.is_some_and(|while_ms| while_ms.contains(&now_ms))
    }
}
