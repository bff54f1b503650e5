//! Reads a sitemap in XML: `urlset`, `sitemapindex`, RSS 2.0 and 1.0, Atom. It is read as a stream, without a tree. A
//! `loc` or `link` counts only as a direct child of its entry, because pictures and videos within an entry have their
//! own `loc`.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};
use webfill_urls::{MAX_URL_BYTES, Url, canonical_url};
use webfill_wire::LinkKind;

use super::FoundEntries;

/// How deep elements may be nested. Sitemaps have only a few levels.
const MAX_DEPTH: usize = 100;

/// The namespaces of RSS 1.0 and 0.90, which distinguish them from other RDF.
const RSS_IN_RDF: [&str; 2] = [
    "http://purl.org/rss/1.0/",
    "http://my.netscape.com/rdf/simple/0.9/",
];

const ENTRIES: [&str; 4] = ["url", "sitemap", "item", "entry"];

/// Whether a text begins with the root element of a sitemap.
pub(super) fn is_sitemap(beginning: &str) -> bool {
    let mut reader = lenient_reader(beginning);
    loop {
        match reader.read_event() {
            Ok(Event::Start(root) | Event::Empty(root)) => return is_root(&root),
            Ok(Event::Text(text)) if !text.trim().is_empty() => return false,
            Ok(Event::Text(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => {}
            Ok(Event::DocType(_)) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

fn is_root(root: &BytesStart<'_>) -> bool {
    match root.local_name().as_ref() {
        "urlset" | "sitemapindex" | "rss" | "feed" => true,
        "RDF" => attributes(root).any(|(_, value)| RSS_IN_RDF.contains(&value.as_str())),
        _ => false,
    }
}

fn attributes<'e>(element: &'e BytesStart<'_>) -> impl Iterator<Item = (String, String)> + 'e {
    let mut attributes = element.attributes();
    attributes.with_checks(false);
    attributes.flatten().map(|attribute| {
        let name = attribute.key.local_name().as_ref().to_owned();
        (name, unescape(&attribute.value))
    })
}

fn lenient_reader(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

/// Reads all entries. After a syntax error in the XML, it continues with the next entry.
pub(super) fn read(text: &str, found: &mut FoundEntries<'_>) {
    let mut place = ReaderState::default();
    let mut begin = 0;
    while let Some(broken) = read_from(&text[begin..], &mut place, found) {
        let at = begin + broken.at;
        let why = || format!("its XML is broken at byte {at}: {}", broken.why);
        found.sitemap.cut.get_or_insert_with(why);
        let Some(next) = next_entry(text, at.max(begin + 1)) else {
            return;
        };
        place.skip_entry();
        begin = next;
    }
}

struct Broken {
    at: usize,
    why: String,
}

/// Reads up to the end, or up to a syntax error in the XML, which it returns.
fn read_from(text: &str, place: &mut ReaderState, found: &mut FoundEntries<'_>) -> Option<Broken> {
    let mut reader = lenient_reader(text);
    loop {
        let goes_on = match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) if is_stray(&tag) => {
                place.skip_unescaped_bracket(&tag, found)
            }
            Ok(Event::Start(start)) => place.start_element(&start, found),
            Ok(Event::Empty(start)) => place.start_element(&start, found) && place.end_last(found),
            Ok(Event::End(end)) => place.end_element(end.local_name().as_ref(), found),
            Ok(Event::Text(text)) => place.add_text(&text),
            Ok(Event::CData(text)) => place.add_text(&text),
            Ok(Event::GeneralRef(entity)) => place.add_entity(&entity),
            Ok(Event::Eof) => {
                if !place.open.is_empty() {
                    let why = || "it ends within an element".to_owned();
                    found.sitemap.cut.get_or_insert_with(why);
                }
                return None;
            }
            Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => true,
            Err(error) => {
                return Some(Broken {
                    at: reader.error_position() as usize,
                    why: error.to_string(),
                });
            }
        };
        if !goes_on {
            return None;
        }
    }
}

/// Whether what looks like a tag is an unescaped `<` in a text, as in `a < b</title>`.
fn is_stray(tag: &BytesStart<'_>) -> bool {
    let name = tag.name();
    !name
        .as_ref()
        .starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The position where the next entry begins, searched from `from` on.
fn next_entry(text: &str, from: usize) -> Option<usize> {
    let from = text.ceil_char_boundary(from);
    let tags = text.get(from..)?.match_indices('<');
    tags.map(|(at, _)| from + at).find(|at| {
        let tag = &text[at + 1..];
        let name = tag.find(|c: char| c == '>' || c.is_whitespace());
        let name = name.map_or("", |end| &tag[..end]);
        ENTRIES.contains(&name.rsplit(':').next().unwrap_or_default())
    })
}

/// The reader's position in the sitemap.
#[derive(Default)]
struct ReaderState {
    /// The names of the open elements.
    open: Vec<String>,
    /// The base URLs of links (`xml:base`), each with the depth of the element that set it.
    bases: Vec<(usize, Url)>,
    /// The open entry, with the URLs found in it so far.
    entry: Option<Entry>,
    /// The child element of the entry that contains its URL, while it is read.
    naming: Option<UrlElement>,
}

struct UrlElement {
    text: String,
    /// Whether the element is a `guid`, which counts only if the entry has no link.
    is_guid: bool,
}

struct Entry {
    depth: usize,
    link: Option<String>,
    guid: Option<String>,
}

impl ReaderState {
    /// Handles the start of an element. Returns false once nothing more is to be read.
    fn start_element(&mut self, element: &BytesStart<'_>, found: &mut FoundEntries<'_>) -> bool {
        let name = element.local_name();
        if self.is_nested_entry(name.as_ref()) && !self.end_element(name.as_ref(), found) {
            return false;
        }
        self.open.push(name.as_ref().to_owned());
        let depth = self.open.len();
        if depth > MAX_DEPTH {
            let why = format!("its elements are nested more than {MAX_DEPTH} deep");
            found.sitemap.cut = Some(why);
            return false;
        }
        self.set_base(element, found);
        let Some(entry) = &mut self.entry else {
            match name.as_ref() {
                "sitemapindex" if depth == 1 => found.sitemap.lists = LinkKind::Sitemap,
                name if ENTRIES.contains(&name) => self.begin_entry(),
                _ => {}
            }
            return true;
        };
        if depth != entry.depth + 1 {
            return true;
        }
        match name.as_ref() {
            "link" if entry.link.is_none() => match link_target(element) {
                LinkTarget::Page(href) => entry.link = Some(href),
                LinkTarget::Other => {}
                LinkTarget::InText => self.begin_url_element(false),
            },
            "loc" => self.begin_url_element(false),
            "guid" if is_permanent(element) => self.begin_url_element(true),
            _ => {}
        }
        true
    }

    /// Whether an entry begins directly within another entry, whose end is missing.
    fn is_nested_entry(&self, name: &str) -> bool {
        self.entry.as_ref().is_some_and(|entry| {
            entry.depth == self.open.len() && self.open.last().is_some_and(|open| open == name)
        })
    }

    fn begin_url_element(&mut self, is_guid: bool) {
        let text = String::new();
        self.naming = Some(UrlElement { text, is_guid });
    }

    fn begin_entry(&mut self) {
        self.entry = Some(Entry {
            depth: self.open.len(),
            link: None,
            guid: None,
        });
    }

    /// Skips an unescaped `<` in a text. What follows up to the next `>` may contain an end tag; its element then ends.
    fn skip_unescaped_bracket(
        &mut self,
        tag: &BytesStart<'_>,
        found: &mut FoundEntries<'_>,
    ) -> bool {
        let text: &str = tag;
        match text.rsplit_once("</") {
            Some((_, name)) => {
                self.end_element(name.rsplit(':').next().unwrap_or_default().trim(), found)
            }
            None => true,
        }
    }

    /// Takes the base URL that an element sets for the links within it (`xml:base`).
    fn set_base(&mut self, element: &BytesStart<'_>, found: &FoundEntries<'_>) {
        let mut attributes = element.attributes();
        attributes.with_checks(false);
        let base = attributes
            .flatten()
            .find(|attribute| attribute.key.as_ref() == "xml:base");
        if let Some(base) = base {
            let outer = self.bases.last().map_or(found.base, |(_, base)| base);
            if let Ok(base) = canonical_url(&unescape(&base.value), Some(outer)) {
                self.bases.push((self.open.len(), base));
            }
        }
    }

    /// Handles the end of an element. Elements within it that were not closed, such as a `br`, end as well. An end tag
    /// without a start tag is skipped.
    fn end_element(&mut self, name: &str, found: &mut FoundEntries<'_>) -> bool {
        let Some(depth) = self.open.iter().rposition(|open| open == name) else {
            return true;
        };
        while self.open.len() > depth {
            if !self.end_last(found) {
                return false;
            }
        }
        true
    }

    fn end_last(&mut self, found: &mut FoundEntries<'_>) -> bool {
        let goes_on = self.close_element(self.open.len(), found);
        self.open.pop();
        self.bases.retain(|(depth, _)| *depth <= self.open.len());
        goes_on
    }

    fn close_element(&mut self, ended: usize, found: &mut FoundEntries<'_>) -> bool {
        let Some(entry) = &mut self.entry else {
            return true;
        };
        if ended == entry.depth + 1
            && let Some(naming) = self.naming.take()
            && !naming.text.trim().is_empty()
        {
            match naming.is_guid {
                true => entry.guid = Some(naming.text),
                false => entry.link = Some(naming.text),
            }
        }
        if ended > entry.depth {
            return true;
        }
        self.naming = None;
        let entry = self.entry.take();
        let url = entry.and_then(|entry| entry.link.or(entry.guid));
        let base = self.bases.last().map(|(_, base)| base);
        url.is_none_or(|url| found.add_relative(&url, base))
    }

    /// Skips the rest of an entry that has a syntax error.
    fn skip_entry(&mut self) {
        self.naming = None;
        if let Some(entry) = self.entry.take() {
            self.open.truncate(entry.depth - 1);
            self.bases.retain(|(depth, _)| *depth < entry.depth);
        }
    }

    fn add_text(&mut self, text: &str) -> bool {
        if let Some(naming) = &mut self.naming
            && naming.text.len() <= 4 * MAX_URL_BYTES
        {
            // Keep a little more than the limit, so that the text is rejected as too long when it is added.
            let text = &text[..text.floor_char_boundary(4 * MAX_URL_BYTES + 1)];
            naming.text.push_str(text);
        }
        true
    }

    fn add_entity(&mut self, entity: &BytesRef<'_>) -> bool {
        let character = match &**entity {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => entity.resolve_char_ref().ok().flatten(),
        };
        match character {
            Some(character) => self.add_text(character.encode_utf8(&mut [0; 4])),
            None => self.add_text(&format!("&{};", &**entity)),
        }
    }
}

/// What a `link` element links to.
enum LinkTarget {
    /// A link to the page of the entry (Atom).
    Page(String),
    /// A link to something else: a picture, the comments, a form to edit the entry.
    Other,
    /// The URL is the text of the element (RSS).
    InText,
}

fn link_target(link: &BytesStart<'_>) -> LinkTarget {
    let mut href = None;
    let mut rel = None;
    for (name, value) in attributes(link) {
        match name.as_str() {
            "href" => href = Some(value),
            "rel" => rel = Some(value),
            _ => {}
        }
    }
    match (href, rel.as_deref()) {
        (Some(href), None) => LinkTarget::Page(href),
        (Some(href), Some(rel)) if is_alternate(rel) => LinkTarget::Page(href),
        (Some(_), Some(_)) => LinkTarget::Other,
        (None, _) => LinkTarget::InText,
    }
}

/// Whether a relation is `alternate`, by its name or by Atom's URI for it.
fn is_alternate(rel: &str) -> bool {
    let name = rel.trim().rsplit('/').next().unwrap_or_default();
    name.eq_ignore_ascii_case("alternate")
}

/// Whether a `guid` is the URL of its entry. In RSS 2.0 it is, except with `isPermaLink="false"`.
fn is_permanent(guid: &BytesStart<'_>) -> bool {
    attributes(guid).all(|(name, value)| name != "isPermaLink" || value != "false")
}

/// Resolves the character references in an attribute's value. Returns the value unchanged if that fails.
fn unescape(value: &str) -> String {
    match quick_xml::escape::unescape(value) {
        Ok(text) => text.into_owned(),
        Err(_) => value.to_owned(),
    }
}
