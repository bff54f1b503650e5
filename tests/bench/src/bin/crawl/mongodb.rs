//! (f) The rate of MongoDB requests at 1,000 pages a second. The crawl is that of (d), but its store and cache are in a
//! separate MongoDB server, and every page completes a record. The server itself counts the requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mongodb::Client;
use mongodb::bson::doc;
use serde_json::json;
use webfill_bench::{Limit, Size, Verdict};
use webfill_test_mongod::Mongod;

use crate::failure::Failure;
use crate::pace::{self, DELAY, Plan, ServerView, Sites};
use crate::web::Web;
use crate::webfill::{Crawl, CrawlResult, bench_file};

const LIMIT: f64 = 50.0;

const SAMPLE_EVERY: Duration = Duration::from_millis(500);

pub fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    let plan = Plan::from_size(size);
    println!(
        "(f) {} sites, a delay of {} s, store and cache in MongoDB, a record for each page",
        plan.sites,
        DELAY.as_secs()
    );
    let mongod = Mongod::start();
    let web = Web::serve(Sites::build(pages_per_site(plan)), 1)?;
    let counting = RequestCounter::start(&mongod.uri("admin"))?;
    let crawled = crawl_into_store(&web, plan, &mongod.uri("bench"))?;
    let seen = pace::evaluate_arrivals(&web, plan, None)?;
    let requests = counting.finish()?.rate_within(&seen)?;
    seen.print("webfill", &crawled.cost);
    println!(
        "  {:.1} requests/s to MongoDB; records: {}",
        requests, crawled.summary["records"]
    );
    Ok(vec![
        Verdict {
            what: "(f) requests/s to MongoDB".into(),
            figure: requests,
            limit: Limit::AtMost(LIMIT),
        },
        Verdict {
            what: "(f) pages/s meanwhile, each with a record, as a share of (d)'s".into(),
            figure: seen.rate * DELAY.as_secs_f64() / plan.sites as f64,
            limit: Limit::None,
        },
    ])
}

/// The number of pages of each site: more than a crawl of this duration can fetch.
fn pages_per_site(plan: Plan) -> usize {
    plan.duration.as_secs() as usize + 1
}

/// The seeds: first one page of each site, then a second page of each, and so on.
fn seed_records(port: u16, plan: Plan) -> Vec<String> {
    let pages =
        (0..pages_per_site(plan)).flat_map(|page| (0..plan.sites).map(move |site| (page, site)));
    let record = |(page, site): (usize, usize)| {
        let url = format!("http://{}:{port}/item/{page}", pace::site_host(site));
        json!({"id": format!("{site}/{page}"), "urls": [url], "want": ["name", "price"]})
            .to_string()
    };
    pages.map(record).collect()
}

fn crawl_into_store(web: &Web, plan: Plan, store: &str) -> Result<CrawlResult, Failure> {
    let flags = format!(
        "--resolve *:{port}:127.0.0.1:{port} --delay 1 --depth 0 --max-time {}s --store {store}",
        plan.duration.as_secs(),
        port = web.port,
    );
    let crawl = Crawl {
        seeds: seed_records(web.port, plan),
        mapping: bench_file("catalogue/mapping.json"),
        flags: flags.split(' ').map(str::to_owned).collect(),
    };
    crawl.run(|_| {})
}

/// Reads the server's count of requests at intervals during a crawl.
struct RequestCounter {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Result<RequestCounts, Failure>>,
}

/// The counts of requests, each with the time when it was read.
struct RequestCounts(Vec<(Instant, i64)>);

impl RequestCounter {
    fn start(uri: &str) -> Result<RequestCounter, Failure> {
        let over = Arc::new(AtomicBool::new(false));
        let (uri, reported) = (uri.to_owned(), Arc::clone(&over));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::spawn(move || runtime.block_on(count_requests(&uri, &reported)));
        Ok(RequestCounter { over, thread })
    }

    fn finish(self) -> Result<RequestCounts, Failure> {
        self.over.store(true, Ordering::Relaxed);
        let counted = self.thread.join();
        counted.map_err(|_| "the counting of requests panicked")?
    }
}

async fn count_requests(uri: &str, over: &AtomicBool) -> Result<RequestCounts, Failure> {
    let client = Client::with_uri_str(uri).await?;
    let database = client.database("admin");
    let mut counted = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let status = database.run_command(doc! {"serverStatus": 1}).await?;
        let requests = status.get_document("network")?.get_i64("numRequests")?;
        // Each reading of the count is itself a request, so these requests are subtracted.
        counted.push((Instant::now(), requests - counted.len() as i64));
        tokio::time::sleep(SAMPLE_EVERY).await;
    }
    Ok(RequestCounts(counted))
}

impl RequestCounts {
    /// The number of MongoDB requests a second, in the same period as the count of pages.
    fn rate_within(&self, seen: &ServerView) -> Result<f64, Failure> {
        let mut within = self.0.iter().filter(|(at, _)| seen.window.contains(at));
        let (Some(first), Some(last)) = (within.next(), within.next_back()) else {
            return Err("the server was not asked for its count".into());
        };
        Ok((last.1 - first.1) as f64 / (last.0 - first.0).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_outside_of_the_counted_period_are_ignored() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let counted = RequestCounts(vec![
            (at(0), 0),
            (at(10), 500),
            (at(15), 600),
            (at(20), 700),
            (at(30), 9_000),
        ]);
        let seen = |window| ServerView {
            rate: 0.0,
            window,
            short_gaps: 0,
            shortest: Duration::ZERO,
            requests: 0,
        };
        let rate = counted.rate_within(&seen(at(10)..at(25))).expect("samples");
        assert_eq!(rate, 20.0);
        assert!(counted.rate_within(&seen(at(50)..at(60))).is_err());
    }
}
