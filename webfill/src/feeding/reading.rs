//! Reads seeds on a thread of its own, so that a pipe to which nobody writes holds up neither the
//! seeds that it has brought already nor the end of the crawl.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use webfill_startup::Fault;

use super::position::Position;
use crate::seeds::{Seed, SeedFault, SeedReader};

/// Seeds read ahead.
const AHEAD: usize = 500;

/// An input that is silent for this long has paused.
const PAUSE: Duration = Duration::from_millis(200);

/// Seeds to be read.
pub struct Seeds {
    reader: SeedReader,
    pub start: Position,
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
    /// Nothing for now.
    Pause,
    End,
}

/// The thread.
pub struct Reading {
    seeds: Receiver<Result<Seed, SeedFault>>,
    thread: Option<JoinHandle<()>>,
}

impl Reading {
    pub fn start(seeds: Seeds) -> Result<Reading, Fault> {
        let (bring, brought) = mpsc::sync_channel(AHEAD);
        let thread = std::thread::Builder::new()
            .name("seeds".into())
            .spawn(move || {
                for seed in seeds.reader {
                    if bring.send(seed).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| Fault::error(format!("cannot start reading seeds: {error}")))?;
        Ok(Reading {
            seeds: brought,
            thread: Some(thread),
        })
    }

    pub fn next(&mut self) -> Result<Next, Fault> {
        match self.seeds.recv_timeout(PAUSE) {
            Ok(Ok(seed)) => Ok(Next::Seed(seed)),
            Ok(Err(fault)) => Ok(Next::Broken(fault)),
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
