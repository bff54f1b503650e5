//! The errors of the frontier, one for each reaction of the caller.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use webfill_api::scope::ScopeError;
use webfill_wire::CrawlKey;

/// After any error except [`Scope`](FrontierError::Scope) and [`UnknownCrawl`](FrontierError::UnknownCrawl), the
/// uncommitted calls are undone on disk and the frontier refuses all further work: drop it, and open it again once
/// the cause is gone.
#[derive(Debug, thiserror::Error)]
pub enum FrontierError {
    #[error("cannot open the frontier {path}: {source}", path = path.display())]
    Open {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error(
        "{path} was not written by webfill: choose another state folder, or move the file away",
        path = path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "{path} has format {found}, this webfill reads format {known}: use the webfill that wrote it, or choose \
         another state folder",
        path = path.display()
    )]
    OtherFormat {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error(
        "{path} is a backup, made at {at}: start with `webfill dispatcher --restored`, or a unit with WEBFILL_DISPATCHER_RESTORED=true, so that nothing \
         is requested while requests of the former fleet may be under way",
        path = path.display(), at = webfill_store::iso_time(*made_at_ms)
    )]
    Backup { path: PathBuf, made_at_ms: i64 },
    #[error("cannot write {path}: {source}", path = path.display())]
    Copy {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "no space left on disk for {path}: free some and start again; \
         everything up to the last commit is safe",
        path = path.display()
    )]
    DiskFull { path: PathBuf },
    #[error("cannot {doing} in {path}: {source}", path = path.display())]
    Database {
        doing: &'static str,
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("the frontier {path} is closed after an earlier error", path = path.display())]
    Closed { path: PathBuf },
    /// The crawl was pruned. Its key may still be in use by something that waits.
    #[error("the crawl was pruned meanwhile (key {0})")]
    UnknownCrawl(CrawlKey),
    #[error(transparent)]
    Scope(#[from] ScopeError),
}

impl FrontierError {
    pub(super) fn database(doing: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        let is_full = is_disk_full(path, &source);
        let path = path.to_owned();
        match is_full {
            true => FrontierError::DiskFull { path },
            false => FrontierError::Database {
                doing,
                path,
                source,
            },
        }
    }

    pub(super) fn opening(path: &Path, source: rusqlite::Error) -> Self {
        let is_full = is_disk_full(path, &source);
        let path = path.to_owned();
        match is_full {
            true => FrontierError::DiskFull { path },
            false => FrontierError::Open { path, source },
        }
    }
}

fn is_disk_full(path: &Path, error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => true,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            !webfill_store::has_room_beside(path)
        }
        _ => false,
    }
}

/// Replaces the error of a crawl that was pruned meanwhile by `instead`, because that is not a fault.
pub fn ignore_pruned<T>(done: Result<T, FrontierError>, instead: T) -> Result<T, FrontierError> {
    match done {
        Err(FrontierError::UnknownCrawl(crawl)) => {
            tracing::info!(
                event = "crawl_was_pruned",
                crawl,
                "a change to a pruned crawl is dropped"
            );
            Ok(instead)
        }
        done => done,
    }
}
