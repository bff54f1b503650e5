//! The errors of a store, by what the caller does next.

/// Why a call failed. A failed call has stored nothing, unless the documentation of the call says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store is busy or temporarily unavailable. The same call may succeed later.
    #[error("{store} cannot be used for now: {reason}")]
    Retry {
        /// The store's URI, without credentials.
        store: String,
        /// The backend's message.
        reason: String,
    },
    /// The disk is full. Every write fails until someone makes room. Everything committed before is intact.
    #[error("{store}: the disk is full: free some space, then start again; stored data is intact")]
    NoSpace {
        /// The store's URI, without credentials.
        store: String,
    },
    /// webfill's own file is damaged. It does not recover by itself.
    #[error("{store}: the file is damaged: put it back from a copy, or use another file")]
    Damaged {
        /// The store's URI, without credentials.
        store: String,
    },
    /// The store cannot be used, for example because its file is not writable or is another program's database. Every
    /// call fails until someone repairs the fault. Everything committed before is intact.
    #[error("{store}: {reason}")]
    Fatal {
        /// The store's URI, without credentials.
        store: String,
        /// What is wrong, and how to fix it.
        reason: String,
    },
    /// Only this entry cannot be stored. The rest of its batch is stored.
    #[error("{entry} cannot be kept: {reason}")]
    Entry {
        /// The entry, as "page ID" or "record ID".
        entry: String,
        /// What is wrong with the entry.
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

    /// Whether only a single entry is refused.
    pub fn is_entry_refusal(&self) -> bool {
        matches!(self, StoreError::Entry { .. })
    }
}
