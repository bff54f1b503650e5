//! Merges neighbouring runs into one, a few slices at a time, so that no single commit waits for a
//! large merge.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Result};

use super::runs::{Entry, Run, RunWriter, damaged_error};

/// A merge in progress. Its source runs stay in use until it is finished.
#[derive(Debug)]
pub(super) struct Merge {
    sources: Vec<RunReader>,
    output: RunWriter,
    written: u64,
}

impl Merge {
    pub(super) fn begin(db: &Connection, folder: &Path, sources: &[Run]) -> Result<Merge> {
        let keys = sources.iter().map(|run| run.keys).sum();
        let last_task = sources.iter().map(|run| run.last_task).max().unwrap_or(0);
        let sources = sources.iter().cloned().map(RunReader::new).collect();
        Ok(Merge {
            sources,
            output: RunWriter::begin(db, folder, keys, last_task)?,
            written: 0,
        })
    }

    pub(super) fn slice_count(&self) -> u64 {
        self.output.slice_count()
    }

    /// The number of runs that are merged into one.
    pub(super) fn source_count(&self) -> usize {
        self.sources.len()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.written == self.output.slice_count()
    }

    /// Writes up to `most` slices (small parts) of the merged run.
    pub(super) fn advance(&mut self, most: u64) -> Result<()> {
        let mut entries = Vec::new();
        let end = self
            .output
            .slice_count()
            .min(self.written.saturating_add(most));
        while self.written < end {
            entries.clear();
            self.collect_next_slice(&mut entries)?;
            self.output.write_slice(self.written, &entries)?;
            self.written += 1;
        }
        Ok(())
    }

    /// Replaces the sources by the output. Returns the output, and the sources' files, which may be deleted after the
    /// commit.
    pub(super) fn finish(mut self, db: &Connection) -> Result<(Run, Vec<PathBuf>)> {
        debug_assert!(self.is_complete());
        for source in &mut self.sources {
            if source.peek()?.is_some() {
                return Err(source.run.mark_damaged(&damaged_error()));
            }
        }
        let output = self.output.finish(db)?;
        let sources = self.sources.iter().map(|source| source.run.delete_row(db));
        Ok((output, sources.collect::<Result<_>>()?))
    }

    /// Collects the entries of the next output slice. A URL that was fetched again has the same key
    /// in two sources; the latest task wins.
    fn collect_next_slice(&mut self, entries: &mut Vec<Entry>) -> Result<()> {
        loop {
            let mut least: Option<(Entry, usize)> = None;
            for (nth, source) in self.sources.iter_mut().enumerate() {
                if let Some(entry) = source.peek()?
                    && least.is_none_or(|(so_far, _)| entry < so_far)
                {
                    least = Some((entry, nth));
                }
            }
            let Some((entry, nth)) = least else {
                return Ok(());
            };
            if self.output.slice_of(entry.0) != self.written {
                return Ok(());
            }
            self.sources[nth].next += 1;
            match entries.last_mut() {
                Some(last) if last.0 == entry.0 => *last = entry,
                _ => entries.push(entry),
            }
        }
    }
}

/// Reads a run from its first key to its last.
#[derive(Debug)]
struct RunReader {
    run: Run,
    slices_read: u64,
    entries: Vec<Entry>,
    next: usize,
}

impl RunReader {
    fn new(run: Run) -> RunReader {
        RunReader {
            run,
            slices_read: 0,
            entries: Vec::new(),
            next: 0,
        }
    }

    fn peek(&mut self) -> Result<Option<Entry>> {
        while self.next == self.entries.len() && self.slices_read < self.run.slice_count() {
            self.entries.clear();
            self.next = 0;
            self.run.read_slice(self.slices_read, &mut self.entries)?;
            self.slices_read += 1;
        }
        Ok(self.entries.get(self.next).copied())
    }
}
