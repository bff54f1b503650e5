//! Snapshots of the dispatcher's file, which are kept in the store. A thread makes or receives a snapshot while the
//! dispatcher's loop continues.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use webfill_scheduler::frontier::{self, Applied};
use webfill_scheduler::journal::Snapshot;
use webfill_service::Fault;
use webfill_service::state::PRIVATE;
use webfill_store::StoreError;
use webfill_store::journal::JournalStore;

use crate::config::JournalSetup;
use crate::journal::GROUP;

/// How many bytes of the file are stored as one part. A document of MongoDB may have 16 MB.
const PART_BYTES: usize = 8 << 20;

/// The lowest level of compression. It makes a dispatcher's file four times smaller, in less time than the whole file
/// would take to send.
const COMPRESSION: i32 = 1;

/// How many times a command is tried while the store does not answer, and the wait between two tries.
const TRIES: usize = 120;
const RETRY: Duration = Duration::from_secs(1);

/// The names of the file's copies in the state folder while a snapshot is sent or received.
const SENT: &str = "dispatcher.db.sent";
const RECEIVED: &str = "dispatcher.db.received";

/// The end of the thread's work.
pub(crate) enum SnapshotEnd {
    /// A snapshot is in the store; `None` if the store had a later one already.
    Made(Option<Snapshot>),
    /// A snapshot was received into this file. It contains the journal up to this record.
    Received(PathBuf, Applied),
    /// A later snapshot has replaced the one that was being received.
    Superseded,
}

/// The handle of the thread that makes or receives a snapshot. If it is dropped, the thread continues, but nobody
/// learns its result.
pub(crate) struct SnapshotThread {
    end: Receiver<Result<SnapshotEnd, Fault>>,
    moved_bytes: Arc<AtomicU64>,
}

impl SnapshotThread {
    /// Makes a snapshot of the file in a state folder.
    pub(crate) fn start_making(
        setup: &JournalSetup,
        state: &Path,
    ) -> Result<SnapshotThread, Fault> {
        let (maker, state) = (setup.instance, state.to_owned());
        SnapshotThread::start(setup, async move |store, moved| {
            make(&store, &state, maker, &moved).await
        })
    }

    /// Receives a snapshot into a file in a state folder.
    pub(crate) fn start_receiving(
        setup: &JournalSetup,
        state: &Path,
        snapshot: Snapshot,
    ) -> Result<SnapshotThread, Fault> {
        let file = state.join(RECEIVED);
        SnapshotThread::start(setup, async move |store, moved| {
            receive(&store, &file, snapshot, &moved).await
        })
    }

    fn start<W>(
        setup: &JournalSetup,
        work: impl FnOnce(JournalStore, Arc<AtomicU64>) -> W + Send + 'static,
    ) -> Result<SnapshotThread, Fault>
    where
        W: Future<Output = Result<SnapshotEnd, Fault>>,
    {
        let fault = |error| Fault::error(format!("cannot start the snapshot's thread: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(fault)?;
        let (sender, end) = channel();
        let (uri, moved_bytes) = (setup.store.clone(), Arc::<AtomicU64>::default());
        let moved = Arc::clone(&moved_bytes);
        std::thread::Builder::new()
            .name("snapshot".into())
            .spawn(move || {
                let end = runtime.block_on(async {
                    let store = JournalStore::connect(&uri, GROUP).await;
                    work(store.map_err(store_fault)?, moved).await
                });
                // An error means that nobody waits for the result any more.
                let _ = sender.send(end);
            })
            .map_err(fault)?;
        Ok(SnapshotThread { end, moved_bytes })
    }

    /// The result of the thread's work, once it has ended.
    pub(crate) fn take_end(&self) -> Option<Result<SnapshotEnd, Fault>> {
        match self.end.try_recv() {
            Ok(end) => Some(end),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err(Fault::error("the snapshot's thread has stopped")))
            }
        }
    }

    /// How many bytes of the file were sent or received so far.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.moved_bytes.load(Ordering::Relaxed)
    }
}

async fn make(
    store: &JournalStore,
    state: &Path,
    maker: u64,
    moved: &AtomicU64,
) -> Result<SnapshotEnd, Fault> {
    let copy = state.join(SENT);
    let applied = frontier::make_snapshot(state, &copy).map_err(Fault::error)?;
    let sent = send(store, &copy, (applied, maker), moved).await;
    // An error is harmless: a copy that is left is removed before the next one is made.
    let _ = std::fs::remove_file(&copy);
    sent
}

async fn send(
    store: &JournalStore,
    copy: &Path,
    (applied, maker): (Applied, u64),
    moved: &AtomicU64,
) -> Result<SnapshotEnd, Fault> {
    let newest = retry(|| store.newest_snapshot()).await?;
    if applied.number == 0 || newest.is_some_and(|newest| newest.number >= applied.number) {
        return Ok(SnapshotEnd::Made(None));
    }
    let mut file = File::open(copy).map_err(|error| file_fault(copy, &error))?;
    let (mut parts, mut bytes) = (0, 0);
    loop {
        let mut piece = Vec::with_capacity(PART_BYTES);
        let read = (&mut file).take(PART_BYTES as u64).read_to_end(&mut piece);
        let read = read.map_err(|error| file_fault(copy, &error))?;
        if read == 0 {
            break;
        }
        let packed = zstd::encode_all(&piece[..], COMPRESSION);
        let packed = packed.map_err(|error| file_fault(copy, &error))?;
        let id = (applied.number, maker);
        retry(|| store.put_snapshot_part(id, parts, packed.clone())).await?;
        parts += 1;
        bytes += read as u64;
        moved.store(bytes, Ordering::Relaxed);
    }
    let snapshot = Snapshot {
        number: applied.number,
        epoch: applied.epoch,
        maker,
        parts,
        bytes,
    };
    let is_newest = retry(|| store.finish_snapshot(snapshot)).await?;
    Ok(SnapshotEnd::Made(is_newest.then_some(snapshot)))
}

async fn receive(
    store: &JournalStore,
    path: &Path,
    snapshot: Snapshot,
    moved: &AtomicU64,
) -> Result<SnapshotEnd, Fault> {
    let fault = |error| file_fault(path, &error);
    let mut options = File::options();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE);
    let mut file = options.open(path).map_err(fault)?;
    let mut bytes = 0;
    for part in 0..snapshot.parts {
        let Some(packed) = retry(|| store.snapshot_part(snapshot, part)).await? else {
            return Ok(SnapshotEnd::Superseded);
        };
        let piece = zstd::decode_all(&packed[..]).map_err(fault)?;
        file.write_all(&piece).map_err(fault)?;
        bytes += piece.len() as u64;
        moved.store(bytes, Ordering::Relaxed);
    }
    file.sync_all().map_err(fault)?;
    let applied = frontier::read_snapshot_position(path).map_err(Fault::error)?;
    let named = Applied {
        number: snapshot.number,
        epoch: snapshot.epoch,
    };
    match applied == named && bytes == snapshot.bytes {
        true => Ok(SnapshotEnd::Received(path.to_owned(), applied)),
        false => Err(Fault::error(format!(
            "the snapshot of record {} in the store is damaged: it has {bytes} bytes of {}, as of record {}",
            snapshot.number, snapshot.bytes, applied.number
        ))),
    }
}

/// Runs a command, and repeats it while the store does not answer.
async fn retry<R>(mut command: impl AsyncFnMut() -> Result<R, StoreError>) -> Result<R, Fault> {
    for _ in 1..TRIES {
        match command().await {
            Err(error) if error.is_retry() => tokio::time::sleep(RETRY).await,
            done => return done.map_err(store_fault),
        }
    }
    command().await.map_err(store_fault)
}

fn store_fault(error: StoreError) -> Fault {
    Fault::error(format!("the snapshots of the dispatchers: {error}"))
}

fn file_fault(path: &Path, error: &std::io::Error) -> Fault {
    Fault::error(format!("a snapshot at {}: {error}", path.display()))
}
