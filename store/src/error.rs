//! What can go wrong with a store, sorted by what the caller does next.

/// A failed call. Nothing of what it asked for was kept, unless the call says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Busy or out of reach for now: the same call may succeed later.
    #[error("{store} cannot be used for now: {reason}")]
    Retry {
        /// The store's URI, without credentials.
        store: String,
        /// The backend's own words.
        reason: String,
    },
    /// The disk is full: a person must make room, and until then every further write would fail
    /// likewise. What was committed before is intact.
    #[error("{store}: the disk is full: make room, then start again; what was kept is intact")]
    NoSpace {
        /// The store's URI, without credentials.
        store: String,
    },
    /// The file is ours and damaged: a person must act.
    #[error("{store}: the file is damaged: put it back from a copy, or use another file")]
    Damaged {
        /// The store's URI, without credentials.
        store: String,
    },
    /// An unwritable file, a foreign database: a person must act, and every further call would fail
    /// likewise. What was committed before is intact.
    #[error("{store}: {reason}")]
    Fatal {
        /// The store's URI, without credentials.
        store: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// This entry alone cannot be kept; the rest of its batch was.
    #[error("{entry} cannot be kept: {reason}")]
    Entry {
        /// What it was, as "page ID" or "record ID".
        entry: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_retry(&self) -> bool {
        matches!(self, StoreError::Retry { .. })
    }

    /// Whether the store is of no more use to this process.
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
