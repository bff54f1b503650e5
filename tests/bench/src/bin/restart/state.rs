//! Makes the state that a lost dispatcher leaves behind.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use webfill_api::CrawlSpec;
use webfill_scheduler::frontier::{
    Candidate, Frontier, FrontierConfig, Leased, SavedSupervisor, SiteDue,
};
use webfill_wire::{CrawlKey, Delivery, Lane, Outcome, SiteClock, TaskDone};

use crate::{Failure, Plan};

pub const URLS_OF_SITE: u64 = 10;
pub const CRAWLS: u64 = 100;
const URLS_OF_BATCH: u64 = 5_000;

/// The number of tasks that are leased to each supervisor.
const HELD: usize = 20;

/// One fetched page in this many has failed.
const FAILED: usize = 20;

/// The number of sites where each supervisor has fetched a page.
const VISITED: usize = 50;

/// The facts about the made state that the simulated fleet needs.
pub struct MadeState {
    /// The leases of each supervisor.
    pub held: Vec<Vec<(u64, Delivery)>>,
    pub done: u64,
}

impl MadeState {
    pub fn leased_tasks(&self) -> usize {
        self.held.iter().map(Vec::len).sum()
    }
}

pub fn supervisor_name(supervisor: usize) -> String {
    format!("supervisor-{supervisor}")
}

pub fn make_state(dir: &Path, plan: &Plan) -> Result<MadeState, Failure> {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
    let mut frontier = Frontier::open(dir, FrontierConfig::default(), now_ms)?;
    let crawls = open_crawls(&mut frontier)?;
    for batch in 0..plan.urls / URLS_OF_BATCH {
        let crawl = crawls[(batch % CRAWLS) as usize];
        feed_batch(&mut frontier, crawl, batch * URLS_OF_BATCH, now_ms)?;
    }
    let mut made = MadeState {
        held: Vec::new(),
        done: 0,
    };
    for supervisor in 0..plan.supervisors as usize {
        fetch_pages(&mut frontier, supervisor, now_ms, &mut made)?;
    }
    for supervisor in 0..plan.supervisors as usize {
        lease_tasks(&mut frontier, supervisor, now_ms, &mut made)?;
    }
    Ok(made)
}

fn open_crawls(frontier: &mut Frontier) -> Result<Vec<CrawlKey>, Failure> {
    let mut crawls = Vec::new();
    for crawl in 0..CRAWLS {
        let mut spec = CrawlSpec::new("bench", crawl_id(crawl));
        spec.on_demand = true;
        crawls.push(frontier.crawls().upsert(None, spec)?);
    }
    Ok(crawls)
}

fn feed_batch(
    frontier: &mut Frontier,
    crawl: CrawlKey,
    first: u64,
    now_ms: i64,
) -> Result<(), Failure> {
    let urls: Vec<String> = (first..first + URLS_OF_BATCH).map(url).collect();
    let candidate = |url| Candidate {
        url,
        depth: 0,
        priority: None,
        parent: None,
        records: &[],
        attrs: None,
    };
    let candidates: Vec<_> = urls.iter().map(|url| candidate(url.as_str())).collect();
    let tally = frontier.tasks().feed(crawl, &candidates, now_ms)?;
    if tally.accepted != URLS_OF_BATCH {
        return Err(format!("{} URLs were accepted", tally.accepted).into());
    }
    frontier.set_now(now_ms);
    frontier.commit()?;
    Ok(())
}

pub fn crawl_id(nth: u64) -> String {
    format!("restart-{nth}")
}

/// A URL of some seventy bytes, as on real sites.
pub fn url(nth: u64) -> String {
    let site = nth / URLS_OF_SITE;
    format!(
        "https://www.shop-{site}.com/section-{}/an-article-about-{nth}",
        nth % 7
    )
}

/// Completes tasks for a supervisor: one page of each of some sites.
fn fetch_pages(
    frontier: &mut Frontier,
    supervisor: usize,
    now_ms: i64,
    made: &mut MadeState,
) -> Result<(), Failure> {
    for (nth, site) in frontier
        .sites()
        .admit_due(i64::MAX, VISITED)?
        .into_iter()
        .enumerate()
    {
        for task in frontier
            .tasks()
            .lease(site.id, 1, Lane::Http, now_ms)?
            .tasks
        {
            let has_failed = nth % FAILED == 0;
            frontier
                .tasks()
                .complete(&done_task(&task, has_failed), now_ms)?;
            made.done += u64::from(!has_failed);
        }
        let delay_ms = (nth % FAILED != 0).then_some(15_000);
        give_back_site(frontier, supervisor, site, delay_ms, now_ms)?;
    }
    frontier.commit()?;
    Ok(())
}

/// Leases tasks to a supervisor.
fn lease_tasks(
    frontier: &mut Frontier,
    supervisor: usize,
    now_ms: i64,
    made: &mut MadeState,
) -> Result<(), Failure> {
    let mut held = Vec::new();
    for site in frontier.sites().admit_due(now_ms, HELD)? {
        let leased = frontier
            .tasks()
            .lease(site.id, 1, Lane::Http, now_ms)?
            .tasks;
        held.extend(leased.iter().map(|task| (task.task, task.delivery)));
        give_back_site(frontier, supervisor, site, None, now_ms)?;
    }
    frontier.supervisors().save(&SavedSupervisor {
        name: supervisor_name(supervisor),
        instance: supervisor as u64,
        longest_request_ms: 60_000,
        silent_ms: 0,
    })?;
    frontier.commit()?;
    made.held.push(held);
    Ok(())
}

fn give_back_site(
    frontier: &mut Frontier,
    supervisor: usize,
    site: SiteDue,
    delay_ms: Option<u32>,
    now_ms: i64,
) -> Result<(), Failure> {
    let mut clock = site.clock;
    clock.due_at_ms = now_ms + 15_000;
    clock.last_start_ms = Some(now_ms);
    clock.delay_ms = delay_ms;
    clock.owner = Some(supervisor_name(supervisor));
    Ok(frontier.sites().evict(site.id, &clock)?)
}

fn done_task(task: &Leased, has_failed: bool) -> TaskDone {
    TaskDone {
        task: task.task,
        delivery: task.delivery,
        outcome: if has_failed {
            Outcome::DnsError
        } else {
            Outcome::Ok
        },
        status_code: (!has_failed).then_some(200),
        body_bytes: 11_000,
        fields: 0,
        rows: 0,
        rows_stored: 0,
        links: Vec::new(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
        evidence: None,
    }
}

/// The bytes of all files in a folder and its sub-folders.
pub fn disk_bytes(dir: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => disk_bytes(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
