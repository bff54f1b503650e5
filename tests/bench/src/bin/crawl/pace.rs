//! (d) How close 1,000 sites with a delay of one second come to 1,000 pages a second, and whether any site gets a
//! request too early. Both are measured by the server's log.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use serde_json::json;
use webfill_bench::{Limit, Size, Verdict, catalogue_pages};

use crate::failure::Failure;
use crate::peer::PeerCrawl;
use crate::processes::Cost;
use crate::scrapy;
use crate::web::{Answer, Arrival, Pages, Web, page_answer};
use crate::webfill::{Crawl, bench_file};

pub const DELAY: Duration = Duration::from_secs(1);

/// The settings of one crawl whose pace is measured.
#[derive(Clone, Copy)]
pub struct Plan {
    pub sites: usize,
    /// How long the crawl runs before it is ended.
    pub duration: Duration,
    /// How long nothing is counted after the first request, because the first request to each site costs more than
    /// later ones.
    pub warm_up: Duration,
}

impl Plan {
    pub fn from_size(size: Size) -> Plan {
        Plan {
            sites: size.pick(1_000, 100),
            duration: Duration::from_secs(size.pick(45, 20)),
            warm_up: Duration::from_secs(size.pick(15, 8)),
        }
    }
}

/// The number of links on each page to later pages, so that the crawl always knows further pages of each site.
const LINKS: usize = 4;

/// A thousand registrable domains, which all serve the same set of small pages.
pub struct Sites {
    items: Vec<Answer>,
    robots: Answer,
}

impl Sites {
    /// The sites, with `pages` pages each.
    pub fn build(pages: usize) -> Sites {
        let item = |number| {
            let following: Vec<usize> = (number + 1..=number + LINKS).collect();
            page_answer(
                "text/html; charset=utf-8",
                catalogue_pages::item_html(number, &following, &[]).as_bytes(),
            )
        };
        Sites {
            items: (0..pages).map(item).collect(),
            robots: page_answer(
                "text/plain",
                b"User-agent: *\nCrawl-delay: 1\nDisallow: /basket/\n",
            ),
        }
    }
}

impl Pages for Sites {
    fn answer(&self, _host: &str, path: &str) -> Option<Answer> {
        match path.strip_prefix("/item/") {
            Some(number) => self.items.get(number.parse::<usize>().ok()?).cloned(),
            None => (path == "/robots.txt").then(|| self.robots.clone()),
        }
    }
}

/// The results of one crawl, according to the server's log.
pub struct ServerView {
    /// The number of pages a second within the counted period `window`.
    pub rate: f64,
    pub window: Range<Instant>,
    pub short_gaps: usize,
    pub shortest: Duration,
    pub requests: usize,
}

pub fn run(size: Size) -> Result<Vec<Verdict>, Failure> {
    let plan = Plan::from_size(size);
    println!(
        "(d) {} sites, a delay of {} s, robots.txt heeded",
        plan.sites,
        DELAY.as_secs()
    );
    let web = Web::serve(Sites::build(2 * plan.duration.as_secs() as usize), 1)?;
    let ours = crawl_with_webfill(&web, plan)?;
    let theirs = crawl_with_scrapy(&web, plan)?;
    let allowed = plan.sites as f64 / DELAY.as_secs_f64();
    Ok(vec![
        Verdict {
            what: "(d) pages/s, as a share of what the delay allows".into(),
            figure: ours.rate / allowed,
            limit: Limit::AtLeast(0.95),
        },
        Verdict {
            what: "(d) gaps under the delay, as the server saw them".into(),
            figure: ours.short_gaps as f64,
            limit: Limit::AtMost(0.0),
        },
        Verdict {
            what: "(d) pages/s, as a multiple of Scrapy's".into(),
            figure: ours.rate / theirs.rate,
            limit: Limit::None,
        },
    ])
}

pub fn site_host(number: usize) -> String {
    format!("site-{number}.example")
}

fn seed_urls(port: u16, sites: usize) -> Vec<String> {
    (0..sites)
        .map(|number| format!("http://{}:{port}/item/0", site_host(number)))
        .collect()
}

fn crawl_with_webfill(web: &Web, plan: Plan) -> Result<ServerView, Failure> {
    let flags = format!(
        "--resolve *:{port}:127.0.0.1:{port} --delay 1 --follow all --depth 1000 --max-time {}s",
        plan.duration.as_secs(),
        port = web.port,
    );
    let crawl = Crawl {
        seeds: seed_urls(web.port, plan.sites),
        mapping: bench_file("catalogue/mapping.json"),
        flags: flags.split(' ').map(str::to_owned).collect(),
    };
    let crawled = crawl.run(|_| {})?;
    let seen = evaluate_arrivals(web, plan, None)?;
    seen.print("webfill", &crawled.cost);
    Ok(seen)
}

fn crawl_with_scrapy(web: &Web, plan: Plan) -> Result<ServerView, Failure> {
    let spider = PeerCrawl {
        seeds: seed_urls(web.port, plan.sites),
        mapping: bench_file("catalogue/mapping.json"),
        depth: 1_000,
        settings: json!({
            "ROBOTSTXT_OBEY": true,
            "DOWNLOAD_DELAY": DELAY.as_secs(),
            "RANDOMIZE_DOWNLOAD_DELAY": false,
            "CONCURRENT_REQUESTS": plan.sites,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
            // Scrapy's documentation recommends these settings for broad crawls.
            "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
            "DEPTH_PRIORITY": 1,
            "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
            "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
            "CLOSESPIDER_TIMEOUT": plan.duration.as_secs(),
        }),
        hosts: (0..plan.sites).map(site_host).collect(),
    };
    let spun = spider.run(scrapy::command()?)?;
    let seen = evaluate_arrivals(web, plan, None)?;
    seen.print("Scrapy", &spun.cost);
    Ok(seen)
}

/// Evaluates the server's log. Only after a robots.txt, a page may follow without delay. `end` is the end of the crawl,
/// if its first request came late.
pub fn evaluate_arrivals(
    web: &Web,
    plan: Plan,
    end: Option<Instant>,
) -> Result<ServerView, Failure> {
    let mut arrivals = web.take_arrivals();
    arrivals.retain(|arrival| arrival.path != "/robots.txt");
    let first = arrivals.front().ok_or("not one page was asked for")?.at;
    // The counted period ends three seconds before the crawl, which needed some time before its first request.
    let end = end.unwrap_or(first + plan.duration) - Duration::from_secs(3);
    let window = first + plan.warm_up..end;
    let counted = arrivals
        .iter()
        .filter(|arrival| window.contains(&arrival.at))
        .count();
    let gaps = gaps_between_arrivals(&arrivals);
    Ok(ServerView {
        rate: counted as f64 / (window.end - window.start).as_secs_f64(),
        window,
        short_gaps: gaps.iter().filter(|gap| **gap < DELAY).count(),
        shortest: gaps.into_iter().min().ok_or("no site was asked twice")?,
        requests: arrivals.len(),
    })
}

/// The time between each request and the previous request to the same site.
fn gaps_between_arrivals(arrivals: &VecDeque<Arrival>) -> Vec<Duration> {
    let mut last: HashMap<&str, Instant> = HashMap::new();
    let mut gaps = Vec::new();
    for arrival in arrivals {
        if let Some(before) = last.insert(&arrival.host, arrival.at) {
            gaps.push(arrival.at - before);
        }
    }
    gaps
}

impl ServerView {
    pub fn print(&self, name: &str, cost: &Cost) {
        println!(
            "  {name:<9} {:.0} pages/s; {} gaps under the delay, the shortest {:.4} s; {} pages in {:.0} s, {:.0} % of a core, {:.0} MiB PSS",
            self.rate,
            self.short_gaps,
            self.shortest.as_secs_f64(),
            self.requests,
            cost.elapsed.as_secs_f64(),
            100.0 * cost.cpu.as_secs_f64() / cost.elapsed.as_secs_f64(),
            cost.peak.pss_kib as f64 / 1024.0,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_lie_between_requests_to_one_site() {
        let start = Instant::now();
        let arrival = |host: &str, at_ms| Arrival {
            at: start + Duration::from_millis(at_ms),
            host: host.to_owned(),
            path: "/item/0".to_owned(),
        };
        let arrivals = [
            ("a", 0),
            ("b", 10),
            ("a", 1_000),
            ("b", 1_009),
            ("a", 2_500),
        ];
        let arrivals = arrivals.map(|(host, at_ms)| arrival(host, at_ms)).into();
        let gaps: Vec<u128> = gaps_between_arrivals(&arrivals)
            .iter()
            .map(Duration::as_millis)
            .collect();
        assert_eq!(gaps, [1_000, 999, 1_500]);
    }
}
