//! The [`Store`]: records, pages, crawls and states of sites, as the sum of one trait per concern.
//!
//! # A new backend
//!
//! A backend is a folder beside `sqlite` and `mongodb`. It grows by one concern at a time:
//!
//! 1. `mod.rs` has the type, how it is opened, and how a call reaches the database: `read` and `write` of `Sqlite`,
//!    `call` of `Mongo`. `fault.rs` turns the driver's errors into [`StoreError`](crate::StoreError), which says
//!    whether to retry.
//! 2. A concern is a file: `crawls.rs` has the statements on crawls, and below them `impl Crawls for ...`. A good order
//!    is [`Crawls`], [`Records`], [`Pages`] and [`Export`], which a crawl and an export need; then [`Claims`],
//!    [`SiteStates`], [`Changes`] and [`Retention`]; then the rest, in any order. Each is useful alone: what needs one
//!    concern takes `&dyn Crawls`.
//! 3. With all of them, the type is a [`Store`]. [`Cache`](crate::Cache), [`Bodies`](crate::Bodies) and
//!    [`Browse`](crate::Browse) are traits of their own beside it; a cache may be another backend's.
//! 4. `uri.rs` names it: one more variant of [`StoreUri`](crate::StoreUri), and its arm in `open_one`.
//! 5. `tests/conformance` is what it must pass: a file in `tests/` that opens it and calls the suite, as
//!    `tests/sqlite.rs` does.
//!
//! The promises are in the head of the crate: writes are idempotent, and they survive the death of any process once
//! they are answered. The rules by which pages fill records are not a backend's: they are in `record.rs` and its
//! folder, which both backends call with what they have read.

mod changes;
mod claims;
mod content_changes;
mod crawls;
mod export;
mod health;
mod lists;
mod pages;
mod records;
mod rereading;
mod retention;
mod samples;
mod site_states;
mod source_documents;

pub use changes::Changes;
pub use claims::Claims;
pub use content_changes::ContentChanges;
pub use crawls::Crawls;
pub use export::{Export, ExportError, ExportFilter, ExportKind};
pub use health::Health;
pub use lists::StoredLists;
pub use pages::{Applied, ApplyPage, Pages, RowLead, Save, SavePace, Saved};
pub use records::Records;
pub use rereading::Rereading;
pub use retention::Retention;
pub use samples::Samples;
pub use site_states::SiteStates;
pub use source_documents::SourceDocuments;

/// A store with all its concerns. Threads may share it, and many processes may open it at the same time.
pub trait Store:
    Pages
    + Records
    + SourceDocuments
    + Crawls
    + Claims
    + SiteStates
    + StoredLists
    + Health
    + Samples
    + ContentChanges
    + Changes
    + Export
    + Retention
    + Rereading
{
}

impl<S> Store for S where
    S: Pages
        + Records
        + SourceDocuments
        + Crawls
        + Claims
        + SiteStates
        + StoredLists
        + Health
        + Samples
        + ContentChanges
        + Changes
        + Export
        + Retention
        + Rereading
{
}
