//! Services that the surrounding program offers to the mapping editor.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::{Map, Value};
use webfill_urls::Url;

/// A fetched page.
#[derive(Debug, Clone, Default)]
pub struct FetchedPage {
    /// After redirects.
    pub url: String,
    pub content_type: Option<String>,
    /// The ending of the name of its stored file, without the dot.
    pub ending: String,
    pub body: Vec<u8>,
}

/// A page, and the result that a mapping must yield on it from now on.
#[derive(Debug, Clone)]
pub struct GoldenCase {
    pub mapping: String,
    pub url: Url,
    pub content_type: Option<String>,
    pub ending: String,
    pub body: Vec<u8>,
    pub fields: Map<String, Value>,
    pub links: Vec<String>,
    /// For each rule of rows, `{"dataset", "rows": [{FIELD: VALUE}]}`.
    pub rows: Vec<Value>,
}

/// See the module.
#[async_trait]
pub trait Host: Send + Sync + std::fmt::Debug {
    /// Returns a page for mappings of this folder: a stored one, or else one fetched by a single polite request and
    /// then stored. The error is for people.
    async fn fetch(&self, mappings: &Path, url: &Url) -> Result<FetchedPage, String>;

    /// Adds a golden case to those of a folder of mappings, like `webfill mapping save`. Returns its path.
    async fn add_golden_case(&self, mappings: &Path, case: GoldenCase) -> Result<PathBuf, String>;
}
