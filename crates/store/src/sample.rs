//! Samples: a few pages of each mapping with their texts, for repairing a mapping. Their number is bounded by their
//! ids, because each id holds only the latest page; their size and age are bounded by
//! [retention](crate::RetentionConfig).

use crate::page::Page;

/// A page with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Where it is kept.
    pub id: String,
    pub mapping: String,
    /// The alert that it belongs to, by the time when it was raised; `None` if another page may replace it.
    pub alert: Option<String>,
    /// The page's key.
    pub page: String,
    pub url: String,
    /// Start of the fetch, milliseconds since the epoch.
    pub at_ms: i64,
    /// The fields that were found on it.
    pub fields: Vec<String>,
    /// Compressed (Zstandard). Left out of lists.
    pub text: Vec<u8>,
}

/// The text of a page that is saved, and which sample of its mapping it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleText {
    pub place: String,
    /// Compressed (Zstandard).
    pub text: Vec<u8>,
}

impl Sample {
    /// The sample of a page, if it has one.
    pub(crate) fn of(page: &Page) -> Option<Sample> {
        let sample = page.sample.as_ref()?;
        let mapping = page.mapping.clone()?;
        Some(Sample {
            id: format!("{mapping}/{}", sample.place),
            mapping,
            alert: None,
            page: page.id(),
            url: page.url.clone(),
            at_ms: page.started_at_ms,
            fields: page.fields.keys().cloned().collect(),
            text: sample.text.clone(),
        })
    }
}
