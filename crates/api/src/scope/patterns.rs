//! Lists of patterns, each compiled into one automaton. That may take milliseconds and megabytes, so equal lists
//! share one automaton while it is in use, by requests of many crawls or by the crawls themselves.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use regex::{RegexBuilder, RegexSetBuilder};
use regex_automata::MatchKind;
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;

use super::ScopeError;

/// A compiled list of patterns.
#[derive(Debug)]
pub struct PatternSet {
    automaton: meta::Regex,
    /// The size limit that applied when it was compiled.
    limit: usize,
}

impl PatternSet {
    /// Whether one of the patterns matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.automaton.is_match(text)
    }

    /// The memory of the compiled list in bytes, without the caches for searches.
    pub fn memory_bytes(&self) -> usize {
        self.automaton.memory_usage()
    }
}

/// The compiled lists in use, by the texts of their patterns.
#[derive(Default)]
struct PatternCache {
    sets: HashMap<Vec<String>, Weak<PatternSet>>,
    /// Unused lists are dropped when there are this many entries.
    prune_at: usize,
}

static IN_USE: LazyLock<Mutex<PatternCache>> = LazyLock::new(Mutex::default);

impl PatternCache {
    fn insert(&mut self, patterns: &[String], set: &Arc<PatternSet>) {
        if self.sets.len() >= self.prune_at {
            self.sets.retain(|_, set| set.strong_count() > 0);
            self.prune_at = (2 * self.sets.len()).max(64);
        }
        self.sets.insert(patterns.to_vec(), Arc::downgrade(set));
    }
}

/// Compiles a list within a size limit, or finds it compiled. The error of a set does not name the faulty
/// pattern: if the set fails, its patterns are compiled one by one.
pub(super) fn compile_within(
    list: &'static str,
    patterns: &[String],
    limit: usize,
) -> Result<Arc<PatternSet>, ScopeError> {
    let in_use = || IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = in_use().sets.get(patterns).and_then(Weak::upgrade);
    if let Some(known) = known.filter(|known| known.limit <= limit) {
        return Ok(known);
    }
    // `regex` compiles a set with these settings.
    let config = meta::Config::new()
        .match_kind(MatchKind::All)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(limit));
    let built = meta::Builder::new().configure(config).build_many(patterns);
    let Ok(automaton) = built else {
        return Err(find_faulty_pattern(list, patterns, limit));
    };
    let set = Arc::new(PatternSet { automaton, limit });
    in_use().insert(patterns, &set);
    Ok(set)
}

fn find_faulty_pattern(list: &'static str, patterns: &[String], limit: usize) -> ScopeError {
    let compile = |pattern: &String| RegexBuilder::new(pattern).size_limit(limit).build();
    let faults = patterns.iter().enumerate();
    let mut faults = faults.filter_map(|(index, pattern)| Some((index, compile(pattern).err()?)));
    let (index, reason) = match faults.next() {
        Some((index, error)) => (index, pattern_error_reason(&error)),
        None => {
            let whole = RegexSetBuilder::new(patterns).size_limit(limit).build();
            (
                0,
                whole
                    .err()
                    .map_or_else(String::new, |error| pattern_error_reason(&error)),
            )
        }
    };
    ScopeError::Pattern {
        list,
        index,
        pattern: patterns.get(index).cloned().unwrap_or_default(),
        reason,
    }
}

/// The reason for an error on one line: the last line of the regex crate's message. The lines before it draw the
/// pattern with a marker.
fn pattern_error_reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 20;

    fn compile_patterns(patterns: &[&str]) -> Arc<PatternSet> {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        compile_within("allow_regex", &patterns, LIMIT).unwrap()
    }

    #[test]
    fn equal_lists_share_one_automaton_as_long_as_it_is_held() {
        let first = compile_patterns(&["/shared/", "x+"]);
        assert!(Arc::ptr_eq(&first, &compile_patterns(&["/shared/", "x+"])));
        assert!(!Arc::ptr_eq(&first, &compile_patterns(&["x+", "/shared/"])));
        let was = Arc::downgrade(&first);
        drop(first);
        assert!(was.upgrade().is_none(), "nobody holds it");
    }

    #[test]
    fn a_list_that_keeps_a_higher_limit_only_is_refused_under_the_lower_one() {
        let patterns = vec![r"\w{100}".to_owned()];
        let wide = compile_within("deny_regex", &patterns, 10 * LIMIT).unwrap();
        assert!(wide.memory_bytes() > LIMIT);
        assert!(compile_within("deny_regex", &patterns, LIMIT).is_err());
    }

    #[test]
    fn a_set_matches_if_one_of_its_patterns_does() {
        let set = compile_patterns(&["/a/", "b$"]);
        for (text, matches) in [("/a/x", true), ("/ab", true), ("/c", false)] {
            assert_eq!(set.is_match(text), matches, "{text}");
        }
    }
}
