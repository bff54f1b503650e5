//! The parts of a page that every crawler needs: its links, its base URL, the metadata in its head, its data scripts.

use crate::document::Document;
use crate::node::NodeRef;

/// The types that pages declare feeds with.
const FEED_TYPES: [&str; 4] = [
    "application/rss+xml",
    "application/atom+xml",
    "application/feed+json",
    "application/rdf+xml",
];

impl Document {
    /// The `href` of the first `base` element that has one. Relative links refer to it.
    pub fn base_href(&self) -> Option<&str> {
        self.elements_by_tag("base")
            .find_map(|base| base.attribute("href"))
    }

    /// The `href` of each `a` and `area`, in document order, and the `src` of each `frame`, as written.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        let mut anchors = self.elements_by_tag("a").peekable();
        let mut areas = self.elements_by_tag("area").peekable();
        std::iter::from_fn(move || {
            let area_first = match (anchors.peek(), areas.peek()) {
                (Some(anchor), Some(area)) => area.id < anchor.id,
                (None, Some(_)) => true,
                _ => false,
            };
            if area_first {
                areas.next()
            } else {
                anchors.next()
            }
        })
        .filter_map(|link| link.attribute("href"))
        .chain(
            self.elements_by_tag("frame")
                .filter_map(|frame| frame.attribute("src")),
        )
    }

    /// The `href` of each feed (RSS, Atom, JSON Feed) that the page declares with `rel="alternate"`.
    pub fn feeds(&self) -> impl Iterator<Item = &str> {
        let links = self.elements_by_tag("link");
        links.filter_map(|link| {
            let rel = link.attribute("rel")?;
            let mut words = rel.split_ascii_whitespace();
            let is_alternate = words.any(|word| word.eq_ignore_ascii_case("alternate"));
            let declared = link.attribute("type")?.split(';').next()?.trim();
            let is_feed = FEED_TYPES
                .iter()
                .any(|feed| declared.eq_ignore_ascii_case(feed));
            (is_alternate && is_feed).then(|| link.attribute("href"))?
        })
    }

    /// The `name` and `content` of each `meta` that has both.
    pub fn named_meta(&self) -> impl Iterator<Item = (&str, &str)> {
        self.elements_by_tag("meta")
            .filter_map(|meta| meta.attribute("name").zip(meta.attribute("content")))
    }

    /// The `content` of each `meta` whose `name`, `property`, `itemprop` or `http-equiv` is `name`, ignoring case:
    /// OpenGraph, Twitter cards, `description`, `robots`.
    pub fn meta<'d>(&'d self, name: &str) -> impl Iterator<Item = &'d str> {
        self.elements_by_tag("meta").filter_map(move |meta| {
            let named = ["name", "property", "itemprop", "http-equiv"]
                .iter()
                .filter_map(|key| meta.attribute(key))
                .any(|value| value.trim().eq_ignore_ascii_case(name));
            if named {
                meta.attribute("content")
            } else {
                None
            }
        })
    }

    /// The text of each `script` of a media type such as `application/ld+json`, ignoring parameters and case.
    pub fn scripts<'d>(&'d self, media_type: &str) -> impl Iterator<Item = &'d str> {
        self.elements_by_tag("script")
            .filter(move |script| {
                let declared = script.attribute("type").unwrap_or("text/javascript");
                let essence = declared.split(';').next().unwrap_or(declared);
                essence.trim().eq_ignore_ascii_case(media_type)
            })
            .map(NodeRef::text)
    }

    /// The text of the first `title`.
    pub fn title(&self) -> Option<&str> {
        self.elements_by_tag("title").next().map(NodeRef::text)
    }
}
