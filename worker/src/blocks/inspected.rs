//! A response that is being judged. Each of its features is computed at most once.

use std::cell::OnceCell;

use memchr::memmem;
use reqwest::header::REFRESH;
use webfill_urls::Url;

use super::scan::{Scan, scan_all, scan_briefly};
use super::target::{Refresh, is_same_page};
use super::{BEGINNING_BYTES, LONGEST_REFRESH_SECONDS, Response, SHORT_CHARACTERS, Signatures};

/// How many bytes of a page are searched for markers (strings that reveal a challenge). The limit is low because every
/// page that is not large is searched.
const MARKER_BYTES: usize = 16 << 10;

/// A response, with the features that were computed so far.
#[derive(Debug)]
pub struct Inspected<'a> {
    pub(super) response: &'a Response<'a>,
    beginning: &'a str,
    /// Whether the body fits into the inspected beginning.
    is_whole: bool,
    brief: OnceCell<Scan<'a>>,
    full: OnceCell<Scan<'a>>,
    targets: OnceCell<Vec<Url>>,
    title: OnceCell<String>,
}

impl<'a> Inspected<'a> {
    pub fn new(response: &'a Response<'a>) -> Inspected<'a> {
        let body = if response.is_html { response.body } else { "" };
        let end = body.floor_char_boundary(BEGINNING_BYTES);
        Inspected {
            response,
            beginning: &body[..end],
            is_whole: end == body.len(),
            brief: OnceCell::new(),
            full: OnceCell::new(),
            targets: OnceCell::new(),
            title: OnceCell::new(),
        }
    }

    fn brief_scan(&self) -> &Scan<'a> {
        self.brief
            .get_or_init(|| scan_briefly(self.beginning, SHORT_CHARACTERS))
    }

    /// Scans the whole beginning of the page for all features. This costs more than [`Inspected::brief_scan`], so use
    /// it only for pages that are already suspect.
    pub(super) fn full_scan(&self) -> &Scan<'a> {
        self.full.get_or_init(|| {
            let limit = Signatures::built_in().most_characters();
            scan_all(self.beginning, self.response.url, limit)
        })
    }

    /// Whether the page was inspected as a whole and shows fewer than `limit` characters.
    pub(super) fn has_less_text_than(&self, limit: usize) -> bool {
        if !self.is_whole || self.beginning.is_empty() {
            return false;
        }
        let brief = self.brief_scan().visible;
        match limit <= SHORT_CHARACTERS {
            true => brief < limit,
            false => brief < SHORT_CHARACTERS || self.full_scan().visible < limit,
        }
    }

    /// The title in lower case with single spaces.
    pub(super) fn title(&self) -> &str {
        self.title.get_or_init(|| {
            let title = self.brief_scan().title.unwrap_or_default();
            let words: Vec<&str> = title.split_whitespace().collect();
            words.join(" ").to_lowercase()
        })
    }

    /// The addresses that the response sends the browser to, by `Location` or by a refresh.
    pub(super) fn targets(&self) -> &[Url] {
        self.targets.get_or_init(|| {
            let refreshes = self.refreshes().map(|refresh| refresh.target);
            let written = std::iter::once(self.response.redirect).chain(refreshes);
            let join = |target: &str| self.response.url.join(target).ok();
            written.flatten().filter_map(join).collect()
        })
    }

    /// The refreshes in the header `Refresh` and within the page.
    fn refreshes(&self) -> impl Iterator<Item = Refresh<'a>> {
        let header = self.response.headers.get(REFRESH);
        let header = header.and_then(|value| Refresh::read(value.to_str().ok()?));
        header.into_iter().chain(self.brief_scan().refresh)
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        memmem::find(self.beginning.as_bytes(), text.as_bytes()).is_some()
    }

    pub(super) fn has_marker(&self, marker: &str) -> bool {
        let end = self.beginning.len().min(MARKER_BYTES);
        self.is_whole
            && memmem::find(&self.beginning.as_bytes()[..end], marker.as_bytes()).is_some()
    }

    pub(super) fn refreshes_itself(&self) -> bool {
        let is_own = |refresh: Refresh<'_>| match refresh.target {
            None => true,
            Some(target) => {
                let target = self.response.url.join(target);
                target.is_ok_and(|target| is_same_page(&target, self.response.url))
            }
        };
        let mut refreshes = self.refreshes();
        refreshes.any(|refresh| refresh.seconds <= LONGEST_REFRESH_SECONDS && is_own(refresh))
    }
}
