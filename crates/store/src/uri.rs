//! [`StoreUri`], which names a backend, and the functions that open it. A new backend is a new variant.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use crate::bodies::Bodies;
use crate::browse::Browse;
use crate::cache::Cache;
use crate::error::StoreError;
use crate::mongodb::{Mongo, MongoUri};
use crate::open_mode::{OpenMode, Uses};
use crate::sqlite::{self, Sqlite};
use crate::store::Store;

/// The address of a store or a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUri {
    /// A SQLite file: `sqlite:FILE`.
    Sqlite(PathBuf),
    /// A MongoDB database: `mongodb://...` or `mongodb+srv://...`. Shown without credentials.
    MongoDb(MongoUri),
}

impl StoreUri {
    /// The text that was parsed, with credentials. For child processes, never for logs or messages.
    pub fn text_with_credentials(&self) -> String {
        match self {
            StoreUri::Sqlite(_) => self.to_string(),
            StoreUri::MongoDb(uri) => uri.text_with_credentials().to_owned(),
        }
    }
}

/// The valid forms, for error messages.
const FORMS: &str = "write sqlite:FILE or mongodb://HOST/DATABASE";

impl FromStr for StoreUri {
    type Err = String;

    /// Parses the text. Nothing is opened.
    fn from_str(text: &str) -> Result<StoreUri, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
        match scheme {
            "sqlite" if rest.is_empty() || rest == ":memory:" => Err(format!(
                "store `{text}` names no file that processes could share: write sqlite:FILE"
            )),
            "sqlite" => Ok(StoreUri::Sqlite(PathBuf::from(rest))),
            "mongodb" | "mongodb+srv" => MongoUri::parse(text).map(StoreUri::MongoDb),
            // The text may contain a password.
            _ => match text.contains('@') {
                true => Err(format!("a store has no scheme `{scheme}`: {FORMS}")),
                false => Err(format!("store `{text}` is no store URI: {FORMS}")),
            },
        }
    }
}

impl fmt::Display for StoreUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUri::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            StoreUri::MongoDb(uri) => uri.fmt(f),
        }
    }
}

/// An opened store and cache.
#[derive(Clone)]
pub struct Backends {
    pub store: Arc<dyn Store>,
    /// The bodies of the store's pages.
    pub bodies: Arc<dyn Bodies>,
    /// The connection for browsing the store.
    pub browse: Arc<dyn Browse>,
    pub cache: Arc<dyn Cache>,
}

/// A store opened for browsing.
#[derive(Clone)]
pub struct BrowseHandles {
    pub store: Arc<dyn Store>,
    pub browse: Arc<dyn Browse>,
    /// The cache in the same database, for reading. It may be empty, because a fleet may have its cache elsewhere.
    pub cache: Arc<dyn Cache>,
}

/// Opens a store and a cache. If `cache` is `None`, the cache is in the store's own database. Creates missing
/// databases.
pub async fn open(store: &StoreUri, cache: Option<&StoreUri>) -> Result<Backends, StoreError> {
    let Some(cache) = cache.filter(|cache| *cache != store) else {
        return open_backend(store, OpenMode::Create, Uses::Both).await;
    };
    let opened = open_backend(store, OpenMode::Create, Uses::Store).await?;
    Ok(Backends {
        store: opened.store,
        bodies: opened.bodies,
        browse: opened.browse,
        cache: open_backend(cache, OpenMode::Create, Uses::Cache)
            .await?
            .cache,
    })
}

/// Opens an existing store, as exports do.
pub async fn open_existing(store: &StoreUri) -> Result<Arc<dyn Store>, StoreError> {
    let opened = open_backend(store, OpenMode::MustExist, Uses::Store).await?;
    Ok(opened.store)
}

/// Like [`open_existing`], with the bodies of its pages.
pub async fn open_existing_with_bodies(
    store: &StoreUri,
) -> Result<(Arc<dyn Store>, Arc<dyn Bodies>), StoreError> {
    let opened = open_backend(store, OpenMode::MustExist, Uses::Store).await?;
    Ok((opened.store, opened.bodies))
}

/// Opens an existing store for browsing.
pub async fn open_to_browse(store: &StoreUri) -> Result<BrowseHandles, StoreError> {
    let opened = open_backend(store, OpenMode::MustExist, Uses::Store).await?;
    Ok(BrowseHandles {
        store: opened.store,
        browse: opened.browse,
        cache: opened.cache,
    })
}

/// Copies a store's file into a folder while others write to it. Returns the path of the copy; `None` for a store
/// whose server has its own means of backup.
pub fn back_up(store: &StoreUri, into: &Path) -> Result<Option<PathBuf>, StoreError> {
    match store {
        StoreUri::Sqlite(path) => sqlite::backup::back_up(path, into).map(Some),
        StoreUri::MongoDb(_) => Ok(None),
    }
}

async fn open_backend(uri: &StoreUri, mode: OpenMode, uses: Uses) -> Result<Backends, StoreError> {
    match uri {
        StoreUri::Sqlite(path) => {
            let sqlite = Arc::new(Sqlite::open(path.clone(), mode).await?);
            Ok(Backends {
                store: sqlite.clone(),
                bodies: sqlite.clone(),
                browse: sqlite.clone(),
                cache: sqlite,
            })
        }
        StoreUri::MongoDb(uri) => {
            let mongo = Arc::new(Mongo::open(uri, mode, uses).await?);
            Ok(Backends {
                store: mongo.clone(),
                bodies: mongo.clone(),
                browse: mongo.clone(),
                cache: mongo,
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
    fn a_mistyped_scheme_shows_no_password() {
        for text in [
            "mongo://me:secret@db/x",
            "me:secret@db/x",
            "mongodb//me:secret@db/x",
        ] {
            let refusal = text.parse::<StoreUri>().unwrap_err();
            assert!(refusal.contains("mongodb://HOST"), "{refusal}");
            assert!(!refusal.contains("secret"), "{refusal}");
        }
    }

    #[test]
    fn a_mongodb_uri_is_shown_without_its_password_and_handed_on_with_it() {
        let text = "mongodb://me:secret@db/x?tls=true";
        let uri: StoreUri = text.parse().unwrap();
        assert_eq!(uri.to_string(), "mongodb://db/x");
        assert!(!format!("{uri:?}").contains("secret"));
        assert_eq!(uri.text_with_credentials(), text);
    }
}
