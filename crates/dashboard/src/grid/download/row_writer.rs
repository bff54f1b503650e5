//! Shared by the writers of all formats: their trait, the pieces of the answer, and unique names of columns.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use hyper::body::Bytes;
use tokio::sync::mpsc::Sender;
use webfill_table::Cell;

use crate::grid::Column;

/// The size of one piece of the answer, in bytes.
const PIECE_BYTES: usize = 64 << 10;

pub(super) trait RowWriter {
    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()>;
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Collects written bytes, and sends them in pieces of [`PIECE_BYTES`].
pub(super) struct ChunkWriter {
    to: Sender<Bytes>,
    kept: Vec<u8>,
}

impl ChunkWriter {
    pub(super) fn new(to: Sender<Bytes>) -> ChunkWriter {
        ChunkWriter {
            to,
            kept: Vec::with_capacity(PIECE_BYTES),
        }
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.kept.extend_from_slice(bytes);
        if self.kept.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.kept));
        let sent = self.to.blocking_send(piece);
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Different names for all columns, because readers of a file find columns by name. Of several columns with the same
/// name, the first one keeps it, and the others get a number.
pub(super) fn unique_names(columns: &[Column]) -> Vec<String> {
    let own: HashSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut names = Vec::with_capacity(columns.len());
    for column in columns {
        let number = numbers.entry(&column.name).or_insert(1);
        let mut name = column.name.clone();
        while taken.contains(&name) || (*number > 1 && own.contains(name.as_str())) {
            *number += 1;
            name = format!("{} ({number})", column.name);
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}
