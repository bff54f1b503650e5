//! Packages: zip files of XML, as the office formats of today are.

use std::io::{self, BufReader, Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::Trouble;
use crate::kind::Kind;

/// The most bytes that one part may unpack to.
const MAX_PART_BYTES: u64 = 256 << 20;

/// The most bytes of a small part that is read as a whole.
const MAX_SMALL_PART_BYTES: u64 = 1 << 20;

/// A package that is open.
pub(super) struct Package<'b> {
    archive: ZipArchive<Cursor<&'b [u8]>>,
}

impl<'b> Package<'b> {
    pub(super) fn open(bytes: &'b [u8]) -> Result<Package<'b>, Trouble> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(Trouble::broken)?;
        Ok(Package { archive })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }

    /// A part, unpacked while it is read. `None` if there is none of this name.
    pub(super) fn part(&mut self, name: &str) -> Result<Option<Part<'_>>, Trouble> {
        match self.archive.by_name(name) {
            Ok(file) => Ok(Some(BufReader::new(Bounded {
                inner: Box::new(file),
                left: MAX_PART_BYTES,
            }))),
            Err(ZipError::FileNotFound) => Ok(None),
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                Err(Trouble::Encrypted)
            }
            Err(error) => Err(Trouble::broken(error)),
        }
    }

    /// The beginning of a part as text; empty if there is none.
    pub(super) fn small_part(&mut self, name: &str) -> Result<String, Trouble> {
        let mut bytes = Vec::new();
        if let Some(part) = self.part(name)? {
            part.take(MAX_SMALL_PART_BYTES)
                .read_to_end(&mut bytes)
                .map_err(trouble)?;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The kind of document that is in a zip file.
pub(super) fn kind(bytes: &[u8]) -> Option<Kind> {
    let Ok(mut package) = Package::open(bytes) else {
        return kind_of_broken(bytes);
    };
    let kinds = [
        ("word/document.xml", Kind::Docx),
        ("word/document2.xml", Kind::Docx),
        ("xl/workbook.xml", Kind::Xlsx),
    ];
    for (part, kind) in kinds {
        if package.has(part) {
            return Some(kind);
        }
    }
    let media_type = package.small_part("mimetype").ok()?;
    kind_of_media_type(media_type.as_bytes())
}

/// Whose directory at the end is damaged: by its beginning.
fn kind_of_broken(bytes: &[u8]) -> Option<Kind> {
    let head = &bytes[..bytes.len().min(4096)];
    let has = |name: &[u8]| head.windows(name.len()).any(|window| window == name);
    if has(b"word/") {
        Some(Kind::Docx)
    } else if has(b"xl/") {
        Some(Kind::Xlsx)
    } else {
        // The first part is called `mimetype` and stored as it is.
        kind_of_media_type(head.get(38..)?)
    }
}

fn kind_of_media_type(text: &[u8]) -> Option<Kind> {
    const OPEN_DOCUMENT: &[u8] = b"application/vnd.oasis.opendocument.";
    let of = text.strip_prefix(OPEN_DOCUMENT)?;
    if of.starts_with(b"text") {
        Some(Kind::Odt)
    } else if of.starts_with(b"spreadsheet") {
        Some(Kind::Ods)
    } else {
        None
    }
}

/// A part while it is read.
pub(super) type Part<'p> = BufReader<Bounded<'p>>;

/// Reads on until it has read too much.
pub(super) struct Bounded<'p> {
    inner: Box<dyn Read + 'p>,
    left: u64,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => {
                self.left = left;
                Ok(read)
            }
            None => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }
}

/// What an error of a part means.
pub(super) fn trouble(error: io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Trouble::TooLarge(format!(
            "a part of it unpacks to more than {MAX_PART_BYTES} bytes"
        )),
        _ => Trouble::broken(error),
    }
}
