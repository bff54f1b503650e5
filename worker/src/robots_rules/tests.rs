use std::time::Duration;

use serde_json::Value;
use texting_robots::Robot;

use super::*;
use crate::cpu_time::measure_cpu_time;

fn url(path: &str) -> Url {
    Url::parse(&format!("https://example.com{path}")).unwrap()
}

fn allows(robots: impl AsRef<[u8]>, path: &str) -> bool {
    RobotsRules::parse(robots.as_ref(), "webfill").allows(&url(path))
}

/// Makes a robots.txt with these rules for all agents.
fn rules_for_everyone(rules: &str) -> String {
    format!("User-agent: *\n{rules}\n")
}

fn delay_ms(robots: &str) -> Option<u64> {
    RobotsRules::parse(robots.as_bytes(), "webfill").crawl_delay_ms()
}

#[test]
fn no_break_spaces_and_byte_order_marks_hide_no_rule() {
    for robots in [
        "User-agent:\u{a0}*\nDisallow:\u{a0}/private",
        "\u{a0}User-agent: *\u{a0}\n\u{a0} Disallow\u{a0}: /private\u{a0}\n",
        "\u{feff}\u{feff}User-agent: *\nDisallow: /private",
        "Sitemap: https://example.com/s.xml\n\u{feff}User-agent: *\n\u{feff}Disallow: /private",
    ] {
        assert!(!allows(robots, "/private"), "{robots:?}");
        assert!(allows(robots, "/public"), "{robots:?}");
    }
    // The last byte of `à` in UTF-8 is 0xa0, which must not be trimmed as a non-breaking space.
    assert!(!allows(
        rules_for_everyone("Disallow: /voil\u{e0}$"),
        "/voil%C3%A0"
    ));
}

struct Case {
    line: u64,
    robots: Vec<u8>,
    agent: String,
    url: String,
    allowed: bool,
}

fn google_cases() -> Vec<Case> {
    let lines = include_str!("../../testdata/robots/google-cases.jsonl");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .map(|case: Value| Case {
            line: case["line"].as_u64().unwrap(),
            robots: match case["robots_hex"].as_str() {
                Some(hex) => bytes_of_hex(hex),
                None => text(&case["robots"]).into_bytes(),
            },
            agent: text(&case["agent"]),
            url: text(&case["url"]),
            allowed: case["allowed"].as_bool().unwrap(),
        })
        .collect()
}

fn bytes_of_hex(hex: &str) -> Vec<u8> {
    let pair = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(pair).collect()
}

impl Case {
    fn is_answered_as_expected(&self) -> bool {
        let rules = RobotsRules::parse(&self.robots, &self.agent);
        let answer = match Url::parse(&self.url) {
            Ok(url) => rules.allows(&url),
            Err(_) => rules.allows_path("/"),
        };
        answer == self.allowed
    }
}

/// Two of Google's cases are left out: they expect that an unescaped character in a URL differs from the escaped one.
/// In a parsed URL, both are the same.
#[test]
fn googles_cases_are_answered_as_expected() {
    let cases = google_cases();
    let unlike: Vec<u64> = cases
        .iter()
        .filter(|case| !case.is_answered_as_expected())
        .map(|case| case.line)
        .collect();
    assert_eq!((cases.len(), unlike), (145, vec![420, 431]));
}

#[test]
fn the_longest_rule_decides_and_allow_wins_a_tie() {
    let robots =
        rules_for_everyone("Disallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /t\nDisallow: /t");
    for (path, expected) in [
        ("/", true),
        ("/a", false),
        ("/a/b/x", true),
        ("/a/b/c", false),
        ("/t", true),
    ] {
        assert_eq!(allows(&robots, path), expected, "{path}");
    }
}

#[test]
fn wildcards_and_the_end_mark_are_understood() {
    let robots = rules_for_everyone(
        "Disallow: /*.pdf$\nDisallow: /*?print=\nDisallow: /a*b*c\nDisallow: /x$y",
    );
    for (path, expected) in [
        ("/doc.pdf", false),
        ("/doc.pdf?page=1", true),
        ("/pdf", true),
        ("/list?print=1", false),
        ("/list?a=1&print=1", true),
        ("/a1b2c3", false),
        ("/acb", true),
        ("/x$y/z", false),
        ("/x%24y", false),
        ("/x", true),
    ] {
        assert_eq!(allows(&robots, path), expected, "{path}");
    }
    assert!(!allows(rules_for_everyone("Disallow: *"), "/a"));
    assert!(!allows(rules_for_everyone("Disallow: /a*$"), "/abc"));
    assert!(allows(rules_for_everyone("Disallow: $"), "/"));
    assert!(!allows(rules_for_everyone("Disallow: /*aab$"), "/aabaab"));
}

#[test]
fn an_escaped_wildcard_is_a_character() {
    let robots = rules_for_everyone("Disallow: /%2Astar\nDisallow: /price%24");
    assert!(!allows(&robots, "/*star"));
    assert!(!allows(&robots, "/%2astar"));
    assert!(allows(&robots, "/one-star"));
    assert!(!allows(&robots, "/price$/more"));
    assert!(allows(&robots, "/price"));
}

#[test]
fn two_spellings_of_a_path_are_one() {
    for (rule, path) in [
        ("/caf%c3%a9", "/caf%C3%A9"),
        ("/café", "/caf%C3%A9"),
        ("/%7Eann", "/~ann"),
        ("/~ann", "/%7eann"),
        ("/%62ar", "/bar"),
        ("/bar", "/%62ar"),
        ("/{id}", "/{id}"),
        ("/{id}", "/%7Bid%7D"),
        ("/?q={x}", "/?q=%7Bx%7D"),
        ("/it's", "/it's"),
        ("/?it's", "/?it's"),
        ("/a b", "/a b"),
        ("/a|b", "/a%7Cb"),
        ("/100%", "/100%"),
    ] {
        let robots = rules_for_everyone(&format!("Disallow: {rule}"));
        assert!(!allows(&robots, path), "{rule} {path}");
    }
    assert!(
        allows(rules_for_everyone("Disallow: /a%2Fb"), "/a/b"),
        "an escaped slash is none"
    );
    assert!(!allows(b"User-agent: *\nDisallow: /caf\xe9", "/caf%E9"));
}

#[test]
fn an_escaped_letter_never_allows_more() {
    let robots = rules_for_everyone("Disallow: /\nAllow: /%62ar\nAllow: /%7Eann");
    assert!(!allows(&robots, "/bar"));
    assert!(allows(&robots, "/%62ar"));
    assert!(allows(&robots, "/~ann"));
}

#[test]
fn a_blank_in_a_path_never_allows_more() {
    let rules = "Disallow: /\nAllow: /a b\nAllow: /index.html /e\nAllow:  /c \t\nAllow: /d%20d # x";
    for path in ["/", "/a", "/a%20b", "/a+b", "/e", "/index.html"] {
        assert!(!allows(rules_for_everyone(rules), path), "{path}");
    }
    assert!(allows(rules_for_everyone(rules), "/c") && allows(rules_for_everyone(rules), "/d%20d"));
    assert!(allows(rules_for_everyone("Disallow: /a b"), "/a"));
}

#[test]
fn the_own_group_counts_in_all_its_parts_and_before_that_of_everyone() {
    let robots = "User-agent: *\nDisallow: /\n\n\
        User-agent: other\nUser-agent: WebFill/2.1 (+https://example.com)\nDisallow: /a\n\n\
        User-agent: other\nDisallow: /b\n\n\
        User-agent: webfill\nDisallow: /c\n";
    for (path, expected) in [("/", true), ("/a", false), ("/b", true), ("/c", false)] {
        assert_eq!(allows(robots, path), expected, "{path}");
    }
    assert!(allows("User-agent: webfiller\nDisallow: /", "/"));
    assert!(!allows("User-agent: * # all\nDisallow: /", "/"));
}

#[test]
fn an_empty_disallow_takes_nothing_back() {
    assert!(!allows(rules_for_everyone("Disallow: /\nDisallow:"), "/a"));
    assert!(allows(rules_for_everyone("Disallow:"), "/a"));
}

#[test]
fn only_an_agent_line_behind_a_rule_begins_a_group() {
    let robots = "User-agent: webfill\nCrawl-delay: 3\nSitemap: https://example.com/s\n\
        User-agent: other\nDisallow: /a\n";
    assert!(!allows(robots, "/a"));
}

#[test]
fn any_line_end_and_any_mark_is_read() {
    for robots in [
        "User-agent: *\r\nDisallow: /a\r\n".as_bytes(),
        b"User-agent: *\rDisallow: /a",
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /a",
        b"\xef\xbbUser-agent: *\nDisallow: /a",
        b"user-agent *\ndisallow /a",
        b"User-agent : *\n\tDissallow :/a # not this",
        b"User-agent: *\0\nDisallow: /a\0b",
        b"\xff\xfe\x00\xd8 nonsense\nUser-agent: *\nDisallow: /a"
            .get(11..)
            .unwrap(),
    ] {
        assert!(!allows(robots, "/a"), "{}", robots.escape_ascii());
        assert!(allows(robots, "/b"), "{}", robots.escape_ascii());
    }
}

#[test]
fn utf_16_is_read_with_and_without_its_mark() {
    let text = "User-agent: *\nDisallow: /é\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (mark, bytes) in [
        (&[0xff, 0xfe][..], &little),
        (&[0xfe, 0xff], &big),
        (&[], &little),
        (&[], &big),
    ] {
        assert!(!allows([mark, bytes].concat(), "/é"));
    }
}

#[test]
fn a_file_that_is_no_robots_txt_allows_everything() {
    let mut random = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
        .take(200_000)
        .collect();
    for text in [
        &b""[..],
        b"<!DOCTYPE html><html><p>not found</p></html>",
        b":\n:::\n #",
        &noise,
    ] {
        assert!(allows(text, "/a"));
    }
}

#[test]
fn robots_txt_itself_is_always_allowed() {
    assert!(allows(rules_for_everyone("Disallow: /"), "/robots.txt"));
    assert!(RobotsRules::deny_all().allows(&url("/robots.txt")));
    assert!(!RobotsRules::deny_all().allows(&url("/")));
    assert!(!RobotsRules::deny_all().allows(&url("/?robots.txt")));
    assert!(RobotsRules::default().allows(&url("/a")));
}

#[test]
fn the_first_500_kib_count_in_whole_lines() {
    let padding = |bytes: usize| format!("{}\n", "#".repeat(bytes - 1));
    let head = rules_for_everyone("Disallow: /\nAllow: /a");
    let last_allow = "Allow: /private/open\n";
    let room = MAX_ROBOTS_BYTES - head.len() - last_allow.len();
    let whole = format!("{head}{}{last_allow}#", padding(room));
    assert!(allows(&whole, "/private/open"));
    let cut = format!("{head}{}{last_allow}#", padding(room + 8));
    assert!(!allows(&cut, "/private/secret"));
    assert!(!allows(&cut, "/private/open"));
}

#[test]
fn crawl_delays_are_read_and_clamped() {
    let day = 24 * 60 * 60 * 1000;
    for (value, expected) in [
        ("5", Some(5_000)),
        ("0.25", Some(250)),
        (" 10 # seconds", Some(10_000)),
        ("0", Some(0)),
        ("86400", Some(day)),
        ("1e38", Some(day)),
        ("999999999999999999999999999999999999999999999999", None),
        ("inf", None),
        ("NaN", None),
        ("-1", None),
        ("soon", None),
        ("", None),
    ] {
        let robots = rules_for_everyone(&format!("Crawl-delay: {value}"));
        assert_eq!(delay_ms(&robots), expected, "{value}");
    }
}

#[test]
fn the_crawl_delay_is_that_of_the_agents_named_before_it() {
    let robots =
        "User-agent: slow\nCrawl-delay: 3600\n\nUser-agent: *\nCrawl-delay: 2\nDisallow: /a\n";
    assert_eq!(delay_ms(robots), Some(2_000));
    assert_eq!(
        delay_ms("Crawl-delay: 4\nUser-agent: *\nDisallow: /a"),
        Some(4_000)
    );
    assert_eq!(
        delay_ms(&rules_for_everyone(
            "Crawl-delay: 4\nCrawl-delay: 9\nCrawl-delay: x"
        )),
        Some(9_000)
    );
    assert_eq!(
        delay_ms("User-agent: *\nCrawl-delay: 4\nDisallow:\nUser-agent: webfill\nDisallow:"),
        None
    );
}

#[test]
fn sitemaps_are_those_of_the_whole_file() {
    let robots = "Sitemap: https://example.com/1.xml\nUser-agent: other\nDisallow: /\n\
        site-map: https://example.com/2.xml\n";
    let rules = RobotsRules::parse(robots.as_bytes(), "webfill");
    let sitemaps: Vec<&str> = rules.sitemaps().collect();
    assert_eq!(
        sitemaps,
        ["https://example.com/1.xml", "https://example.com/2.xml"]
    );
}

/// Compares the results with those of `texting_robots`, on files with common rules that both parsers must read in the
/// same way.
#[test]
fn the_answers_are_those_of_texting_robots_on_plain_files() {
    const PIECES: [&str; 12] = [
        "/", "a", "b", "/a", "/b/", "*", "/*", ".html", "?", "q=", "$", "-",
    ];
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut path = |longest: usize| {
        let length = 1 + next(longest);
        (0..length).fold("/".to_owned(), |path, _| path + PIECES[next(PIECES.len())])
    };
    // `texting_robots` wrongly treats a dollar in the middle of a path as its end, so the paths have none there.
    let rule_path =
        |path: String| path.replace('$', "").replace("**", "*") + ["", "$"][path.len() % 2];
    let mut denied = 0;
    for round in 0..3_000 {
        let rules: Vec<String> = (0..1 + round % 5)
            .map(|n| {
                format!(
                    "{}: {}",
                    ["Disallow", "Allow"][(round + n) % 2],
                    rule_path(path(4))
                )
            })
            .collect();
        let robots = format!("User-agent: webfill\n{}\n", rules.join("\n"));
        let theirs = Robot::new("webfill", robots.as_bytes()).unwrap();
        let ours = RobotsRules::parse(robots.as_bytes(), "webfill");
        for _ in 0..20 {
            let asked = url(&path(6).replace(['*', '$'], "x"));
            let answer = ours.allows(&asked);
            denied += usize::from(!answer);
            assert_eq!(answer, theirs.allowed(asked.as_str()), "{robots}{asked}");
        }
    }
    assert!(denied > 5_000, "only {denied} URLs were denied");
}

/// The files are made to be slow to parse and match. The time limits leave room for busy machines.
#[test]
fn hostile_files_are_read_and_matched_in_time() {
    let full = |line: &str| {
        let lines = line.repeat(MAX_ROBOTS_BYTES / line.len());
        rules_for_everyone(&lines)
    };
    let numbered = |rule: &dyn Fn(usize) -> String| {
        let lines: String = (0..)
            .map(rule)
            .scan(0, |bytes, line| {
                *bytes += line.len();
                (*bytes < MAX_ROBOTS_BYTES - 20).then_some(line)
            })
            .collect();
        rules_for_everyone(&lines)
    };
    let long_path = format!("/{}", "ab".repeat(2040));
    for (name, robots) in [
        ("wildcard ends", full("Allow:*$\n")),
        (
            "many stars",
            numbered(&|n| format!("Allow:/{}{n}$\n", "*a".repeat(40))),
        ),
        (
            "almost matches",
            numbered(&|n| format!("Allow:*{}{n}\n", "ab".repeat(n % 12))),
        ),
        (
            "short almost matches",
            numbered(&|n| format!("Allow:*abb{n:x}\n")),
        ),
        (
            "one long line",
            format!("User-agent: *\nDisallow: /{}", "*a".repeat(250_000)),
        ),
        (
            "long almost matches",
            numbered(&|n| format!("Allow:*{}{n}\n", "ab".repeat(1500))),
        ),
        (
            "one line of raw bytes",
            format!("User-agent: *\nDisallow: /{}", "é".repeat(250_000)),
        ),
        ("raw bytes", full("Disallow:/éééééééé\n")),
        ("agents", full("User-agent: webfill\n")),
        ("delays", full("Crawl-delay: 1e38\n")),
        ("sitemaps", full("Sitemap: https://example.com/\n")),
        ("no line end", "a".repeat(MAX_ROBOTS_BYTES)),
        ("empty lines", full("\n")),
    ] {
        let (rules, parsed) = measure_cpu_time(|| RobotsRules::parse(robots.as_bytes(), "webfill"));
        let (_, matched) = measure_cpu_time(|| rules.allows(&url(&long_path)));
        println!(
            "{name}: parsed in {parsed:?}, matched in {matched:?}, {} bytes kept",
            rules.memory_bytes()
        );
        assert!(parsed < Duration::from_secs(2), "{name}: {parsed:?}");
        assert!(matched < Duration::from_millis(500), "{name}: {matched:?}");
        assert!(rules.memory_bytes() < 4 * MAX_ROBOTS_BYTES, "{name}");
    }
}

#[test]
fn rules_are_shared_between_threads() {
    fn assert_shared<T: Send + Sync + 'static>() {}
    assert_shared::<RobotsRules>();
}
