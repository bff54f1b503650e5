//! The [`Store`]: records, pages, crawls and states of sites, as the sum of one trait per concern.
//!
//! # A new backend
//!
//! A backend is a folder beside `sqlite` and `mongodb`. It grows by one concern at a time:
//!
//! 1. `mod.rs` has the type, how it is opened, and how a call reaches the database: `read` and `write` of `Sqlite`,
//!    `call` of `Mongo`. `fault.rs` turns the driver's errors into [`StoreError`](crate::StoreError), which says
//!    whether to retry.
//! 2. Each concern has a file: `crawls.rs` has the statements on crawls, and below them `impl Crawls for ...`. Start
//!    with [`Crawls`], [`Records`], [`Pages`] and [`Export`], which a crawl and an export need. Then come [`Claims`],
//!    [`SiteStates`], [`Changes`] and [`Retention`], and then the rest, in any order. Each is useful alone: code that
//!    needs one concern takes, for example, `&dyn Crawls`.
//! 3. With all of them, the type is a [`Store`]. [`Cache`](crate::Cache), [`Bodies`](crate::Bodies) and
//!    [`Browse`](crate::Browse) are separate traits beside it; the cache may be in another backend.
//! 4. `uri.rs` names the backend: one more variant of [`StoreUri`](crate::StoreUri), and its arm in `open_backend`.
//! 5. The backend must pass `tests/conformance`: a file in `tests/` opens it and calls the suite, as `tests/sqlite.rs`
//!    does.
//!
//! The crate's documentation has the promises: writes are idempotent, and once answered they survive the death of any
//! process. The rules for how pages fill records do not belong to a backend. They are in `record.rs` and its folder,
//! and both backends apply them to what they have read.

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
