//! Opens packages: zip files of XML parts, which are the form of today's office documents.

use std::io::{self, BufReader, Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::Trouble;
use super::xml::{self, Token};
use crate::kind::Kind;

/// The size limit of one part after unpacking, in bytes.
const MAX_PART_BYTES: u64 = 256 << 20;

/// The size limit of a small part, which is read as a whole, in bytes.
const MAX_SMALL_PART_BYTES: u64 = 1 << 20;

/// The usual names of the part with the text of a DOCX, for packages that do not name it.
const TEXTS: [&str; 2] = ["word/document.xml", "word/document2.xml"];

/// How many relations of a part are read.
const MAX_RELATIONS: usize = 10_000;

/// A relation of a part to another part, which it refers to.
pub(super) struct Relation {
    /// The last segment of the URI of the relation's type. The other segments differ between the transitional and the
    /// strict variant of the format.
    pub(super) kind: String,
    /// The name of the part that the relation refers to.
    pub(super) target: String,
}

/// Returns the name of the part that a relation refers to. A target without a leading slash is relative to `folder`.
fn name_of_target(folder: &str, target: &str) -> String {
    let path = match target.strip_prefix('/') {
        Some(absolute) => absolute.to_owned(),
        None => format!("{folder}{target}"),
    };
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            _ => steps.push(step),
        }
    }
    steps.join("/")
}

/// An open package.
pub(super) struct Package<'b> {
    archive: ZipArchive<Cursor<&'b [u8]>>,
}

impl<'b> Package<'b> {
    pub(super) fn open(bytes: &'b [u8]) -> Result<Package<'b>, Trouble> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(Trouble::broken)?;
        Ok(Package { archive })
    }

    pub(super) fn has_part(&self, name: &str) -> bool {
        self.index_of(name).is_some()
    }

    /// The index of a part. The case of names does not matter, and some programs write `\` for `/`.
    fn index_of(&self, name: &str) -> Option<usize> {
        let is_same = |known: &str| {
            known.len() == name.len()
                && known.bytes().zip(name.bytes()).all(|(known, byte)| {
                    known.eq_ignore_ascii_case(&byte) || (known, byte) == (b'\\', b'/')
                })
        };
        let exactly = self.archive.index_for_name(name);
        exactly.or_else(|| {
            let mut names = self.archive.file_names();
            names.position(|name| name.is_ok_and(|name| is_same(&name)))
        })
    }

    /// Opens a part, which is unpacked while it is read. `None` if no part has this name.
    pub(super) fn open_part(&mut self, name: &str) -> Result<Option<Part<'_>>, Trouble> {
        let Some(index) = self.index_of(name) else {
            return Ok(None);
        };
        match self.archive.by_index(index) {
            Ok(file) => Ok(Some(BufReader::new(Bounded {
                inner: Box::new(file),
                left: MAX_PART_BYTES,
            }))),
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                Err(Trouble::Encrypted)
            }
            Err(error) => Err(Trouble::broken(error)),
        }
    }

    /// The relations of a part; those of the package itself if the name is empty.
    pub(super) fn relations(&mut self, of: &str) -> Result<Vec<Relation>, Trouble> {
        let (folder, file) = of.rsplit_once('/').unwrap_or(("", of));
        let folder = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let mut relations = Vec::new();
        let Some(part) = self.open_part(&format!("{folder}_rels/{file}.rels"))? else {
            return Ok(relations);
        };
        xml::for_each_token(part, |token| {
            if let Token::Begin("Relationship", attributes) = token
                && relations.len() < MAX_RELATIONS
                && attributes.get("TargetMode").as_deref() != Some("External")
            {
                let kind = attributes.get("Type").unwrap_or_default();
                let kind = kind.rsplit('/').next().unwrap_or_default();
                let target = attributes.get("Target").unwrap_or_default();
                relations.push(Relation {
                    kind: kind.to_owned(),
                    target: name_of_target(&folder, &target),
                });
            }
            Ok(())
        })?;
        Ok(relations)
    }

    /// Finds the part with the text of a DOCX, by the relations of the package or by its usual name.
    pub(super) fn text_part(&self, relations: &[Relation]) -> Option<String> {
        let named = relations
            .iter()
            .find(|relation| relation.kind == "officeDocument" && self.has_part(&relation.target));
        match named {
            Some(relation) => Some(relation.target.clone()),
            None => {
                let usual = TEXTS.into_iter().find(|name| self.has_part(name));
                usual.map(str::to_owned)
            }
        }
    }

    /// The beginning of a part as text; empty if there is no such part.
    pub(super) fn read_small_part(&mut self, name: &str) -> Result<String, Trouble> {
        let mut bytes = Vec::new();
        if let Some(part) = self.open_part(name)? {
            part.take(MAX_SMALL_PART_BYTES)
                .read_to_end(&mut bytes)
                .map_err(to_trouble)?;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The kind of document in a zip file.
pub(super) fn detect_kind(bytes: &[u8]) -> Option<Kind> {
    let Ok(mut package) = Package::open(bytes) else {
        return detect_kind_of_broken(bytes);
    };
    let kinds = [
        ("word/document.xml", Kind::Docx),
        ("word/document2.xml", Kind::Docx),
        ("xl/workbook.xml", Kind::Xlsx),
    ];
    for (part, kind) in kinds {
        if package.has_part(part) {
            return Some(kind);
        }
    }
    let media_type = package.read_small_part("mimetype").ok()?;
    kind_of_media_type(media_type.as_bytes()).or_else(|| {
        // A DOCX is recognised by its relations, because the part with its text may have any name.
        let relations = package.relations("").ok()?;
        package.text_part(&relations)?;
        let types = package.read_small_part("[Content_Types].xml").ok()?;
        types.contains("wordprocessingml").then_some(Kind::Docx)
    })
}

/// Recognises the kind of a zip file by its beginning. This is for files whose directory, at the end, is damaged.
fn detect_kind_of_broken(bytes: &[u8]) -> Option<Kind> {
    let head = &bytes[..bytes.len().min(4096)];
    let has = |name: &[u8]| head.windows(name.len()).any(|window| window == name);
    if has(b"word/") {
        Some(Kind::Docx)
    } else if has(b"xl/") {
        Some(Kind::Xlsx)
    } else {
        // In OpenDocument packages, the first file is called `mimetype` and is not compressed, so its content begins
        // here.
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

/// A part that is unpacked while it is read.
pub(super) type Part<'p> = BufReader<Bounded<'p>>;

/// A reader that fails when a limit is exceeded.
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

/// Converts an error while reading a part to the reason why the document yields no text.
pub(super) fn to_trouble(error: io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Trouble::TooLarge(format!(
            "a part of it unpacks to more than {MAX_PART_BYTES} bytes"
        )),
        _ => Trouble::broken(error),
    }
}
