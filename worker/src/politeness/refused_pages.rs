//! Recognises pages that their site always refuses ([`RefusedPages`]). Such refusals say nothing about the pace that
//! the site accepts.
//!
//! A rate limiter refuses whichever page comes next. So the page itself is the cause of its refusal if it was refused
//! before and all pages that were requested since for the first time were answered. The first refusal of any other page
//! indicates a rate limiter, and then all refusals count again.

use std::hash::{DefaultHasher, Hash, Hasher};

/// How many pages of a site may count as always refused. If more pages are refused again and again, the cause may be a
/// rate limiter.
const MOST_PAGES: usize = 8;

/// A hash of a page's URL, to recognise the page by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageKey(u64);

impl PageKey {
    pub fn from_url(url: &str) -> PageKey {
        let mut hasher = DefaultHasher::new();
        url.hash(&mut hasher);
        PageKey(hasher.finish())
    }
}

/// What happened to other pages since a page was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherPages {
    Nothing,
    Answers,
    Refusals,
}

/// The pages that their site refuses again and again. The page that was refused last is at the end.
#[derive(Debug, Clone, Default)]
pub(super) struct RefusedPages(Vec<(PageKey, OtherPages)>);

impl RefusedPages {
    /// Notes a refused page. Returns whether the page itself is the cause of the refusal.
    pub(super) fn note_refused(&mut self, page: PageKey) -> bool {
        let known = self.0.iter_mut().find(|(known, _)| *known == page);
        if let Some((_, others)) = known {
            let is_own = *others == OtherPages::Answers;
            if !is_own {
                *others = OtherPages::Nothing;
            }
            return is_own;
        }
        for (_, others) in &mut self.0 {
            *others = OtherPages::Refusals;
        }
        if self.0.len() == MOST_PAGES {
            self.0.remove(0);
        }
        self.0.push((page, OtherPages::Nothing));
        false
    }

    /// Notes an answered page.
    pub(super) fn note_served(&mut self, page: PageKey) {
        self.0.retain(|(known, _)| *known != page);
        for (_, others) in &mut self.0 {
            if *others == OtherPages::Nothing {
                *others = OtherPages::Answers;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequences of requests: a small letter is a page that is answered, a capital letter one that is refused. The
    /// expected judgement of each refusal: `+` if it counts for the pace of the site, `-` if the page itself is the
    /// cause.
    const CASES: [(&str, &str, &str); 12] = [
        ("one page is closed", "abXcdXeXXf", "+---"),
        ("the site has one page", "XXXX", "++++"),
        ("other pages are found later", "XXXabXcX", "+++--"),
        ("it was alone and is refused again", "aXXbXX", "++--"),
        ("two pages are closed", "aXbYcXdYeXfYXY", "+++-----"),
        ("they are so in a row", "aXYbXYcXY", "+++---"),
        (
            "a limiter refuses one by chance twice",
            "aXbcXdYeXfZ",
            "+-+++",
        ),
        ("a limiter refuses each once", "aXbYcZdWe", "++++"),
        ("a limiter refuses several in a row", "aXYZbXYZ", "+++++-"),
        (
            "a page is closed, and a limiter comes",
            "aXbXcYZXYZ",
            "+-+++++",
        ),
        ("a page is served after all", "aXbXxcXdX", "+-+-"),
        (
            "a limiter refuses a page that was served",
            "abcBdAeC",
            "+++",
        ),
    ];

    #[test]
    fn a_refusal_is_the_pages_own_if_no_other_is_refused() {
        for (case, requests, expected) in CASES {
            let mut pages = RefusedPages::default();
            let mut judged = String::new();
            for letter in requests.chars() {
                let page = PageKey::from_url(&letter.to_lowercase().to_string());
                match letter.is_uppercase() {
                    true if pages.note_refused(page) => judged.push('-'),
                    true => judged.push('+'),
                    false => pages.note_served(page),
                }
            }
            assert_eq!(judged, expected, "{case}: {requests}");
        }
    }

    #[test]
    fn refusals_of_more_closed_pages_than_are_tracked_all_count() {
        let mut pages = RefusedPages::default();
        for _ in 0..3 {
            for number in 0..=MOST_PAGES {
                assert!(!pages.note_refused(PageKey::from_url(&number.to_string())));
                pages.note_served(PageKey::from_url("other"));
            }
        }
    }
}
