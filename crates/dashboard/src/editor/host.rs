//! What the mapping editor has done by the program around it.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::{Map, Value};
use webfill_urls::Url;

/// A page that was fetched.
#[derive(Debug, Clone, Default)]
pub struct FetchedPage {
    /// After redirects.
    pub url: String,
    pub content_type: Option<String>,
    /// Of the file that it is kept in, without the dot.
    pub ending: String,
    pub body: Vec<u8>,
}

/// A page, and what a mapping must yield on it from now on.
#[derive(Debug, Clone)]
pub struct GoldenCase {
    pub mapping: String,
    pub url: Url,
    pub content_type: Option<String>,
    pub ending: String,
    pub body: Vec<u8>,
    pub fields: Map<String, Value>,
    pub links: Vec<String>,
    /// Of each rule of rows `{"dataset", "rows": [{FIELD: VALUE}]}`.
    pub rows: Vec<Value>,
}

/// See the module.
#[async_trait]
pub trait Host: Send + Sync + std::fmt::Debug {
    /// Has a page, for mappings of this folder: one that was kept, else by one polite request, after which it is kept.
    /// Why there is none is told in words for people.
    async fn fetch(&self, mappings: &Path, url: &Url) -> Result<FetchedPage, String>;

    /// Keeps a golden case among those of a folder of mappings, as `webfill mapping save` does; returns its path.
    async fn keep_case(&self, mappings: &Path, case: GoldenCase) -> Result<PathBuf, String>;
}
