//! A page during an extraction. Its tree, the JSON in it and its base URL are each computed at first use.

use std::cell::{Cell, OnceCell};
use std::time::{Duration, Instant};

use serde_json::Value;
use typed_arena::Arena;
use webfill_document::{Document, Limits as DocumentLimits};
use webfill_urls::{Encoding, Url, UrlRefusal, canonical_url, canonical_url_on_page, with_route};

use crate::extraction::{Metadatum, PageInput, PageKind};
use crate::json_query;
use crate::json_wrapping::begins_as_json;
use crate::limits::Limits;
use crate::linked_data;
use crate::run::Run;

/// A page and its parsed parts.
pub(crate) struct Page<'a> {
    input: PageInput<'a>,
    /// The metadata of a document; `None` if the page is not a document.
    metadata: Option<&'a [Metadatum]>,
    document: OnceCell<Document>,
    json: OnceCell<Vec<Value>>,
    json_ld: OnceCell<Vec<Value>>,
    base: OnceCell<Url>,
    /// The trees of texts that processors have parsed as HTML.
    fragments: Arena<Document>,
    /// How much of `limits.memory_bytes` is used by parsed texts and JSON, in bytes.
    memory_used: Cell<usize>,
    limits: &'a Limits,
    deadline: Option<Instant>,
    encoding: Option<&'static Encoding>,
}

impl<'a> Page<'a> {
    pub(crate) fn new(input: PageInput<'a>, limits: &'a Limits, deadline: Option<Instant>) -> Self {
        Page {
            input,
            metadata: None,
            document: OnceCell::new(),
            json: OnceCell::new(),
            json_ld: OnceCell::new(),
            base: OnceCell::new(),
            fragments: Arena::new(),
            memory_used: Cell::new(0),
            limits,
            deadline,
            encoding: None,
        }
    }

    /// Sets the encoding of the page, if it is known.
    pub(crate) fn with_encoding(self, encoding: Option<&'static Encoding>) -> Self {
        Page { encoding, ..self }
    }

    /// Marks the page as a document (a PDF file, for example) with this metadata. Its text has no elements.
    pub(crate) fn with_metadata(self, metadata: &'a [Metadatum]) -> Self {
        Page {
            metadata: Some(metadata),
            ..self
        }
    }

    /// Whether the page is a document (a PDF file, for example) without text, which offers only metadata.
    pub(crate) fn has_only_metadata(&self) -> bool {
        self.metadata.is_some() && webfill_values::is_blank(self.input.text)
    }

    pub(crate) fn metadata(&self) -> Option<&'a [Metadatum]> {
        self.metadata
    }

    pub(crate) fn text(&self) -> &'a str {
        self.input.text
    }

    pub(crate) fn url(&self) -> &'a Url {
        self.input.url
    }

    /// Whether the page has been parsed into a tree.
    pub(crate) fn is_parsed(&self) -> bool {
        self.document.get().is_some()
    }

    pub(crate) fn kind(&self) -> PageKind {
        self.input.kind
    }

    /// The tree of an HTML or XML page. Warns and returns `None` for other pages.
    pub(crate) fn document_or_warn(&self, run: &Run<'_>) -> Option<&Document> {
        let document = self.tree();
        if document.is_none() {
            run.warn("the page has no elements: it is neither HTML nor XML");
        }
        document
    }

    /// The tree of the page; `None` if this kind of page has none.
    pub(crate) fn tree(&self) -> Option<&Document> {
        let parse = match self.input.kind {
            PageKind::Html => Document::parse_html,
            PageKind::Xml => Document::parse_xml,
            PageKind::Json | PageKind::Text => return None,
        };
        Some(
            self.document
                .get_or_init(|| parse(self.input.text, &self.document_limits())),
        )
    }

    /// Why the end of the page is missing from its tree, if it was parsed and cut.
    pub(crate) fn truncation_message(&self) -> Option<String> {
        let truncation = self.document.get()?.truncation()?;
        Some(truncation.to_string())
    }

    /// Parses a text that a processor gets as HTML.
    pub(crate) fn parse_fragment(&self, text: &str) -> &Document {
        let mut limits = self.document_limits();
        // Only a quarter of the memory is allowed, because expressions may need copies of the fragment later.
        limits.memory_bytes = limits.memory_bytes.min(self.memory_left() / 4);
        let fragment = Document::parse_html(text, &limits);
        self.use_memory(fragment.memory_bytes());
        self.fragments.alloc(fragment)
    }

    /// How much memory trees and JSON may still use.
    pub(crate) fn memory_left(&self) -> usize {
        let tree = self.document.get().map_or(0, Document::memory_bytes);
        let used = tree + self.memory_used.get();
        self.limits.memory_bytes.saturating_sub(used)
    }

    fn use_memory(&self, bytes: usize) {
        self.memory_used.set(self.memory_used.get() + bytes);
    }

    fn document_limits(&self) -> DocumentLimits {
        let limits = self.limits.document.clone();
        let left = self.deadline.map_or(Duration::MAX, |deadline| {
            deadline.saturating_duration_since(Instant::now())
        });
        DocumentLimits {
            parse_time: limits.parse_time.min(left),
            evaluation_time: limits.evaluation_time.min(left),
            ..limits
        }
    }

    /// The URL that relative links are resolved against: that of the page's `base` element, or else the page's own.
    pub(crate) fn base(&self) -> &Url {
        self.base.get_or_init(|| {
            let href = self.tree().and_then(Document::base_href);
            // Browsers resolve the base itself in UTF-8, whatever the encoding of the page.
            href.and_then(|href| canonical_url(href, Some(self.input.url)).ok())
                .unwrap_or_else(|| self.input.url.clone())
        })
    }

    /// Resolves a link of this page against a base, as a browser does.
    pub(crate) fn resolve_link(&self, link: &str, base: &Url) -> Result<Url, UrlRefusal> {
        let joined = match self.encoding {
            Some(encoding) => canonical_url_on_page(link, base, encoding),
            None => canonical_url(link, Some(base)),
        };
        with_route(joined?, link)
    }

    /// The JSON of all data scripts of an HTML or XML page, or of the whole text of any other page.
    pub(crate) fn json(&self, run: &Run<'_>) -> &[Value] {
        self.json.get_or_init(|| {
            self.parse_json(run, |media_type| {
                media_type == "application/json" || media_type.ends_with("+json")
            })
        })
    }

    /// The JSON-LD of an HTML or XML page, or the JSON of the whole text of any other page, in plain form.
    pub(crate) fn json_ld(&self, run: &Run<'_>) -> &[Value] {
        self.json_ld.get_or_init(|| {
            let values = self.parse_json(run, |media_type| media_type == "application/ld+json");
            values.into_iter().map(linked_data::to_plain_form).collect()
        })
    }

    fn parse_json(&self, run: &Run<'_>, wanted: impl Fn(&str) -> bool) -> Vec<Value> {
        let mut texts: Vec<&str> = Vec::new();
        match self.tree() {
            // Many programs send JSON as `text/html`, because that is the default of their language.
            Some(_) if begins_as_json(self.input.text) => texts.push(self.input.text),
            Some(document) => texts.extend(script_texts(document, wanted)),
            None => texts.push(self.input.text),
        }
        let mut values = Vec::new();
        for text in texts {
            if run.check_time().is_err() {
                break;
            }
            match json_query::parse(text, self.limits, self.memory_left()) {
                Ok(read) => {
                    if let Some(oddity) = read.oddity {
                        run.warn(format_args!("JSON of the page is not pure: {oddity}"));
                    }
                    self.use_memory(json_query::estimate_memory(text));
                    values.extend(read.values);
                }
                Err(reason) => run.warn(format_args!("JSON of the page was skipped: {reason}")),
            }
        }
        values
    }
}

fn script_texts(document: &Document, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
    document
        .elements_by_tag("script")
        .filter_map(move |script| {
            let declared = script.attribute("type")?;
            let media_type = declared.split(';').next().unwrap_or_default();
            wanted(&media_type.trim().to_ascii_lowercase()).then(|| script.text())
        })
}
