//! Reads original documents from a folder of `--keep-documents`. They are found by the hashes that stored pages have.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use webfill_service::Fault;
use webfill_store::{CrawlId, Cursor, ExportError, ExportFilter, Store, StoreError};

use super::busy_store::retry_while_busy;
use super::candidate::{Candidate, Content};

/// How many pages are checked at a time.
const BATCH_PAGES: usize = 32;

pub struct KeptDocuments {
    folder: PathBuf,
    filter: ExportFilter,
    store: Arc<dyn Store>,
    cursor: Cursor,
    is_over: bool,
}

impl KeptDocuments {
    pub fn new(folder: &Path, crawl: &CrawlId, store: Arc<dyn Store>) -> KeptDocuments {
        KeptDocuments {
            folder: folder.to_owned(),
            filter: ExportFilter {
                app_id: Some(crawl.app_id.clone()),
                crawl_id: Some(crawl.crawl_id.clone()),
                ..ExportFilter::default()
            },
            store,
            cursor: Cursor::start(),
            is_over: false,
        }
    }

    /// The next batch of documents; an empty list means the end.
    pub async fn next_batch(&mut self) -> Result<Vec<Candidate>, Fault> {
        let mut batch = Vec::new();
        while batch.is_empty() && !self.is_over {
            for (page_id, sha256) in self.next_documents().await? {
                batch.extend(self.find_document(page_id, &sha256));
            }
        }
        Ok(batch)
    }

    /// The keys and hashes of the next pages that are documents.
    async fn next_documents(&mut self) -> Result<Vec<(String, String)>, Fault> {
        let (documents, reached, is_over) =
            retry_while_busy(async || self.find_documents().await).await?;
        (self.cursor, self.is_over) = (reached, is_over);
        Ok(documents)
    }

    /// The next documents, the cursor to continue from, and whether they are the last ones.
    async fn find_documents(&self) -> Result<(Vec<(String, String)>, Cursor, bool), StoreError> {
        let mut documents = Vec::new();
        let mut reached = self.cursor.clone();
        let mut each = |cursor: Cursor, page: Value| {
            reached = cursor;
            let text = |value: &Value| value.as_str().map(str::to_owned);
            if let (Some(id), Some(sha256)) =
                (text(&page["_id"]), text(&page["document"]["sha256"]))
            {
                documents.push((id, sha256));
            }
            match documents.len() >= BATCH_PAGES {
                true => Err(io::ErrorKind::Interrupted.into()),
                false => Ok(()),
            }
        };
        let read = self.store.changes(&self.cursor, &self.filter, &mut each);
        match read.await {
            Ok(_) => Ok((documents, reached, true)),
            Err(ExportError::Output(_)) => Ok((documents, reached, false)),
            Err(ExportError::Store(error)) => Err(error),
        }
    }

    /// Finds the document with this hash; `None` if the folder does not have it.
    fn find_document(&self, page_id: String, sha256: &str) -> Option<Candidate> {
        let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (upper, lower) = (sha256.get(..2)?, sha256.get(2..4)?);
        let file = self.folder.join(upper).join(lower).join(sha256);
        (is_hash && file.is_file()).then_some(Candidate {
            page_id,
            content_hash: None,
            is_rendered: false,
            content: Content::File(file),
        })
    }
}
