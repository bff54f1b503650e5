//! How many links a second the frontier judges on one core, while more and more are seen.
//!
//! A page brings a hundred links of which twenty are new, as on real pages. Each step is the
//! dispatcher's own: due sites, leases, then outcomes with links (canonical form, scope, dedupe,
//! queue), clocks, and one commit for every forty pages. Beside it, in the same run, the plain
//! way: a table of hashes and `INSERT OR IGNORE`.
//!
//!     frontier [--seen MILLIONS = 10] [--uniform] [--skip MILLIONS = 0] [--memory MIB] [--state DIR]
//!
//! Of the links that are met again, seven in ten lead to the neighbourhood of the page and the
//! others anywhere; with `--uniform` all of them lead anywhere, which no real site does, but which
//! no cache helps against. With `--skip`, this many millions are fed as seeds first, unmeasured.
//! `--memory` is what the dedupe memory may take: less of it shows what more URLs would cost. With
//! `--state`, the frontier is kept there, and goes on from what it has.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use webfill_api::CrawlSpec;
use webfill_bench::{Limit, Size, Verdict, report};
use webfill_dispatcher::frontier::{Candidate, Frontier, FrontierConfig, Leased, page_cache_bytes};
use webfill_wire::{CrawlKey, Lane, Outcome, SiteClock, TaskDone};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LINKS: u64 = 100;
const NEW_LINKS: u64 = 20;
const PAGES_PER_COMMIT: usize = 40;
const SITES: u64 = 100_000;
const MILLION: u64 = 1_000_000;

const WANTED_RATE: f64 = 300_000.0;
const WANTED_RSS_MIB: f64 = 512.0;
const WANTED_BYTES: f64 = 122.0;
const WANTED_SLOWDOWN: f64 = 1.5;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let plan = Plan::read(std::env::args().skip(1), size)?;
    let dir = tempfile::tempdir()?;
    let state = plan.state.as_deref().unwrap_or(dir.path());
    println!(
        "judged links a second on one core, {NEW_LINKS} in {LINKS} new, the others {}",
        if plan.local {
            "mostly from nearby"
        } else {
            "from anywhere"
        }
    );
    let ours = measure_frontier(state, &plan)?;
    let theirs = measure_peer(dir.path(), &plan)?;
    println!(
        "INSERT OR IGNORE of hashes, at {} M seen: {theirs:.0}/s on the core; \
         the frontier in its slowest lap: {:.0}/s, {:.1} times as many",
        plan.seen / MILLION,
        ours.rate,
        ours.rate / theirs
    );
    let verdicts = [
        Verdict {
            what: format!(
                "links judged a second on one core, {} M seen",
                plan.seen / MILLION
            ),
            figure: ours.rate,
            limit: Limit::AtLeast(WANTED_RATE),
        },
        Verdict {
            what: "MiB resident at most".into(),
            figure: ours.peak_mib,
            limit: Limit::AtMost(WANTED_RSS_MIB),
        },
        Verdict {
            what: "bytes on disk a URL at the end".into(),
            figure: ours.bytes_a_url,
            limit: Limit::AtMost(WANTED_BYTES),
        },
        Verdict {
            what: "how many times as long the slowest million takes as the first".into(),
            figure: ours.first_rate / ours.rate,
            limit: Limit::AtMost(WANTED_SLOWDOWN),
        },
    ];
    Ok(report(&verdicts, size))
}

/// What is judged.
struct Measured {
    /// Links judged a second on the core: the lowest rate of all laps.
    rate: f64,
    /// That of the first lap.
    first_rate: f64,
    /// The most memory that was resident.
    peak_mib: f64,
    bytes_a_url: f64,
}

struct Plan {
    seen: u64,
    skipped: u64,
    local: bool,
    state: Option<PathBuf>,
    config: FrontierConfig,
}

impl Plan {
    fn read(mut args: impl Iterator<Item = String>, size: Size) -> Result<Plan, Failure> {
        let mut plan = Plan {
            seen: size.pick(10, 1) * MILLION,
            skipped: 0,
            local: true,
            state: None,
            config: FrontierConfig::default(),
        };
        while let Some(arg) = args.next() {
            let mut number = || -> Result<u64, Failure> {
                let number = args.next().ok_or("a number is missing at the end")?;
                Ok(number.parse()?)
            };
            match arg.as_str() {
                "--seen" => plan.seen = number()? * MILLION,
                "--skip" => plan.skipped = number()? * MILLION,
                "--memory" => {
                    plan.config.seen_memory_bytes = (number()? << 20) as usize;
                    plan.config.page_cache_bytes = page_cache_bytes(plan.config.seen_memory_bytes);
                }
                "--uniform" => plan.local = false,
                "--state" => plan.state = Some(args.next().ok_or("no folder at the end")?.into()),
                _ => return Err(format!("unknown argument `{arg}`").into()),
            }
        }
        Ok(plan)
    }
}

fn measure_frontier(dir: &Path, plan: &Plan) -> Result<Measured, Failure> {
    let mut frontier = Frontier::open(dir, plan.config.clone(), 0)?;
    let mut spec = CrawlSpec::new("bench", "frontier");
    spec.max_depth = u16::MAX;
    let crawl = frontier.open_crawl(&spec)?;
    let mut web = Web::new(plan.local);
    let status = frontier.crawl_status(crawl)?;
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
            lap.add(judge_pages(&mut frontier, &mut web)?);
        }
        print_lap(dir, web.known, &lap)?;
        lowest_rate = lowest_rate.min(lap.core_rate());
        first_rate = first_rate.or(Some(lap.core_rate()));
    }
    let (_, peak_mib) = memory_mib()?;
    // Closing takes the write-ahead log into the file.
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
    frontier.feed(crawl, &seeds, 0)?;
    frontier.commit()?;
    Ok(())
}

/// What was judged and how long that took, by the clock and in time on the core.
#[derive(Default)]
struct Lap {
    links: u64,
    time: Duration,
    core: Duration,
    longest: Duration,
}

impl Lap {
    fn add(&mut self, other: Lap) {
        self.links += other.links;
        self.time += other.time;
        self.core += other.core;
        self.longest = self.longest.max(other.time);
    }

    fn rate(&self) -> f64 {
        self.links as f64 / self.time.as_secs_f64()
    }

    /// What an otherwise idle machine would give: others' work is left out.
    fn core_rate(&self) -> f64 {
        self.links as f64 / self.core.as_secs_f64()
    }
}

/// One commit's worth of pages. Making the links up is not counted.
fn judge_pages(frontier: &mut Frontier, web: &mut Web) -> Result<Lap, Failure> {
    let mut watch = Watch::start()?;
    let mut leased = Vec::new();
    for site in frontier.next_sites(i64::MAX, PAGES_PER_COMMIT)? {
        leased.extend(frontier.lease(site.id, 1, Lane::Http, 0)?.tasks);
        let mut clock = site.clock;
        clock.due_at_ms += 1_000;
        frontier.return_site(site.id, &clock)?;
    }
    let leasing = watch.lap()?;
    let reports: Vec<_> = leased.iter().map(|task| page(task, web)).collect();
    watch.lap()?;
    for report in &reports {
        frontier.complete(report, 0)?;
    }
    frontier.commit()?;
    let mut lap = watch.lap()?;
    lap.links = reports.len() as u64 * LINKS;
    lap.add(leasing);
    Ok(lap)
}

/// Takes the time of what this thread does.
struct Watch {
    begun: Instant,
    core: Duration,
}

impl Watch {
    fn start() -> Result<Watch, Failure> {
        Ok(Watch {
            begun: Instant::now(),
            core: time_on_core()?,
        })
    }

    /// Since the start or the lap before.
    fn lap(&mut self) -> Result<Lap, Failure> {
        let now = Watch::start()?;
        let time = now.begun - self.begun;
        let lap = Lap {
            links: 0,
            time,
            core: now.core - self.core,
            longest: time,
        };
        *self = now;
        Ok(lap)
    }
}

/// Linux counts it in nanoseconds, in the first column.
fn time_on_core() -> Result<Duration, Failure> {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = figures.split(' ').next().unwrap_or_default().parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

fn page(task: &Leased, web: &mut Web) -> TaskDone {
    TaskDone {
        task: task.task,
        delivery: task.delivery,
        outcome: Outcome::Ok,
        status_code: Some(200),
        body_bytes: 11_000,
        fields: 0,
        links: web.page_links(),
        redirect: None,
        resolved: Vec::new(),
        clock: SiteClock::default(),
        evidence: None,
    }
}

fn print_lap(dir: &Path, known: u64, lap: &Lap) -> Result<(), Failure> {
    let (rss, peak) = memory_mib()?;
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

/// Resident now, and at most so far.
fn memory_mib() -> Result<(f64, f64), Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let read = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    let value = |name| read(name).ok_or("no memory figures in /proc/self/status");
    Ok((value("VmRSS:")? / 1_024.0, value("VmHWM:")? / 1_024.0))
}

/// The same links, each hashed and inserted, those that are new into a queue as well. Its table
/// begins with what is seen by then, in order, which is the best that can happen to it.
fn measure_peer(dir: &Path, plan: &Plan) -> Result<f64, Failure> {
    let mut db = Connection::open(dir.join("peer.db"))?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -160000;
         CREATE TABLE seen (key INTEGER PRIMARY KEY);
         CREATE TABLE tasks (id INTEGER PRIMARY KEY, state INTEGER, site TEXT, url TEXT);
         CREATE INDEX queued ON tasks (site) WHERE state = 0;",
    )?;
    let mut web = Web::new(plan.local);
    web.known = plan.seen;
    let mut keys = (0..plan.seen)
        .map(|nth| peer_key(&url(nth)))
        .collect::<Result<Vec<_>, _>>()?;
    keys.sort_unstable();
    let load = db.transaction()?;
    for key in keys {
        load.prepare_cached("INSERT OR IGNORE INTO seen VALUES (?1)")?
            .execute([key])?;
    }
    load.commit()?;
    let mut lap = Lap::default();
    while web.known < plan.seen + MILLION / 5 {
        let links: Vec<_> = (0..PAGES_PER_COMMIT)
            .flat_map(|_| web.page_links())
            .collect();
        let mut watch = Watch::start()?;
        insert_plainly(&mut db, &links)?;
        lap.add(Lap {
            links: links.len() as u64,
            ..watch.lap()?
        });
    }
    Ok(lap.core_rate())
}

fn insert_plainly(db: &mut Connection, links: &[String]) -> Result<(), Failure> {
    let transaction = db.transaction()?;
    for link in links {
        let url = webfill_urls::canonical(link, None)?;
        let sql = "INSERT OR IGNORE INTO seen VALUES (?1)";
        if transaction
            .prepare_cached(sql)?
            .execute([peer_key(url.as_str())?])?
            > 0
        {
            let sql = "INSERT INTO tasks (state, site, url) VALUES (0, ?1, ?2)";
            let values = params![webfill_urls::site(&url), url.as_str()];
            transaction.prepare_cached(sql)?.execute(values)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// 63 bits of the hash under which a page is stored.
fn peer_key(url: &str) -> Result<i64, Failure> {
    Ok((u64::from_str_radix(&webfill_urls::page_hash(url)[..16], 16)? >> 1) as i64)
}

/// A web made up as it is crawled: the nth URL is always the same.
struct Web {
    known: u64,
    rng: fastrand::Rng,
    local: bool,
}

impl Web {
    fn new(local: bool) -> Web {
        Web {
            known: 0,
            rng: fastrand::Rng::with_seed(1),
            local,
        }
    }

    fn page_links(&mut self) -> Vec<String> {
        let mut links: Vec<_> = (0..NEW_LINKS).map(|_| self.new_url()).collect();
        links.extend((NEW_LINKS..LINKS).map(|nth| {
            let nearby = self.local && nth % 10 < 7;
            url(if nearby {
                self.nearby()
            } else {
                self.anywhere()
            })
        }));
        links
    }

    fn new_url(&mut self) -> String {
        self.known += 1;
        url(self.known - 1)
    }

    fn anywhere(&mut self) -> u64 {
        self.rng.u64(..self.known)
    }

    /// Among the latest ten thousand, which the latest five hundred pages have in common.
    fn nearby(&mut self) -> u64 {
        self.known - 1 - self.rng.u64(..self.known.min(10_000))
    }
}

/// Some seventy bytes; most new links of one page belong to one site.
fn url(nth: u64) -> String {
    let neighbourhood = if nth % 10 == 9 { nth } else { nth / NEW_LINKS };
    let site = neighbourhood.wrapping_mul(0x9E37_79B9_7F4A_7C15) % SITES;
    let section = nth % 17;
    format!(
        "https://www.shop-{site}.com/section-{section}/an-article-about-{nth}?page={}",
        nth % 3
    )
}
