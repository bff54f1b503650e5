//! Classifies SQLite's result codes by what the caller does next.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::disk_room::has_room_beside;
use crate::error::StoreError;

/// Why a statement or an entry failed.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(rusqlite::Error),
    /// An entry cannot be stored or read. The text is the reason.
    InvalidEntry(String),
    /// The store as a whole cannot be used. The text is the reason and the remedy.
    Unusable(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        match error.sqlite_error_code() {
            Some(ErrorCode::TooBig) => Fault::InvalidEntry(String::from("it is too large")),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => {
                Fault::InvalidEntry(error.to_string())
            }
            _ => Fault::Sql(error),
        }
    }
}

/// A temporary database ([`super::scratch`]) gives errors whose text is already meant for users.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Unusable(error.to_string())
    }
}

const PREFIX: &str = "sqlite:";

/// The name of a file in error messages.
pub(super) fn store_name(path: &Path) -> String {
    format!("{PREFIX}{}", path.display())
}

/// The error of a call that has failed as a whole, by what the caller can do next.
pub(super) fn store_error(store: &str, fault: Fault) -> StoreError {
    let error = match fault {
        Fault::Sql(error) => error,
        Fault::Unusable(reason) => {
            let store = store.to_owned();
            return StoreError::Fatal { store, reason };
        }
        Fault::InvalidEntry(reason) => {
            return StoreError::Entry {
                entry: format!("an entry of {store}"),
                reason,
            };
        }
    };
    let store = store.to_owned();
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed,
        ) => StoreError::Retry {
            store,
            reason: String::from("another process is writing to it"),
        },
        Some(ErrorCode::DiskFull) => StoreError::NoSpace { store },
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if is_on_full_disk(&store) => {
            StoreError::NoSpace { store }
        }
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { store },
        code => StoreError::Fatal {
            store,
            reason: fatal_reason(code, &error),
        },
    }
}

fn is_on_full_disk(store: &str) -> bool {
    let path = store.strip_prefix(PREFIX).map(Path::new);
    path.is_some_and(|path| !has_room_beside(path))
}

fn fatal_reason(code: Option<ErrorCode>, error: &rusqlite::Error) -> String {
    match code {
        Some(ErrorCode::NotADatabase) => {
            String::from("the file is no SQLite database: use another file")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => String::from(
            "this user may not write the file or its folder, which is needed to read it as well: check their permissions",
        ),
        Some(ErrorCode::CannotOpen) => {
            String::from("the file cannot be opened: check the path and its permissions")
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!("reading or writing the disk failed: {error}")
        }
        _ => error.to_string(),
    }
}
