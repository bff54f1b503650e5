//! How a database is opened, and for what purpose.

/// Whether opening creates a store that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    Create,
    MustExist,
}

/// The purpose for which a database is opened.
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
