//! Finds the mappings whose patterns match a URL, in a microsecond or two even among hundreds.
//!
//! - Most patterns require a literal text, such as a host or a path. One pass of an automaton over the URL finds the
//!   patterns whose text occurs, and only those are tested.
//! - Plain expressions without such a text are tested together in one `RegexSet`.
//! - All other patterns are tested one by one.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;
use regex::bytes::{RegexSet, RegexSetBuilder};

use crate::url_pattern::UrlPattern;

const MAX_SET_BYTES: usize = 64 << 20;

/// All patterns of a set, in order of precedence.
#[derive(Debug)]
pub(crate) struct UrlIndex {
    patterns: Vec<Entry>,
    literals: Option<AhoCorasick>,
    /// For each literal that the automaton searches, the patterns that require it.
    by_literal: Vec<Vec<usize>>,
    set: RegexSet,
    in_set: Vec<usize>,
    one_by_one: Vec<usize>,
}

#[derive(Debug)]
struct Entry {
    mapping: usize,
    pattern: UrlPattern,
}

/// The mappings found for one URL.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UrlMatches {
    /// The matching mappings in order of precedence, each once.
    pub(crate) mappings: Vec<usize>,
    /// Mappings with a pattern that took too many steps on the URL. They count as not matching.
    pub(crate) gave_up: Vec<usize>,
}

impl UrlIndex {
    /// Builds the index. `patterns` are pairs of a mapping and one of its patterns, in order.
    pub(crate) fn new(patterns: Vec<(usize, UrlPattern)>) -> UrlIndex {
        let patterns: Vec<Entry> = patterns
            .into_iter()
            .map(|(mapping, pattern)| Entry { mapping, pattern })
            .collect();
        let mut literals = Literals::default();
        let (mut in_set, mut one_by_one) = (Vec::new(), Vec::new());
        for (number, entry) in patterns.iter().enumerate() {
            match (entry.pattern.required_literals(), &entry.pattern) {
                (Some(texts), _) => literals.add(number, texts),
                (None, UrlPattern::Ascii(_)) => in_set.push(number),
                (None, _) => one_by_one.push(number),
            }
        }
        let set = build_regex_set(&patterns, &in_set).unwrap_or_else(|| {
            one_by_one.append(&mut in_set);
            RegexSet::empty()
        });
        let automaton = literals.build_automaton();
        if automaton.is_none() {
            one_by_one.extend(literals.patterns.iter().flatten());
        }
        UrlIndex {
            literals: automaton,
            by_literal: literals.patterns,
            patterns,
            set,
            in_set,
            one_by_one,
        }
    }

    /// Finds the first matching mapping, if there is one.
    pub(crate) fn find_first(&self, url: &str) -> UrlMatches {
        self.search(url, true)
    }

    /// Finds every matching mapping.
    pub(crate) fn find_all(&self, url: &str) -> UrlMatches {
        self.search(url, false)
    }

    fn search(&self, url: &str, only_first: bool) -> UrlMatches {
        let mut found = UrlMatches::default();
        for number in self.patterns_to_test(url) {
            let entry = &self.patterns[number];
            if found.mappings.last() == Some(&entry.mapping) {
                continue;
            }
            match entry.pattern.is_match(url) {
                Ok(true) => found.mappings.push(entry.mapping),
                Ok(false) => {}
                Err(_) => found.gave_up.push(entry.mapping),
            }
            if only_first && !found.mappings.is_empty() {
                break;
            }
        }
        found
    }

    /// The patterns that may match the URL, in order of precedence.
    fn patterns_to_test(&self, url: &str) -> Vec<usize> {
        let mut numbers = self.one_by_one.clone();
        if let Some(literals) = &self.literals {
            for hit in literals.find_overlapping_iter(url) {
                numbers.extend(&self.by_literal[hit.pattern().as_usize()]);
            }
        }
        if !self.in_set.is_empty() {
            numbers.extend(
                self.set
                    .matches(url.as_bytes())
                    .iter()
                    .map(|hit| self.in_set[hit]),
            );
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// Literal texts without duplicates, each with the patterns that require it.
#[derive(Default)]
struct Literals {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
    patterns: Vec<Vec<usize>>,
}

impl Literals {
    fn add(&mut self, pattern: usize, texts: Vec<String>) {
        for text in texts {
            let next = self.texts.len();
            let number = *self
                .numbers
                .entry(text.to_ascii_lowercase())
                .or_insert(next);
            if number == next {
                self.texts.push(text);
                self.patterns.push(Vec::new());
            }
            self.patterns[number].push(pattern);
        }
    }

    fn build_automaton(&self) -> Option<AhoCorasick> {
        AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(&self.texts)
            .ok()
    }
}

fn build_regex_set(patterns: &[Entry], chosen: &[usize]) -> Option<RegexSet> {
    let texts = chosen
        .iter()
        .filter_map(|&number| match &patterns[number].pattern {
            UrlPattern::Ascii(regex) => Some(regex.as_str()),
            _ => None,
        });
    RegexSetBuilder::new(texts)
        .unicode(false)
        .size_limit(MAX_SET_BYTES)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn index(patterns: &[(&str, &str)]) -> UrlIndex {
        let compiled = patterns
            .iter()
            .enumerate()
            .map(|(number, (kind, text))| (number, UrlPattern::compile(kind, text).unwrap()));
        UrlIndex::new(compiled.collect())
    }

    const PATTERNS: &[(&str, &str)] = &[
        ("regex", r"^https?://(?:www\.)?a\.example/\w+$"),
        ("regex", r"/(?:user|member)s?/\d+$"),
        ("host", "b.example"),
        ("host", "*.b.example"),
        ("prefix", "https://c.example/x/"),
        ("glob", "https://*.example/{one,two}/*.html"),
        ("regex", r"(?i)^https://D\.example/"),
        ("regex", r"^https://(?!private)\w+\.e\.example/"),
        ("regex", r"\d{4}"),
        ("glob", "*://*/deep/**"),
        ("regex", r"^https://(?=.*z)[a-z]"),
        ("regex", r"\w\.example/\w+$"),
    ];

    #[test]
    fn the_index_finds_the_same_mappings_as_trying_every_pattern() {
        let index = index(PATTERNS);
        let hosts = [
            "a.example",
            "www.a.example",
            "b.example",
            "x.b.example",
            "c.example",
        ];
        let more_hosts = ["d.example", "ok.e.example", "private.e.example", "z.test"];
        let paths = [
            "",
            "ada",
            "users/12",
            "x/y",
            "one/p.html",
            "deep/a/b",
            "2024/z",
        ];
        for host in hosts.into_iter().chain(more_hosts) {
            for path in paths {
                let url = format!("https://{host}/{path}");
                let tried: Vec<usize> = (0..PATTERNS.len())
                    .filter(|&number| index.patterns[number].pattern.is_match(&url) == Ok(true))
                    .collect();
                assert_eq!(index.find_all(&url).mappings, tried, "{url}");
                assert_eq!(
                    index.find_first(&url).mappings.first(),
                    tried.first(),
                    "{url}"
                );
            }
        }
    }

    #[test]
    fn an_expression_that_backtracks_without_end_counts_as_no_match_and_is_named() {
        let index = index(&[("regex", r"^https://a\.example/(?:(?:a|aa)(?!x))+$")]);
        let url = format!("https://a.example/{}!", "a".repeat(80));
        let found = index.find_first(&url);
        assert_eq!(found.mappings, [] as [usize; 0]);
        assert_eq!(found.gave_up, [0]);
    }

    /// 500 mappings with typical patterns: most name a host, some only a path, and some use look-ahead.
    fn large_index() -> UrlIndex {
        let patterns = (0..500).map(|number| {
            let (kind, text) = match number % 10 {
                0 => (
                    "regex",
                    format!(r"^https?://[^/]+/path{number}/(?!edit)\w+"),
                ),
                1 => ("regex", format!(r"/[a-z]{{2}}/{number}\d+$")),
                2 => ("host", format!("*.site{number}.example")),
                3 => ("glob", format!("https://site{number}.example/p/*.html")),
                _ => (
                    "regex",
                    format!(r"^https?://(?:www\.)?site{number}\.example/\w+/?$"),
                ),
            };
            (number, UrlPattern::compile(kind, &text).unwrap())
        });
        UrlIndex::new(patterns.collect())
    }

    #[test]
    fn one_url_against_500_mappings_costs_microseconds() {
        let index = large_index();
        let urls: Vec<String> = (0..1000)
            .map(|number| format!("https://www.site{number}.example/profile{number}/"))
            .collect();
        let search = || -> usize {
            urls.iter()
                .map(|url| index.find_first(url).mappings.len())
                .sum()
        };
        // The first search compiles the expressions, so it is not timed.
        search();
        let took = |_| {
            let start = Instant::now();
            assert_eq!(search(), 350);
            start.elapsed().as_nanos() / urls.len() as u128
        };
        // The shortest time counts, because other tests may use the same core.
        let nanoseconds = (0..5).map(took).min().expect("five were timed");
        assert!(nanoseconds < 50_000, "{nanoseconds} ns a URL");
    }
}
