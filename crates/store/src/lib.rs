//! The data that webfill stores. Records, pages, crawls and states of sites are behind the [`Store`] trait, which is
//! the sum of one trait per concern. robots.txt files and site clocks are behind the [`Cache`] trait.
//!
//! A backend (SQLite or MongoDB) is named by a URI ([`StoreUri`]) and opened with [`open`]. Many processes use one
//! store at the same time: all workers, the dispatcher, exports.
//!
//! Once a call is answered, its writes survive the death of any process. Every write is an idempotent upsert: webfill
//! saves before it acknowledges, so a task may be repeated after a crash, and the repeated save changes nothing.
//!
//! Times are milliseconds since the epoch in Rust. In SQLite and in exports they are ISO 8601 text in UTC with
//! milliseconds (`2026-01-31T12:00:00.000Z`), which is readable and sorts by time. In MongoDB they are dates, which
//! its queries and TTL indexes need.

mod bodies;
mod browse;
mod cache;
mod change;
mod claim;
mod crawl;
mod cursor;
mod dataset_name;
mod disk_room;
mod error;
mod field_counts;
mod health;
pub mod journal;
mod list;
mod listing;
mod lists;
mod mongodb;
mod open_mode;
mod page;
mod record;
mod reread;
mod retention;
mod row_counts;
mod row_page;
mod sample;
mod site_clock;
mod site_state;
mod source_document;
mod sqlite;
mod store;
mod timestamp;
mod uri;
mod validators;

pub use bodies::{Bodies, BodiesConfig, Body, BodyChange, DroppedBodies};
pub use browse::{
    Browse, ChangeListFilter, Count, CrawlCounts, CrawlFilter, DatasetRow, ListCursorError,
    ListPage, ListedRecord, MAX_CRAWLS_OF_RECORD, MAX_FIELDS_OF_ROW, MAX_LIST_PAGE, PageFilter,
    PageResult, PageRow, Place, RecordCondition, RecordFilter, RecordRow, WholeRecord,
};
pub use cache::{
    Cache, ROBOTS_KEPT_MS, Reservation, ReservationRelease, ReservationRequest, RobotsEntry,
    SITE_KEPT_MS, SiteClockEntry,
};
pub use change::{
    Change, ChangeFilter, ChangeKind, ComparedPosition, Comparison, KnownVersions,
    MAX_JUDGEMENT_BYTES, MAX_SNAPSHOT_BYTES,
};
pub use claim::{CrawlClaim, HOLDS_FOR, LAPSES_AFTER, RENEW_EVERY};
pub use crawl::{Crawl, CrawlId, CrawlState};
pub use cursor::{Cursor, CursorError};
pub use dataset_name::{DatasetName, record_key, split_record_key};
pub use disk_room::has_room_beside;
pub use error::StoreError;
pub use field_counts::{FieldCounts, MappingCounts, RowFieldCounts, RowTotals};
pub use health::HealthState;
pub use list::{
    CheckedRows, Doubt, GoneMarking, IncompleteReason, ListPass, ListState, ListedPage, ListedRows,
    MarkedGone, PageLack, PageOfList,
};
pub use listing::{ListedRow, Listing};
pub use lists::{Lists, check_and_mark_missing_rows, read_list};
pub use mongodb::{
    DatabasePlace, Dataset, DatasetDocument, DatasetSource, Documents, MongoUri, WriteBack,
};
pub use page::{MAX_ENTRY_BYTES, Page, page_id, site_versions_id};
pub use record::{
    Decided, Decision, DecisionAnswer, MAX_RECORD_ID_BYTES, MappingOrder, MappingRules, Record,
    RecordCounts, RecordState, has_value,
};
pub use reread::{Reread, RereadAnswer, ValueChange, ValueCounts};
pub use retention::{Cutoff, DropResult, RetentionConfig};
pub use row_counts::{RowCounts, row_counts};
pub use sample::{Sample, SampleText};
pub use site_state::{SitePhase, SiteState};
pub use source_document::{
    DatasetRecord, FilledField, RecordPut, Refresh, SourceDocument, UnwrittenRecord,
};
pub use sqlite::{FollowedChange, FollowedFile, Trial, ValueChangeCounter};
pub use store::{
    Applied, ApplyPage, Changes, Claims, ContentChanges, Crawls, Export, ExportError, ExportFilter,
    ExportKind, Health, Pages, Records, Rereading, Retention, RowLead, Samples, Save, SavePace,
    Saved, SiteStates, SourceDocuments, Store, StoredLists,
};
pub use timestamp::{iso_time, parse_iso_time};
pub use uri::{
    Backends, BrowseHandles, StoreUri, back_up, open, open_existing, open_existing_with_bodies,
    open_to_browse,
};
pub use validators::{KnownPage, Validators};
