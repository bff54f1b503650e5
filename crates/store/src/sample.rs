//! Samples: a few pages of each mapping with their texts, for repairing a mapping. Their number is limited because
//! each id holds only the latest page. [Retention](crate::RetentionConfig) limits their size and age.

use crate::page::Page;

/// A page with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The id that the sample is stored under.
    pub id: String,
    pub mapping: String,
    /// The alert that the sample belongs to, by the time when it was raised; `None` if another page may replace the
    /// sample.
    pub alert: Option<String>,
    /// The page's key.
    pub page: String,
    pub url: String,
    /// When the fetch started, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The fields that were found on the page.
    pub fields: Vec<String>,
    /// The page's text, compressed (Zstandard). Lists leave it out.
    pub text: Vec<u8>,
}

/// The text of a page that is being saved as a sample of its mapping. It replaces the text of the sample with the id
/// `place`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleText {
    pub place: String,
    /// The text, compressed (Zstandard).
    pub text: Vec<u8>,
}

impl Sample {
    /// The sample to store for a page, if it has one.
    pub(crate) fn from_page(page: &Page) -> Option<Sample> {
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
