//! Reads seeds on a thread of its own, so that a silent pipe or an unreachable server delays neither the seeds
//! already read nor the end of the crawl.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use webfill_mapping::MappingSet;
use webfill_service::Fault;

use super::documents::{DatasetSeeds, read_documents};
use super::position::{FileFromStart, Position};
use super::records::now_ms;
use crate::seeds::lines::Lines;
use crate::seeds::{ListCells, Mark, Seed, SeedFault, SeedReader};
use crate::settings::Settings;

/// The most seeds that are read in advance. For a dataset, it is one chunk of documents.
const AHEAD: usize = 500;

/// After this long without a new seed, the seeds so far are fed.
const PAUSE: Duration = Duration::from_millis(200);

/// The input that seeds are read from.
pub enum Source {
    Lines(Box<Seeds>),
    Dataset(DatasetSeeds),
}

/// An opened input of lines: a file or a pipe.
pub struct Seeds {
    reader: SeedReader,
    start: Position,
    /// The open file, if the input is a regular file.
    file: Option<File>,
}

impl Seeds {
    /// Opens the input. It is opened only once, because a pipe cannot be read twice.
    pub fn open(path: &Path) -> Result<Seeds, Fault> {
        // Checked before opening, because opening a pipe blocks until it has a writer.
        if std::fs::metadata(path).is_ok_and(|found| found.is_file())
            && let Ok(file) = File::open(path)
        {
            return Seeds::from_file(path, file);
        }
        Ok(Seeds {
            reader: SeedReader::open(path, now_ms()).map_err(Fault::usage)?,
            start: Position::start_of_pipe(),
            file: None,
        })
    }

    /// Reads a regular file that is already open; its name gives the format.
    pub fn from_file(name: &Path, file: File) -> Result<Seeds, Fault> {
        let cannot = |error| {
            let name = name.display();
            Fault::usage(format!("cannot read seeds from {name}: {error}"))
        };
        let start = Position::start_of_file(&file).map_err(cannot)?;
        let again = file.try_clone().map_err(cannot)?;
        Ok(Seeds {
            reader: SeedReader::from_file(name, file, now_ms()).map_err(Fault::usage)?,
            start,
            file: Some(again),
        })
    }

    /// Sets which cells of the input are split into lists: those of fields where mappings yield several values. Without
    /// a separator, none are split.
    pub fn set_list_cells(
        &mut self,
        mappings: &MappingSet,
        settings: &Settings,
    ) -> Result<(), Fault> {
        if let Some(separator) = settings.list_separator()? {
            let fields = mappings.list_fields().into_iter().map(str::to_owned);
            self.reader.set_lists(ListCells {
                separator,
                fields: fields.collect(),
            });
        }
        Ok(())
    }

    /// The mark (position and hash) of the input after this many lines.
    fn mark_at(file: File, line: u64) -> Option<Mark> {
        let lines = Lines::from_reader(Box::new(FileFromStart::new(file)));
        lines.ok()?.mark_at(line)
    }

    /// Whether the input's format allows records.
    pub fn may_have_records(&self) -> bool {
        self.reader.may_have_records()
    }
}

/// An item that the reading thread sends.
pub enum InputItem {
    /// Where reading begins. This is always the first item.
    Start(ReadStart),
    /// A seed, and the position and hash of the input after it.
    Seed(Seed, Mark),
    Broken(SeedFault),
    /// A chunk of documents, which are fed together.
    Chunk(Chunk),
    /// Nothing new was read for a while (`PAUSE`).
    Pause,
    End,
}

/// Where reading begins, and how much an earlier run has fed.
#[derive(Clone, Copy)]
pub struct ReadStart {
    pub position: Position,
    /// How many lines or documents are already fed.
    pub fed: u64,
    /// Whether the input is another one than an earlier run has fed, or was edited since.
    pub is_changed: bool,
}

impl ReadStart {
    /// Decides where reading begins. See [`Position::resume_position`].
    pub fn resume(
        start: Position,
        fed_lines: u64,
        mark_at: impl FnOnce(u64) -> Option<Mark>,
    ) -> ReadStart {
        let (position, fed) = start.resume_position(fed_lines, mark_at);
        ReadStart {
            position,
            fed,
            is_changed: fed == 0 && start.may_resume(fed_lines),
        }
    }
}

/// Documents of a dataset that were read together, as seeds.
pub struct Chunk {
    pub seeds: Vec<Result<Seed, SeedFault>>,
    /// The position and hash of the input after these documents.
    pub mark: Mark,
}

/// The channel from the reading thread. The thread ends after it has sent a fault.
pub(super) type ItemSender = SyncSender<Result<InputItem, Fault>>;

/// The handle of the reading thread.
pub struct ReadThread {
    brought: Receiver<Result<InputItem, Fault>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadThread {
    /// Starts the thread. `fed` is the position that an earlier run has reached.
    pub fn start(source: Source, fed: u64) -> Result<ReadThread, Fault> {
        match source {
            Source::Lines(seeds) => {
                ReadThread::spawn(AHEAD, move |bring| read_lines(*seeds, fed, &bring))
            }
            Source::Dataset(seeds) => {
                ReadThread::spawn(1, move |bring| read_documents(seeds, fed, &bring))
            }
        }
    }

    fn spawn(
        ahead: usize,
        read: impl FnOnce(ItemSender) + Send + 'static,
    ) -> Result<ReadThread, Fault> {
        let (bring, brought) = mpsc::sync_channel(ahead);
        let thread = std::thread::Builder::new()
            .name("seeds".into())
            .spawn(move || read(bring))
            .map_err(|error| Fault::error(format!("cannot start reading seeds: {error}")))?;
        Ok(ReadThread {
            brought,
            thread: Some(thread),
        })
    }

    pub fn next(&mut self) -> Result<InputItem, Fault> {
        match self.brought.recv_timeout(PAUSE) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => Ok(InputItem::Pause),
            Err(RecvTimeoutError::Disconnected) => self.join_thread(),
        }
    }

    /// Waits for the thread, which has ended at the end of the input or by a panic.
    fn join_thread(&mut self) -> Result<InputItem, Fault> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(Fault::error("reading seeds panicked")),
            _ => Ok(InputItem::End),
        }
    }
}

fn read_lines(mut seeds: Seeds, fed: u64, bring: &ItemSender) {
    let file = seeds.file.take();
    let mark_at = |line| Seeds::mark_at(file?, line);
    let start = ReadStart::resume(seeds.start, fed, mark_at);
    if bring.send(Ok(InputItem::Start(start))).is_err() {
        return;
    }
    while let Some(seed) = seeds.reader.next() {
        let next = match seed {
            Ok(seed) => InputItem::Seed(seed, seeds.reader.mark()),
            Err(fault) => InputItem::Broken(fault),
        };
        if bring.send(Ok(next)).is_err() {
            return;
        }
    }
}
