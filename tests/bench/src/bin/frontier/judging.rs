//! Runs the frontier through the same steps as a dispatcher does, one million URLs (a lap) after another.

use std::path::Path;
use std::time::Instant;

use webfill_api::CrawlSpec;
use webfill_scheduler::frontier::{Candidate, Frontier, Leased};
use webfill_wire::{CrawlKey, Lane, Outcome, SiteClock, TaskDone};

use crate::failure::Failure;
use crate::laps::{Lap, Watch};
use crate::plan::{MILLION, PAGES_PER_COMMIT, Plan};
use crate::web::{LINKS, NEW_LINKS, Web};

/// The results of a measurement.
pub struct Measured {
    /// The lowest rate of all laps: the number of links judged in a second of CPU time.
    pub rate: f64,
    /// The rate of the first lap.
    pub first_rate: f64,
    /// The largest resident memory, in MiB.
    pub peak_mib: f64,
    pub bytes_a_url: f64,
}

pub fn measure_frontier(dir: &Path, plan: &Plan) -> Result<Measured, Failure> {
    let mut frontier = Frontier::open(dir, plan.config.clone(), 0)?;
    let mut spec = CrawlSpec::new("bench", "frontier");
    spec.max_depth = u16::MAX;
    let crawl = frontier.crawls().open(&spec)?;
    let mut web = Web::new(plan.local);
    let status = frontier.crawls().status(crawl)?;
    web.known = status.queued + status.leased + status.done;
    let seeds = plan.skipped.max(NEW_LINKS * PAGES_PER_COMMIT as u64);
    while web.known < seeds {
        feed_seeds(&mut frontier, crawl, &mut web)?;
    }
    let (mut lowest_rate, mut first_rate) = (f64::INFINITY, None);
    while web.known < plan.seen {
        let goal = (web.known / MILLION + 1) * MILLION;
        let mut lap = Lap::default();
        while web.known < goal {
            lap.add(complete_pages(&mut frontier, &mut web)?);
        }
        print_lap(dir, web.known, &lap)?;
        lowest_rate = lowest_rate.min(lap.core_rate());
        first_rate = first_rate.or(Some(lap.core_rate()));
    }
    let (_, peak_mib) = read_memory_mib()?;
    // When the frontier is closed, it moves its write-ahead log into the file.
    drop(frontier);
    let bytes_a_url = disk_bytes(dir)? as f64 / web.known as f64;
    let begun = Instant::now();
    Frontier::open(dir, plan.config.clone(), 0)?;
    let opening = begun.elapsed().as_millis();
    println!("opening it again takes {opening} ms");
    Ok(Measured {
        rate: lowest_rate,
        first_rate: first_rate.unwrap_or(lowest_rate),
        peak_mib,
        bytes_a_url,
    })
}

fn feed_seeds(frontier: &mut Frontier, crawl: CrawlKey, web: &mut Web) -> Result<(), Failure> {
    let urls: Vec<String> = (0..4_000).map(|_| web.new_url()).collect();
    let seed = |url| Candidate {
        url,
        depth: 0,
        priority: None,
        parent: None,
        records: &[],
        attrs: None,
    };
    let seeds: Vec<_> = urls.iter().map(|url| seed(url.as_str())).collect();
    frontier.tasks().feed(crawl, &seeds, 0)?;
    frontier.commit()?;
    Ok(())
}

/// Completes the pages of one commit, and measures this. The time for making the links is not counted.
fn complete_pages(frontier: &mut Frontier, web: &mut Web) -> Result<Lap, Failure> {
    let mut watch = Watch::start()?;
    let mut leased = Vec::new();
    for site in frontier.sites().admit_due(i64::MAX, PAGES_PER_COMMIT)? {
        leased.extend(frontier.tasks().lease(site.id, 1, Lane::Http, 0)?.tasks);
        let mut clock = site.clock;
        clock.due_at_ms += 1_000;
        frontier.sites().evict(site.id, &clock)?;
    }
    let leasing = watch.lap()?;
    let reports: Vec<_> = leased.iter().map(|task| task_done(task, web)).collect();
    watch.lap()?;
    for report in &reports {
        frontier.tasks().complete(report, 0)?;
    }
    frontier.commit()?;
    let mut lap = watch.lap()?;
    lap.links = reports.len() as u64 * LINKS;
    lap.add(leasing);
    Ok(lap)
}

fn task_done(task: &Leased, web: &mut Web) -> TaskDone {
    TaskDone {
        task: task.task,
        delivery: task.delivery,
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 11_000,
        fields: 0,
        rows: 0,
        rows_stored: 0,
        links: web.page_links(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
        evidence: None,
    }
}

fn print_lap(dir: &Path, known: u64, lap: &Lap) -> Result<(), Failure> {
    let (rss, peak) = read_memory_mib()?;
    let disk = disk_bytes(dir)?;
    println!(
        "{:>3} M seen: {:>6.0}/s on the core, {:>6.0}/s by the clock, longest commit {:>3} ms, \
         RSS {rss:.0} MiB, peak {peak:.0}, disk {:.0} bytes a URL",
        known / MILLION,
        lap.core_rate(),
        lap.rate(),
        lap.longest.as_millis(),
        disk as f64 / known as f64,
    );
    Ok(())
}

fn disk_bytes(dir: &Path) -> Result<u64, Failure> {
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

/// The resident memory now, and its peak, in MiB.
fn read_memory_mib() -> Result<(f64, f64), Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let read = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    let value = |name| read(name).ok_or("no memory figures in /proc/self/status");
    Ok((value("VmRSS:")? / 1_024.0, value("VmHWM:")? / 1_024.0))
}
