//! Reads seeds that are documents of a dataset, in chunks and in the order of their ids.

use std::path::PathBuf;
use std::sync::Arc;

use webfill_startup::Fault;
use webfill_store::{Dataset, DatasetDocument, Documents};

use super::places::{Place, Places};
use super::position::Position;
use super::reading::{Bring, Chunk, Next};
use super::records::store_fault;
use crate::seeds::{DocumentRules, read_document};

/// The documents to read.
pub struct DatasetSeeds {
    pub dataset: Arc<Dataset>,
    /// See [`crate::dataset::DatasetPlan::identity`].
    pub identity: String,
    pub rules: DocumentRules,
    /// The file that says which documents were read.
    pub places: PathBuf,
}

impl DatasetSeeds {
    /// The position after which reading goes on, and the function that reads, for a thread of its own.
    pub(super) fn read_behind(
        self,
        fed: u64,
    ) -> Result<(Position, impl FnOnce(Bring) + Send + 'static), Fault> {
        let mut position = Position::start_of_input(&self.identity);
        let (places, place) = Places::open(&self.places, position.lines_of(fed))?;
        position.line = place.as_ref().map_or(0, |place| place.read);
        let after = place.map(|place| place.id);
        let documents = self.dataset.read(after.as_deref());
        let mut reader = DocumentReader {
            documents: documents.map_err(Fault::error)?,
            rules: self.rules,
            places,
            read: position.line,
            // Keeps the connection open while documents are read.
            _dataset: self.dataset,
        };
        Ok((position, move |bring: Bring| {
            while let Some(next) = reader.next_chunk() {
                let is_last = next.is_err();
                if bring.send(next).is_err() || is_last {
                    return;
                }
            }
        }))
    }
}

struct DocumentReader {
    documents: Documents,
    rules: DocumentRules,
    places: Places,
    read: u64,
    _dataset: Arc<Dataset>,
}

impl DocumentReader {
    fn next_chunk(&mut self) -> Option<Result<Next, Fault>> {
        let documents = match self.documents.next()? {
            Ok(documents) => documents,
            Err(error) => return Some(Err(store_fault(error))),
        };
        Some(self.take(documents))
    }

    fn take(&mut self, documents: Vec<DatasetDocument>) -> Result<Next, Fault> {
        let last = documents.last().map(|document| document.id.clone());
        let mut seeds = Vec::with_capacity(documents.len());
        for document in documents {
            self.read += 1;
            seeds.extend(read_document(document, self.read, &self.rules));
        }
        if let Some(id) = last {
            let read = self.read;
            self.places.note(&Place { read, id })?;
        }
        Ok(Next::Chunk(Chunk {
            seeds,
            read: self.read,
        }))
    }
}
