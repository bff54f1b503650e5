//! The archive: requests and answers as they were sent, in WARC/1.1 files ([`ArchiveConfig::warc`]).
//!
//! A thread of its own writes it, so neither compression nor the disk delays fetches. An exchange is on disk before
//! its page is passed on, so every stored page has been archived. Exchanges that arrive during a write share one
//! sync.
//!
//! A crash leaves at most one torn record at the end of a file. The next worker cuts it off ([`recover`]). If the
//! archive cannot be written, the process ends, and its tasks are given back.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use webfill_service::Fault;

mod exchange;
mod file;
mod originals;
mod reading;
mod record;
mod recovery;
mod writer;

pub use exchange::{Exchange, SentRequest, Truncated};
pub use reading::{ArchivedAnswer, ArchivedBody, WarcReader, warc_files};
pub use recovery::recover;

use writer::Writer;

/// How many exchanges may wait to be written. Their payloads are part of the worker's memory budget.
const MOST_WAITING: usize = 16;

/// Whether fetches are archived, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveConfig {
    /// The folder of WARC files; nothing is archived without it.
    pub warc: Option<PathBuf>,
    /// A file is complete at this size in MiB, and the next one begins.
    pub warc_mib: u64,
}

impl Default for ArchiveConfig {
    fn default() -> Self {
        ArchiveConfig {
            warc: None,
            warc_mib: 1_024,
        }
    }
}

/// The fields of each file's `warcinfo` record.
pub fn warcinfo_fields(user_agent: &str) -> String {
    format!(
        "software: webfill/{}\r\nformat: WARC File Format 1.1\r\n\
         conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
         http-header-user-agent: {user_agent}\r\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Refuses a path that is not a folder, before anything is opened.
pub fn check(config: &ArchiveConfig) -> Result<(), Fault> {
    match &config.warc {
        Some(folder) if folder.as_os_str().is_empty() => Err(Fault::usage(
            "archive.warc: the name of the folder is empty",
        )),
        Some(folder) if folder.exists() && !folder.is_dir() => Err(Fault::usage(format!(
            "--warc {}: not a folder",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Creates the folder, so a wrong path is reported before anything is fetched.
pub fn prepare(config: &ArchiveConfig) -> Result<(), Fault> {
    let Some(folder) = &config.warc else {
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        Fault::usage(format!(
            "--warc {}: cannot create this folder: {error}",
            folder.display()
        ))
    })
}

/// Reports a panic of the thread that writes the archive. Without this report, all fetches would wait forever.
struct PanicReporter(mpsc::Sender<Fault>);

impl Drop for PanicReporter {
    fn drop(&mut self) {
        if thread::panicking() {
            // If the channel is full, an earlier fault is already waiting. Only the first one is reported.
            let _ = self
                .0
                .try_send(Fault::fatal("writing the archive panicked"));
        }
    }
}

/// An exchange to be written, and the sender that wakes its waiting fetch.
struct Job {
    exchange: Box<Exchange>,
    written: oneshot::Sender<()>,
}

/// The archive of this process.
#[derive(Debug)]
pub struct Archive {
    jobs: mpsc::Sender<Job>,
}

impl Archive {
    /// Starts the thread that writes the archive, if archiving is configured. `about` goes into each file's `warcinfo`
    /// record. `broken` receives the fault if the archive cannot be written. The thread ends when the archive is
    /// dropped.
    pub fn start(
        config: &ArchiveConfig,
        about: String,
        broken: mpsc::Sender<Fault>,
    ) -> Result<Option<(Archive, JoinHandle<()>)>, Fault> {
        let Some(folder) = config.warc.clone() else {
            return Ok(None);
        };
        let (jobs, waiting) = mpsc::channel(MOST_WAITING);
        let writer = Writer::new(folder.clone(), config.warc_mib << 20, about);
        let write = move || {
            let _panics = PanicReporter(broken.clone());
            recover(&folder);
            if let Err(error) = write_all(writer, waiting) {
                // If the channel is full, an earlier fault is already waiting. Only the first one is reported.
                let _ = broken.try_send(write_fault(&folder, &error));
            }
        };
        let thread = thread::Builder::new()
            .name("archive".into())
            .spawn(write)
            .map_err(|error| Fault::error(format!("cannot start the archive thread: {error}")))?;
        Ok(Some((Archive { jobs }, thread)))
    }

    /// Waits until the exchange is on the disk. If that fails, this process is about to end, so the call never
    /// returns.
    pub async fn write_exchange(&self, exchange: Box<Exchange>) {
        let (written, answer) = oneshot::channel();
        let is_taken = self.jobs.send(Job { exchange, written }).await.is_ok();
        if !is_taken || answer.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Writes exchanges until all senders are gone, then completes the file.
fn write_all(mut writer: Writer, mut waiting: mpsc::Receiver<Job>) -> std::io::Result<()> {
    while let Some(job) = waiting.blocking_recv() {
        let mut written = Vec::new();
        let mut next = Some(job);
        while let Some(Job {
            exchange,
            written: waits,
        }) = next
        {
            writer.write(*exchange)?;
            written.push(waits);
            next = waiting.try_recv().ok();
        }
        writer.sync()?;
        for waits in written {
            // Sending fails if the fetch was cancelled and no longer waits.
            let _ = waits.send(());
        }
    }
    writer.finish()
}

fn write_fault(folder: &Path, error: &std::io::Error) -> Fault {
    let folder = folder.display();
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            Fault::fatal(format!(
                "no space left for the archive in {folder}: free some and run the same command again"
            ))
        }
        _ => Fault::fatal(format!(
            "cannot write the archive in {folder}: {error}; see to it and run the same command again"
        )),
    }
}
