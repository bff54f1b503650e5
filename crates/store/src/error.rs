//! The errors of a store, by what the caller does next.

/// A failed call. It has stored nothing, unless the call says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store is busy or unavailable for now: the same call may succeed later.
    #[error("{store} cannot be used for now: {reason}")]
    Retry {
        /// The store's URI, without credentials.
        store: String,
        /// The backend's message.
        reason: String,
    },
    /// The disk is full: a person must make room, and until then every write fails. What was committed
    /// before is intact.
    #[error("{store}: the disk is full: make room, then start again; what was kept is intact")]
    NoSpace {
        /// The store's URI, without credentials.
        store: String,
    },
    /// webfill's own file is damaged: a person must act.
    #[error("{store}: the file is damaged: put it back from a copy, or use another file")]
    Damaged {
        /// The store's URI, without credentials.
        store: String,
    },
    /// The store cannot be used, such as an unwritable file or a foreign database: a person must act,
    /// and until then every call fails. What was committed before is intact.
    #[error("{store}: {reason}")]
    Fatal {
        /// The store's URI, without credentials.
        store: String,
        /// The fault and its remedy.
        reason: String,
    },
    /// Only this entry cannot be stored; the rest of its batch was.
    #[error("{entry} cannot be kept: {reason}")]
    Entry {
        /// The entry, as "page ID" or "record ID".
        entry: String,
        /// The fault.
        reason: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_retry(&self) -> bool {
        matches!(self, StoreError::Retry { .. })
    }

    /// Whether every further call of this process would fail.
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            StoreError::Fatal { .. } | StoreError::Damaged { .. } | StoreError::NoSpace { .. }
        )
    }

    /// Whether only the one entry is refused.
    pub fn is_entry(&self) -> bool {
        matches!(self, StoreError::Entry { .. })
    }
}
