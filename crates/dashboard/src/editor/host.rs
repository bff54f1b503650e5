//! Services that the surrounding program offers to the mapping editor.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::{Map, Value};
use webfill_urls::Url;

/// A page as it was fetched for the mapping editor.
#[derive(Debug, Clone, Default)]
pub struct FetchedPage {
    /// The final URL, after redirects.
    pub url: String,
    pub content_type: Option<String>,
    /// The file name extension for its body, without the dot.
    pub ending: String,
    pub body: Vec<u8>,
}

/// A golden case, which is a test of a mapping: a page, and the result that the mapping must yield on it.
#[derive(Debug, Clone)]
pub struct GoldenCase {
    pub mapping: String,
    pub url: Url,
    pub content_type: Option<String>,
    pub ending: String,
    pub body: Vec<u8>,
    pub fields: Map<String, Value>,
    pub links: Vec<String>,
    /// The expected rows, for each rule that reads rows: `{"dataset", "rows": [{FIELD: VALUE}]}`.
    pub rows: Vec<Value>,
}

/// The services that the mapping editor needs from the program which contains the dashboard.
#[async_trait]
pub trait Host: Send + Sync + std::fmt::Debug {
    /// Returns the page of a URL, for the mappings in this folder. If no copy is stored, the page is fetched by a
    /// single polite request and stored. The error is a text for users.
    async fn fetch(&self, mappings: &Path, url: &Url) -> Result<FetchedPage, String>;

    /// Adds a golden case to the mappings in a folder, as `webfill mapping save` does. Returns the path of its file.
    async fn add_golden_case(&self, mappings: &Path, case: GoldenCase) -> Result<PathBuf, String>;
}
