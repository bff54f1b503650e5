//! Groups all calls up to a [`commit`](Transactions::commit) into one transaction.

use std::path::{Path, PathBuf};

use webfill_wire::CrawlKey;

use super::changes::{Applied, note_applied_position};
use super::context::Context;
use super::crawl::Crawl;
use super::error::FrontierError;
use super::{crawl_rows, recovery};

/// Runs work on the parts of the frontier within the transaction.
#[derive(Debug)]
pub(super) struct Transactions {
    path: PathBuf,
    pub(super) cx: Context,
    in_transaction: bool,
    /// The number of changes to the database up to the last commit.
    changes: u64,
    /// Whether an error has rolled back calls whose effects are still in memory. All further calls fail then.
    closed: bool,
}

impl Transactions {
    pub(super) fn new(path: PathBuf, cx: Context) -> Transactions {
        Transactions {
            path,
            // With a journal, a transaction is open already: the changes of the opening belong to the first record.
            in_transaction: cx.recorder.is_some(),
            cx,
            changes: 0,
            closed: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the transaction, which makes all calls since the last commit durable, together. With a journal, only
    /// [`make_durable`](Transactions::make_durable) does.
    pub(super) fn commit(&mut self) -> Result<(), FrontierError> {
        if !self.in_transaction {
            return Ok(());
        }
        let before = self.changes;
        self.changes = self.run("commit", |cx| {
            crawl_rows::flush_crawls(cx)?;
            let mut changes = before;
            if cx.db.total_changes() > before {
                recovery::note_commit(&cx.db, cx.now_ms, cx.last_turn)?;
                changes = cx.db.total_changes();
            }
            if cx.recorder.is_none() {
                cx.db.prepare_cached("COMMIT")?.execute([])?;
            }
            Ok(changes)
        })?;
        if self.cx.recorder.is_none() {
            self.finish_transaction();
        }
        Ok(())
    }

    fn finish_transaction(&mut self) {
        self.in_transaction = false;
        self.cx.seen.delete_merged_files();
    }

    /// The changes since the last call, for the journal. Empty without one.
    pub(super) fn take_changes(&mut self) -> Result<Vec<u8>, FrontierError> {
        if self.cx.recorder.is_none() {
            return Ok(Vec::new());
        }
        let (changes, total) = self.run("record the changes", |cx| {
            let changes = match &mut cx.recorder {
                Some(recorder) => recorder.take_changes(&cx.db)?,
                None => Vec::new(),
            };
            Ok((changes, cx.db.total_changes()))
        })?;
        self.changes = total;
        Ok(changes)
    }

    /// Makes everything durable that was committed since the last call, with its position in the journal.
    pub(super) fn make_durable(&mut self, applied: Applied) -> Result<(), FrontierError> {
        self.changes = self.run("keep the journal's commits", |cx| {
            note_applied_position(&cx.db, applied)?;
            cx.db.prepare_cached("COMMIT")?.execute([])?;
            Ok(cx.db.total_changes())
        })?;
        self.finish_transaction();
        Ok(())
    }

    /// Runs work within the transaction. An error rolls back everything uncommitted and closes the
    /// frontier, because its memory is then ahead of the file.
    pub(super) fn run<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&mut Context) -> rusqlite::Result<T>,
    ) -> Result<T, FrontierError> {
        if self.closed {
            return Err(FrontierError::Closed {
                path: self.path.clone(),
            });
        }
        let result = self.begin().and_then(|()| work(&mut self.cx));
        result.map_err(|source| {
            self.closed = true;
            // SQLite may have rolled back on its own. Then this statement fails, which does no harm.
            self.cx.db.execute_batch("ROLLBACK").ok();
            FrontierError::database(doing, &self.path, source)
        })
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        if !self.in_transaction {
            self.cx.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            self.in_transaction = true;
        }
        Ok(())
    }

    /// A crawl, unless it is being pruned.
    pub(super) fn crawl(&mut self, key: CrawlKey) -> Result<&mut Crawl, FrontierError> {
        if !self.cx.crawls.contains_key(&key) {
            self.run("read a crawl", |cx| crawl_rows::load_crawl(cx, key))?;
        }
        let crawl = self.cx.crawls.get_mut(&key);
        let crawl = crawl.filter(|crawl| !crawl.is_pruned);
        crawl.ok_or(FrontierError::UnknownCrawl(key))
    }
}
