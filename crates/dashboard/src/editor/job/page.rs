//! A page of a job, decoded.

use webfill_document::{Document, Limits};
use webfill_learn::Page as LearnPage;
use webfill_mapping::{Metadatum, PageInput, PageKind};
use webfill_urls::Url;

use super::PageHead;

/// A page of a job, with its decoded text.
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) kind: PageKind,
    pub(super) text: String,
    pub(super) metadata: Option<Vec<Metadatum>>,
    pub(super) head: PageHead,
}

impl Page {
    /// Parses the page into a tree. The numbers of elements in copies and in the user's statements come from this tree,
    /// so all code must use this function.
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

    pub(super) fn to_page_input(&self) -> PageInput<'_> {
        PageInput {
            url: &self.url,
            kind: self.kind,
            text: &self.text,
        }
    }

    /// The page with its known values, in the form that the learner needs.
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
