//! Lists for browsing: each is read along an index, a page at a time.

use mongodb::action::Find;
use mongodb::bson::{DateTime, Document, RawDocument, RawDocumentBuf, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::{Collection, Cursor};

use super::command::{Db, with_timeout};
use super::fault::Fault;
use super::members::date;
use crate::browse::{ListPage, MOST_EXAMINED, Place, UnfinishedPage};

/// How many documents one answer of the server may have.
const ANSWERED_AT_ONCE: usize = 500;

/// The server's error code for a missing index.
const NO_SUCH_INDEX: i32 = 2;

/// The query of a list that is read along an index.
pub(super) struct ListQuery<'a> {
    pub(super) collection: &'a str,
    pub(super) which: Document,
    pub(super) order: Document,
    /// The index that the list follows.
    pub(super) index: &'a str,
    /// The members of each document to read, as a projection. If it is empty, all are read.
    pub(super) members: Document,
    pub(super) wanted: usize,
}

impl ListQuery<'_> {
    /// Reads a page of the list. `read` returns the place of a document, and its row if the filter accepts it. `None`
    /// if there is no such index.
    pub(super) async fn read_list_page<T>(
        self,
        db: &Db,
        read: impl FnMut(&RawDocument) -> Result<(Place, Option<T>), Fault>,
    ) -> Result<Option<ListPage<T>>, Fault> {
        let collection: Collection<RawDocumentBuf> = db.database.collection(self.collection);
        let wanted = self.wanted;
        let searching = async {
            match self.find(&collection).await {
                Ok(cursor) => read_list_page(cursor, wanted, read).await.map(Some),
                Err(error) if is_without_index(&error) => Ok(None),
                Err(error) => Err(error),
            }
        };
        with_timeout(searching).await?.transpose()
    }

    fn find<'a>(&self, collection: &'a Collection<RawDocumentBuf>) -> Find<'a, RawDocumentBuf> {
        let batch = (self.wanted + 1).min(ANSWERED_AT_ONCE) as u32;
        let find = collection
            .find(self.which.clone())
            .sort(self.order.clone())
            .hint(mongodb::options::Hint::Name(self.index.to_owned()))
            .limit(MOST_EXAMINED as i64 + 1)
            .batch_size(batch);
        match self.members.is_empty() {
            true => find,
            false => find.projection(self.members.clone()),
        }
    }
}

pub(super) async fn read_list_page<T>(
    mut cursor: Cursor<RawDocumentBuf>,
    wanted: usize,
    mut read: impl FnMut(&RawDocument) -> Result<(Place, Option<T>), Fault>,
) -> mongodb::error::Result<Result<ListPage<T>, Fault>> {
    let mut page = UnfinishedPage::begin(wanted);
    while cursor.advance().await? {
        let (place, found) = match read(cursor.current()) {
            Ok(read) => read,
            Err(fault) => return Ok(Err(fault)),
        };
        page.add(cursor.current().as_bytes().len(), found);
        if page.is_full() {
            let next = cursor.advance().await?.then_some(place);
            return Ok(Ok(page.end_at(next)));
        }
    }
    Ok(Ok(page.end_at(None)))
}

pub(super) fn is_without_index(error: &Error) -> bool {
    matches!(error.kind.as_ref(), ErrorKind::Command(command) if command.code == NO_SUCH_INDEX)
}

/// The condition for the documents that follow a place in a list. They are ordered by a time, the latest first, and
/// then by key. Few documents have the same time.
pub(super) fn condition_before(time: &str, place: &Place) -> Document {
    let at = date(place.number(0));
    doc! {
        time: {"$lte": at},
        "$nor": [{time: at, "_id": {"$gte": place.part(1)}}],
    }
}

/// The place of a document in a list that is ordered by time, the latest first; see [`condition_before`].
pub(super) fn place_at(at: DateTime, id: &str) -> Place {
    Place::newest_first([at.timestamp_millis().to_string(), id.to_owned()])
}

/// The key of a document.
pub(super) fn key(stored: &RawDocument) -> &str {
    stored.get_str("_id").unwrap_or_default()
}

/// The error for a document without a member that webfill always writes.
pub(super) fn broken_entry_fault(what: &str, stored: &RawDocument) -> Fault {
    let key = key(stored);
    Fault::InvalidEntry(format!("{what} {key:.200} is not as webfill writes it"))
}
