//! A page of a job, decoded.

use webfill_document::{Document, Limits};
use webfill_learn::Page as LearnPage;
use webfill_mapping::{Metadatum, PageInput, PageKind};
use webfill_urls::Url;

use super::PageHead;

/// A page, decoded.
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) kind: PageKind,
    pub(super) text: String,
    pub(super) metadata: Option<Vec<Metadatum>>,
    pub(super) head: PageHead,
}

impl Page {
    /// Parses the page into a tree. Copies and statements depend on its numbering of elements, so both must use this
    /// function.
    pub(super) fn document(&self) -> Document {
        let limits = Limits {
            memory_bytes: 256 << 20,
            ..Limits::default()
        };
        match self.kind {
            PageKind::Html => Document::parse_html(&self.text, &limits),
            PageKind::Xml => Document::parse_xml(&self.text, &limits),
            PageKind::Json | PageKind::Text => Document::parse_html("", &limits),
        }
    }

    pub(super) fn input(&self) -> PageInput<'_> {
        PageInput {
            url: &self.url,
            kind: self.kind,
            text: &self.text,
        }
    }

    /// Converts the page, with its known values, into the input of the learner.
    pub(super) fn to_learn_page(&self) -> LearnPage {
        LearnPage {
            url: self.url.clone(),
            kind: self.kind,
            text: self.text.clone(),
            record: None,
            known: self.head.known.clone(),
            said: Default::default(),
        }
    }
}
