//! Reads everything that is stored.

use std::io;

use async_trait::async_trait;
use serde_json::Value;

use crate::error::StoreError;

/// The kind of entries that an export reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportKind {
    Pages,
    Records,
}

/// Limits an export to an application, a crawl, or a dataset (records only). The default exports everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportFilter {
    pub app_id: Option<String>,
    pub crawl_id: Option<String>,
    pub dataset: Option<String>,
    /// Only pages with the outcome `ok` that a mapping has read. Each has the members needed to judge its extraction.
    /// Used only by [`Changes::changes`](crate::Changes::changes).
    pub extractions: bool,
    /// Only pages with a [snapshot](crate::Page::snapshot) for comparison. Each has the members needed to compare it;
    /// `snapshot` is in Base64. Used only by [`Changes::changes`](crate::Changes::changes).
    pub checks: bool,
    /// Adds the fields of the record that a row's page was fetched for, as `parent_fields`. Used only by
    /// [`Export::export`].
    pub parents: bool,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Writing the output failed, for example because of a closed pipe or a full disk.
    #[error("cannot write the export: {0}")]
    Output(#[from] io::Error),
}

/// Reads pages and records as JSON objects.
#[async_trait]
pub trait Export: Send + Sync {
    /// Passes every page or record to `each` in order of creation, as a JSON object whose keys are the names of the
    /// columns. Returns their number. Memory is bounded. Writers are not blocked, so the export is not a snapshot:
    /// entries that change meanwhile appear in their old version, their new one, or both.
    async fn export(
        &self,
        kind: ExportKind,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError>;

    /// Passes the pages with these [keys](crate::page_id) to `each`, like an export, but in any order. Returns their
    /// number. Memory is bounded, even for large pages.
    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError>;
}
