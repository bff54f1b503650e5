//! The content of a disk after a power loss, derived from the writes and syncs that `recorder.c` has noted. Everything
//! that was synced is there, and any part of the other data.
//!
//! Writes are cut at sectors, and each sector is lost or kept independently, whatever the order of writes. Changes of
//! names in a folder may be lost as well. They are lost only from the end, as with a journal.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;

const SECTOR: u64 = 512;
const HEAD_BYTES: usize = 48;

/// The files of a disk: the content of each file, by its path below the recorded folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Disk {
    /// Writes the files into a folder.
    pub(crate) fn write_to(&self, folder: &Path) {
        for (path, content) in &self.files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a file has a folder"))
                .expect("our own folder");
            fs::write(path, content).expect("our own folder");
        }
    }
}

#[derive(Debug)]
enum Call {
    Write { offset: u64, data: Vec<u8> },
    Truncate { length: u64 },
    Sync,
    Create,
    Unlink,
    Rename { to: PathBuf },
}

#[derive(Debug)]
struct Note {
    before: u64,
    after: u64,
    path: PathBuf,
    call: Call,
}

/// The notes about all writes and syncs of a fleet, in order.
#[derive(Debug)]
pub(crate) struct Notes {
    notes: Vec<Note>,
}

impl Notes {
    /// Reads the notes that all processes have written. Paths are made relative to the folder `recorded`.
    pub(crate) fn read(folder: &Path, recorded: &Path) -> Notes {
        let mut notes = Vec::new();
        for file in fs::read_dir(folder).expect("our own folder") {
            let path = file.expect("our own folder").path();
            if path.extension().is_some_and(|kind| kind == "notes") {
                let bytes = fs::read(&path).expect("our own file");
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    notes.push(next_note(&mut rest, recorded));
                }
            }
        }
        notes.sort_by_key(|note| note.after);
        Notes { notes }
    }

    /// The time after the last note.
    pub(crate) fn end(&self) -> u64 {
        self.notes.last().map_or(0, |note| note.after + 1)
    }

    /// The disk after a power loss at this time. `base` is the disk before the first note.
    pub(crate) fn lose_power_at(&self, base: &Disk, at: u64, rng: &mut Rng) -> Disk {
        let mut volume = Volume::new(base);
        let before = self.notes.iter().take_while(|note| note.after < at);
        before.for_each(|note| volume.apply(note));
        volume.lose_power(rng)
    }
}

fn next_note(rest: &mut &[u8], recorded: &Path) -> Note {
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at(count);
        *rest = left;
        taken
    };
    let head = take(HEAD_BYTES);
    let number = |index: usize| {
        let bytes = head[index * 8..index * 8 + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    };
    let mut path_of = |bytes: usize| {
        let path = PathBuf::from(String::from_utf8_lossy(take(bytes)).into_owned());
        path.strip_prefix(recorded)
            .map_or(path.clone(), PathBuf::from)
    };
    let path = path_of(number(3) as usize);
    let call = match number(2) {
        1 => Call::Write {
            offset: number(4),
            data: take(number(5) as usize).to_vec(),
        },
        2 => Call::Truncate { length: number(4) },
        3 => Call::Sync,
        4 => Call::Create,
        5 => Call::Unlink,
        6 => Call::Rename {
            to: path_of(number(5) as usize),
        },
        kind => panic!("there is no note of kind {kind}"),
    };
    Note {
        before: number(0),
        after: number(1),
        path,
        call,
    }
}

/// The content of a file, whatever its name is.
struct File<'a> {
    base: Vec<u8>,
    changes: Vec<&'a Note>,
    /// All writes noted before this time were synced, so they are on the disk.
    synced_to: u64,
}

/// A change of a file name. Afterwards, the name belongs to the file with this number, or to no file.
struct NameChange {
    after: u64,
    path: PathBuf,
    file: Option<usize>,
}

struct Volume<'a> {
    files: Vec<File<'a>>,
    /// For each present name, the number of its file.
    names: BTreeMap<PathBuf, usize>,
    names_before: BTreeMap<PathBuf, usize>,
    namings: Vec<NameChange>,
    /// For each folder, the time of its last sync. Name changes noted before this time are on the disk.
    folders_synced_to: BTreeMap<PathBuf, u64>,
}

impl<'a> Volume<'a> {
    fn new(base: &Disk) -> Volume<'a> {
        let file = |content: &Vec<u8>| File {
            base: content.clone(),
            changes: Vec::new(),
            synced_to: 0,
        };
        let numbered = base.files.keys().cloned().zip(0..);
        let names: BTreeMap<PathBuf, usize> = numbered.collect();
        Volume {
            files: base.files.values().map(file).collect(),
            names_before: names.clone(),
            names,
            namings: Vec::new(),
            folders_synced_to: BTreeMap::new(),
        }
    }

    fn apply(&mut self, note: &'a Note) {
        let named = self.names.get(&note.path).copied();
        match (&note.call, named) {
            (Call::Create, None) => {
                self.files.push(File {
                    base: Vec::new(),
                    changes: Vec::new(),
                    synced_to: 0,
                });
                self.set_name(note.after, &note.path, Some(self.files.len() - 1));
            }
            (Call::Unlink, Some(_)) => self.set_name(note.after, &note.path, None),
            (Call::Rename { to }, Some(file)) => {
                self.set_name(note.after, &note.path, None);
                self.set_name(note.after, to, Some(file));
            }
            (Call::Write { .. } | Call::Truncate { .. }, Some(file)) => {
                self.files[file].changes.push(note);
            }
            (Call::Sync, Some(file)) => self.files[file].synced_to = note.before,
            (Call::Sync, None) => {
                self.folders_synced_to
                    .insert(note.path.clone(), note.before);
            }
            // Nothing changes: the file exists already, or is of a kind that is not recorded, such as a socket.
            _ => {}
        }
    }

    fn set_name(&mut self, after: u64, path: &Path, file: Option<usize>) {
        match file {
            Some(file) => self.names.insert(path.to_owned(), file),
            None => self.names.remove(path),
        };
        self.namings.push(NameChange {
            after,
            path: path.to_owned(),
            file,
        });
    }

    fn lose_power(self, rng: &mut Rng) -> Disk {
        // A disk keeps none, some, most or all of the data that were not synced.
        let kept = [0.0, 0.5, 0.9, 1.0][rng.usize(..4)];
        let names = self.surviving_names(rng);
        let content =
            |(path, file): (PathBuf, usize)| (path, self.files[file].content_after_loss(kept, rng));
        Disk {
            files: names.into_iter().map(content).collect(),
        }
    }

    fn surviving_names(&self, rng: &mut Rng) -> BTreeMap<PathBuf, usize> {
        let mut by_folder: BTreeMap<&Path, Vec<&NameChange>> = BTreeMap::new();
        for naming in &self.namings {
            let folder = naming.path.parent().unwrap_or(Path::new(""));
            by_folder.entry(folder).or_default().push(naming);
        }
        let mut names = self.names_before.clone();
        for (folder, namings) in by_folder {
            let synced_to = self.folders_synced_to.get(folder).copied().unwrap_or(0);
            let synced = namings.iter().filter(|naming| naming.after < synced_to);
            let kept = rng.usize(synced.count()..=namings.len());
            for naming in &namings[..kept] {
                match naming.file {
                    Some(file) => names.insert(naming.path.clone(), file),
                    None => names.remove(&naming.path),
                };
            }
        }
        names
    }
}

impl File<'_> {
    /// The content of the file after a power loss. `kept` is the share of unsynced sectors that survive.
    fn content_after_loss(&self, kept: f64, rng: &mut Rng) -> Vec<u8> {
        let mut content = self.base.clone();
        for note in &self.changes {
            let is_synced = note.after < self.synced_to;
            let mut is_kept = || is_synced || rng.f64() < kept;
            match &note.call {
                Call::Write { offset, data } => {
                    for (offset, sector) in split_at_sectors(*offset, data) {
                        if is_kept() {
                            write_at(&mut content, offset as usize, sector);
                        }
                    }
                }
                Call::Truncate { length } if is_kept() => content.resize(*length as usize, 0),
                _ => {}
            }
        }
        content
    }
}

/// Splits a write at the boundaries of sectors.
fn split_at_sectors(mut offset: u64, mut data: &[u8]) -> Vec<(u64, &[u8])> {
    let mut parts = Vec::new();
    while !data.is_empty() {
        let room = (SECTOR - offset % SECTOR) as usize;
        let (part, left) = data.split_at(room.min(data.len()));
        parts.push((offset, part));
        offset += part.len() as u64;
        data = left;
    }
    parts
}

fn write_at(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if content.len() < offset + data.len() {
        content.resize(offset + data.len(), 0);
    }
    content[offset..offset + data.len()].copy_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(after: u64, path: &str, call: Call) -> Note {
        Note {
            before: after - 1,
            after,
            path: path.into(),
            call,
        }
    }

    fn write_call(offset: u64, data: &[u8]) -> Call {
        let data = data.to_vec();
        Call::Write { offset, data }
    }

    /// The contents of a file after 200 different power losses. A content is `None` if the file does not exist.
    fn contents_after_losses(path: &str, notes: Vec<Note>) -> Vec<Option<Vec<u8>>> {
        let notes = Notes { notes };
        let cut = |seed| {
            let mut rng = Rng::with_seed(seed);
            let disk = notes.lose_power_at(&Disk::default(), u64::MAX, &mut rng);
            disk.files.get(Path::new(path)).cloned()
        };
        let mut left: Vec<_> = (0..200).map(cut).collect();
        left.sort();
        left.dedup();
        left
    }

    #[test]
    fn synced_data_stay_and_the_rest_is_torn() {
        let mut notes = vec![
            note(2, "d/f", Call::Create),
            note(4, "d/f", write_call(0, &[1; 512])),
            note(6, "d/f", Call::Sync),
            note(8, "d", Call::Sync),
        ];
        let all = Some(vec![1; 512]);
        assert_eq!(
            contents_after_losses("d/f", notes),
            std::slice::from_ref(&all)
        );
        notes = vec![
            note(2, "d/f", Call::Create),
            note(4, "d/f", write_call(0, &[1; 512])),
            note(6, "d/f", Call::Sync),
            note(8, "d", Call::Sync),
            note(10, "d/f", write_call(256, &[2; 512])),
        ];
        let half = [[1; 256], [2; 256]].concat();
        let hole = [[1; 256], [1; 256], [2; 256]].concat();
        let whole = [[1; 256], [2; 256], [2; 256]].concat();
        let found = contents_after_losses("d/f", notes);
        assert_eq!(found, [all, Some(hole), Some(half), Some(whole)]);
    }

    #[test]
    fn a_name_needs_a_sync_of_its_folder() {
        let created = || {
            vec![
                note(2, "d/f", Call::Create),
                note(4, "d/f", write_call(0, b"x")),
                note(6, "d/f", Call::Sync),
            ]
        };
        assert_eq!(
            contents_after_losses("d/f", created()),
            [None, Some(b"x".to_vec())]
        );
        let mut removed = created();
        removed.push(note(8, "d", Call::Sync));
        removed.push(note(10, "d/f", Call::Unlink));
        assert_eq!(
            contents_after_losses("d/f", removed),
            [None, Some(b"x".to_vec())]
        );
    }
}
