//! A page body that a crawl has kept: in the store, in a WARC archive, or in a folder of documents.

use std::path::PathBuf;
use std::sync::Arc;

/// A body that may belong to a stored page.
pub struct Candidate {
    pub page_id: String,
    /// The hash of the body, if its source supplies one.
    pub content_hash: Option<String>,
    pub is_rendered: bool,
    pub content: Content,
}

pub enum Content {
    Plain(Vec<u8>),
    /// A body that several pages share.
    Shared(Arc<[u8]>),
    /// A compressed body, with its uncompressed length.
    Packed {
        bytes: u64,
        packed: Vec<u8>,
    },
    File(PathBuf),
}

impl Candidate {
    pub fn held_bytes(&self) -> usize {
        match &self.content {
            Content::Plain(bytes) | Content::Packed { packed: bytes, .. } => bytes.len(),
            Content::Shared(bytes) => bytes.len(),
            Content::File(_) => 0,
        }
    }
}

impl Content {
    /// The uncompressed body, or why it cannot be uncompressed.
    pub fn into_body(self) -> Result<Vec<u8>, String> {
        match self {
            Content::Plain(body) => Ok(body),
            Content::Shared(body) => Ok(body.to_vec()),
            Content::Packed { bytes, packed } => {
                let bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
                zstd::bulk::decompress(&packed, bytes)
                    .map_err(|error| format!("its kept body is damaged: {error}"))
            }
            Content::File(file) => std::fs::read(&file)
                .map_err(|error| format!("cannot read {}: {error}", file.display())),
        }
    }
}
