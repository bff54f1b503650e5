//! Recognises a site that gives one answer for every URL: a block that no signature covers. Two kinds of answers are
//! compared within a site: short pages with the words or scripts of challenges, and redirects to another host that are
//! named like a challenge.
//!
//! The second URL in a row with the same answer proves a block if the page has nothing that healthy pages have (see
//! [`Likeness`]); otherwise it takes [`LONG_RUN`] URLs. If a second URL with the same answer would prove a block, the
//! answer is a *suspicion* at the first URL. It is not accepted as the page, and its task is retried after other tasks
//! of the site. If no other URL has got the same answer by then, the answer is accepted as an ordinary page.
//!
//! This module remembers the sites whose last page was short, with hashes of the answer and of the URLs that got it.
//! Any other page ends the run. A recognised block stays known, so after a backoff it is recognised at the first
//! request. A suspected answer that turned out to be a page stays known as a page.
//!
//! Healthy sites, too, serve some short pages for many URLs. Those never count: see [`assess_likeness`].
//!
//! All state is in memory and bounded. After a restart it is learnt again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use webfill_urls::Url;

use super::evidence::Evidence;
use super::scan::{Scan, scan_all};
use super::target::{is_same_path, names_a_challenge};
use super::{Grade, Inspected, Response, SHORT_CHARACTERS, Sign};

/// How many URLs in a row must get the same page to prove a block, if healthy sites may serve such a page as well.
const LONG_RUN: usize = 5;

/// How many URLs in a row must get the same answer to prove a block, if healthy sites hardly ever give it twice.
const SHORT_RUN: usize = 2;

/// After this many suspected answers of a site have turned out to be pages, its answers are no longer suspected: the
/// site has short pages of its own.
const MOST_ACQUITTALS: u32 = 3;

/// A page with at most this many bytes is short, however much text it shows.
const SHORT_BYTES: usize = 2048;

/// The size limit, in bytes, of a page that counts as a bare script: a page that only loads a script from elsewhere.
const BARE_BYTES: usize = 512;

/// How many sites are remembered at least. Once there are twice as many, the older half is forgotten.
const MOST_SITES: usize = 2048;

/// Words that challenge pages show.
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

/// Typical actions of the scripts of challenges: set a cookie, move on, send a form, hide what they do. A script that
/// only changes its page belongs to an application.
const SCRIPTS_OF_CHALLENGES: [&str; 15] = [
    "document.cookie",
    "cookieStore",
    "history.go(",
    "location.assign(",
    "[\"location\"]",
    "[\"reload\"]",
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

/// Words of "not found" pages. Such a page is the same for all URLs that lead nowhere.
const WORDS_OF_MISSING_PAGES: [&str; 7] = [
    "404",
    "not found",
    "nicht gefunden",
    "introuvable",
    "no encontrad",
    "não encontrad",
    "non trovat",
];

/// The sites whose last page was short, to recognise a site that gives one answer for every URL.
#[derive(Debug, Default)]
pub struct RepeatedPages {
    recent: HashMap<String, Run>,
    /// The sites that were in `recent` when it was last full. They are forgotten when it is full again.
    older: HashMap<String, Run>,
}

/// How much an answer resembles a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    /// The page has nothing for readers: no link, no picture, no way to another page. Or the answer is a redirect.
    Strong,
    Weak,
}

/// The latest answer, and the different URLs in a row that got it.
#[derive(Debug, Default)]
struct Run {
    answer: u64,
    urls: [u64; LONG_RUN],
    length: usize,
    /// The answer was suspected, and its task was postponed.
    is_suspected: bool,
    /// A hash of the last suspected answer that turned out to be an ordinary page, and the number of all such answers.
    acquitted: Option<u64>,
    acquittals: u32,
}

impl RepeatedPages {
    /// Notes an answer: a served page or a redirect. Returns a sign if the site gives this answer for every URL, or is
    /// suspected to. `may_wait`: the task can be retried to find out.
    pub fn note_answer(
        &mut self,
        site: &str,
        inspected: &Inspected<'_>,
        may_wait: bool,
    ) -> Option<Sign> {
        let response = inspected.response;
        let Some((likeness, answer)) = assess_likeness(inspected) else {
            // A redirect does not end a run: the page that it leads to may be the block.
            if response.redirect.is_none() {
                self.end_run(site);
            }
            return None;
        };
        let run = self.get_or_insert_run(site);
        let is_new = run.note_url(answer, url_key(response.url));
        let is_strong = likeness == Likeness::Strong
            && run.acquitted != Some(answer)
            && run.acquittals < MOST_ACQUITTALS;
        let needed = if is_strong { SHORT_RUN } else { LONG_RUN };
        if run.length >= needed {
            return Some(make_sign(response, run.length));
        }
        if is_strong && is_new && may_wait {
            run.is_suspected = true;
            return Some(make_suspicion(response));
        }
        // If the answer was suspected, its task was retried and got it again, while no other URL did: it is a page.
        run.clear_suspicion();
        None
    }

    /// A site's latest noted answer, if it resembles a challenge.
    pub fn challenge_like_answer(&self, site: &str) -> Option<u64> {
        let run = self.recent.get(site).filter(|run| run.length > 0);
        run.map(|run| run.answer)
    }

    fn end_run(&mut self, site: &str) {
        let is_forgotten = |run: &mut Run| {
            run.clear_suspicion();
            run.length = 0;
            run.acquitted.is_none()
        };
        for sites in [&mut self.recent, &mut self.older] {
            if sites.get_mut(site).is_some_and(is_forgotten) {
                sites.remove(site);
            }
        }
    }

    fn get_or_insert_run(&mut self, site: &str) -> &mut Run {
        let run = self.older.remove(site);
        if self.recent.len() >= MOST_SITES && !self.recent.contains_key(site) {
            self.older = std::mem::take(&mut self.recent);
        }
        let known = self.recent.entry(site.to_owned());
        known.or_insert(run.unwrap_or_default())
    }
}

impl Run {
    /// Notes that a URL got this answer. Returns whether the URL is new in the run.
    fn note_url(&mut self, answer: u64, url: u64) -> bool {
        if answer != self.answer || self.length == 0 {
            self.clear_suspicion();
            *self = Run {
                answer,
                acquitted: self.acquitted,
                acquittals: self.acquittals,
                ..Run::default()
            };
        }
        let is_new = self.length < LONG_RUN && !self.urls[..self.length].contains(&url);
        if is_new {
            self.urls[self.length] = url;
            self.length += 1;
        }
        is_new
    }

    /// Ends a suspicion. If no second URL got the suspected answer, notes that it turned out to be a page.
    fn clear_suspicion(&mut self) {
        if std::mem::take(&mut self.is_suspected) && self.length < SHORT_RUN {
            self.acquitted = Some(self.answer);
            self.acquittals = self.acquittals.saturating_add(1);
        }
    }
}

fn make_sign(response: &Response<'_>, urls: usize) -> Sign {
    let signature = match response.redirect {
        Some(_) => "repeated-redirect",
        None => "repeated-page",
    };
    Sign {
        signature,
        grade: Grade::Statistical,
        evidence: format!(
            "{} for {urls} different URLs in a row",
            describe_answer(response)
        ),
    }
}

fn make_suspicion(response: &Response<'_>) -> Sign {
    Sign {
        grade: Grade::Suspicion,
        evidence: format!("{}, seen once", describe_answer(response)),
        ..make_sign(response, 1)
    }
}

fn describe_answer(response: &Response<'_>) -> String {
    let target = response.redirect.and_then(|to| response.url.join(to).ok());
    match target {
        Some(target) => {
            let mut evidence = Evidence::default();
            evidence.add_target(&target);
            evidence.into_text()
        }
        None => format!("the same short page of {} bytes", response.body.len()),
    }
}

/// The key of a URL. Two names of one page, such as `/` and `/index.html`, have the same key.
fn url_key(url: &Url) -> u64 {
    let host = url.host_str().unwrap_or_default();
    let path = url.path();
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let path = match file.starts_with("index.") || file.is_empty() {
        true => folder,
        false => path,
    };
    hash(&(host.trim_start_matches("www."), path, url.query()))
}

/// How much a response resembles a challenge, with a hash for comparison. `None` for pages that healthy sites serve for
/// many URLs: the shell of an application, a form, a page that leads elsewhere, a "not found" page. Also `None` for
/// redirects that do not name a challenge at another host.
fn assess_likeness(inspected: &Inspected<'_>) -> Option<(Likeness, u64)> {
    let response = inspected.response;
    if let Some(target) = response.redirect {
        let target = response.url.join(target).ok()?;
        let is_gate = target.host_str() != response.url.host_str()
            && names_a_challenge(&target, response.url);
        // The query may name the requested page, so it is left out.
        let answer = hash(&("redirect", target.host_str(), target.path()));
        return is_gate.then_some((Likeness::Strong, answer));
    }
    let body = response.body;
    let is_short = || body.len() <= SHORT_BYTES || inspected.has_less_text_than(SHORT_CHARACTERS);
    if !response.is_html || body.is_empty() || !is_short() {
        return None;
    }
    let page = scan_all(body, response.url, SHORT_BYTES);
    let may_be_a_block = (resembles_a_challenge(&page, body) || is_bare_script(&page, body))
        && !page.features.is_shell
        && !page.features.has_fields
        && !leads_elsewhere(&page, response)
        && !has_one_of(&page, &WORDS_OF_MISSING_PAGES);
    let features = page.features;
    let has_more = features.has_links || features.has_media || features.moves_away;
    may_be_a_block.then(|| match has_more {
        true => (Likeness::Weak, hash(&body)),
        false => (
            Likeness::Strong,
            hash(&(page.title, &page.text, mask_varying_parts(response))),
        ),
    })
}

/// A page's source without the parts that challenges change with each request: the requested address, and everything
/// that looks like a token or a number. The visible text is compared separately.
fn mask_varying_parts(response: &Response<'_>) -> String {
    let path = response.url.path();
    let body = match path.len() > 1 {
        true => response.body.replace(path, "/"),
        false => response.body.to_owned(),
    };
    let words = body.split(|c: char| !(c.is_alphanumeric() || matches!(c, '+' | '=' | '_')));
    let words = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

fn resembles_a_challenge(page: &Scan<'_>, body: &str) -> bool {
    let mut scripts = SCRIPTS_OF_CHALLENGES.iter();
    has_one_of(page, &WORDS_OF_CHALLENGES)
        || (page.features.has_script && scripts.any(|script| body.contains(script)))
}

/// Whether a page is nothing but a script from elsewhere. Applications that render all their pages with scripts have
/// a title, a style sheet, an icon or a description at least.
fn is_bare_script(page: &Scan<'_>, body: &str) -> bool {
    const OF_APPLICATIONS: [&str; 5] = ["<link", "<style", "<meta name", "<noscript", "<canvas"];
    let body = body.to_ascii_lowercase();
    page.features.has_external_script
        && page.title.is_none()
        && page.text.is_empty()
        && body.len() <= BARE_BYTES
        && !OF_APPLICATIONS.iter().any(|tag| body.contains(tag))
}

fn leads_elsewhere(page: &Scan<'_>, response: &Response<'_>) -> bool {
    let target = page.refresh.and_then(|refresh| refresh.target);
    let target = target.and_then(|target| response.url.join(target).ok());
    target.is_some_and(|target| !is_same_path(&target, response.url))
}

fn has_one_of(page: &Scan<'_>, words: &[&str]) -> bool {
    let title = page.title.unwrap_or_default().to_lowercase();
    let mut words = words.iter();
    words.any(|word| title.contains(word) || page.text.contains(word))
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
