//! (c) The CPU time of all processes for each page, in milliseconds, on one core and with delay 0. In the same run, the
//! crawlers Scrapy and spider-rs crawl the same web with the same links and fields, for comparison. webfill and
//! spider-rs obey robots.txt; Scrapy does not read it.

use std::time::Duration;

use serde_json::{Value, json};
use webfill_bench::{Limit, Size, Verdict};

use crate::articles::Articles;
use crate::catalogue::Catalogue;
use crate::cores;
use crate::failure::Failure;
use crate::peer::PeerCrawl;
use crate::processes::Cost;
use crate::scrapy;
use crate::spider_rs;
use crate::web::{Pages, Web};
use crate::webfill::{Crawl, Fields, bench_file};

/// The number of sites that the pages are spread over. webfill never has two requests in flight to one site, so up to
/// 16 are in flight at a time, as is Scrapy's default.
const SITES: u8 = 16;

/// The number of small and of real pages, each for the full and for the small size of the benchmark.
const SMALL_PAGES: [usize; 2] = [10_000, 1_500];
const REAL_PAGES: [usize; 2] = [6_000, 300];

/// A web to crawl: its seeds, its depth, and the limits for the cost.
struct Course {
    name: &'static str,
    seeds: Vec<String>,
    depth: u32,
    mapping: &'static str,
    /// The largest allowed costs, as shares of the CPU times of Scrapy and of spider-rs.
    limits: [f64; 2],
}

/// Measures the cost of small pages, which are found by links.
pub fn measure_small_pages(size: Size) -> Result<Vec<Verdict>, Failure> {
    let catalogue = build_catalogue(size);
    let described = catalogue.describe();
    let web = cores::run_on_last_core(|| serve_on_all_sites(catalogue))?;
    let course = small_pages_course(&web);
    cores::run_on_first_core(|| course.run(size, &described, &web))
}

/// Serves the small pages and prepares webfill's crawl of them. Returns the web and the crawl.
pub fn small_crawl(size: Size) -> Result<(Web, Crawl), Failure> {
    let web = serve_on_all_sites(build_catalogue(size))?;
    let crawl = small_pages_course(&web).webfill_crawl();
    Ok((web, crawl))
}

fn build_catalogue(size: Size) -> Catalogue {
    let [full, small] = SMALL_PAGES;
    let pages = size.pick(full, small);
    Catalogue::build(pages.div_ceil(usize::from(SITES)))
}

fn small_pages_course(web: &Web) -> Course {
    Course {
        name: "small pages, links followed",
        seeds: site_urls(web.port)
            .map(|site| format!("{site}/item/0"))
            .collect(),
        depth: 50,
        mapping: "catalogue/mapping.json",
        limits: [1.0 / 15.0, 0.85],
    }
}

/// Measures the cost of real pages, which are all seeds.
pub fn measure_real_pages(size: Size) -> Result<Vec<Verdict>, Failure> {
    let articles = Articles::load()?;
    let described = articles.describe();
    let [full, small] = REAL_PAGES;
    let paths: Vec<String> = articles.paths(size.pick(full, small)).collect();
    let web = cores::run_on_last_core(|| serve_on_all_sites(articles))?;
    let sites: Vec<String> = site_urls(web.port).collect();
    let spread = paths.iter().zip(sites.iter().cycle());
    let course = Course {
        name: "real pages, no links followed",
        seeds: spread.map(|(path, site)| format!("{site}{path}")).collect(),
        depth: 0,
        mapping: "articles/mapping.json",
        limits: [2.0 / 5.0, 0.42],
    };
    cores::run_on_first_core(|| course.run(size, &described, &web))
}

fn serve_on_all_sites(pages: impl Pages) -> Result<Web, Failure> {
    Web::serve(pages, SITES)
}

fn site_urls(port: u16) -> impl Iterator<Item = String> {
    (1..=SITES).map(move |last| format!("http://127.0.0.{last}:{port}"))
}

impl Course {
    fn run(&self, size: Size, described: &str, web: &Web) -> Result<Vec<Verdict>, Failure> {
        println!("(c) {}: {described}, {SITES} sites", self.name);
        let ours = self.webfill_crawl().run(|_| {})?;
        print_cost("webfill", ours.pages(), &ours.cost);
        for (role, cpu) in &ours.cost.roles {
            println!("    {role:<11} {:.3}", millis_per_page(*cpu, ours.pages()));
        }
        let (millis, fields) = (millis_per_page(ours.cost.cpu, ours.pages()), ours.fields()?);
        let peers = [
            ("Scrapy", Some(scrapy::command()?)),
            // spider-rs is an optimised program, so it is not compared with a debug build.
            ("spider-rs", size.pick(spider_rs::command(), None)),
        ];
        let mut verdicts = Vec::new();
        for ((name, program), limit) in peers.into_iter().zip(self.limits) {
            let Some(program) = program else {
                println!("  {name}: left out");
                continue;
            };
            web.take_arrivals();
            let theirs = self.peer_crawl().run(program)?;
            print_cost(name, theirs.pages, &theirs.cost);
            ensure_same_fields(&fields, &theirs.fields()?)?;
            verdicts.push(Verdict {
                what: format!("(c) CPU a page, {}, as a share of {name}'s", self.name),
                figure: millis / millis_per_page(theirs.cost.cpu, theirs.pages),
                limit: Limit::AtMost(limit),
            });
        }
        Ok(verdicts)
    }

    fn webfill_crawl(&self) -> Crawl {
        let flags = format!("--delay 0 --follow all --depth {}", self.depth);
        Crawl {
            seeds: self.seeds.clone(),
            mapping: bench_file(self.mapping),
            flags: flags.split(' ').map(str::to_owned).collect(),
        }
    }

    fn peer_crawl(&self) -> PeerCrawl {
        PeerCrawl {
            seeds: self.seeds.clone(),
            mapping: bench_file(self.mapping),
            depth: self.depth,
            settings: json!({}),
            hosts: Vec::new(),
        }
    }
}

fn print_cost(name: &str, pages: u64, cost: &Cost) {
    println!(
        "  {name:<9} {:.3} ms a page ({pages} pages, {:.2} s CPU, {:.2} s, {:.0} pages/s, {:.0} MiB PSS at most)",
        millis_per_page(cost.cpu, pages),
        cost.cpu.as_secs_f64(),
        cost.elapsed.as_secs_f64(),
        pages as f64 / cost.elapsed.as_secs_f64(),
        cost.peak.pss_kib as f64 / 1024.0,
    );
}

/// The CPU time for each page, in milliseconds.
pub fn millis_per_page(cpu: Duration, pages: u64) -> f64 {
    cpu.as_secs_f64() * 1e3 / pages.max(1) as f64
}

/// Removes texts of white space from a value, because only the other crawlers count them as values. `None` if nothing
/// is left.
fn without_blanks(value: &Value) -> Option<Value> {
    let is_blank = |item: &Value| item.as_str().is_some_and(|text| text.trim().is_empty());
    match value {
        Value::Array(items) => {
            let shown = items.iter().filter(|item| !is_blank(item)).cloned();
            let shown: Vec<Value> = shown.collect();
            (!shown.is_empty()).then_some(Value::Array(shown))
        }
        other => (!is_blank(other)).then(|| other.clone()),
    }
}

/// Checks that both crawlers have extracted the same values of the pages that the other one has read. They may differ on
/// a few broken pages, which the two HTML parsers read differently. The other crawler may lose a few pages: its cost is
/// that of a page that it reads.
fn ensure_same_fields(ours: &Fields, theirs: &Fields) -> Result<(), Failure> {
    let names = theirs
        .iter()
        .flat_map(|(url, fields)| fields.iter().map(move |field| (url, field)));
    let (mut all, mut same, mut example) = (0, 0, None);
    for (url, (name, value)) in names {
        let Some(value) = without_blanks(value) else {
            continue;
        };
        let beside = ours.get(url).and_then(|fields| fields.get(name));
        all += 1;
        same += usize::from(beside == Some(&value));
        if beside != Some(&value) {
            example = example.or(Some((url, name, value, beside)));
        }
    }
    println!("  the same values in {same} of {all} fields");
    if theirs.len() * 100 < ours.len() * 95 {
        return Err(format!("it has read {} of {} pages", theirs.len(), ours.len()).into());
    }
    let shared = ours.iter().filter(|(url, _)| theirs.contains_key(*url));
    let stored: usize = shared.map(|(_, fields)| fields.len()).sum();
    if same * 100 < all * 97 || stored.abs_diff(all) * 100 > all * 3 {
        return Err(
            format!("the fields differ: {stored} beside {all}, such as {example:?}").into(),
        );
    }
    Ok(())
}
