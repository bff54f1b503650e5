//! Reads seeds on a thread of its own, so that a pipe to which nobody writes, or a server that is
//! away, holds up neither the seeds that were brought already nor the end of the crawl.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use webfill_startup::Fault;

use super::documents::DatasetSeeds;
use super::position::Position;
use crate::seeds::{Seed, SeedFault, SeedReader};

/// Seeds read ahead; of documents it is one chunk.
const AHEAD: usize = 500;

/// An input that is silent for this long has paused.
const PAUSE: Duration = Duration::from_millis(200);

/// What seeds are read from.
pub enum Source {
    Lines(Seeds),
    Dataset(DatasetSeeds),
}

/// Lines to be read.
pub struct Seeds {
    reader: SeedReader,
    start: Position,
}

impl Seeds {
    /// Opens the input, once: a pipe cannot be read twice.
    pub fn open(path: &Path) -> Result<Seeds, Fault> {
        Ok(Seeds {
            reader: SeedReader::open(path).map_err(Fault::usage)?,
            start: Position::start_of(path),
        })
    }
}

/// What an input brings.
pub enum Next {
    Seed(Seed),
    Broken(SeedFault),
    /// To be fed in one go, with the place behind it.
    Chunk(Chunk),
    /// Nothing for now.
    Pause,
    End,
}

/// Documents that were read together.
pub struct Chunk {
    pub seeds: Vec<Result<Seed, SeedFault>>,
    /// Documents of the input read so far.
    pub read: u64,
}

/// What the thread hands over; after a fault it ends.
pub(super) type Bring = SyncSender<Result<Next, Fault>>;

/// The thread.
pub struct Reading {
    /// Where in the input it is, as far as seeds were taken from here.
    pub position: Position,
    brought: Receiver<Result<Next, Fault>>,
    thread: Option<JoinHandle<()>>,
}

impl Reading {
    /// Begins; `fed` tells how far an earlier run came.
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

    /// The thread has ended: with the input, it is to be hoped.
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
