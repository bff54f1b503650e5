//! Recognises endless series of pages: many pages in a row, at addresses of the same shape, that show nothing new.
//! Examples are calendars of coming years and lists that do not end.
//!
//! A page has something new if one of its texts, values, pictures or numbers was not on earlier pages. Times, server
//! signatures, numbers from the page's own address and numbers that rise with each request do not count ([`words`]). A
//! page that links to pages not known as repetitions is not a repetition either.

use webfill_urls::{Url, chained_hash};

use super::address::Address;
use super::remembered::Remembered;
use super::{Page, hash, words};

/// After this many pages in a row without anything new, at addresses of one shape, the next one counts as a repetition.
pub(super) const LONG_ROW: u32 = 64;

/// So many pages are spared because they link to pages at addresses of one shape. Then one of the linked pages must
/// show something new before further pages are spared.
const MOST_PROMISES: u32 = 64;

/// A number that has risen this often counts as a counter.
const RISES_OF_COUNTER: u8 = 3;

/// The largest capacity, in texts, that the list of a page's texts keeps for the next page.
const MOST_KEPT_TEXTS: usize = 4_096;

const MOST_BRANCHES: usize = 2_048;
const MOST_COUNTERS: usize = 8_192;

/// The pages at addresses of one shape.
#[derive(Debug, Default)]
struct Branch {
    /// The number of pages in a row that showed nothing new.
    row: u32,
    /// How many pages did not count as repetitions because they linked to pages of this branch, since a page of it last
    /// showed something new.
    promises: u32,
    is_seen: bool,
}

/// Watches a number at one place in the texts of a branch's pages, such as the number of the page.
#[derive(Debug, Default)]
struct Counter {
    last: f64,
    seen: u8,
    has_fallen: bool,
}

#[derive(Debug)]
pub(super) struct Branches {
    branches: Remembered<Branch>,
    counters: Remembered<Counter>,
    /// The hashes of a page's texts. The list is kept, so that it is allocated once.
    texts: Vec<u64>,
}

impl Default for Branches {
    fn default() -> Branches {
        Branches {
            branches: Remembered::with_capacity(MOST_BRANCHES),
            counters: Remembered::with_capacity(MOST_COUNTERS),
            texts: Vec::new(),
        }
    }
}

impl Branches {
    /// Notes a page. Returns whether it belongs to a long row of pages without anything new.
    pub(super) fn note_page(&mut self, features: &mut Remembered<()>, page: &Page<'_>) -> bool {
        let key = hash(&(page.scope, &page.address.shape));
        // The first pages of all branches are counted together, because a trap may invent ever new folders.
        let row_of = self.row_key(page.scope, key);
        self.branches.entry(key).is_seen = true;
        let is_new = self.note_new_content(features, page, row_of);
        let branch = self.branches.entry(row_of);
        if is_new {
            (branch.row, branch.promises) = (0, 0);
            return false;
        }
        branch.row = branch.row.saturating_add(1);
        branch.row > LONG_ROW
    }

    fn note_new_content(
        &mut self,
        features: &mut Remembered<()>,
        page: &Page<'_>,
        branch: u64,
    ) -> bool {
        let scope = page.scope;
        let mut is_new = false;
        let mut buffer = String::new();
        let mut texts = std::mem::take(&mut self.texts);
        for text in lines(&page.shown.blocks) {
            let folded = words::fold_text(text, &page.address.numbers, &mut buffer);
            if !folded.text.is_empty() {
                texts.push(chained_hash(scope, folded.text.as_bytes()));
            }
            if page.address.has_token || folded.numbers.is_empty() {
                continue;
            }
            let place = chained_hash(branch, folded.text.as_bytes());
            for (at, number) in folded.numbers.into_iter().enumerate() {
                let counts = self.note_number(hash(&(place, at)), number);
                is_new |= features.insert(hash(&(place, at, number))) && !counts;
            }
        }
        // All at once, because the processor then waits for the memory of several entries at the same time.
        for text in texts.drain(..) {
            is_new |= features.insert(text);
        }
        texts.shrink_to(MOST_KEPT_TEXTS);
        self.texts = texts;
        for picture in page.shown.pictures() {
            is_new |= features.insert(hash(&(scope, "picture", picture)));
        }
        if let Some(fields) = page.fields {
            is_new |= features.insert(hash(&(scope, "fields", fields)));
        }
        is_new
    }

    /// Notes a number of a page. Returns whether it is a counter: a number that rises with each page.
    fn note_number(&mut self, place: u64, number: &str) -> bool {
        let Ok(number) = number.replace(',', "").parse::<f64>() else {
            return false;
        };
        let counter = self.counters.entry(place);
        counter.has_fallen |= counter.seen > 0 && number <= counter.last;
        counter.last = number;
        counter.seen = counter.seen.saturating_add(1);
        !counter.has_fallen && counter.seen > RISES_OF_COUNTER
    }

    /// Whether a page links to unknown pages, at addresses of another shape, that may show something new.
    pub(super) fn note_links(&mut self, features: &mut Remembered<()>, page: &Page<'_>) -> bool {
        let mut leads_on = false;
        for link in page.links {
            let Ok(url) = Url::parse(link).or_else(|_| page.url.join(link)) else {
                continue;
            };
            let Address { essence, shape, .. } = Address::from_url(&url);
            let branch = if url.host_str() == page.url.host_str() {
                let name = essence.unwrap_or_else(|| url.as_str().to_owned());
                let is_new = features.insert(hash(&(page.scope, "link", &shape, name)));
                if !is_new || shape == page.address.shape {
                    continue;
                }
                self.row_key(page.scope, hash(&(page.scope, &shape)))
            } else {
                // Links of advertisements carry tokens, so their queries are left out.
                let name = (page.scope, "link", url.host_str(), url.path());
                if !features.insert(hash(&name)) {
                    continue;
                }
                hash(&(page.scope, url.host_str(), &shape))
            };
            let branch = self.branches.entry(branch);
            let may_bring = branch.row <= LONG_ROW && branch.promises < MOST_PROMISES;
            branch.promises += u32::from(may_bring && !leads_on);
            leads_on |= may_bring;
        }
        leads_on
    }

    /// The key that a branch (the pages at addresses of one shape) is counted under. It is the branch's own key if one
    /// of its pages was seen, otherwise the common key of all unseen branches of the site.
    fn row_key(&self, scope: u64, branch: u64) -> u64 {
        let known = self.branches.get(branch);
        match known.is_some_and(|branch| branch.is_seen) {
            true => branch,
            false => unseen_key(scope),
        }
    }
}

/// The parts of a text between line feeds.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    let mut start = 0;
    ends.map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        line
    })
}

fn unseen_key(scope: u64) -> u64 {
    hash(&(scope, "unknown"))
}
