//! The pages gathered for learning: a limited number, preferably with known values.

use std::collections::HashMap;

use webfill_mapping::PageKind;
use webfill_urls::{Url, canonical_url, site};
use webfill_worker::charset::{self, Kind};
use webfill_worker::is_document;

use crate::mapping_command::page::page_kind;

/// For each site, the most pages with known values, the most other pages, and the most bytes of all its pages. So a
/// large site leaves space for the others. The learner uses fewer pages of each template.
const MOST_KNOWN: usize = 400;
const MOST_OTHERS: usize = 100;
const MOST_BYTES_OF_SITE: usize = 64 << 20;

/// The most bytes of all sites together.
const MOST_BYTES: usize = 512 << 20;

/// The most URLs of pages of other kinds that are kept. Learned URL patterns should not match them.
const MOST_OF_OTHER_KINDS: usize = 5_000;

/// The most redirects that are followed in a row.
const MOST_HOPS: usize = 5;

/// A page that was fetched before.
#[derive(Debug, Clone)]
pub struct GatheredPage {
    /// The canonical URL after redirects.
    pub url: Url,
    /// Other canonical URLs that lead to this page.
    pub asked: Vec<String>,
    pub kind: PageKind,
    pub text: String,
}

impl GatheredPage {
    /// Decodes a body; `None` if it is not a page that mappings can be learned from.
    pub fn decode(url: Url, content_type: Option<&str>, body: &[u8]) -> Option<GatheredPage> {
        let kind = charset::content_kind(content_type, body);
        if kind == Kind::Unsupported || is_document(content_type, body) {
            return None;
        }
        Some(GatheredPage {
            url,
            asked: Vec::new(),
            kind: page_kind(kind),
            text: charset::decode(body, content_type, kind).into_owned(),
        })
    }

    /// All URLs that lead to this page.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.url.as_str()).chain(self.asked.iter().map(String::as_str))
    }
}

/// Maps URLs to the URLs that they redirect to. All are in canonical form.
#[derive(Debug, Default)]
pub struct Redirects(HashMap<String, String>);

impl Redirects {
    pub fn add(&mut self, from: &str, to: &str) {
        if from != to {
            self.0.insert(from.to_owned(), to.to_owned());
        }
    }

    /// Adds a redirect as sent by a server.
    pub fn add_location(&mut self, from: &Url, location: &str) {
        if let Ok(to) = canonical_url(location, Some(from)) {
            self.add(from.as_str(), to.as_str());
        }
    }

    /// For each final URL, the URLs that redirect to it, directly or in several steps, in order.
    pub fn by_target(&self) -> HashMap<&str, Vec<&str>> {
        let mut leading: HashMap<&str, Vec<&str>> = HashMap::new();
        for from in self.0.keys() {
            let mut to = from.as_str();
            for _ in 0..MOST_HOPS {
                match self.0.get(to) {
                    Some(next) => to = next,
                    None => break,
                }
            }
            leading.entry(to).or_default().push(from);
        }
        // Sort the URLs, because the order of the map differs from run to run.
        leading.values_mut().for_each(|urls| urls.sort_unstable());
        leading
    }
}

/// The gathered pages, and URLs of pages of other kinds.
pub struct Pages {
    pub pages: Vec<GatheredPage>,
    /// URLs of the same sites whose content is of another kind, so that URL patterns should not match them.
    pub of_other_kinds: Vec<Url>,
}

impl From<PageGatherer<'_>> for Pages {
    fn from(gathering: PageGatherer<'_>) -> Pages {
        Pages {
            pages: gathering.pages,
            of_other_kinds: gathering.of_other_kinds,
        }
    }
}

/// How many pages and bytes were gathered from a site.
#[derive(Debug, Default)]
struct SiteAmount {
    known: usize,
    others: usize,
    bytes: usize,
}

impl SiteAmount {
    fn has_room(&self, is_known: bool) -> bool {
        let has_room = match is_known {
            true => self.known < MOST_KNOWN,
            false => self.others < MOST_OTHERS,
        };
        has_room && self.bytes < MOST_BYTES_OF_SITE
    }
}

/// Gathers pages until the limits are reached.
pub struct PageGatherer<'g> {
    is_known: &'g dyn Fn(&str) -> bool,
    pub pages: Vec<GatheredPage>,
    places: HashMap<String, usize>,
    sites: HashMap<String, SiteAmount>,
    bytes: usize,
    /// URLs of files, and of pages with another layout.
    pub of_other_kinds: Vec<Url>,
    /// The number of pages that were left out because of the limits.
    pub passed_over: usize,
}

impl<'g> PageGatherer<'g> {
    /// `is_known` returns whether any values of the page at a URL are known.
    pub fn new(is_known: &'g dyn Fn(&str) -> bool) -> PageGatherer<'g> {
        PageGatherer {
            is_known,
            pages: Vec::new(),
            places: HashMap::new(),
            sites: HashMap::new(),
            bytes: 0,
            of_other_kinds: Vec::new(),
            passed_over: 0,
        }
    }

    /// Whether the limits allow a page with these URLs; the last one is the final URL after redirects. A page that is
    /// not allowed is counted as left out.
    pub fn has_room_or_count<'u>(&mut self, urls: impl Iterator<Item = &'u str>) -> bool {
        let (mut is_known, mut of) = (false, String::new());
        for url in urls {
            is_known |= (self.is_known)(url);
            of = Url::parse(url).map(|url| site(&url)).unwrap_or_default();
        }
        let of = self.sites.get(&of);
        let has_room = of.is_none_or(|of| of.has_room(is_known)) && self.bytes < MOST_BYTES;
        self.passed_over += usize::from(!has_room);
        has_room
    }

    /// Whether values of the page at this URL are known.
    pub fn is_known(&self, url: &str) -> bool {
        (self.is_known)(url)
    }

    /// Notes a URL whose page is of another kind, so that the learned URL patterns should not match it.
    pub fn note_of_other_kind(&mut self, url: &Url) {
        if self.of_other_kinds.len() < MOST_OF_OTHER_KINDS {
            self.of_other_kinds.push(url.clone());
        }
    }

    /// Adds a page. It replaces an earlier page with the same URL.
    pub fn add(&mut self, page: GatheredPage) {
        if let Some(&place) = self.places.get(page.url.as_str()) {
            let former = std::mem::replace(&mut self.pages[place], page);
            let names = former.asked.into_iter();
            let page = &mut self.pages[place];
            let new: Vec<String> = names.filter(|name| !page.asked.contains(name)).collect();
            page.asked.extend(new);
            return;
        }
        let of = self.sites.entry(site(&page.url)).or_default();
        match page.urls().any(|url| (self.is_known)(url)) {
            true => of.known += 1,
            false => of.others += 1,
        }
        of.bytes += page.text.len();
        self.bytes += page.text.len();
        self.places.insert(page.url.to_string(), self.pages.len());
        self.pages.push(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(site: &str, number: usize) -> GatheredPage {
        let url = Url::parse(&format!("https://{site}/{number}")).unwrap();
        GatheredPage::decode(url, None, b"<html><p>x").unwrap()
    }

    fn page(number: usize) -> GatheredPage {
        page_of("people.example", number)
    }

    #[test]
    fn a_large_site_does_not_starve_a_small_one() {
        let mut gathering = PageGatherer::new(&|_| true);
        let large = (0..10_000).map(|number| page_of("large.example", number));
        let small = (0..5).map(|number| page_of("small.example", number));
        for page in large.chain(small) {
            if gathering.has_room_or_count(page.urls()) {
                gathering.add(page);
            }
        }
        let of = |name: &str| {
            let pages = gathering.pages.iter();
            pages.filter(|page| site(&page.url) == name).count()
        };
        assert_eq!((of("large.example"), of("small.example")), (MOST_KNOWN, 5));
    }

    #[test]
    fn pages_without_known_values_do_not_displace_pages_with_known_values() {
        let is_known = |url: &str| url.ends_with('7');
        let mut gathering = PageGatherer::new(&is_known);
        for number in 0..10_000 {
            let page = page(number);
            if gathering.has_room_or_count(page.urls()) {
                gathering.add(page);
            }
        }
        let known = gathering
            .pages
            .iter()
            .filter(|page| is_known(page.url.as_str()));
        assert_eq!(known.count(), MOST_KNOWN);
        assert_eq!(gathering.pages.len(), MOST_KNOWN + MOST_OTHERS);
        assert_eq!(gathering.passed_over, 10_000 - MOST_KNOWN - MOST_OTHERS);
    }

    #[test]
    fn redirects_are_followed_to_their_end_and_not_in_circles() {
        let mut redirects = Redirects::default();
        redirects.add("http://a.example/1", "http://a.example/2");
        redirects.add("http://a.example/2", "http://a.example/3");
        redirects.add("http://a.example/x", "http://a.example/y");
        redirects.add("http://a.example/y", "http://a.example/x");
        let by_target = redirects.by_target();
        assert_eq!(
            by_target["http://a.example/3"],
            ["http://a.example/1", "http://a.example/2"]
        );
    }
}
