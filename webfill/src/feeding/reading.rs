//! Reads seeds on a thread of its own, so that a silent pipe or an unreachable server delays neither
//! the seeds that were read already nor the end of the crawl.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use webfill_startup::Fault;

use super::documents::DatasetSeeds;
use super::position::Position;
use super::records::now_ms;
use crate::seeds::{Seed, SeedFault, SeedReader};

/// The most seeds that are read ahead; of documents it is one chunk.
const AHEAD: usize = 500;

/// If nothing was read for this long, the seeds so far are fed.
const PAUSE: Duration = Duration::from_millis(200);

/// The input that seeds are read from.
pub enum Source {
    Lines(Seeds),
    Dataset(DatasetSeeds),
}

/// The lines to read.
pub struct Seeds {
    reader: SeedReader,
    start: Position,
}

impl Seeds {
    /// Opens the input, once: a pipe cannot be read twice.
    pub fn open(path: &Path) -> Result<Seeds, Fault> {
        Ok(Seeds {
            reader: SeedReader::open(path, now_ms()).map_err(Fault::usage)?,
            start: Position::start_of(path),
        })
    }

    /// Reads a regular file that is open already; its name says what it holds.
    pub fn of_file(name: &Path, file: File) -> Result<Seeds, Fault> {
        let start = Position::start_of_file(&file);
        Ok(Seeds {
            reader: SeedReader::of_file(name, file, now_ms()).map_err(Fault::usage)?,
            start,
        })
    }

    /// Whether the format has room for records.
    pub fn may_have_records(&self) -> bool {
        self.reader.may_have_records()
    }
}

/// The next item of an input.
pub enum Next {
    Seed(Seed),
    Broken(SeedFault),
    /// Documents that are fed together, with the position after them.
    Chunk(Chunk),
    /// Nothing was read for a while.
    Pause,
    End,
}

/// Documents that were read together.
pub struct Chunk {
    pub seeds: Vec<Result<Seed, SeedFault>>,
    /// Documents of the input read so far.
    pub read: u64,
}

/// The channel from the reading thread, which ends after a fault.
pub(super) type Bring = SyncSender<Result<Next, Fault>>;

/// The handle of the reading thread.
pub struct Reading {
    /// The position at which reading has begun.
    pub position: Position,
    brought: Receiver<Result<Next, Fault>>,
    thread: Option<JoinHandle<()>>,
}

impl Reading {
    /// Starts the thread; `fed` is the position that an earlier run has reached.
    pub fn start(source: Source, fed: u64) -> Result<Reading, Fault> {
        match source {
            Source::Lines(seeds) => {
                let position = seeds.start;
                Reading::on_thread(position, AHEAD, move |bring| read_lines(seeds, &bring))
            }
            Source::Dataset(seeds) => {
                let (position, read) = seeds.read_behind(fed)?;
                Reading::on_thread(position, 1, read)
            }
        }
    }

    fn on_thread(
        position: Position,
        ahead: usize,
        read: impl FnOnce(Bring) + Send + 'static,
    ) -> Result<Reading, Fault> {
        let (bring, brought) = mpsc::sync_channel(ahead);
        let thread = std::thread::Builder::new()
            .name("seeds".into())
            .spawn(move || read(bring))
            .map_err(|error| Fault::error(format!("cannot start reading seeds: {error}")))?;
        Ok(Reading {
            position,
            brought,
            thread: Some(thread),
        })
    }

    pub fn next(&mut self) -> Result<Next, Fault> {
        match self.brought.recv_timeout(PAUSE) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => Ok(Next::Pause),
            Err(RecvTimeoutError::Disconnected) => self.end(),
        }
    }

    /// The thread has ended, at the end of the input or by a panic.
    fn end(&mut self) -> Result<Next, Fault> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(Fault::error("reading seeds panicked")),
            _ => Ok(Next::End),
        }
    }
}

fn read_lines(seeds: Seeds, bring: &Bring) {
    for seed in seeds.reader {
        let next = match seed {
            Ok(seed) => Next::Seed(seed),
            Err(fault) => Next::Broken(fault),
        };
        if bring.send(Ok(next)).is_err() {
            return;
        }
    }
}
