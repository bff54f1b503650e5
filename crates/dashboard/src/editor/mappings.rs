//! The folder of mappings: reading, checking, and saving, which is all or nothing.
//!
//! A file is saved only if it has no faults and causes none in the others, and only over the version that it was edited
//! from. Its previous version is kept beside it, as `shop.json.1`, `shop.json.2`, ..., and only the last few of these
//! stay. A new file is written under a hidden name, flushed to disk, and then renamed. So after a power loss either the
//! old or the new file exists. The previous version is stored before the new file appears. A lock on the folder lets
//! only one process save at a time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use webfill_mapping::{Fault, MappingSet, Source};
use webfill_service::whole_file::write_whole;

/// How many previous versions of a file are kept.
const FORMER_VERSIONS: usize = 10;

/// The largest file that is read as a mapping, in bytes.
const MOST_BYTES: usize = 4 << 20;

/// A folder with mapping files.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

/// A mapping in the list of mappings, and the file that contains it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MappingEntry {
    pub file: String,
    pub name: String,
    pub description: String,
}

/// An error in a mapping, for the user who edits it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MappingFault {
    /// The file that has the fault; `None` if it is the edited one.
    pub file: Option<String>,
    /// The path within the edited mapping, such as `fields[0].name`.
    pub path: String,
    pub message: String,
}

/// The result of checking an edited mapping together with the other files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// Faults that prevent saving.
    pub faults: Vec<MappingFault>,
    pub warnings: Vec<MappingFault>,
    /// All mapping files, including the edited one. If they cannot be loaded together, only the edited file.
    #[serde(skip)]
    pub sources: Vec<Source>,
}

/// Why a mapping was not saved. If it was not, nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum NotSaved {
    #[error("fix {} in the mapping first", fault_count_text(.0.len()))]
    Faults(Vec<MappingFault>),
    #[error("{0} has changed since you opened it; compare, then open it again")]
    Changed(String),
    #[error("{0}")]
    Name(String),
    #[error("cannot write {path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
}

fn fault_count_text(count: usize) -> String {
    match count {
        1 => "a fault".to_owned(),
        count => format!("{count} faults"),
    }
}

/// A mapping file that was just saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedFile {
    pub path: PathBuf,
    /// The file that keeps the previous version; `None` for a new file.
    pub former: Option<PathBuf>,
    pub version: String,
}

/// Which mapping is edited: the only one of its file, or one of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Edited {
    pub file: String,
    /// Its position, if the file contains a list.
    pub place: Option<usize>,
    /// The version of the file when it was opened; `None` if there was no file.
    pub version: Option<String>,
}

impl Folder {
    pub fn new(path: &Path) -> Folder {
        Folder {
            path: path.to_owned(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All mappings that can be read, in order of precedence.
    pub fn list(&self) -> Vec<MappingEntry> {
        let mut listed = Vec::new();
        for source in self.read_sources() {
            let file = file_name(&source);
            for mapping in parse_mappings(&source.text) {
                let text = |name: &str| mapping[name].as_str().unwrap_or_default().to_owned();
                listed.push(MappingEntry {
                    file: file.clone(),
                    name: text("name"),
                    description: text("description"),
                });
            }
        }
        listed
    }

    fn read_sources(&self) -> Vec<Source> {
        MappingSet::sources_of_dir(&self.path).0
    }

    /// Finds a mapping by its name. Also returns its file, position and version.
    pub fn find(&self, name: &str) -> Option<(Value, Edited)> {
        for source in self.read_sources() {
            let mappings = parse_mappings(&source.text);
            let is_list = source.text.trim_start().starts_with('[');
            let found = mappings.iter().position(|mapping| mapping["name"] == name);
            if let Some(place) = found {
                let edited = Edited {
                    file: file_name(&source),
                    place: is_list.then_some(place),
                    version: Some(hash_text(&source.text)),
                };
                return Some((mappings[place].clone(), edited));
            }
        }
        None
    }

    /// The text of a mapping's file after the edit. Other mappings in the file stay as they are.
    fn file_text_with_mapping(&self, edited: &Edited, mapping: &Value) -> String {
        let mut whole = mapping.clone();
        if let Some(place) = edited.place
            && let Ok(text) = fs::read_to_string(self.path.join(&edited.file))
        {
            let mut list = parse_mappings(&text);
            if let Some(there) = list.get_mut(place) {
                *there = mapping.clone();
                whole = list.into();
            }
        }
        format!("{whole:#}\n")
    }

    /// Checks an edited mapping together with all other files, as if it were saved.
    pub fn check(&self, edited: &Edited, mapping: &Value) -> CheckResult {
        let before = match MappingSet::from_sources(self.read_sources()) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.0,
        };
        let path = self.path.join(&edited.file);
        let own = path.display().to_string();
        let mut sources = self.read_sources();
        sources.retain(|source| source.name != own);
        sources.push(Source {
            name: own.clone(),
            text: self.file_text_with_mapping(edited, mapping),
        });
        sources.sort_by(|one, other| Path::new(&one.name).cmp(Path::new(&other.name)));
        let found = |fault: &Fault| to_mapping_fault(fault, &own, edited.place);
        let mut checked = CheckResult::default();
        match MappingSet::from_sources(sources.clone()) {
            Ok(set) => {
                let warnings = set.warnings().iter();
                checked.warnings = warnings
                    .filter(|one| one.source == own)
                    .map(found)
                    .collect();
                checked.sources = sources;
            }
            Err(errors) => {
                // Faults that other files already had are not the fault of this edit.
                let is_new = |fault: &&Fault| fault.source == own || !before.contains(fault);
                checked.faults = errors.0.iter().filter(is_new).map(found).collect();
                // The files cannot be loaded together, so trials use only the edited one.
                sources.retain(|source| source.name == own);
                checked.sources = sources;
            }
        }
        checked
    }

    /// Saves a mapping.
    ///
    /// # Errors
    ///
    /// The mapping has faults, its file was changed meanwhile or has an invalid name, or the file cannot be written.
    /// Nothing has changed in these cases.
    pub fn save(&self, edited: &Edited, mapping: &Value) -> Result<SavedFile, NotSaved> {
        check_file_name(&edited.file).map_err(NotSaved::Name)?;
        let path = self.path.join(&edited.file);
        let failed = |error| NotSaved::Io(path.clone(), error);
        fs::create_dir_all(&self.path).map_err(failed)?;
        let folder = File::open(&self.path).map_err(failed)?;
        folder.lock().map_err(failed)?;
        let there = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(failed)?),
        };
        if there.as_deref().map(hash_text) != edited.version {
            return Err(NotSaved::Changed(edited.file.clone()));
        }
        let checked = self.check(edited, mapping);
        if !checked.faults.is_empty() {
            return Err(NotSaved::Faults(checked.faults));
        }
        let text = self.file_text_with_mapping(edited, mapping);
        if text.len() > MOST_BYTES {
            return Err(NotSaved::Name(format!(
                "{} would be too large for a mapping",
                edited.file
            )));
        }
        let former = match &there {
            Some(there) if *there != text => {
                Some(save_former_version(&path, there).map_err(failed)?)
            }
            _ => None,
        };
        if let Err(error) = write_whole(&path, text.as_bytes()) {
            if let Some(former) = &former {
                // Nothing was saved, so the kept previous version would only duplicate the present one.
                let _ = fs::remove_file(former);
            }
            return Err(failed(error));
        }
        // The mapping is saved. If an old version cannot be removed, the next save tries again.
        let _ = remove_oldest_versions(&path);
        Ok(SavedFile {
            path,
            former,
            version: hash_text(&text),
        })
    }
}

/// The mappings in the text of a file; empty if it is not JSON.
fn parse_mappings(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(Value::Array(list)) => list,
        Ok(mapping @ Value::Object(_)) => vec![mapping],
        _ => Vec::new(),
    }
}

fn file_name(source: &Source) -> String {
    let name = Path::new(&source.name).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The version of a file: a hash of its content.
fn hash_text(text: &str) -> String {
    webfill_urls::page_hash(text)
}

/// Rejects file names that are ignored in a folder of mappings, and names that lead out of the folder.
fn check_file_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let stem = name.strip_suffix(".json").unwrap_or_default();
    let begins_well = stem.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins_well && stem.chars().all(is_plain) && stem.len() <= 100 && name != "schema.json" {
        true => Ok(()),
        false => Err(format!(
            "invalid file name {name:?}: use letters, digits, `.`, `_` and `-`, ending in `.json`"
        )),
    }
}

/// Converts a fault for the editor. Its path becomes relative to the edited mapping.
fn to_mapping_fault(fault: &Fault, own: &str, place: Option<usize>) -> MappingFault {
    let prefix = place.map(|place| format!("[{place}]"));
    let path = match &prefix {
        Some(prefix) => fault.path.strip_prefix(prefix.as_str()),
        None => Some(fault.path.as_str()),
    };
    let is_own = fault.source == own && path.is_some();
    let path = path
        .unwrap_or(&fault.path)
        .trim_start_matches('.')
        .to_owned();
    MappingFault {
        file: (!is_own).then(|| fault.source.clone()),
        path,
        message: fault.message.clone(),
    }
}

/// Stores the previous version of a file under the next free number, such as `shop.json.3`.
fn save_former_version(path: &Path, content: &str) -> io::Result<PathBuf> {
    let next = former_version_numbers(path)?
        .last()
        .map_or(1, |last| last + 1);
    let former = former_version_path(path, next);
    write_whole(&former, content.as_bytes())?;
    Ok(former)
}

fn remove_oldest_versions(path: &Path) -> io::Result<()> {
    let numbers = former_version_numbers(path)?;
    for number in numbers.iter().rev().skip(FORMER_VERSIONS) {
        fs::remove_file(former_version_path(path, *number))?;
    }
    Ok(())
}

fn former_version_path(path: &Path, number: u64) -> PathBuf {
    PathBuf::from(format!("{}.{number}", path.display()))
}

/// The numbers of a file's previous versions, in order.
fn former_version_numbers(path: &Path) -> io::Result<Vec<u64>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}.");
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path.parent().unwrap_or(Path::new(".")))? {
        let entry = entry?.file_name();
        let entry = entry.to_string_lossy();
        let number = entry.strip_prefix(&prefix).map(str::parse::<u64>);
        numbers.extend(number.and_then(Result::ok));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests;
