//! What webfill keeps: records, pages and crawls behind the [`Store`] trait; robots.txt files and
//! site clocks behind the [`Cache`] trait.
//!
//! A backend is named by a URI ([`StoreUri`]) and opened with [`open`]. Many processes work on one
//! store at once: every worker, the dispatcher, an export. Every write is an idempotent upsert, so
//! that a task repeated after a crash changes nothing (the reason why webfill may save before it
//! acknowledges). What a call has answered is durable against the death of any process.
//!
//! Times are milliseconds since the epoch in Rust. In SQLite and in exports they are ISO 8601 text
//! in UTC with milliseconds (`2026-01-31T12:00:00.000Z`): people read it in queries, and it sorts.
//! In MongoDB they are dates, which its queries calculate with and its purges go by.

mod cache;
mod crawl;
mod cursor;
mod error;
mod mongodb;
mod page;
mod record;
mod site_clock;
mod source_document;
mod sqlite;
mod store;
mod timestamp;
mod uri;

pub use cache::{
    Cache, Reservation, ReservationRelease, ReservationRequest, RobotsEntry, SITE_KEPT_MS,
    SiteEntry,
};
pub use crawl::{Crawl, CrawlId, CrawlState};
pub use cursor::{Cursor, CursorError};
pub use error::StoreError;
pub use mongodb::{Dataset, DatasetDocument, DatasetSource, Documents, MongoUri, WriteBack};
pub use page::{MAX_ENTRY_BYTES, Page, page_id};
pub use record::{MAX_RECORD_ID_BYTES, MappingOrder, Record, RecordCounts, RecordState, has_value};
pub use source_document::{DatasetRecord, FilledField, SourceDocument, Unwritten};
pub use store::{
    Applied, ApplyPage, ExportError, ExportFilter, ExportKind, Save, SavePace, Saved, Store,
};
pub use timestamp::iso_time;
pub use uri::{Backends, StoreUri, open, open_existing};
