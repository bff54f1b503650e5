//! robots.txt for people: its lines as they were read, those that apply to the crawler, and those that forbid URLs. The
//! worker judges URLs; this module finds the line behind its judgement by the same rules (RFC 9309: the group of the
//! name of the crawler or else of `*`, the longest pattern, `Allow` before `Disallow`).

use serde::Serialize;
use webfill_store::RobotsEntry;
use webfill_urls::Url;

/// The name of this crawler in robots.txt files.
const NAME: &str = "webfill";

/// How many lines of a file are shown, and how many characters of a line.
const MOST_LINES: usize = 300;
const MOST_CHARS: usize = 200;

/// A robots.txt file, as it is shown.
#[derive(Debug, Serialize)]
pub(super) struct Robots {
    origin: String,
    status: Option<u16>,
    fetched_at_ms: i64,
    expires_at_ms: i64,
    /// What the file as a whole means, if it has no rules for the crawler.
    meaning: Option<&'static str>,
    lines: Vec<Line>,
    is_cut: bool,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct Line {
    number: usize,
    text: String,
    /// Whether the line is a rule that applies to this crawler.
    applies: bool,
    /// One of the URLs that the line forbids; `None` if it forbids none of them.
    forbids: Option<String>,
}

#[derive(Debug)]
struct Rule {
    line: usize,
    allows: bool,
    pattern: String,
}

/// The origin of a URL: scheme, host and port.
pub(super) fn origin_from_url(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Some(url.origin().ascii_serialization())
}

pub(super) fn parse_robots(entry: &RobotsEntry, disallowed: &[&str]) -> Robots {
    let text = String::from_utf8_lossy(&entry.body);
    let rules = parse_rules(&text);
    let mut lines: Vec<Line> = text
        .lines()
        .take(MOST_LINES)
        .enumerate()
        .map(|(at, text)| Line {
            number: at + 1,
            text: text.chars().take(MOST_CHARS).collect(),
            applies: rules.iter().any(|rule| rule.line == at),
            forbids: None,
        })
        .collect();
    for url in disallowed {
        if origin_from_url(url).as_deref() != Some(entry.origin.as_str()) {
            continue;
        }
        let by = find_forbidding_rule(&rules, url);
        if let Some(line) = by.and_then(|rule| lines.get_mut(rule.line)) {
            line.forbids.get_or_insert_with(|| (*url).to_owned());
        }
    }
    let meaning = match entry.status {
        None => Some("unavailable, nothing allowed"),
        Some(500..) => Some("failed, nothing allowed"),
        Some(400..) => Some("there is none, everything allowed"),
        Some(_) if rules.is_empty() => Some("no rule for the crawler, everything allowed"),
        Some(_) => None,
    };
    Robots {
        origin: entry.origin.clone(),
        status: entry.status,
        fetched_at_ms: entry.fetched_at_ms,
        expires_at_ms: entry.expires_at_ms,
        meaning,
        is_cut: text.lines().count() > MOST_LINES,
        lines,
    }
}

/// The rules that apply to the crawler, each with its line number, counted from 0.
fn parse_rules(text: &str) -> Vec<Rule> {
    let (mut own, mut of_all) = (Vec::new(), Vec::new());
    let mut has_own = false;
    // Whether the group of lines names this crawler, whether it names `*`, and whether its first rule was read. After
    // that rule, a name begins a new group.
    let (mut is_own, mut is_all, mut has_rules) = (false, false, true);
    for (line, text) in text.lines().enumerate() {
        let text = text.split('#').next().unwrap_or_default();
        let Some((key, value)) = text.split_once(':') else {
            continue;
        };
        let value = value.trim();
        let key = key
            .trim()
            .trim_start_matches('\u{feff}')
            .to_ascii_lowercase();
        let allows = match key.as_str() {
            "user-agent" => {
                if has_rules {
                    (is_own, is_all, has_rules) = (false, false, false);
                }
                is_own |= value.eq_ignore_ascii_case(NAME);
                is_all |= value == "*";
                has_own |= is_own;
                continue;
            }
            "allow" => true,
            "disallow" => false,
            _ => continue,
        };
        has_rules = true;
        let rule = || Rule {
            line,
            allows,
            pattern: value.to_owned(),
        };
        if is_own {
            own.push(rule());
        }
        if is_all {
            of_all.push(rule());
        }
    }
    match has_own {
        true => own,
        false => of_all,
    }
}

/// The rule that forbids a URL; `None` if the URL is allowed.
fn find_forbidding_rule<'r>(rules: &'r [Rule], url: &str) -> Option<&'r Rule> {
    let url = Url::parse(url).ok()?;
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let matching = rules
        .iter()
        .filter(|rule| !rule.pattern.is_empty() && is_match(&rule.pattern, &path));
    let longest = matching.max_by_key(|rule| (rule.pattern.len(), rule.allows))?;
    (!longest.allows).then_some(longest)
}

/// Whether a pattern of robots.txt matches the beginning of a path. `*` stands for any text, and a `$` at the end means
/// the end of the path.
fn is_match(pattern: &str, path: &str) -> bool {
    let (pattern, is_whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        if is_whole && at + 1 == parts.len() {
            return rest.ends_with(part);
        }
        let Some(found) = rest.find(part) else {
            return false;
        };
        rest = &rest[found + part.len()..];
    }
    !is_whole || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(status: Option<u16>, body: &str) -> RobotsEntry {
        RobotsEntry {
            origin: "http://a.org".into(),
            status,
            body: body.as_bytes().to_vec(),
            fetched_at_ms: 1,
            expires_at_ms: 2,
        }
    }

    #[test]
    fn the_line_that_forbids_is_found_in_the_group_that_applies() {
        let text = "User-agent: other\nDisallow: /\n\nuser-agent: *\nUser-Agent: nobody\nDisallow: /private # not this\n\
                    Allow: /private/open\nDisallow: /*.pdf$\nCrawl-delay: 2\n";
        let urls = [
            "http://a.org/private/1",
            "http://a.org/a.pdf",
            "http://a.org/private/open/1",
            "https://other.org/private/1",
        ];
        let robots = parse_robots(&entry(Some(200), text), &urls);
        let forbids: Vec<(usize, &str)> = robots
            .lines
            .iter()
            .filter_map(|line| Some((line.number, line.forbids.as_deref()?)))
            .collect();
        assert_eq!(
            forbids,
            [(6, "http://a.org/private/1"), (8, "http://a.org/a.pdf")]
        );
        let applies: Vec<usize> = robots
            .lines
            .iter()
            .filter(|line| line.applies)
            .map(|line| line.number)
            .collect();
        assert_eq!(applies, [6, 7, 8]);
        assert_eq!(robots.meaning, None);
    }

    #[test]
    fn a_group_for_this_crawler_replaces_the_group_for_all() {
        let text = "User-agent: *\nDisallow: /\nUser-agent: WebFill\nDisallow: /x\n";
        let rules = parse_rules(text);
        assert!(find_forbidding_rule(&rules, "http://a.org/y").is_none());
        assert_eq!(
            find_forbidding_rule(&rules, "http://a.org/x?1")
                .unwrap()
                .line,
            3
        );
    }

    #[test]
    fn files_without_rules_say_what_that_means() {
        let meaning = |status, body: &str| parse_robots(&entry(status, body), &[]).meaning;
        assert_eq!(meaning(None, ""), Some("unavailable, nothing allowed"));
        assert_eq!(meaning(Some(503), ""), Some("failed, nothing allowed"));
        assert_eq!(
            meaning(Some(404), "<html>"),
            Some("there is none, everything allowed")
        );
        assert!(meaning(Some(200), "\u{feff}User-agent: x\nDisallow: /").is_some());
        assert_eq!(meaning(Some(200), "User-agent: *\nDisallow: /"), None);
    }

    #[test]
    fn patterns_match_as_the_standard_says() {
        for (pattern, path, expected) in [
            ("/fish", "/fish.html", true),
            ("/fish", "/Fish", false),
            ("/fish*", "/fish", true),
            ("/*.php", "/a/b.php?c", true),
            ("/*.php$", "/a.php?c", false),
            ("/*.php$", "/a.php.php", true),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("/a*b*c", "/axxbyyc/", true),
            ("/a*b*c", "/axxcyyb", false),
        ] {
            assert_eq!(is_match(pattern, path), expected, "{pattern} {path}");
        }
    }
}
