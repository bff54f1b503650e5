//! Sitemaps: files that list the URLs of pages for crawlers. By the protocol (sitemaps.org) these are sitemaps and
//! sitemap indexes in XML, texts with one URL per line, and feeds (RSS, Atom, JSON Feed). Any of them may be compressed
//! with gzip.
//!
//! A sitemap is recognised by its content, whatever its name and `Content-Type`. A text that robots.txt names as a
//! sitemap (`is_named`) may have lines that are not URLs. Sitemaps are not trusted: bytes, entries and nesting are
//! limited, and declared entities are not expanded. A broken sitemap is read as far as possible.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use webfill_urls::{MAX_URL_BYTES, Url, canonical_url};
use webfill_wire::{CrawlSettings, Feature, LinkKind, Task};

use crate::charset::{self, Kind};
use crate::robots::is_robots_txt;

mod json_feed;
mod lines;
mod xml;

/// The protocol's limits on a sitemap: its bytes when decompressed, and the number of its entries. The rest is not
/// read.
pub const MAX_BYTES: usize = 50 << 20;
const MAX_ENTRIES: usize = 50_000;

/// The limit on the bytes of all URLs of one sitemap together.
const MAX_URLS_BYTES: usize = 16 << 20;

/// How many bytes of a file are inspected to find out whether it is a sitemap.
const BEGINNING_BYTES: usize = 8 << 10;

/// The content of a sitemap.
#[derive(Debug, PartialEq)]
pub struct Sitemap {
    /// The kind of the entries: sitemaps if this sitemap is an index, otherwise pages.
    pub lists: LinkKind,
    /// Canonical URLs, in order.
    pub urls: Vec<Url>,
    /// Why the end of the sitemap was not read; `None` if all of it was read.
    pub cut: Option<String>,
    /// How many entries were not URLs of pages.
    pub left_out: usize,
}

/// The format of a sitemap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SitemapFormat {
    Xml,
    JsonFeed,
    Lines,
}

/// Whether a body with this `Content-Type` may be a sitemap, although it cannot be a page.
pub fn may_be_sitemap(content_type: &str) -> bool {
    let declared = content_type.trim_start().to_ascii_lowercase();
    declared.starts_with("application/") || declared.starts_with("binary/")
}

/// Whether a body may be a sitemap, as far as its bytes have arrived.
pub fn may_become_sitemap(beginning: &[u8], is_named: bool) -> bool {
    match beginning.len() < BEGINNING_BYTES {
        true => is_gzip(beginning) || !beginning.contains(&0) || has_mark_of_utf16(beginning),
        false => is_sitemap(beginning, is_named),
    }
}

/// Whether robots.txt lists the task's URL as a sitemap. If so, the task's parent is that robots.txt.
pub fn is_named(task: &Task, crawl: &CrawlSettings) -> bool {
    let is_wanted = crawl.needs_feature(Feature::Sitemaps);
    let parent = task.parent.as_deref().filter(|_| is_wanted);
    let parent = parent.and_then(|url| Url::parse(url).ok());
    parent.is_some_and(|url| is_robots_txt(&url))
}

/// Whether a body is a sitemap, judged by its beginning.
pub fn is_sitemap(body: &[u8], is_named: bool) -> bool {
    let beginning = decompress_beginning(body);
    detect_format(&decode_text(&beginning, None), is_named).is_some()
}

/// Whether a body is compressed with gzip.
pub fn is_gzip(body: &[u8]) -> bool {
    body.starts_with(b"\x1f\x8b\x08")
}

fn has_mark_of_utf16(body: &[u8]) -> bool {
    body.starts_with(b"\xff\xfe") || body.starts_with(b"\xfe\xff")
}

/// Reads a sitemap, which was fetched from `url`; `None` if the body is not a sitemap. `note_bytes` receives the size
/// of the decompressed body in memory.
pub fn read(
    body: &[u8],
    content_type: Option<&str>,
    url: &Url,
    is_named: bool,
    note_bytes: impl FnOnce(usize),
) -> Option<Sitemap> {
    if !is_sitemap(body, is_named) {
        return None;
    }
    let (bytes, is_cut) = decompress(body);
    if let Cow::Owned(bytes) = &bytes {
        note_bytes(bytes.len());
    }
    let text = decode_text(&bytes, content_type);
    let mut found = FoundEntries::new(url);
    match detect_format(&text, is_named)? {
        SitemapFormat::Xml => xml::read(&text, &mut found),
        SitemapFormat::JsonFeed => json_feed::read(&text, &mut found),
        SitemapFormat::Lines => lines::read(&text, &mut found),
    }
    if is_cut && found.sitemap.cut.is_none() {
        found.sitemap.cut = Some(format!("it has more than {MAX_BYTES} bytes, or is broken"));
    }
    Some(found.sitemap)
}

fn detect_format(text: &str, is_named: bool) -> Option<SitemapFormat> {
    let beginning = &text[..text.floor_char_boundary(BEGINNING_BYTES)];
    if xml::is_sitemap(beginning) {
        return Some(SitemapFormat::Xml);
    }
    if json_feed::is_sitemap(beginning) {
        return Some(SitemapFormat::JsonFeed);
    }
    let is_whole = beginning.len() == text.len() && text.len() < BEGINNING_BYTES;
    lines::is_sitemap(beginning, is_whole, is_named).then_some(SitemapFormat::Lines)
}

fn decode_text<'b>(bytes: &'b [u8], content_type: Option<&str>) -> Cow<'b, str> {
    charset::decode(bytes, content_type, Kind::Xml)
}

fn decompress_beginning(body: &[u8]) -> Cow<'_, [u8]> {
    if !is_gzip(body) {
        return Cow::Borrowed(&body[..body.len().min(BEGINNING_BYTES)]);
    }
    Cow::Owned(decompress_to_limit(body, BEGINNING_BYTES).0)
}

/// The body, decompressed if it is compressed, and whether its end is missing.
fn decompress(body: &[u8]) -> (Cow<'_, [u8]>, bool) {
    if is_gzip(body) {
        let (bytes, is_cut) = decompress_to_limit(body, MAX_BYTES);
        return (Cow::Owned(bytes), is_cut);
    }
    let bytes = &body[..body.len().min(MAX_BYTES)];
    (Cow::Borrowed(bytes), bytes.len() < body.len())
}

fn decompress_to_limit(body: &[u8], most: usize) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let read = MultiGzDecoder::new(body)
        .take(most as u64 + 1)
        .read_to_end(&mut bytes);
    let is_cut = read.is_err() || bytes.len() > most;
    bytes.truncate(most);
    (bytes, is_cut)
}

/// The entries found so far, and the base of their relative URLs.
struct FoundEntries<'u> {
    base: &'u Url,
    sitemap: Sitemap,
    bytes: usize,
}

impl FoundEntries<'_> {
    fn new(base: &Url) -> FoundEntries<'_> {
        FoundEntries {
            base,
            sitemap: Sitemap {
                lists: LinkKind::Listed,
                urls: Vec::new(),
                cut: None,
                left_out: 0,
            },
            bytes: 0,
        }
    }

    /// Counts an entry that is not a URL. Returns false once no more entries are taken.
    fn count_invalid(&mut self) -> bool {
        self.sitemap.left_out += 1;
        if self.sitemap.left_out == MAX_ENTRIES {
            self.sitemap.cut = Some(format!("{MAX_ENTRIES} of its entries are no URLs"));
        }
        self.sitemap.left_out < MAX_ENTRIES
    }

    /// Adds an entry. Returns false once no more entries are taken.
    fn add(&mut self, text: &str) -> bool {
        self.add_relative(text, None)
    }

    /// Adds an entry, whose URL may be relative to `base`, or else to the URL of the sitemap. Returns false once no
    /// more entries are taken.
    fn add_relative(&mut self, text: &str, base: Option<&Url>) -> bool {
        let text = text.trim();
        let url = match text.len() <= 4 * MAX_URL_BYTES {
            true => canonical_url(text, base.or(Some(self.base))).ok(),
            false => None,
        };
        let Some(url) = url else {
            return self.count_invalid();
        };
        self.bytes += url.as_str().len();
        if self.sitemap.urls.len() == MAX_ENTRIES || self.bytes > MAX_URLS_BYTES {
            let why =
                format!("it lists more than {MAX_ENTRIES} URLs, or {MAX_URLS_BYTES} bytes of them");
            self.sitemap.cut = Some(why);
            return false;
        }
        self.sitemap.urls.push(url);
        true
    }
}

#[cfg(test)]
mod tests;
