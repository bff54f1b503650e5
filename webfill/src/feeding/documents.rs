//! Reads seeds that are documents of a dataset, in chunks and in the order of their ids.
//!
//! A resumed crawl skips the documents that were already fed. Only after the last of these does it know whether they
//! are unchanged. If any has changed, all documents are read and fed from the first one.

use std::sync::Arc;

use serde_json::json;
use webfill_service::Fault;
use webfill_store::{Dataset, DatasetDocument, Documents};

use super::position::Position;
use super::reading::{Chunk, InputItem, ItemSender, ReadStart};
use super::records::store_fault;
use crate::seeds::{DocumentRules, Mark, read_document};

/// A dataset whose documents are read as seeds.
pub struct DatasetSeeds {
    pub dataset: Arc<Dataset>,
    /// Identifies the dataset. See [`crate::dataset::DatasetPlan::identity`].
    pub identity: String,
    pub rules: DocumentRules,
}

/// Reads the documents that no earlier run has fed.
pub(super) fn read_documents(seeds: DatasetSeeds, fed: u64, bring: &ItemSender) {
    if let Err(fault) = send_all(&seeds, fed, bring) {
        // An error means that the crawl is over, so nobody receives the fault.
        let _ = bring.send(Err(fault));
    }
}

fn send_all(seeds: &DatasetSeeds, fed: u64, bring: &ItemSender) -> Result<(), Fault> {
    let first = Position::start_of_dataset(&seeds.identity);
    let mut reader = DocumentReader::start(seeds, first.mark())?;
    let mut start = ReadStart::resume(first, fed, |line| {
        reader.skip_to(line).then_some(reader.mark)
    });
    if let Some(fault) = reader.fault.take() {
        return Err(fault);
    }
    if start.is_changed {
        reader = DocumentReader::start(seeds, first.mark())?;
    }
    start.position.advance(reader.mark);
    if bring.send(Ok(InputItem::Start(start))).is_err() {
        return Ok(());
    }
    while let Some(documents) = reader.next_chunk()? {
        let chunk = reader.make_chunk(documents);
        if bring.send(Ok(InputItem::Chunk(chunk))).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

struct DocumentReader<'s> {
    seeds: &'s DatasetSeeds,
    documents: Documents,
    /// Documents of the next chunk, which were read in advance.
    ahead: Vec<DatasetDocument>,
    mark: Mark,
    fault: Option<Fault>,
}

impl<'s> DocumentReader<'s> {
    fn start(seeds: &'s DatasetSeeds, mark: Mark) -> Result<DocumentReader<'s>, Fault> {
        Ok(DocumentReader {
            documents: seeds.dataset.read(None).map_err(Fault::error)?,
            seeds,
            ahead: Vec::new(),
            mark,
            fault: None,
        })
    }

    /// Skips documents up to this position. Returns false if there are fewer, or after a fault.
    fn skip_to(&mut self, line: u64) -> bool {
        while self.mark.line < line {
            match self.next_chunk() {
                Ok(Some(mut documents)) => {
                    let left = usize::try_from(line - self.mark.line).unwrap_or(usize::MAX);
                    self.ahead = documents.split_off(left.min(documents.len()));
                    for document in &documents {
                        self.mark = mark_after(self.mark, document);
                    }
                }
                Ok(None) => return false,
                Err(fault) => {
                    self.fault = Some(fault);
                    return false;
                }
            }
        }
        true
    }

    fn next_chunk(&mut self) -> Result<Option<Vec<DatasetDocument>>, Fault> {
        if !self.ahead.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ahead)));
        }
        self.documents.next().transpose().map_err(store_fault)
    }

    fn make_chunk(&mut self, documents: Vec<DatasetDocument>) -> Chunk {
        let mut seeds = Vec::with_capacity(documents.len());
        for document in documents {
            self.mark = mark_after(self.mark, &document);
            seeds.extend(read_document(document, self.mark.line, &self.seeds.rules));
        }
        Chunk {
            seeds,
            mark: self.mark,
        }
    }
}

/// The mark (position and hash) of the input after a document. The hash covers the document's links but not its other
/// fields, because the crawl may fill those.
fn mark_after(mark: Mark, document: &DatasetDocument) -> Mark {
    let links = ["url", "urls", "want"].map(|name| document.members.get(name));
    mark.after_line(json!([document.id, links]).to_string().as_bytes())
}
