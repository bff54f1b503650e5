//! (c) CPU milliseconds a page, all processes together, delay 0, robots off; beside Scrapy on
//! the same web, with the same links and fields, in the same run.

use std::time::Duration;

use serde_json::json;

use crate::catalogue::Catalogue;
use crate::manual::Manual;
use crate::processes::Cost;
use crate::scrapy::Spider;
use crate::web::{Pages, Web};
use crate::webfill::{Crawl, Fields, bench_file};
use crate::{Failure, Verdict};

/// Sites that the pages are spread over: webfill never has two requests in flight to one, so
/// this is its parallelism, as 16 requests at once are Scrapy's by default.
const SITES: u8 = 16;

const SMALL_PAGES: usize = 10_000;
const REAL_PAGES: usize = 1_500;

/// What is crawled.
struct Course {
    name: &'static str,
    seeds: Vec<String>,
    depth: u32,
    mapping: &'static str,
    /// At most this share of Scrapy's CPU.
    limit: f64,
}

/// Small pages, reached by links.
pub fn small() -> Result<Verdict, Failure> {
    let catalogue = Catalogue::build(SMALL_PAGES.div_ceil(usize::from(SITES)));
    let mean = catalogue.mean_bytes();
    let web = serve(catalogue)?;
    let course = Course {
        name: "small pages, links followed",
        seeds: sites(web.port)
            .map(|site| format!("{site}/item/0"))
            .collect(),
        depth: 50,
        mapping: "catalogue/mapping.json",
        limit: 1.0 / 15.0,
    };
    course.run(mean, &web)
}

/// Real pages, given as seeds.
pub fn real() -> Result<Verdict, Failure> {
    let once = Manual::load(1)?.paths().len();
    let manual = Manual::load(REAL_PAGES.div_ceil(once))?;
    let mean = manual.mean_bytes();
    let paths = manual.paths();
    let web = serve(manual)?;
    let sites: Vec<String> = sites(web.port).collect();
    let spread = paths.iter().zip(sites.iter().cycle());
    let course = Course {
        name: "real pages, no links followed",
        seeds: spread.map(|(path, site)| format!("{site}{path}")).collect(),
        depth: 0,
        mapping: "manual/mapping.json",
        limit: 2.0 / 5.0,
    };
    course.run(mean, &web)
}

fn serve(pages: impl Pages) -> Result<Web, Failure> {
    Web::serve(pages, SITES)
}

fn sites(port: u16) -> impl Iterator<Item = String> {
    (1..=SITES).map(move |last| format!("http://127.0.0.{last}:{port}"))
}

impl Course {
    fn run(&self, mean_bytes: usize, web: &Web) -> Result<Verdict, Failure> {
        println!(
            "(c) {}: {} KB on average, {SITES} sites",
            self.name,
            mean_bytes / 1000
        );
        let ours = self.webfill().run(|_| {})?;
        print_cost("webfill", ours.pages(), &ours.cost);
        for (role, cpu) in &ours.cost.roles {
            println!("    {role:<11} {:.3}", per_page(*cpu, ours.pages()));
        }
        web.take_arrivals();
        let theirs = self.scrapy().run()?;
        print_cost("Scrapy", theirs.pages, &theirs.cost);
        compare(&ours.fields()?, &theirs.fields()?)?;
        Ok(Verdict {
            what: format!("(c) CPU a page, {}, as a share of Scrapy's", self.name),
            figure: per_page(ours.cost.cpu, ours.pages()) / per_page(theirs.cost.cpu, theirs.pages),
            at_most: Some(self.limit),
            at_least: None,
        })
    }

    fn webfill(&self) -> Crawl {
        let flags = format!(
            "--ignore-robots --delay 0 --follow all --depth {}",
            self.depth
        );
        Crawl {
            seeds: self.seeds.clone(),
            mapping: bench_file(self.mapping),
            flags: flags.split(' ').map(str::to_owned).collect(),
        }
    }

    fn scrapy(&self) -> Spider {
        Spider {
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
        per_page(cost.cpu, pages),
        cost.cpu.as_secs_f64(),
        cost.elapsed.as_secs_f64(),
        pages as f64 / cost.elapsed.as_secs_f64(),
        cost.peak.pss_kib as f64 / 1024.0,
    );
}

/// Milliseconds.
fn per_page(cpu: Duration, pages: u64) -> f64 {
    cpu.as_secs_f64() * 1e3 / pages.max(1) as f64
}

/// Both must have done the same work.
fn compare(ours: &Fields, theirs: &Fields) -> Result<(), Failure> {
    let same = theirs
        .iter()
        .filter(|(url, fields)| ours.get(*url) == Some(fields))
        .count();
    println!("  the same fields on {same} of {} pages", theirs.len());
    let differing = theirs.len().max(ours.len()) - same;
    if differing * 20 > theirs.len() {
        let example = theirs
            .iter()
            .find(|(url, fields)| ours.get(*url) != Some(fields));
        let beside = example.map(|(url, _)| ours.get(url));
        return Err(format!(
            "the fields differ on {differing} pages, such as {example:?} against {beside:?}"
        )
        .into());
    }
    Ok(())
}
