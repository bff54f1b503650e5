//! One short page for every URL: a block of which no signature knows.
//!
//! A site that answers [`RUN`] different URLs in a row with the same short page, which speaks of what
//! challenges speak of or does what their scripts do, serves no pages.
//! Remembered are the sites whose last page was a short one, each with hashes of that page and of
//! the URLs that got it; any other page ends the run, and the site is forgotten. A page that was
//! recognised stays known meanwhile, so that after a rest it is recognised at the first request.
//!
//! Some short pages are the same for many URLs of healthy sites, and never count: see
//! [`may_be_a_block`].
//!
//! All is in memory, and bounded; after a restart a site is learnt again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::scan::{Scan, scan_all};
use super::target::is_same_path;
use super::{Grade, Response, Sign, is_short};

/// How many different URLs in a row must get the same page.
const RUN: usize = 5;

/// A page of no more bytes is short, however much of it is shown.
const SHORT_BYTES: usize = 2048;

/// How many sites are remembered for certain. The oldest of twice as many are forgotten.
const MOST_SITES: usize = 2048;

/// What challenges speak of.
const WORDS_OF_CHALLENGES: [&str; 11] = [
    "moment",
    "wait",
    "checking",
    "verif",
    "robot",
    "human",
    "captcha",
    "challenge",
    "denied",
    "blocked",
    "security",
];

/// What the scripts of challenges do: set a cookie, move on, send a form, hide what they do. Scripts
/// that only change their page are an application's.
const SCRIPTS_OF_CHALLENGES: [&str; 10] = [
    "document.cookie",
    "location.reload",
    "location.replace",
    "location.href",
    "location =",
    "location=",
    ".submit(",
    "eval(",
    "atob(",
    "challenge",
];

/// What a page says that is not there. It is the same for all URLs that lead nowhere.
const WORDS_OF_MISSING_PAGES: [&str; 7] = [
    "404",
    "not found",
    "nicht gefunden",
    "introuvable",
    "no encontrad",
    "não encontrad",
    "non trovat",
];

/// The sites whose last page was short; see the module.
#[derive(Debug, Default)]
pub struct RepeatedPages {
    recent: HashMap<String, Run>,
    /// Those that were in `recent` when it was full.
    older: HashMap<String, Run>,
}

/// A page that came last, and the different URLs that got it in a row.
#[derive(Debug, Default)]
struct Run {
    page: u64,
    urls: [u64; RUN],
    length: usize,
}

impl RepeatedPages {
    /// Takes note of a page that was served, and says whether it is one for every URL.
    pub fn note(&mut self, site: &str, response: &Response<'_>) -> Option<Sign> {
        if !may_be_a_block(response) {
            self.recent.remove(site);
            self.older.remove(site);
            return None;
        }
        let run = self.run_of(site);
        run.note(hash(response.body), hash(response.url.as_str()));
        (run.length == RUN).then(|| Sign {
            signature: "repeated-page",
            grade: Grade::Statistical,
            evidence: format!(
                "the same short page of {} bytes for {RUN} different URLs in a row",
                response.body.len()
            ),
        })
    }

    fn run_of(&mut self, site: &str) -> &mut Run {
        let run = self.older.remove(site).unwrap_or_default();
        if self.recent.len() >= MOST_SITES && !self.recent.contains_key(site) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.entry(site.to_owned()).or_insert(run)
    }
}

impl Run {
    fn note(&mut self, page: u64, url: u64) {
        if page != self.page {
            *self = Run {
                page,
                ..Run::default()
            };
        }
        if self.length < RUN && !self.urls[..self.length].contains(&url) {
            self.urls[self.length] = url;
            self.length += 1;
        }
    }
}

/// Whether a response is a short page that resembles a challenge, and is not one that healthy sites
/// serve for many URLs: the shell of an application, a form, a page that leads elsewhere, or one
/// that says that something is not there.
fn may_be_a_block(response: &Response<'_>) -> bool {
    let body = response.body;
    if !response.is_html || body.is_empty() || (body.len() > SHORT_BYTES && !is_short(body)) {
        return false;
    }
    let page = scan_all(body, response.url, SHORT_BYTES);
    resembles_a_challenge(&page, body)
        && !page.features.is_shell
        && !page.features.has_fields
        && !leads_elsewhere(&page, response)
        && !says_one_of(&page, &WORDS_OF_MISSING_PAGES)
}

fn resembles_a_challenge(page: &Scan<'_>, body: &str) -> bool {
    let mut scripts = SCRIPTS_OF_CHALLENGES.iter();
    says_one_of(page, &WORDS_OF_CHALLENGES)
        || (page.features.has_script && scripts.any(|script| body.contains(script)))
}

fn leads_elsewhere(page: &Scan<'_>, response: &Response<'_>) -> bool {
    let target = page.refresh.and_then(|refresh| refresh.target);
    let target = target.and_then(|target| response.url.join(target).ok());
    target.is_some_and(|target| !is_same_path(&target, response.url))
}

fn says_one_of(page: &Scan<'_>, words: &[&str]) -> bool {
    let title = page.title.unwrap_or_default().to_lowercase();
    let mut words = words.iter();
    words.any(|word| title.contains(word) || page.text.contains(word))
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
