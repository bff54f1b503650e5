//! Tests `Crawl-delay` in many spellings, by the time between two requests for pages of a site.

use std::time::Duration;

use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

/// The delay in seconds if robots.txt sets no valid one.
const DEFAULT: f64 = 3.0;

/// The longest delay that these crawls accept, in seconds.
const LONGEST: f64 = 5.0;

/// For each case: its name, a line of a robots.txt, and the delay that it means, in seconds.
const LINES: &[(&str, &str, f64)] = &[
    ("plain", "Crawl-delay: 1", 1.0),
    ("unit", "Crawl-delay: 2s", 2.0),
    ("word", "Crawl-delay: 2 seconds", 2.0),
    ("milliseconds", "Crawl-delay: 1500ms", 1.5),
    ("comma", "Crawl-delay: 1,5", 1.5),
    ("point", "Crawl-delay: 1.5", 1.5),
    ("quoted", "Crawl-delay: \"2\"", 2.0),
    ("comment", "Crawl-delay: 2 # seconds, please", 2.0),
    ("comment-at-once", "Crawl-delay: 2#60", 2.0),
    ("any-case", "CRAWL-DELAY:2", 2.0),
    ("exponent", "Crawl-delay: 2e0", 2.0),
    ("zero", "Crawl-delay: 0", 0.0),
    (
        "repeated",
        "Crawl-delay: 1\nCrawl-delay: 2\nCrawl-delay: 1",
        2.0,
    ),
    ("huge", "Crawl-delay: 99999999999999999999", LONGEST),
    ("minutes", "Crawl-delay: 2 minutes", LONGEST),
    ("thousand", "Crawl-delay: 1e3", LONGEST),
    ("negative", "Crawl-delay: -1", DEFAULT),
    ("infinite", "Crawl-delay: inf", DEFAULT),
    ("no-number", "Crawl-delay: NaN", DEFAULT),
    ("empty", "Crawl-delay:", DEFAULT),
    ("words", "Crawl-delay: slowly", DEFAULT),
];

/// For each case: its name, a whole robots.txt file, and the delay that it sets for webfill, in seconds.
const FILES: &[(&str, &str, f64)] = &[
    (
        "own-group",
        "User-agent: *\nCrawl-delay: 3\n\nUser-agent: webfill\nCrawl-delay: 1\n",
        1.0,
    ),
    (
        "several-groups",
        "User-agent: webfill\nCrawl-delay: 1\nDisallow: /x\n\nUser-agent: other\nCrawl-delay: 4\nDisallow: /\n\n\
         User-agent: Webfill\nCrawl-delay: 2\n",
        2.0,
    ),
    // Agents without a rule between them belong to one group (RFC 9309, 2.2.4).
    (
        "one-group-without-rules",
        "User-agent: webfill\nCrawl-delay: 1\n\nUser-agent: other\nCrawl-delay: 2\n",
        2.0,
    ),
    (
        "of-another",
        "User-agent: other\nCrawl-delay: 1\n\nUser-agent: *\nDisallow: /x\n",
        DEFAULT,
    ),
    (
        "before-the-agent",
        "User-agent: other\nCrawl-delay: 2\nUser-agent: webfill\nDisallow: /x\n",
        DEFAULT,
    ),
];

fn robots_cases() -> Vec<(&'static str, String, f64)> {
    let of_line = |(name, line, seconds): &(_, &str, _)| {
        (*name, format!("User-agent: *\n{line}\n"), *seconds)
    };
    let of_file = |(name, file, seconds): &(_, &str, _)| (*name, String::from(*file), *seconds);
    let lines = LINES.iter().map(of_line);
    lines.chain(FILES.iter().map(of_file)).collect()
}

#[test]
fn the_crawl_delay_in_robots_txt_takes_effect() {
    let web = Web::start();
    let mut urls = Vec::new();
    for (name, robots, _) in robots_cases() {
        let site = web.site(&format!("{name}.example"));
        site.serve_robots(&robots);
        site.serve_otherwise(|_| page("T").into());
        urls.extend((0..4).map(|number| site.url(&format!("/{number}"))));
    }
    let work = Workplace::new();
    let seeds = work.write("seeds.txt", urls.join("\n"));
    work.crawl_without_delay(&web)
        .args(["--delay", &DEFAULT.to_string()])
        .env("WEBFILL_POLITENESS_MAX_DELAY", LONGEST.to_string())
        .arg("--seeds")
        .arg(seeds)
        .finish()
        .expect_code(0);
    let mut faults = Vec::new();
    for (name, _, seconds) in robots_cases() {
        let pages = web.visits().for_host(&format!("{name}.example")).pages();
        let gaps = pages.gaps();
        assert_eq!(gaps.len(), 3, "{name}: nothing is dropped");
        // A busy machine makes some gaps longer, but hardly all of them. So the shortest gap shows the delay.
        let shortest = gaps.iter().min().copied().unwrap_or_default();
        let least = Duration::from_secs_f64(seconds);
        if shortest < least || shortest > least + Duration::from_millis(450) {
            faults.push(format!("{name}: {gaps:?}, read: {seconds} s"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
