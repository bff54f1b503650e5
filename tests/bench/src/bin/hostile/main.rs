//! The effect of ten hostile clients on an honest one. There are two clients of each kind; each kind could once freeze
//! or end a dispatcher. Each client has its own key with the narrowest rights, and all attack at the same time.
//!
//!     hostile
//!
//! | kind | what it does |
//! |---|---|
//! | `info` | asks about an application with thousands of crawls, and reads no answer |
//! | `status` | sends questions, and leaves before the answers come |
//! | `patterns` | sends lists of requests, each for another crawl with its own patterns |
//! | `lists` | may only read, and sends lists as long as a message may be, and longer |
//! | `stops` | stops one crawl again and again |
//!
//! Meanwhile the honest client feeds one request after another, and a supervisor crawls. The measurements are the time
//! of each feed, the dispatcher's peak memory, and pages that were fetched twice because their leases were lost.

mod attacks;
mod fleet;
mod site;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use webfill_bench::{Limit, Size, Verdict, report};

use self::attacks::KINDS;
use self::fleet::Fleet;
use self::site::Site;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The duration of the attacks in the full and in the small size, in seconds.
const SECONDS: [u64; 2] = [60, 12];

/// The number of crawls of the application that the `info` attacks ask about.
const CRAWLS: [usize; 2] = [2_000, 500];

/// The number of pages of the crawl that runs during the attacks.
const PAGES: [usize; 2] = [6_000, 1_000];

const CLIENTS_OF_A_KIND: usize = 2;

/// The pause between two feeds of the honest client.
const PAUSE: Duration = Duration::from_millis(50);

/// The longest wait for a feed.
const WAIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let size = Size::from_env().map_err(Failure::from);
    match size.and_then(|size| Ok((run(size)?, size))) {
        Ok((verdicts, size)) => report(&verdicts, size),
        Err(failure) => {
            eprintln!("hostile: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    let pick = |[full, small]: [usize; 2]| size.pick(full, small);
    let [full, small] = SECONDS;
    let lasts = Duration::from_secs(size.pick(full, small));
    let (crawls, pages) = (pick(CRAWLS), pick(PAGES));
    let clients = CLIENTS_OF_A_KIND * KINDS.len();
    println!("{clients} hostile clients for {} s", lasts.as_secs());
    let site = Site::serve()?;
    let mut fleet = Fleet::start(&site)?;
    prepare(&fleet, crawls, pages)?;
    let alone = time_feeds(&fleet, Duration::from_secs(3), 0)?;
    println!(
        "  alone, a feed takes {:.0} ms (p99)",
        percentile_ms(&alone, 99)
    );
    let is_over = AtomicBool::new(false);
    let waits = std::thread::scope(|scope| {
        let mut attackers = Vec::new();
        for kind in KINDS {
            for number in 0..CLIENTS_OF_A_KIND {
                let key = kind.key_name(number);
                let (fleet, is_over) = (&fleet, &is_over);
                attackers.push(scope.spawn(move || kind.attack(fleet, &key, is_over)));
            }
        }
        let waits = time_feeds(&fleet, lasts, alone.len());
        is_over.store(true, Ordering::Relaxed);
        for attacker in attackers {
            attacker
                .join()
                .map_err(|_| "a hostile client has panicked")??;
        }
        waits
    })?;
    println!(
        "  beside them, {} feeds: median {:.0} ms, at worst {:.0} ms",
        waits.len(),
        percentile_ms(&waits, 50),
        percentile_ms(&waits, 100)
    );
    fleet.wait_until_crawled(pages)?;
    let verdict = |what: &str, figure: f64, limit: Limit| Verdict {
        what: what.into(),
        figure,
        limit,
    };
    Ok(vec![
        verdict(
            "ms until an honest feed is answered, 99th percentile",
            percentile_ms(&waits, 99),
            Limit::AtMost(1_000.0),
        ),
        verdict(
            "MiB of the dispatcher at its peak",
            fleet.peak_mib()?,
            Limit::AtMostEver(512.0),
        ),
        verdict(
            "pages fetched twice, because their lease was lost",
            site.count_repeated() as f64,
            Limit::AtMost(0.0),
        ),
    ])
}

/// Makes the crawls that the attacks need, and starts a crawl that runs during the attacks.
fn prepare(fleet: &Fleet, crawls: usize, pages: usize) -> Result<(), Failure> {
    let honest = fleet.client("honest")?;
    let blocked =
        json!({"action": "site", "site": "blocked.example", "block_until": 4_102_444_800u64});
    honest.ask(&blocked, WAIT)?;
    let many = (0..crawls).map(|nth| {
        let url = format!("http://blocked.example/{nth}");
        json!({"url": url, "appid": "many", "crawlid": format!("crawl-{nth}")})
    });
    let stopped =
        json!({"url": "http://blocked.example/stopped", "appid": "stops", "crawlid": "one"});
    let crawled = (0..pages).map(|nth| {
        let url = format!("http://site-{}.example/{nth}", nth % 20);
        json!({"url": url, "appid": "honest", "crawlid": "crawled"})
    });
    let all: Vec<_> = many.chain([stopped]).chain(crawled).collect();
    for list in all.chunks(500) {
        let answer = honest.ask(&json!(list), WAIT)?;
        if answer["accepted"] != list.len() {
            return Err(format!("a list was not accepted: {answer}").into());
        }
    }
    Ok(())
}

/// Feeds one request after another until the time is over. Returns the time that each took, sorted.
fn time_feeds(fleet: &Fleet, lasts: Duration, first: usize) -> Result<Vec<Duration>, Failure> {
    let client = fleet.client("honest")?;
    let (begun, mut waits) = (Instant::now(), Vec::new());
    while begun.elapsed() < lasts {
        let number = first + waits.len();
        let url = format!("http://blocked.example/fed/{number}");
        let request = json!({"url": url, "appid": "honest", "crawlid": "fed"});
        let asked = Instant::now();
        let answer = client.ask(&request, WAIT)?;
        if answer["accepted"] != 1 {
            return Err(format!("an honest request was not accepted: {answer}").into());
        }
        waits.push(asked.elapsed());
        std::thread::sleep(PAUSE);
    }
    waits.sort();
    Ok(waits)
}

/// A percentile of sorted times.
fn percentile_ms(waits: &[Duration], percent: usize) -> f64 {
    let place = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
    waits
        .get(place)
        .map_or(0.0, |wait| wait.as_secs_f64() * 1_000.0)
}
