//! The web of a round: a link graph that is generated from a seed, so that the pages and fields that a crawl must store
//! are known.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use webfill_tests::site::{Page, Site, Web, document, page};

use crate::trouble::Troubles;

/// The delay of sites whose robots.txt demands none.
pub(crate) const DEFAULT_DELAY: Duration = Duration::from_millis(200);

/// The expected results for one page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expected {
    pub(crate) outcome: &'static str,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) bytes: usize,
}

pub(crate) struct Graph {
    /// The delay of each host.
    pub(crate) delays: BTreeMap<String, Duration>,
    /// The seeds, in the order they must be fed.
    pub(crate) roots: Vec<String>,
    /// Every URL that becomes a task.
    pub(crate) expected: BTreeMap<String, Expected>,
    pub(crate) troubles: Troubles,
}

impl Graph {
    /// Chooses one of the hosts by a number.
    pub(crate) fn pick_host(&self, pick: usize) -> &str {
        let number = pick % self.delays.len();
        self.delays.keys().nth(number).expect("one of them")
    }
}

/// Serves the web. Every page is reachable from the root of its site. Some links lead to other sites, some to pages
/// that robots.txt forbids, and some pages are slow.
pub(crate) fn serve(web: &Web, sites: usize, pages: usize, rng: &mut Rng) -> Graph {
    let mut graph = Graph {
        delays: BTreeMap::new(),
        roots: Vec::new(),
        expected: BTreeMap::new(),
        troubles: Troubles::default(),
    };
    for site in 0..sites {
        let host = host_of(site);
        let delay_ms = [200, 200, 300, 400][rng.usize(..4)];
        graph
            .delays
            .insert(host.clone(), Duration::from_millis(delay_ms));
        let file = document("text/plain", robots_txt(delay_ms));
        serve_page_or_trouble(&web.site(&host), "/robots.txt", file, &graph.troubles);
        graph.roots.push(page_url(site, 0));
        let links = links_of_site(site, sites, pages, rng);
        for (number, links) in links.iter().enumerate() {
            serve_page(web, &mut graph, (site, number), links, rng);
        }
    }
    graph
}

fn host_of(site: usize) -> String {
    format!("c{site}.example")
}

fn page_url(site: usize, number: usize) -> String {
    format!("http://{}{}", host_of(site), page_path(number))
}

fn page_path(number: usize) -> String {
    match number {
        0 => "/".into(),
        number => format!("/p{number}"),
    }
}

fn robots_txt(delay_ms: u64) -> String {
    let rules = "User-agent: *\nDisallow: /private/\n";
    match Duration::from_millis(delay_ms) {
        DEFAULT_DELAY => rules.into(),
        delay => format!("{rules}Crawl-delay: {}\n", delay.as_secs_f64()),
    }
}

/// The URLs that each page of a site links to.
fn links_of_site(site: usize, sites: usize, pages: usize, rng: &mut Rng) -> Vec<Vec<String>> {
    let mut links: Vec<Vec<String>> = vec![Vec::new(); pages];
    for number in 1..pages {
        let parent = rng.usize(..number);
        links[parent].push(page_url(site, number));
    }
    for (number, links) in links.iter_mut().enumerate() {
        if rng.usize(..3) == 0 {
            links.push(page_url(site, rng.usize(..pages)));
        }
        if rng.usize(..4) == 0 {
            links.push(page_url(rng.usize(..sites), rng.usize(..pages)));
        }
        if number % 5 == 0 {
            links.push(format!("http://{}/private/{number}", host_of(site)));
        }
    }
    links
}

fn serve_page(
    web: &Web,
    graph: &mut Graph,
    (site, number): (usize, usize),
    links: &[String],
    rng: &mut Rng,
) {
    let text = format!("{:016x}", rng.u64(..));
    let title = format!("{site}/{number}");
    let content: Page = page(&title).field("name", &text);
    let content = links
        .iter()
        .fold(content, |content, link| content.mapped_link(link));
    let slow = if rng.usize(..8) == 0 { 500 } else { 20 };
    let bytes = content.body.len();
    for link in links.iter().filter(|link| link.contains("/private/")) {
        let forbidden = Expected {
            outcome: "disallowed",
            title: String::new(),
            text: String::new(),
            bytes: 0,
        };
        graph.expected.insert(link.clone(), forbidden);
    }
    let expected = Expected {
        outcome: "ok",
        title,
        text,
        bytes,
    };
    graph.expected.insert(page_url(site, number), expected);
    let content = content.latency(Duration::from_millis(slow));
    let own = web.site(&host_of(site));
    serve_page_or_trouble(&own, &page_path(number), content, &graph.troubles);
}

/// Serves a page. While its site is in trouble, the trouble's answer replaces the page.
fn serve_page_or_trouble(site: &Site, path: &str, content: Page, troubles: &Troubles) {
    let troubles = troubles.clone();
    site.serve_with(path, move |request| {
        troubles.answer(&request.host, &request.path, &content)
    });
}
