//! The sources on the dispatcher's machine that watches may read: files of seeds below a folder, and listed
//! databases. Watches come from other machines but are read with the dispatcher's rights, so only what the settings
//! name is allowed. A source is checked when its watch is added, and again by the process that reads it in a run
//! (`webfill watch feed`).

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf, absolute};

use serde::{Deserialize, Serialize};
use webfill_api::{Refusal, Watch};
use webfill_store::{DatabasePlace, MongoUri, StoreUri};

/// The word in `records` that stands for the store's own database.
const STORE: &str = "store";

const OUTSIDE: &str =
    "expected a file below the folder `watches.seeds_dir` of the dispatcher's settings";

const NO_FOLDER: &str = "this dispatcher reads no files of seeds: set `watches.seeds_dir` in its settings to their folder";

const NO_DATABASE: &str = "this dispatcher reads no records of this database: add mongodb://HOST[:PORT]/DATABASE to `watches.records` in its settings";

/// Which sources on this machine the watches of a fleet may read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WatchesConfig {
    /// The folder with files of seeds. Without it, no files are read.
    pub seeds_dir: Option<PathBuf>,
    /// Databases that may be the source of records: `mongodb://HOST[:PORT]/DATABASE`, or `store`.
    pub records: Vec<String>,
}

impl WatchesConfig {
    /// Checks the settings. The error names the key, but repeats no address, which may contain a password.
    pub fn check(&self) -> Result<(), String> {
        for (index, allowed) in self.records.iter().enumerate() {
            let is_bare = |uri: MongoUri| uri.to_string() == *allowed;
            if allowed != STORE && !parse_mongodb(allowed).is_some_and(is_bare) {
                return Err(format!(
                    "watches.records[{index}]: expected `store` or mongodb://HOST[:PORT]/DATABASE, without user, password and options"
                ));
            }
        }
        match &self.seeds_dir {
            Some(folder) if folder.as_os_str().is_empty() => {
                Err("watches.seeds_dir = \"\": expected a folder, or leave it out".into())
            }
            _ => Ok(()),
        }
    }
}

/// The settings, prepared for the checks of sources.
#[derive(Debug, Clone, Default)]
pub struct WatchSources {
    seeds_dir: Option<PathBuf>,
    databases: Vec<DatabasePlace>,
}

impl WatchSources {
    pub fn new(config: &WatchesConfig, store: &StoreUri) -> WatchSources {
        let place = |allowed: &String| match (allowed.as_str(), store) {
            (STORE, StoreUri::MongoDb(uri)) => uri.database_place(),
            (STORE, StoreUri::Sqlite(_)) => None,
            (allowed, _) => parse_mongodb(allowed)?.database_place(),
        };
        WatchSources {
            seeds_dir: config.seeds_dir.clone(),
            databases: config.records.iter().filter_map(place).collect(),
        }
    }

    /// Checks the sources of a watch. `path` is the position of the watch in its message.
    pub fn check(&self, watch: &Watch, path: &str) -> Result<(), Refusal> {
        if let Some(seeds) = &watch.seeds {
            self.check_seeds(seeds)
                .map_err(|why| Refusal::new(&format!("{path}.seeds"), why))?;
        }
        if let Some(records) = &watch.records {
            self.check_records(&records.uri)
                .map_err(|why| Refusal::new(&format!("{path}.records.uri"), why))?;
        }
        Ok(())
    }

    fn check_records(&self, uri: &str) -> Result<(), String> {
        let uri = parse_mongodb(uri).ok_or(NO_DATABASE)?;
        let is_allowed = uri
            .database_place()
            .is_some_and(|place| self.databases.contains(&place));
        if !is_allowed {
            return Err(NO_DATABASE.into());
        }
        match uri.option_beyond_connecting() {
            None => Ok(()),
            Some(option) => Err(format!("the option `{option}` is not for watches")),
        }
    }

    /// Checks a file of seeds. One that does not exist yet is accepted: it is checked again when a run reads it.
    /// Whether a file outside the folder exists is not revealed.
    fn check_seeds(&self, seeds: &str) -> Result<(), String> {
        let (folder, path) = self.folder_and_path(seeds)?;
        match path.canonicalize() {
            Ok(found) if !found.starts_with(&folder) => Err(OUTSIDE.into()),
            Ok(found) if !found.is_file() => Err("expected a regular file".into()),
            _ => Ok(()),
        }
    }

    /// The folder of seeds, with symbolic links resolved, and the path of the named file below it.
    fn folder_and_path(&self, seeds: &str) -> Result<(PathBuf, PathBuf), String> {
        let seeds_dir = self.seeds_dir.as_deref().ok_or(NO_FOLDER)?;
        let cannot = |error| format!("watches.seeds_dir = \"{}\": {error}", seeds_dir.display());
        let folder = seeds_dir.canonicalize().map_err(cannot)?;
        let path = folder.join(seeds);
        let path = match path.strip_prefix(absolute(seeds_dir).map_err(cannot)?) {
            Ok(below) => folder.join(below),
            Err(_) => path,
        };
        let goes_up = Path::new(seeds)
            .components()
            .any(|step| step == Component::ParentDir);
        match path.starts_with(&folder) && !goes_up {
            true => Ok((folder, path)),
            false => Err(OUTSIDE.into()),
        }
    }

    /// The path of a file of seeds.
    pub fn seeds_path(&self, seeds: &str) -> Result<PathBuf, String> {
        self.folder_and_path(seeds).map(|(_, path)| path)
    }

    /// Opens a file of seeds. The open file itself is checked, because the path may have been replaced meanwhile.
    pub fn open_seeds(&self, seeds: &str) -> Result<File, String> {
        self.check_seeds(seeds)?;
        let (folder, path) = self.folder_and_path(seeds)?;
        let opened = OpenOptions::new()
            .read(true)
            // Opening a pipe must not wait for its writer.
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path);
        let file = opened.map_err(|error| format!("cannot read seeds from {seeds}: {error}"))?;
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let found = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        match found {
            Ok(found) if is_file && found.starts_with(&folder) => Ok(file),
            _ => Err(OUTSIDE.into()),
        }
    }
}

fn parse_mongodb(uri: &str) -> Option<MongoUri> {
    match uri.parse() {
        Ok(StoreUri::MongoDb(uri)) => Some(uri),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn sources(seeds_dir: Option<&Path>, records: &[&str], store: &str) -> WatchSources {
        let config = WatchesConfig {
            seeds_dir: seeds_dir.map(Path::to_owned),
            records: records.iter().map(|&uri| uri.to_owned()).collect(),
        };
        config.check().unwrap();
        WatchSources::new(&config, &store.parse().unwrap())
    }

    #[test]
    fn seeds_are_regular_files_below_the_folder() {
        let work = tempfile::tempdir().unwrap();
        let folder = work.path().join("link");
        fs::create_dir_all(work.path().join("seeds/inner")).unwrap();
        symlink(work.path().join("seeds"), &folder).unwrap();
        fs::write(work.path().join("secret"), "password").unwrap();
        fs::write(folder.join("inner/a.txt"), "http://a.org/").unwrap();
        symlink("/dev/zero", folder.join("device")).unwrap();
        symlink("../secret", folder.join("out")).unwrap();
        let sources = sources(Some(&folder), &[], "sqlite:x");
        let inside = folder.join("inner/a.txt").display().to_string();
        for fine in ["inner/a.txt", &inside, "./inner/a.txt"] {
            assert_eq!(sources.check_seeds(fine), Ok(()), "{fine}");
            assert!(sources.open_seeds(fine).is_ok(), "{fine}");
        }
        let secret = work.path().join("secret").display().to_string();
        let up = folder.join("../secret").display().to_string();
        let elsewhere = [
            secret.as_str(),
            &up,
            "../secret",
            "out",
            "device",
            "inner",
            "/dev/zero",
            "/nowhere",
        ];
        for wrong in elsewhere {
            assert!(sources.check_seeds(wrong).is_err(), "{wrong}");
            assert!(sources.open_seeds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(sources.check_seeds("later.txt"), Ok(()));
        assert!(sources.open_seeds("later.txt").is_err());
    }

    #[test]
    fn records_are_of_an_allowed_host_and_database() {
        let allowed = [
            "mongodb://db.example/people",
            "mongodb://10.0.0.1:27018,10.0.0.2/x",
            "store",
        ];
        let sources = sources(
            None,
            &allowed,
            "mongodb://me:secret@own:9/webfill?replicaSet=r",
        );
        for fine in [
            "mongodb://db.example/people",
            "mongodb://me:word@DB.example:27017/people?authSource=admin&replicaSet=r",
            "mongodb://10.0.0.2,10.0.0.1:27018/x",
            "mongodb://own:9/webfill",
        ] {
            assert_eq!(sources.check_records(fine), Ok(()), "{fine}");
        }
        for wrong in [
            "mongodb://db.example/people2",
            "mongodb://db.example/",
            "mongodb://db.example.evil/people",
            "mongodb://db.example:27018/people",
            "mongodb://db.example@evil/people",
            "mongodb://db.example,evil/people",
            "mongodb://10.0.0.1:27018/x",
            "mongodb+srv://db.example/people",
            "mongodb://db.example/people?tls=true&tlsCAFile=/etc/shadow",
            "mongodb://db.example/people?authMechanism=MONGODB-AWS",
            "sqlite:people.db",
            "",
        ] {
            assert!(sources.check_records(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sources_that_the_settings_do_not_name_are_refused() {
        let none = sources(None, &[], "mongodb://db/people");
        assert!(
            none.check_seeds("a.txt")
                .unwrap_err()
                .contains("watches.seeds_dir")
        );
        let refused = none.check_records("mongodb://db/people").unwrap_err();
        assert!(refused.contains("watches.records"));
        for wrong in [
            "mongodb://me:secret@db/x",
            "mongodb://db",
            "sqlite:x",
            "mongodb://db/x?w=1",
        ] {
            let config = WatchesConfig {
                seeds_dir: None,
                records: vec![wrong.into()],
            };
            let why = config.check().unwrap_err();
            assert!(
                why.contains("watches.records[0]") && !why.contains("secret"),
                "{why}"
            );
        }
    }
}
