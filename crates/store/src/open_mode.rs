//! How a database is opened, and for what purpose.

/// Whether opening creates a store that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    Create,
    MustExist,
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uses {
    Store,
    Cache,
    Both,
}

impl Uses {
    pub(crate) fn includes_store(self) -> bool {
        self != Uses::Cache
    }

    pub(crate) fn includes_cache(self) -> bool {
        self != Uses::Store
    }
}
