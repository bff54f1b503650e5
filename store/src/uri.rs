//! Which backend a URI names, and how it is opened. A new backend is one more variant here.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::cache::Cache;
use crate::error::StoreError;
use crate::sqlite::{OpenMode, Sqlite};
use crate::store::Store;

/// Where a store or a cache is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUri {
    /// `sqlite:FILE`.
    Sqlite(PathBuf),
}

impl FromStr for StoreUri {
    type Err = String;

    /// Judges the URI alone: nothing is opened.
    fn from_str(text: &str) -> Result<StoreUri, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
        match scheme {
            "sqlite" if rest.is_empty() || rest == ":memory:" => Err(format!(
                "store `{text}` names no file that processes could share: write sqlite:FILE"
            )),
            "sqlite" => Ok(StoreUri::Sqlite(PathBuf::from(rest))),
            // The URI may hold a password, so it is not repeated.
            "mongodb" | "mongodb+srv" => Err(String::from(
                "this webfill was built without MongoDB: write sqlite:FILE",
            )),
            _ => Err(format!("store `{text}` is no store URI: write sqlite:FILE")),
        }
    }
}

impl fmt::Display for StoreUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUri::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

/// An opened store and cache.
#[derive(Clone)]
pub struct Backends {
    pub store: Arc<dyn Store>,
    pub cache: Arc<dyn Cache>,
}

/// Opens a store, and a cache where it is another (else the store's database is the cache too).
/// What does not exist yet is created.
pub async fn open(store: &StoreUri, cache: Option<&StoreUri>) -> Result<Backends, StoreError> {
    let opened = open_one(store, OpenMode::Create).await?;
    match cache.filter(|cache| *cache != store) {
        None => Ok(opened),
        Some(cache) => Ok(Backends {
            store: opened.store,
            cache: open_one(cache, OpenMode::Create).await?.cache,
        }),
    }
}

/// Opens a store that must exist, as an export does.
pub async fn open_existing(store: &StoreUri) -> Result<Arc<dyn Store>, StoreError> {
    Ok(open_one(store, OpenMode::MustExist).await?.store)
}

async fn open_one(uri: &StoreUri, mode: OpenMode) -> Result<Backends, StoreError> {
    match uri {
        StoreUri::Sqlite(path) => {
            let sqlite = Arc::new(Sqlite::open(path.clone(), mode).await?);
            Ok(Backends {
                store: sqlite.clone(),
                cache: sqlite,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sqlite_uri_names_its_file() {
        let uri: StoreUri = "sqlite:a b/webfill.db".parse().unwrap();
        assert_eq!(uri, StoreUri::Sqlite(PathBuf::from("a b/webfill.db")));
        assert_eq!(uri.to_string(), "sqlite:a b/webfill.db");
    }

    #[test]
    fn other_uris_are_refused_with_the_form_to_write() {
        for text in [
            "sqlite:",
            "sqlite::memory:",
            "webfill.db",
            "postgres://x",
            "",
        ] {
            let refusal = text.parse::<StoreUri>().unwrap_err();
            assert!(refusal.contains("sqlite:FILE"), "{refusal}");
        }
    }

    #[test]
    fn a_mongodb_uri_is_refused_without_repeating_its_password() {
        let refusal = "mongodb://me:secret@db/x".parse::<StoreUri>().unwrap_err();
        assert!(
            refusal.contains("MongoDB") && !refusal.contains("secret"),
            "{refusal}"
        );
    }
}
