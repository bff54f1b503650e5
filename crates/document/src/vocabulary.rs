//! Chooses the names of XML elements in the tree. Authors choose prefixes freely, but an expression must find the same
//! elements with any prefix.
//!
//! Elements in the namespace of the root element have no prefix: `//entry` finds `atom:entry` below `atom:feed`, and so
//! does `//atom:entry`, whichever form the page uses. Elsewhere the prefix distinguishes names (`media:title` is not
//! `title`). Common namespaces get their usual prefix, whatever the page writes.

use std::borrow::Cow;

use html5ever::{LocalName, Namespace, QualName};

/// The usual prefixes of common namespaces.
const USUAL: [(&str, &str); 19] = [
    ("http://www.w3.org/2005/Atom", "atom"),
    ("http://purl.org/dc/elements/1.1/", "dc"),
    ("http://purl.org/dc/terms/", "dcterms"),
    ("http://purl.org/rss/1.0/modules/content/", "content"),
    ("http://purl.org/rss/1.0/modules/slash/", "slash"),
    ("http://purl.org/rss/1.0/modules/syndication/", "sy"),
    ("http://search.yahoo.com/mrss/", "media"),
    ("http://search.yahoo.com/mrss", "media"),
    ("http://www.itunes.com/dtds/podcast-1.0.dtd", "itunes"),
    ("https://podcastindex.org/namespace/1.0", "podcast"),
    ("http://www.w3.org/2003/01/geo/wgs84_pos#", "geo"),
    ("http://www.georss.org/georss", "georss"),
    ("http://www.google.com/schemas/sitemap-image/1.1", "image"),
    ("http://www.google.com/schemas/sitemap-video/1.1", "video"),
    ("http://www.google.com/schemas/sitemap-news/0.9", "news"),
    ("http://base.google.com/ns/1.0", "g"),
    ("http://wellformedweb.org/CommentAPI/", "wfw"),
    ("http://purl.org/syndication/thread/1.0", "thr"),
    ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf"),
];

/// How the elements of a page are named. It depends on the namespace of the root element.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    root: Option<Namespace>,
    /// The prefixes that an expression may use for elements in the namespace of the root.
    prefixes: Vec<String>,
}

impl Vocabulary {
    /// The name of an element in the tree. The first call is for the root element.
    pub(crate) fn element_name<'n>(&mut self, name: &'n QualName) -> Cow<'n, LocalName> {
        if self.root.is_none() {
            let is_usual = is_plain(&name.ns);
            self.root = Some(name.ns.clone());
            if !is_usual && !name.ns.is_empty() {
                let written = name.prefix.as_ref().map(|prefix| prefix.to_string());
                let usual = usual_prefix(&name.ns).map(str::to_owned);
                self.prefixes = written.into_iter().chain(usual).collect();
            }
        }
        match &name.prefix {
            Some(prefix) if !prefix.is_empty() && !self.needs_no_prefix(&name.ns) => {
                let prefix = usual_prefix(&name.ns).unwrap_or(prefix);
                Cow::Owned(LocalName::from(format!("{prefix}:{}", name.local)))
            }
            _ => Cow::Borrowed(&name.local),
        }
    }

    fn needs_no_prefix(&self, namespace: &Namespace) -> bool {
        let is_of_root = !namespace.is_empty() && self.root.as_ref() == Some(namespace);
        is_plain(namespace) || is_of_root
    }

    /// Returns the name without its prefix if the prefix stands for the namespace of the root element.
    pub(crate) fn without_prefix<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (prefix, local) = name.split_once(':')?;
        self.prefixes
            .iter()
            .any(|of_root| of_root == prefix)
            .then_some(local)
    }
}

/// The name of an attribute in the tree: `xlink:href` is not `href`.
pub(crate) fn attribute_name(name: &QualName) -> Cow<'_, LocalName> {
    match &name.prefix {
        Some(prefix) if !prefix.is_empty() && !is_plain(&name.ns) => {
            Cow::Owned(LocalName::from(format!("{prefix}:{}", name.local)))
        }
        _ => Cow::Borrowed(&name.local),
    }
}

/// Whether names in this namespace never have a prefix: HTML, SVG, MathML or none.
fn is_plain(namespace: &Namespace) -> bool {
    *namespace == html5ever::ns!(html)
        || *namespace == html5ever::ns!(svg)
        || *namespace == html5ever::ns!(mathml)
}

fn usual_prefix(namespace: &Namespace) -> Option<&'static str> {
    let known = USUAL.iter().find(|(known, _)| **known == **namespace);
    known.map(|(_, prefix)| *prefix)
}
