//! Fuzzes robots.txt files. The paths to check are lines of the same file, so that rules match.

use webfill_urls::{Url, canonical_url};
use webfill_worker::robots_rules::RobotsRules;

/// The most lines of the file that are also tried as paths.
const TRIED: usize = 8;
/// The longest Crawl-delay that webfill accepts: a day. (RFC 9309 does not define it.)
const DAY_MS: u64 = 86_400_000;

pub(crate) fn run(input: &[u8]) {
    let rules = RobotsRules::parse(input, "webfill");
    for url in ["/", "/a/b.html?c=%C3%A9", "/index.html"] {
        rules.allows(&url_of(url).expect("it is one"));
    }
    let text = String::from_utf8_lossy(input);
    let paths = text.lines().filter_map(|line| line.split_once(':'));
    for (_, path) in paths.take(TRIED) {
        if let Some(url) = url_of(path.trim()) {
            rules.allows(&url);
        }
    }
    let itself = url_of("/robots.txt").expect("it is one");
    assert!(rules.allows(&itself), "the file itself is always allowed");
    assert!(rules.crawl_delay_ms().is_none_or(|delay| delay <= DAY_MS));
    let most = 4_096 + 64 * input.len();
    assert!(
        rules.memory_bytes() <= most,
        "{} bytes of rules out of {}",
        rules.memory_bytes(),
        input.len()
    );
}

fn url_of(path: &str) -> Option<Url> {
    let base = Url::parse("http://example.com/").expect("it is one");
    canonical_url(path, Some(&base)).ok()
}
