//! Remembers failed lookups of host names: for how long a failure is valid, and whether the lookup was slow. Addresses
//! are not remembered; they are held only while a task needs them ([`names`](super::names)).
//!
//! The number of names is bounded: the least recently used are forgotten. Everything is lost with the process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lookup_threads::LookupClass;
use super::names::Answer;
use super::refusal::LookupError;

/// How long it is remembered that a name does not exist or has no address. This is shorter than the wait before a crawl
/// looks the name up again.
const NOT_FOUND_FOR: Duration = Duration::from_secs(4);

/// How long it is remembered that a name does not exist or has no address, if the previous lookup had the same result.
const NOT_FOUND_AGAIN_FOR: Duration = Duration::from_secs(60);

/// How long a failure that was reported quickly is remembered.
const FAILED_FOR: Duration = Duration::from_secs(10);

/// How long a missing answer, or a failure after a long time, is remembered.
const UNANSWERED_FOR: Duration = Duration::from_secs(60);

/// A lookup that takes longer than this counts as slow.
pub const MOMENT: Duration = Duration::from_millis(500);

/// How many names each of the two generations (maps of names) holds. A name takes some 100 bytes.
const GENERATION: usize = 4_096;

#[derive(Default)]
pub(super) struct NameMemory {
    /// The names that were used since the map `old` was full.
    young: HashMap<Box<str>, Entry>,
    old: HashMap<Box<str>, Entry>,
}

enum Entry {
    FoundQuickly,
    Failed {
        why: Arc<LookupError>,
        until: Instant,
        was_slow: bool,
    },
}

impl NameMemory {
    /// The failure of the name's last lookup, as long as it is valid.
    pub(super) fn failure(&mut self, name: &str, now: Instant) -> Option<Arc<LookupError>> {
        match self.entry(name)? {
            Entry::Failed { why, until, .. } if now < *until => Some(Arc::clone(why)),
            _ => None,
        }
    }

    pub(super) fn class(&mut self, name: &str) -> LookupClass {
        match self.entry(name) {
            Some(Entry::FoundQuickly) => LookupClass::Quick,
            Some(Entry::Failed { was_slow: true, .. }) => LookupClass::Slow,
            Some(Entry::Failed { .. }) | None => LookupClass::New,
        }
    }

    /// Notes that a lookup ended at `now`, or that its time limit was reached.
    pub(super) fn note(&mut self, name: &str, answer: &Answer, took: Duration, now: Instant) {
        let is_slow = took > MOMENT;
        let why = match answer {
            Ok(_) if is_slow => return self.forget(name),
            Ok(_) => return self.keep(name.into(), Entry::FoundQuickly),
            Err(why) => Arc::clone(why),
        };
        let is_missing = matches!(*why, LookupError::NotFound);
        let was_missing = matches!(
            self.entry(name),
            Some(Entry::Failed { why, .. }) if matches!(**why, LookupError::NotFound)
        );
        let holds_for = match (is_missing, is_slow) {
            (true, _) if was_missing => NOT_FOUND_AGAIN_FOR,
            (true, _) => NOT_FOUND_FOR,
            (false, true) => UNANSWERED_FOR,
            (false, false) => FAILED_FOR,
        };
        let entry = Entry::Failed {
            why,
            until: now + holds_for,
            was_slow: is_slow && !is_missing,
        };
        self.keep(name.into(), entry);
    }

    /// Forgets the names of a site.
    pub(super) fn forget_site(&mut self, site: &str) {
        let is_elsewhere = |name: &str| {
            name.strip_suffix(site)
                .is_none_or(|rest| !rest.is_empty() && !rest.ends_with('.'))
        };
        self.young.retain(|name, _| is_elsewhere(name));
        self.old.retain(|name, _| is_elsewhere(name));
    }

    fn forget(&mut self, name: &str) {
        self.young.remove(name);
        self.old.remove(name);
    }

    fn entry(&mut self, name: &str) -> Option<&Entry> {
        if let Some((name, entry)) = self.old.remove_entry(name) {
            self.keep(name, entry);
        }
        self.young.get(name)
    }

    fn keep(&mut self, name: Box<str>, entry: Entry) {
        self.old.remove(&name);
        if self.young.len() >= GENERATION && !self.young.contains_key(&name) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(name, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICKLY: Duration = Duration::from_millis(20);
    const SLOWLY: Duration = Duration::from_secs(9);

    fn found_answer() -> Answer {
        Ok(vec!["192.0.2.1:0".parse().unwrap()].into())
    }

    fn failed_answer() -> Answer {
        Err(Arc::new(LookupError::Failed(std::io::Error::other("no"))))
    }

    fn missing_answer() -> Answer {
        Err(Arc::new(LookupError::NotFound))
    }

    #[test]
    fn a_failure_holds_for_a_time_that_depends_on_its_kind() {
        for (answer, took, holds_for, class) in [
            (missing_answer(), QUICKLY, NOT_FOUND_FOR, LookupClass::New),
            (missing_answer(), SLOWLY, NOT_FOUND_FOR, LookupClass::New),
            (failed_answer(), QUICKLY, FAILED_FOR, LookupClass::New),
            (failed_answer(), SLOWLY, UNANSWERED_FOR, LookupClass::Slow),
        ] {
            let (mut memory, now) = (NameMemory::default(), Instant::now());
            memory.note("a", &answer, took, now);
            let last = now + holds_for - Duration::from_millis(1);
            assert!(memory.failure("a", last).is_some());
            assert!(memory.failure("a", now + holds_for).is_none());
            assert_eq!(memory.class("a"), class);
        }
    }

    #[test]
    fn only_a_name_that_was_found_at_once_is_quick() {
        let (mut memory, now) = (NameMemory::default(), Instant::now());
        memory.note("a", &failed_answer(), SLOWLY, now);
        memory.note("a", &found_answer(), QUICKLY, now);
        assert_eq!(memory.class("a"), LookupClass::Quick);
        assert!(memory.failure("a", now).is_none());
        memory.note("a", &found_answer(), SLOWLY, now);
        assert_eq!(memory.class("a"), LookupClass::New);
    }

    #[test]
    fn the_names_of_one_site_are_forgotten() {
        let (mut memory, now) = (NameMemory::default(), Instant::now());
        for name in ["a.org", "www.a.org", "aa.org", "b.org"] {
            memory.note(name, &missing_answer(), QUICKLY, now);
        }
        memory.forget_site("a.org");
        let known = ["a.org", "www.a.org", "aa.org", "b.org"]
            .map(|name| memory.failure(name, now).is_some());
        assert_eq!(known, [false, false, true, true]);
    }

    #[test]
    fn the_number_of_names_is_bounded_and_used_names_stay() {
        let (mut memory, now) = (NameMemory::default(), Instant::now());
        memory.note("used", &missing_answer(), QUICKLY, now);
        for number in 0..10 * GENERATION {
            memory.note(&format!("name-{number}"), &missing_answer(), QUICKLY, now);
            assert!(memory.failure("used", now).is_some());
        }
        assert!(memory.young.len() + memory.old.len() <= 2 * GENERATION);
        assert!(memory.failure("name-1", now).is_none());
    }
}
