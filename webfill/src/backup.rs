//! `webfill backup`: copies of the dispatcher's file and of the store, while the fleet is running.

mod following;
mod rotation;

use std::fs::{DirBuilder, Permissions};
use std::num::NonZeroUsize;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use webfill_scheduler::frontier::{FILE_NAME, Frontier};
use webfill_service::last_backup::note_backup;
use webfill_service::state::why_not_folder;
use webfill_service::{ExitStatus, Fault};
use webfill_store::StoreUri;

use self::rotation::Rotation;
use crate::settings::Settings;
use crate::stdout::print;

#[derive(Debug, Args)]
pub struct BackupOptions {
    /// Folder for the copies; it is created, and must be empty without --keep or --follow
    pub folder: PathBuf,
    /// Put each backup into its own folder in FOLDER, named after its time, and keep the last N
    #[arg(long, value_name = "N")]
    pub keep: Option<NonZeroUsize>,
    /// Also keep the first backup of each of the last N days
    #[arg(long, value_name = "N", requires = "keep", default_value_t = 0)]
    pub keep_days: usize,
    /// Keep the copies in FOLDER up to date, about once a second, until a signal arrives
    #[arg(long, conflicts_with = "keep")]
    pub follow: bool,
    /// Settings file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// State folder of the dispatcher [default: .webfill]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Store of records, pages and crawls; MongoDB is not copied [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Cache of robots.txt files and site clocks [default: the store]
    #[arg(long, value_name = "URI")]
    pub cache: Option<String>,
}

/// The files that a backup copies.
struct Sources {
    state: PathBuf,
    store: StoreUri,
    /// The cache of robots.txt files and site clocks; `None` if it is part of the store.
    cache: Option<StoreUri>,
}

pub fn run(options: BackupOptions) -> Result<ExitStatus, Fault> {
    let mut settings = Settings::load(options.config.as_deref())?;
    settings.state = options.state.unwrap_or(settings.state);
    settings.store = options.store.unwrap_or(settings.store);
    settings.cache = options.cache.or(settings.cache);
    settings.validate()?;
    let store = settings.store_uri()?;
    let sources = Sources {
        cache: settings.cache_uri()?.filter(|cache| *cache != store),
        state: settings.state,
        store,
    };
    sources.require_existing()?;
    if options.follow {
        return following::follow(&sources, &options.folder);
    }
    let begun_ms = now_ms();
    match options.keep {
        None => {
            create_backup_folder(&options.folder)?;
            sources.copy_to(&options.folder, begun_ms)?;
        }
        Some(keep) => {
            let rotation = Rotation {
                folder: &options.folder,
                keep: keep.get(),
                keep_days: options.keep_days,
            };
            rotation.make_and_rotate(begun_ms, |folder| {
                create_backup_folder(folder)?;
                sources.copy_to(folder, begun_ms)
            })?;
        }
    }
    if let Err(error) = note_backup(&sources.state, begun_ms) {
        let state = sources.state.display();
        webfill_service::say!(
            "webfill: the backup is complete, but its time cannot be stored in {state}: {error}"
        );
    }
    Ok(ExitStatus::Done)
}

impl Sources {
    /// Fails if one of the files to copy does not exist. This is checked before the first copy, because a second
    /// attempt requires an empty target folder.
    fn require_existing(&self) -> Result<(), Fault> {
        require_frontier(&self.state)?;
        for uri in std::iter::once(&self.store).chain(&self.cache) {
            require_store(uri)?;
        }
        Ok(())
    }

    /// Copies all files, the dispatcher's file before the store. So the copy of the store has the page of every task
    /// that is done in the copy of the dispatcher's file.
    fn copy_to(&self, folder: &Path, begun_ms: i64) -> Result<(), Fault> {
        let copy = Frontier::back_up(&self.state, folder, begun_ms);
        print(copy.map_err(Fault::error)?.display())?;
        back_up_store("store", &self.store, folder)?;
        if let Some(cache) = &self.cache {
            back_up_store("cache", cache, folder)?;
        }
        Ok(())
    }
}

/// Refuses a folder that has no dispatcher's file or cannot be read.
pub fn require_frontier(state: &Path) -> Result<(), Fault> {
    let frontier = state.join(FILE_NAME);
    let shown = frontier.display();
    match frontier.metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(Fault::usage(format!("{shown} is not a file"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Fault::usage(format!(
            "{shown} does not exist: name the dispatcher's state folder with --state"
        ))),
        Err(error) => Err(Fault::usage(format!("cannot read {shown}: {error}"))),
    }
}

fn require_store(uri: &StoreUri) -> Result<(), Fault> {
    match uri {
        StoreUri::Sqlite(file) if !file.is_file() => {
            Err(Fault::usage(format!("{uri}: no such file")))
        }
        _ => Ok(()),
    }
}

fn back_up_store(what: &str, store: &StoreUri, folder: &Path) -> Result<(), Fault> {
    match webfill_store::back_up(store, folder).map_err(Fault::error)? {
        Some(copy) => print(copy.display())?,
        None => webfill_service::say!(
            "webfill: the {what} {store} is not copied: back it up with mongodump after this"
        ),
    }
    Ok(())
}

/// Creates the folder for one backup. Refuses a folder that is not empty.
fn create_backup_folder(folder: &Path) -> Result<(), Fault> {
    create_private_folder(folder)?;
    let is_empty = std::fs::read_dir(folder).map(|mut entries| entries.next().is_none());
    match is_empty {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::usage(format!(
            "{} is not empty: name a folder of its own for each backup",
            folder.display()
        ))),
        Err(error) => Err(cannot_create(folder, &error)),
    }
}

fn cannot_create(folder: &Path, error: &std::io::Error) -> Fault {
    Fault::usage(format!("cannot create {}: {error}", folder.display()))
}

/// Creates a folder that only its owner may read.
fn create_private_folder(folder: &Path) -> Result<(), Fault> {
    let unwritable = |error| cannot_create(folder, &error);
    if let Some(why) = why_not_folder(folder) {
        let folder = folder.display();
        return Err(Fault::usage(format!(
            "{folder} {why}: name a folder of its own for each backup"
        )));
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(unwritable)?;
    // The folder may exist already with other permissions.
    std::fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(unwritable)
}

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    since_epoch.as_millis() as i64
}
