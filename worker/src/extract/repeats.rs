//! Recognises pages that only repeat other pages of their site. Session ids in URLs, links relative to the wrong folder
//! and calendars lead to endless numbers of such pages. The dispatcher fetches the pages that they link to more slowly.
//!
//! A page repeats others in one of three ways:
//!
//! - [`SAME`] URLs of its crawl and site have shown exactly the same title, text and pictures;
//! - as many have shown almost the same, and differ only in parts of the address that do not identify the page: a
//!   session id, circles in the path ([`Address::essence`]);
//! - it is one of a long row of pages at addresses of the same shape, and none of them showed anything new
//!   ([`Branches`]).
//!
//! A page is a list page, and not a repetition, if it links to pages that may show something new.
//!
//! Only pages some steps away from the seeds are compared, so shallow crawls lose no time. All state is in memory and
//! bounded. After a restart it is learnt again.

mod address;
mod branches;
mod remembered;
mod words;

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};

use serde_json::{Map, Value};
use webfill_store::has_value;
use webfill_urls::{Url, chained_hash};
use webfill_wire::evidence_of_repetition;

use self::address::Address;
use self::branches::{Branches, LONG_ROW};
use self::remembered::Remembered;
use crate::blocks::{self, Shown};
use crate::task_result::TaskResult;

/// How many URLs must have the same content, the current one included.
const SAME: usize = 8;

/// The least depth where pages are compared: nothing looks like a trap within fewer steps.
const LEAST_DEPTH: u16 = 3;

/// How many words of a page may be new if its address says that it is the same page.
const NEW_WORDS: usize = 2;

/// The number of contents that are remembered at least. The memory holds up to twice as many.
const MOST_CONTENTS: usize = 32_768;

/// The number of texts, words and links that are remembered at least. Each of them takes a few bytes.
const MOST_FEATURES: usize = 131_072;

/// Hashes of the different URLs where one content was seen.
#[derive(Debug, Clone, Copy, Default)]
struct Urls {
    hashes: [u32; SAME - 1],
    count: usize,
}

/// Finds pages that repeat other pages of their site.
#[derive(Debug)]
pub(crate) struct Repeats {
    contents: Remembered<Urls>,
    features: Remembered<()>,
    branches: Branches,
    /// Makes the hashes of texts unpredictable, so that no site can craft texts that seem known.
    seed: u64,
}

/// A read page, in the form used for comparison.
struct Page<'a> {
    /// A hash of the page's crawl and site; only pages with the same hash are compared.
    scope: u64,
    url: &'a Url,
    address: Address,
    shown: &'a Shown<'a>,
    /// A hash of the values that a mapping read from the page, if there are any.
    fields: Option<u64>,
    links: &'a [String],
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats {
            contents: Remembered::with_capacity(MOST_CONTENTS),
            features: Remembered::with_capacity(MOST_FEATURES),
            branches: Branches::default(),
            seed: RandomState::new().hash_one(()),
        }
    }
}

impl Repeats {
    /// Notes a page that was read. If it only repeats other pages, its result says so, with the evidence.
    pub(crate) fn note_page(&mut self, result: &mut TaskResult, url: &Url, text: &str) {
        if result.task.depth < LEAST_DEPTH || result.crawl.max_depth <= LEAST_DEPTH {
            return;
        }
        let is_read = result.fields.values().any(has_value);
        let page = Page {
            scope: hash(&(self.seed, result.task.crawl, &result.task.site)),
            url,
            address: Address::from_url(url),
            shown: &blocks::visible_content(text),
            fields: is_read.then(|| hash_fields(&result.fields)),
            links: &result.links,
        };
        let Some(seen) = self.find_repetition(&page) else {
            return;
        };
        if !result.links.is_empty() {
            let evidence = evidence_of_repetition(url.as_str(), result.status_code, &seen);
            result.evidence = Some(evidence);
        }
    }

    /// Describes how a page repeats others; `None` if it does not.
    fn find_repetition(&mut self, page: &Page<'_>) -> Option<String> {
        let shown = address::without_address(page.url, &page.shown.text);
        let is_same = self.note_content(page, &shown);
        let is_same_but_for_address = self.note_content_without_address(page, &shown);
        let is_of_long_row = self.branches.note_page(&mut self.features, page);
        let is_repeated = is_same || is_same_but_for_address;
        if !is_repeated && !is_of_long_row || self.branches.note_links(&mut self.features, page) {
            return None;
        }
        Some(match is_repeated {
            true => format!("the page shows what {} others of its site show", SAME - 1),
            false => format!(
                "{LONG_ROW} pages in a row, the last at {}, have brought nothing new",
                page.address.shape
            ),
        })
    }

    fn note_content(&mut self, page: &Page<'_>, shown: &str) -> bool {
        let content = chained_hash(hash(&(page.scope, page.shown.media)), shown.as_bytes());
        self.note_url_of_content(content, page.url)
    }

    fn note_content_without_address(&mut self, page: &Page<'_>, shown: &str) -> bool {
        let Some(essence) = &page.address.essence else {
            return false;
        };
        let scope = hash(&(page.scope, essence));
        let mut new_words = 0;
        for word in words::words_without_digits(shown) {
            let word = chained_hash(scope, word.as_bytes());
            new_words += usize::from(self.features.insert(word));
        }
        for picture in page.shown.pictures() {
            new_words += usize::from(self.features.insert(hash(&(scope, "picture", picture))));
        }
        self.note_url_of_content(scope, page.url) && new_words <= NEW_WORDS
    }

    /// Notes that a URL has this content. Returns whether [`SAME`] URLs, including this one, have had it.
    fn note_url_of_content(&mut self, content: u64, url: &Url) -> bool {
        let url = hash(&url.as_str()) as u32;
        let urls = self.contents.entry(content);
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

fn hash_fields(fields: &Map<String, Value>) -> u64 {
    let text = serde_json::to_vec(fields).expect("values of JSON can be written as JSON");
    chained_hash(0, &text)
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
