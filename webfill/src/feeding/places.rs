//! Translates the number of documents read into the `_id` of the last of them. The dispatcher keeps the
//! number with the tasks that it has accepted, but reading can only go on after an `_id`.
//!
//! The file has a line per chunk, written before the chunk is fed. So after a crash the number that
//! the dispatcher knows is always in the file; later lines were not accepted, and their documents are
//! read again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use webfill_startup::Fault;

/// A document, and the number of documents read up to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub read: u64,
    /// The document's `_id`, as extended JSON.
    pub id: String,
}

/// The list, in a file of the state folder.
pub struct Places {
    path: PathBuf,
    file: File,
}

impl Places {
    /// Opens the list of an input of which `fed` documents are fed. Also returns the place after
    /// which to go on; if it is not known, the input is read from its beginning.
    pub fn open(path: &Path, fed: u64) -> Result<(Places, Option<Place>), Fault> {
        let cannot = |error| cannot_keep(path, &error);
        let place = find(path, fed).map_err(cannot)?;
        let mut places = Places {
            file: File::create(path).map_err(cannot)?,
            path: path.to_owned(),
        };
        if let Some(place) = &place {
            places.note(place)?;
        }
        Ok((places, place))
    }

    /// Notes a place, before the documents up to it are fed.
    pub fn note(&mut self, place: &Place) -> Result<(), Fault> {
        let line = json!({"read": place.read, "id": place.id});
        writeln!(self.file, "{line}")
            // On the disk before the dispatcher's number, which is then found here.
            .and_then(|()| self.file.sync_data())
            .map_err(|error| cannot_keep(&self.path, &error))
    }
}

/// The last place at which `fed` documents were read.
fn find(path: &Path, fed: u64) -> io::Result<Option<Place>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut found = None;
    for line in BufReader::new(file).split(b'\n') {
        // A line that a crash has cut off belongs to a chunk that was not fed.
        let line: Value = serde_json::from_slice(&line?).unwrap_or_default();
        if let (Some(read), Some(id)) = (line["read"].as_u64(), line["id"].as_str())
            && read == fed
        {
            let id = id.to_owned();
            found = Some(Place { read, id });
        }
    }
    Ok(found)
}

fn cannot_keep(path: &Path, error: &io::Error) -> Fault {
    let path = path.display();
    Fault::fatal(format!(
        "cannot keep how far the records are read in {path}: {error}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(read: u64, id: &str) -> Place {
        Place {
            read,
            id: id.to_owned(),
        }
    }

    #[test]
    fn reading_goes_on_behind_what_was_fed_whatever_was_noted_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("places");
        let (mut places, none) = Places::open(&path, 500).unwrap();
        assert_eq!(none, None);
        for (read, id) in [(500, "a"), (1_000, "b"), (1_400, "c")] {
            places.note(&place(read, id)).unwrap();
        }
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"read\": 1900, \"i").unwrap();
        let (mut places, found) = Places::open(&path, 1_000).unwrap();
        assert_eq!(found, Some(place(1_000, "b")));
        places.note(&place(1_300, "d")).unwrap();
        let (_, found) = Places::open(&path, 1_300).unwrap();
        assert_eq!(found, Some(place(1_300, "d")));
        let (_, gone) = Places::open(&path, 1_400).unwrap();
        assert_eq!(gone, None, "what was read again is noted anew");
    }
}
