//! `webfill backup --follow`: keeps a folder of copies that are only seconds older than the originals.
//!
//! Each pass reads the dispatcher's file before the store, and writes the store's copy first. So at any moment, each
//! task that is done in the copy of the dispatcher's file has its page in the copy of the store.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use webfill_scheduler::frontier::FILE_NAME;
use webfill_service::last_backup::note_backup;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{ExitStatus, Fault, say};
use webfill_store::{FollowedChange, FollowedFile, StoreUri};

use super::{Sources, create_private_folder, now_ms};
use crate::stdout::print;

/// The time between two passes, and the time between two checks for signals during the wait.
const PASS_EVERY: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(50);

/// How often the time of the latest copies is written to the state folder.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// Follows the files until a signal arrives. At the end, each copy is one complete file without a write-ahead log.
pub(super) fn follow(sources: &Sources, folder: &Path) -> Result<ExitStatus, Fault> {
    create_private_folder(folder)?;
    signals::install_handlers();
    let mut files = followed_files(sources, folder);
    let mut noted: Option<Instant> = None;
    loop {
        let begun = (Instant::now(), now_ms());
        copy_changes(&mut files)?;
        if noted.is_none() {
            for file in &files {
                print(file.copy_path().display())?;
            }
        }
        if noted.is_none_or(|noted| noted.elapsed() >= NOTE_EVERY) {
            noted = Some(begun.0);
            if let Err(error) = note_backup(&sources.state, begun.1) {
                let state = sources.state.display();
                say!("webfill: the time of the backup cannot be stored in {state}: {error}");
            }
        }
        if !sleep_until(begun.0 + PASS_EVERY) {
            break;
        }
    }
    // Copy the latest commits before the command ends.
    copy_changes(&mut files)?;
    for file in &files {
        file.finish().map_err(Fault::error)?;
    }
    Ok(ExitStatus::Done)
}

/// The files to follow. A pass reads them in this order.
fn followed_files(sources: &Sources, folder: &Path) -> Vec<FollowedFile> {
    let mut files = vec![FollowedFile::new(&sources.state.join(FILE_NAME), folder)];
    let stores = [
        ("store", Some(&sources.store)),
        ("cache", sources.cache.as_ref()),
    ];
    for (what, uri) in stores {
        match uri {
            Some(StoreUri::Sqlite(file)) => files.push(FollowedFile::new(file, folder)),
            Some(uri) => say!("webfill: the {what} {uri} is not copied: it has members of its own"),
            None => {}
        }
    }
    files
}

fn copy_changes(files: &mut [FollowedFile]) -> Result<(), Fault> {
    let changes: Result<Vec<FollowedChange>, _> =
        files.iter_mut().map(FollowedFile::read).collect();
    let changes = changes.map_err(Fault::error)?;
    for (file, change) in files.iter().zip(changes).rev() {
        file.write(change).map_err(Fault::error)?;
    }
    Ok(())
}

/// Sleeps until the given time. Returns false if a signal arrives before.
fn sleep_until(until: Instant) -> bool {
    while signals::received_request() == SignalRequest::Nothing {
        if Instant::now() >= until {
            return true;
        }
        // Blocking is fine: the thread has nothing else to do.
        thread::sleep(TICK);
    }
    false
}
