//! Reading all that is stored.

use std::io;

use async_trait::async_trait;
use serde_json::Value;

use crate::error::StoreError;

/// The selection that an export reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportKind {
    Pages,
    Records,
}

/// Limits an export to an application, a crawl, or a dataset, which only records have; the default
/// exports everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportFilter {
    pub app_id: Option<String>,
    pub crawl_id: Option<String>,
    pub dataset: Option<String>,
    /// Only pages with the outcome `ok` that a mapping has read, each with the members needed to judge its
    /// extraction. Used only by [`Changes::changes`](crate::Changes::changes).
    pub extractions: bool,
    /// Only pages with a [snapshot](crate::Page::snapshot) for comparison, each with the members needed to compare it;
    /// `snapshot` is in Base64. Used only by [`Changes::changes`](crate::Changes::changes).
    pub checks: bool,
    /// With the fields of the record that a row's page was fetched for, as `parent_fields`. Used only by
    /// [`Export::export`].
    pub parents: bool,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output failed, such as a closed pipe or a full disk.
    #[error("cannot write the export: {0}")]
    Output(#[from] io::Error),
}

/// Pages and records are read as JSON objects.
#[async_trait]
pub trait Export: Send + Sync {
    /// Passes every page or record to `each`, as a JSON object with the names of the columns as keys, in the order of
    /// creation; returns their number. Memory is bounded. Writers are not blocked, so the export is not a snapshot:
    /// entries that change meanwhile appear in their old or new version, or both.
    async fn export(
        &self,
        kind: ExportKind,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError>;

    /// Passes the pages with these [keys](crate::page_id) to `each`, as an export does, but in any order; returns
    /// their number. Memory is bounded, even for large pages.
    async fn pages(
        &self,
        ids: Vec<String>,
        each: &mut (dyn FnMut(Value) -> io::Result<()> + Send),
    ) -> Result<u64, ExportError>;
}
