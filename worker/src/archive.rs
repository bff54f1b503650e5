//! The archive: what was requested and answered, as it was sent, in WARC/1.1 files
//! ([`ArchiveConfig::warc`]).
//!
//! A thread writes it, so that neither compression nor the disk holds up the fetches. An exchange is on
//! the disk before its page is handed on: what the store has was archived. Exchanges that arrive while
//! others are written share one sync.
//!
//! A crash leaves at most a torn record at the end of a file, which the next worker cuts off
//! ([`recover`]). If the archive cannot be written, the process ends, and its tasks are given back.

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

/// Exchanges that wait to be written. Their payloads are part of the worker's memory budget.
const MOST_WAITING: usize = 16;

/// Whether and where everything that is fetched is archived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveConfig {
    /// The folder of WARC files; nothing is archived without it.
    pub warc: Option<PathBuf>,
    /// A file is complete at this size, in MiB.
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

/// What is said of each file, as the fields of its `warcinfo` record.
pub fn about(user_agent: &str) -> String {
    format!(
        "software: webfill/{}\r\nformat: WARC File Format 1.1\r\n\
         conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
         http-header-user-agent: {user_agent}\r\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Refuses what is no folder, before anything is opened.
pub fn check(config: &ArchiveConfig) -> Result<(), Fault> {
    match &config.warc {
        Some(folder) if folder.as_os_str().is_empty() => Err(Fault::usage(
            "archive.warc: the name of the folder is empty",
        )),
        Some(folder) if folder.exists() && !folder.is_dir() => Err(Fault::usage(format!(
            "--warc {}: this is not a folder",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Creates the folder, so that a wrong one is told before anything is fetched.
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

/// Tells of a panic of the thread, which all fetches would wait for in vain.
struct TellsPanic(mpsc::Sender<Fault>);

impl Drop for TellsPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            // Only the first fault counts.
            let _ = self
                .0
                .try_send(Fault::fatal("writing the archive panicked"));
        }
    }
}

/// An exchange to be written, and who waits for it.
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
    /// Starts the thread, if there is to be an archive. `about` is said of each file. `broken` is told if
    /// the archive cannot be written. The thread ends when the archive is dropped.
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
            let _panics = TellsPanic(broken.clone());
            recover(&folder);
            if let Err(error) = write_all(writer, waiting) {
                // Only the first fault counts.
                let _ = broken.try_send(fault(&folder, &error));
            }
        };
        let thread = thread::Builder::new()
            .name("archive".into())
            .spawn(write)
            .map_err(|error| Fault::error(format!("cannot start the archive thread: {error}")))?;
        Ok(Some((Archive { jobs }, thread)))
    }

    /// Waits until the exchange is on the disk. If that fails, this process is about to end, and nothing
    /// may go on as if it had not.
    pub async fn keep(&self, exchange: Box<Exchange>) {
        let (written, answer) = oneshot::channel();
        let is_taken = self.jobs.send(Job { exchange, written }).await.is_ok();
        if !is_taken || answer.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Writes what comes until nobody can send any more, and completes the file.
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
            // Who was called off meanwhile does not wait.
            let _ = waits.send(());
        }
    }
    writer.finish()
}

fn fault(folder: &Path, error: &std::io::Error) -> Fault {
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
