//! A sitemap in XML: `urlset`, `sitemapindex`, RSS 2.0 and 1.0, Atom. It is read as a stream, without a
//! tree; a `loc` or `link` counts as a child of its entry alone, because pictures and videos within an entry
//! have some of their own.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};
use webfill_urls::MAX_URL_BYTES;
use webfill_wire::LinkKind;

use super::Found;

/// Elements within each other; no sitemap has more than a few.
const MAX_DEPTH: usize = 100;

/// The namespace of RSS 1.0, by which it is told from other RDF.
const RSS_1: &str = "http://purl.org/rss/1.0/";

/// Whether a text begins with the root element of a sitemap.
pub(super) fn is_sitemap(beginning: &str) -> bool {
    let mut reader = reader(beginning);
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
        "RDF" => attributes(root).any(|(_, value)| value == RSS_1),
        _ => false,
    }
}

fn attributes<'e>(element: &'e BytesStart<'_>) -> impl Iterator<Item = (String, String)> + 'e {
    let mut attributes = element.attributes();
    attributes.with_checks(false);
    attributes.flatten().map(|attribute| {
        let name = attribute.key.local_name().as_ref().to_owned();
        (name, unescaped(&attribute.value))
    })
}

fn reader(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

pub(super) fn read(text: &str, found: &mut Found<'_>) {
    let mut reader = reader(text);
    let mut place = Place::default();
    loop {
        let goes_on = match reader.read_event() {
            Ok(Event::Start(start)) => place.begin(&start, found),
            Ok(Event::Empty(start)) => place.begin(&start, found) && place.end(found),
            Ok(Event::End(_)) => place.end(found),
            Ok(Event::Text(text)) => place.text(&text),
            Ok(Event::CData(text)) => place.text(&text),
            Ok(Event::GeneralRef(entity)) => place.entity(&entity),
            Ok(Event::Eof) => return,
            Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => true,
            Err(error) => {
                let at = reader.error_position();
                found.sitemap.cut = Some(format!("its XML is broken at byte {at}: {error}"));
                return;
            }
        };
        if !goes_on {
            return;
        }
    }
}

/// Where in the sitemap the reader is.
#[derive(Default)]
struct Place {
    depth: usize,
    /// The depth of the entry that has begun, and the URLs that it has named so far.
    entry: Option<Entry>,
    /// The child of the entry that names its URL, while it is read.
    naming: Option<Naming>,
}

struct Naming {
    text: String,
    /// It is a `guid`, which counts where there is no link.
    is_guid: bool,
}

struct Entry {
    depth: usize,
    link: Option<String>,
    guid: Option<String>,
}

impl Place {
    /// An element begins. False when no more is to be read; here as in all that follow.
    fn begin(&mut self, element: &BytesStart<'_>, found: &mut Found<'_>) -> bool {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let why = format!("its elements are nested more than {MAX_DEPTH} deep");
            found.sitemap.cut = Some(why);
            return false;
        }
        let name = element.local_name();
        let Some(entry) = &mut self.entry else {
            match name.as_ref() {
                "sitemapindex" if self.depth == 1 => found.sitemap.lists = LinkKind::Sitemap,
                "url" | "sitemap" | "item" | "entry" => self.begin_entry(),
                _ => {}
            }
            return true;
        };
        if self.depth != entry.depth + 1 {
            return true;
        }
        match name.as_ref() {
            "link" if entry.link.is_none() => match target(element) {
                Target::Page(href) => entry.link = Some(href),
                Target::Other => {}
                Target::InText => self.begin_naming(false),
            },
            "loc" => self.begin_naming(false),
            "guid" if is_permanent(element) => self.begin_naming(true),
            _ => {}
        }
        true
    }

    fn begin_naming(&mut self, is_guid: bool) {
        let text = String::new();
        self.naming = Some(Naming { text, is_guid });
    }

    fn begin_entry(&mut self) {
        self.entry = Some(Entry {
            depth: self.depth,
            link: None,
            guid: None,
        });
    }

    fn end(&mut self, found: &mut Found<'_>) -> bool {
        let ended = self.depth;
        self.depth = self.depth.saturating_sub(1);
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
        url.is_none_or(|url| found.add(&url))
    }

    fn text(&mut self, text: &str) -> bool {
        if let Some(naming) = &mut self.naming
            && naming.text.len() <= 4 * MAX_URL_BYTES
        {
            // What is longer is no URL, which is found out when it is added.
            let text = &text[..text.floor_char_boundary(4 * MAX_URL_BYTES + 1)];
            naming.text.push_str(text);
        }
        true
    }

    fn entity(&mut self, entity: &BytesRef<'_>) -> bool {
        let character = match &**entity {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => entity.resolve_char_ref().ok().flatten(),
        };
        match character {
            Some(character) => self.text(character.encode_utf8(&mut [0; 4])),
            None => self.text(&format!("&{};", &**entity)),
        }
    }
}

/// What a `link` says.
enum Target {
    /// The page of the entry (Atom).
    Page(String),
    /// Something beside it: a picture, the comments, how to edit it.
    Other,
    /// The URL is its text (RSS).
    InText,
}

fn target(link: &BytesStart<'_>) -> Target {
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
        (Some(href), None | Some("alternate")) => Target::Page(href),
        (Some(_), Some(_)) => Target::Other,
        (None, _) => Target::InText,
    }
}

/// By RSS 2.0 a `guid` is the URL of its entry unless it says otherwise.
fn is_permanent(guid: &BytesStart<'_>) -> bool {
    attributes(guid).all(|(name, value)| name != "isPermaLink" || value != "false")
}

/// An attribute's value with its character references resolved; one that cannot be is left as it is.
fn unescaped(value: &str) -> String {
    match quick_xml::escape::unescape(value) {
        Ok(text) => text.into_owned(),
        Err(_) => value.to_owned(),
    }
}
