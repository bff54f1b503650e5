//! Pages that only repeat others of their site: what session ids in URLs, and links that are relative to the wrong
//! folder, lead to without an end. A page repeats others if so many different URLs of its crawl and site have
//! shown what it shows: its title, its text and its pictures. The dispatcher slows down what it leads to.
//!
//! Only pages some steps away from the seeds are compared; shallow crawls pay nothing. What is known is in memory, and
//! bounded; after a restart a site is learnt again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use webfill_urls::Url;
use webfill_wire::evidence_of_repetition;

use crate::blocks;
use crate::task_result::TaskResult;

/// So many URLs with the same content are needed, the one in hand included.
const SAME: usize = 8;

/// No trap is an endless one within fewer steps.
const LEAST_DEPTH: u16 = 3;

/// Shorter parts of an address may stand in any text.
const LEAST_PART_BYTES: usize = 3;

/// How often a row of path segments must follow upon itself to be a cycle.
const LEAST_TURNS: usize = 3;

/// How many contents are remembered for certain; the oldest of twice as many are forgotten.
const MOST_CONTENTS: usize = 32_768;

/// What parameters with ids of sessions are called, in lower case.
const SESSIONS: [&str; 9] = [
    "sid",
    "sessid",
    "session",
    "sessionid",
    "session_id",
    "phpsessid",
    "jsessionid",
    "cfid",
    "cftoken",
];

/// The different URLs that had a content, by their hashes.
#[derive(Debug, Clone, Copy, Default)]
struct Urls {
    hashes: [u32; SAME - 1],
    count: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    recent: HashMap<u64, Urls>,
    older: HashMap<u64, Urls>,
}

impl Repeats {
    /// Notes a page that was read; one that only repeats others gets evidence of that.
    pub(crate) fn note(&mut self, result: &mut TaskResult, url: &Url, text: &str) {
        if result.task.depth < LEAST_DEPTH || result.links.is_empty() {
            return;
        }
        let content = hash(&(result.task.crawl, &result.task.site, content(url, text)));
        if !self.is_repetition(content, hash(&url.as_str()) as u32) {
            return;
        }
        let seen = format!("the page shows what {} others of its site show", SAME - 1);
        let evidence = evidence_of_repetition(url.as_str(), result.status_code, &seen);
        result.evidence = Some(evidence);
    }

    fn is_repetition(&mut self, content: u64, url: u32) -> bool {
        let known = self.older.remove(&content);
        if self.recent.len() >= MOST_CONTENTS && !self.recent.contains_key(&content) {
            self.older = std::mem::take(&mut self.recent);
        }
        let urls = self
            .recent
            .entry(content)
            .or_insert(known.unwrap_or_default());
        if urls.hashes[..urls.count].contains(&url) {
            return false;
        }
        if urls.count == urls.hashes.len() {
            return true;
        }
        urls.hashes[urls.count] = url;
        urls.count += 1;
        false
    }
}

/// A hash of what a page shows. Its own address does not count. Where its URL runs in circles, numbers do not either;
/// where it names a session, that does not.
fn content(url: &Url, text: &str) -> u64 {
    let (shown, pictures) = blocks::shown(text);
    let shown = without_address(url, shown);
    if runs_in_circles(url) {
        let words = shown.split(' ');
        let words = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
        return hash(&(words.collect::<Vec<_>>(), pictures));
    }
    match session_of(url) {
        Some(session) => hash(&(shown.replace(&session.to_lowercase(), ""), pictures)),
        None => hash(&(shown, pictures)),
    }
}

/// What a page shows beside its path and the values of its query. Numbers stay: they tell the pages of a list apart.
fn without_address(url: &Url, mut shown: String) -> String {
    let values = url.query_pairs().map(|(_, value)| value.to_lowercase());
    let values = values.filter(|value| value.contains(char::is_alphabetic));
    for part in std::iter::once(url.path().to_lowercase()).chain(values) {
        if part.len() >= LEAST_PART_BYTES && shown.contains(&part) {
            shown = shown.replace(&part, "");
        }
    }
    shown
}

/// Whether the path ends with a row of segments that follows upon itself, as in `/a/b/a/b/a/b`.
fn runs_in_circles(url: &Url) -> bool {
    let path = url.path().trim_end_matches('/');
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    // The last one may be the page's own name.
    [segments.len(), segments.len().saturating_sub(1)]
        .into_iter()
        .any(|end| ends_in_circles(&segments[..end]))
}

fn ends_in_circles(segments: &[&str]) -> bool {
    const LONGEST_ROW: usize = 4;
    (1..=LONGEST_ROW).any(|row| {
        let Some(start) = segments.len().checked_sub(row * LEAST_TURNS) else {
            return false;
        };
        let circle = &segments[start..];
        circle
            .iter()
            .zip(&circle[row..])
            .all(|(one, next)| one == next)
    })
}

/// The id of a session in the query, or behind a `;` in the path.
fn session_of(url: &Url) -> Option<String> {
    let pairs = url.query_pairs();
    let in_query = pairs.filter(|(name, _)| is_session(name));
    let mut in_query = in_query.map(|(_, value)| value.into_owned());
    let in_path = || {
        let (_, parameter) = url.path().split_once(';')?;
        let (name, value) = parameter.split_once('=')?;
        is_session(name).then(|| value.to_owned())
    };
    let session = in_query.next().or_else(in_path)?;
    (!session.is_empty()).then_some(session)
}

fn is_session(name: &str) -> bool {
    SESSIONS
        .iter()
        .any(|session| session.eq_ignore_ascii_case(name))
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At which of the pages the first repetition is found.
    fn first_repetition(pages: impl Iterator<Item = (String, String)>) -> Option<usize> {
        let mut repeats = Repeats::default();
        let mut pages = pages.map(|(path, text)| {
            let url = Url::parse(&format!("https://site.example{path}")).unwrap();
            (content(&url, &text), hash(&url.as_str()) as u32)
        });
        pages.position(|(content, url)| repeats.is_repetition(content, url))
    }

    #[test]
    fn only_pages_that_show_what_many_others_show_are_repetitions() {
        let same = |n: usize| (format!("/{n}"), "<p>Welcome <a href=x>on</a>".to_owned());
        assert_eq!(first_repetition((0..20).map(same)), Some(SAME - 1));
        let session = |n: usize| {
            let id = format!("ab{n}");
            (format!("/p?PHPSESSID={id}"), format!("<p>Session {id}"))
        };
        assert_eq!(first_repetition((0..20).map(session)), Some(SAME - 1));
        let echo = |n: usize| {
            let address = format!("/p?r=x{n}y");
            (address.clone(), format!("<p>You are at {address}"))
        };
        assert_eq!(first_repetition((0..20).map(echo)), Some(SAME - 1));
        let circle_that_says_so = |n: usize| {
            let path = "/a/b".repeat(n + 1);
            (path.clone(), format!("<p>Not found: {path}"))
        };
        assert_eq!(
            first_repetition((0..20).map(circle_that_says_so)),
            Some(LEAST_TURNS - 1 + SAME - 1)
        );
        let circle = |n: usize| ("/a".repeat(n + 1), format!("<p>Visit {n}"));
        assert_eq!(
            first_repetition((0..20).map(circle)),
            Some(LEAST_TURNS - 1 + SAME - 1)
        );
        for honest in [
            (|n| (format!("/item/{n}"), format!("<p>Item {n}"))) as fn(usize) -> (String, String),
            |n| {
                (
                    format!("/list?page={}", 100 + n),
                    format!("<p>Page {}", 100 + n),
                )
            },
            |n| (format!("/strip/{n}"), format!("<p>next<img src=/{n}.png>")),
            |n| {
                (
                    format!("/list?page={n}"),
                    format!("<title>Page {n}</title><p>List"),
                )
            },
            |n| (format!("/calendar?month={n}"), format!("<p>Month {n}")),
            |n| (format!("/item?sid=7&id={n}"), format!("<p>Item {n}")),
            |_| ("/".to_owned(), "<p>The same URL again".to_owned()),
        ] {
            assert_eq!(first_repetition((0..50).map(honest)), None);
        }
    }

    #[test]
    fn circles_are_rows_of_segments_that_follow_upon_themselves() {
        for (path, expected) in [
            ("/a/a/a", true),
            ("/x/a/b/a/b/a/b/", true),
            ("/a/a/a/page.html", true),
            ("/a/a", false),
            ("/a/b/a/b", false),
            ("/2020/01/01/01", true),
            ("/", false),
        ] {
            let url = Url::parse(&format!("https://site.example{path}")).unwrap();
            assert_eq!(runs_in_circles(&url), expected, "{path}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut repeats = Repeats::default();
        for content in 0..3 * MOST_CONTENTS as u64 {
            repeats.is_repetition(content, 1);
            assert!(repeats.recent.len() <= MOST_CONTENTS);
        }
        assert!(repeats.older.len() <= MOST_CONTENTS);
    }
}
