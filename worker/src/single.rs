//! Fetches single pages without a crawl, for commands that test a URL or a mapping. The rules of a crawl apply:
//! robots.txt, delays, address checks and limits. There is no store: what is known about sites and their robots.txt is
//! lost with the fetcher. So the caller passes in the times of earlier requests.

use std::cell::RefCell;
use std::time::Duration;

use tokio::time::sleep;
use webfill_service::Fault;
use webfill_urls::{Url, canonical_url, site};
use webfill_wire::{AddressBounds, Delivery, Outcome, Task};

use crate::block_outcome;
use crate::client;
use crate::fetch::{FetchConfig, Fetched, Fetcher, PageRequest};
use crate::gate::Gate;
use crate::memory::{Memory, MemoryPermit};
use crate::now::{Now, millis_rounded_up};
use crate::permission::{Knowledge, Permission, PermissionCheck, Step};
use crate::permits::Permit;
use crate::politeness::{Answered, PageKey, PolitenessConfig};
use crate::resolve::Resolver;
use crate::robots::{self, RobotsFiles, RobotsResponse};
use crate::site_headers::SiteHeaders;
use crate::sites::{Sites, Turn};

/// How many redirects are followed: five, as for robots.txt (RFC 9309 2.3.1.2).
const MOST_REDIRECTS: usize = 5;

/// A function that says how long ago the site of a URL was last requested, if the caller knows.
pub type LastRequestAgo<'a> = &'a dyn Fn(&Url) -> Option<Duration>;

/// A page that was fetched.
#[derive(Debug)]
pub struct SinglePage {
    /// The page's URL, after redirects.
    pub url: Url,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
}

/// Why there is no page.
#[derive(Debug, Clone)]
pub struct NoPage {
    /// The URL that was requested last, after redirects.
    pub url: Url,
    pub outcome: Outcome,
    pub status_code: Option<u16>,
    pub reason: Option<String>,
}

/// A function that says whether a URL's site is on the operator's list of excluded sites.
pub type IsExcluded = Box<dyn Fn(&Url) -> bool>;

pub struct SingleFetcher {
    is_excluded: IsExcluded,
    politeness: PolitenessConfig,
    gate: Gate,
    resolver: Resolver,
    sites: RefCell<Sites>,
    robots: RefCell<RobotsFiles>,
    bodies: Memory,
    asked: RefCell<Vec<Url>>,
}

impl SingleFetcher {
    pub fn new(
        fetch: &FetchConfig,
        politeness: &PolitenessConfig,
        is_excluded: IsExcluded,
    ) -> Result<Self, Fault> {
        let resolver = Resolver::new(fetch, politeness).map_err(Fault::usage)?;
        let clients = client::build(fetch, politeness, &resolver)?;
        let headers = SiteHeaders::parse(&fetch.headers).map_err(Fault::usage)?;
        let fetcher = Fetcher::new(clients, resolver.clone(), fetch.clone())
            .with_headers(headers)
            .with_documents();
        let gate = Gate::new(fetcher, fetch);
        // The gate never closes, because no dispatcher could give the sites to another worker.
        gate.open_until(u64::MAX);
        Ok(SingleFetcher {
            is_excluded,
            politeness: politeness.clone(),
            gate,
            resolver,
            sites: RefCell::default(),
            robots: RefCell::default(),
            bodies: Memory::new(fetch.max_body_bytes),
            asked: RefCell::default(),
        })
    }

    /// Fetches a page. Follows redirects to another page.
    pub async fn fetch(
        &self,
        url: &Url,
        last_request_ago: LastRequestAgo<'_>,
    ) -> Result<SinglePage, NoPage> {
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            if (self.is_excluded)(&url) {
                let reason = String::from("its site is excluded by `dispatcher.exclude_sites`");
                return Err(NoPage::new(&url, Outcome::Disallowed, reason));
            }
            let fetched = self.fetch_one(&url, last_request_ago(&url)).await?;
            if fetched.outcome == Outcome::Ok {
                return Ok(SinglePage {
                    url,
                    content_type: fetched.content_type,
                    body: fetched.body,
                });
            }
            let target = fetched.redirect.as_deref();
            match target.and_then(|target| canonical_url(target, Some(&url)).ok()) {
                Some(target) => url = target,
                None => return Err(NoPage::from_answer(url, fetched)),
            }
        }
        let reason = format!("more than {MOST_REDIRECTS} redirects, one after another");
        Err(NoPage::new(&url, Outcome::Redirected, reason))
    }

    /// The URLs whose sites were requested since the last call, in order.
    pub fn take_requested_urls(&self) -> Vec<Url> {
        self.asked.take()
    }

    async fn fetch_one(&self, url: &Url, ago: Option<Duration>) -> Result<Fetched, NoPage> {
        let task = self.begin_task(url, ago);
        let permit = self.gate.issue_permit(&task);
        // Hold the lookup of the name, so that the requests for robots.txt and for the page share it.
        let _name = self.resolver.hold_lookup(url);
        let mut memory = self.bodies.take_for_body().await;
        let permission = self
            .check_permission(&task, url, &permit, &mut memory)
            .await;
        if !matches!(&permission, Err(refused) if refused.outcome == Outcome::UnsafeAddress) {
            self.asked.borrow_mut().push(url.clone());
        }
        let (delay, turn) = permission?;
        self.await_turn(&task.site, turn).await;
        let started = Now::read();
        let asked = PageRequest::from_url(url);
        let fetched = self.gate.fetch_page(&permit, asked, &mut memory).await;
        let mut fetched = fetched.map_err(|_| aborted_request(url))?;
        let sign = block_outcome::find_block_in_response(&mut fetched, url, None);
        if let Some(sign) = sign {
            fetched.error = Some(sign.describe());
        }
        let answered = Answered {
            started,
            at: fetched.answered_at,
            answer: fetched.answer,
            page: Some(PageKey::from_url(url.as_str())),
        };
        let pace = self.politeness.pace(delay);
        let mut sites = self.sites.borrow_mut();
        sites.note_page_answer(&task.site, answered, pace);
        Ok(fetched)
    }

    /// Makes a task for the URL, as in a crawl, and sets the time of the site's next request.
    fn begin_task(&self, url: &Url, last_request_ago: Option<Duration>) -> Task {
        let task = Task {
            task: 0,
            delivery: Delivery::new(0, 1),
            crawl: 0,
            url: url.to_string(),
            site: site(url),
            depth: 0,
            wait_ms: 0,
            last_request_ago_ms: last_request_ago.map(millis_rounded_up),
            parent: None,
            records: Vec::new(),
            attrs: None,
            priority: 50,
            delay_ms: None,
            failed_attempts: Vec::new(),
            unreachable: None,
            address_bounds: AddressBounds::None,
        };
        let mut sites = self.sites.borrow_mut();
        sites.add(task.clone(), self.politeness.delay(), Now::read());
        // The task is alone at its site, so it starts immediately.
        sites.next_task(&task.site);
        task
    }

    /// Returns the delay of the page's site, and the turn to wait for, if the page may be fetched.
    async fn check_permission(
        &self,
        task: &Task,
        url: &Url,
        permit: &Permit,
        memory: &mut MemoryPermit,
    ) -> Result<(Duration, Turn), NoPage> {
        if self.politeness.ignore_robots && self.resolver.is_private_host(url).await {
            let delay = self.politeness.delay_in_force(None, None);
            return Ok((delay, Turn::Page(delay)));
        }
        if let Err(refusal) = self.resolver.check_literal(url) {
            return Err(NoPage::new(url, refusal.outcome(), refusal.to_string()));
        }
        let mut check = PermissionCheck::begin(task, url, false, self.knowledge(), Now::read());
        loop {
            match check.next_step() {
                Step::LookUp(_) => check.note_cache_entry(None, self.knowledge(), Now::read()),
                Step::AwaitTurn(of) => {
                    let delay = self.politeness.delay();
                    self.sites.borrow_mut().begin_visit(&of, delay);
                    self.await_turn(&of, Turn::Robots).await;
                    check.note_turn(self.knowledge(), Now::read());
                }
                Step::Request(robots) => {
                    let asking =
                        self.gate
                            .fetch_robots(permit, &robots, robots::MOST_BYTES, memory);
                    let answer = asking.await.map(RobotsResponse::from);
                    check.note_response(answer, self.knowledge(), Now::read());
                }
                Step::Decided(permission) => return to_turn(permission, url),
            }
        }
    }

    async fn await_turn(&self, site: &str, turn: Turn) {
        let next = self.sites.borrow().next_start(site, turn);
        if let Some(next) = next {
            sleep(Now::read().time_until(next)).await;
        }
    }

    fn knowledge(&self) -> Knowledge<'_> {
        Knowledge {
            politeness: &self.politeness,
            sites: &self.sites,
            robots: &self.robots,
        }
    }
}

impl NoPage {
    fn new(url: &Url, outcome: Outcome, reason: String) -> NoPage {
        NoPage {
            url: url.clone(),
            outcome,
            status_code: None,
            reason: Some(reason),
        }
    }

    fn from_answer(url: Url, fetched: Fetched) -> NoPage {
        NoPage {
            url,
            outcome: fetched.outcome,
            status_code: fetched.status_code,
            reason: fetched.error,
        }
    }
}

fn to_turn(permission: Permission, url: &Url) -> Result<(Duration, Turn), NoPage> {
    match permission {
        Permission::Allowed { delay, turn } => Ok((delay, turn)),
        Permission::Refused { outcome, evidence } => Err(NoPage {
            url: url.clone(),
            outcome,
            status_code: None,
            reason: evidence.map(|evidence| evidence.sign),
        }),
        Permission::NotAsked | Permission::CutShort => Err(aborted_request(url)),
    }
}

/// The error of a request if this process was stopped during it for longer than a request may take.
fn aborted_request(url: &Url) -> NoPage {
    let reason = String::from("the request was aborted, because this process was stopped");
    NoPage::new(url, Outcome::Timeout, reason)
}
