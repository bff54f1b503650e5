//! A file's connection for browsing.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tokio::sync::OnceCell;

use super::connection::Db;
use super::connection_thread::ConnectionThread;
use super::fault::{Fault, store_error, store_name};
use crate::error::StoreError;
use crate::open_mode::OpenMode;

/// A file's connection for browsing, opened when it is first needed.
pub(super) struct Browsing {
    path: PathBuf,
    thread: OnceCell<ConnectionThread>,
}

impl Browsing {
    pub(super) fn at_path(path: &Path) -> Browsing {
        Browsing {
            path: path.to_owned(),
            thread: OnceCell::new(),
        }
    }

    pub(super) async fn read<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, StoreError> {
        let start = async || {
            let path = self.path.clone();
            ConnectionThread::start(store_name(&path), move || open(&path)).await
        };
        let thread = self.thread.get_or_try_init(start).await?;
        thread.call(move |db| db.read(read)).await?
    }
}

fn open(path: &Path) -> Result<Db, StoreError> {
    let refused = |fault| store_error(&store_name(path), fault);
    let db = Db::connect(path, OpenMode::MustExist).map_err(refused)?;
    db.configure().map_err(refused)?;
    db.read(|conn| Ok(conn.execute_batch("PRAGMA query_only = ON")?))?;
    Ok(db)
}
