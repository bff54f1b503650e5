//! The last pages, so that none is counted twice, and one that is served for many URLs counts once.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::hash;

/// A task that is delivered again soon follows its first delivery.
const PAGES: usize = 256;

/// Different URLs with the same content follow each other.
const CONTENTS: usize = 64;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Recent {
    pages: VecDeque<u64>,
    /// Content, URL.
    contents: VecDeque<(u64, u64)>,
}

impl Recent {
    /// Notes a page; whether it says something new.
    pub(crate) fn note(
        &mut self,
        id: &str,
        url: &str,
        content: Option<&str>,
        attempts: u64,
    ) -> bool {
        let id = hash(id);
        if attempts > 1 && self.pages.contains(&id) {
            return false;
        }
        push(&mut self.pages, id, PAGES);
        let Some(content) = content.map(hash) else {
            return true;
        };
        let url = hash(url);
        let is_served_for_another = |(other, of): &(u64, u64)| *other == content && *of != url;
        let is_copy = self.contents.iter().any(is_served_for_another);
        push(&mut self.contents, (content, url), CONTENTS);
        !is_copy
    }
}

pub(crate) fn push<T>(ring: &mut VecDeque<T>, one: T, most: usize) {
    if ring.len() >= most {
        ring.pop_front();
    }
    ring.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_delivered_again_says_nothing_new() {
        let mut recent = Recent::default();
        assert!(recent.note("a/1/x", "http://x/", Some("c1"), 1));
        assert!(!recent.note("a/1/x", "http://x/", Some("c2"), 2));
        assert!(
            recent.note("a/1/x", "http://x/", Some("c1"), 1),
            "a new fetch"
        );
    }

    #[test]
    fn one_content_for_many_urls_counts_once() {
        let mut recent = Recent::default();
        assert!(recent.note("1", "http://x/1", Some("same"), 1));
        assert!(!recent.note("2", "http://x/2", Some("same"), 1));
        assert!(recent.note("3", "http://x/3", Some("other"), 1));
        assert!(recent.note("4", "http://x/4", None, 1));
    }
}
