//! Services that the surrounding program offers to the mapping editor.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::{Map, Value};
use webfill_urls::Url;

/// A fetched page.
#[derive(Debug, Clone, Default)]
pub struct FetchedPage {
    /// The final URL, after redirects.
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
    /// For each rule that reads rows: `{"dataset", "rows": [{FIELD: VALUE}]}`.
    pub rows: Vec<Value>,
}

/// The services that the mapping editor needs from the program which contains the dashboard.
#[async_trait]
pub trait Host: Send + Sync + std::fmt::Debug {
    /// Returns a page for the mappings of this folder. A stored copy is used if there is one; otherwise the page is
    /// fetched by a single polite request and stored. The error is for people.
    async fn fetch(&self, mappings: &Path, url: &Url) -> Result<FetchedPage, String>;

    /// Adds a golden case to the mappings of a folder, as `webfill mapping save` does. Returns the path of the case.
    async fn add_golden_case(&self, mappings: &Path, case: GoldenCase) -> Result<PathBuf, String>;
}
