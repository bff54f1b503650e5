//! Reads WARC files strictly by the standard. Panics if a part is incomplete.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;

/// A record in an archive.
#[derive(Debug, Clone)]
pub struct WarcRecord {
    pub file: PathBuf,
    pub fields: Vec<(String, String)>,
    pub block: Vec<u8>,
}

impl WarcRecord {
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut named = self.fields.iter().filter(|(field, _)| field == name);
        named.next().map(|(_, value)| value.as_str())
    }

    pub fn kind(&self) -> &str {
        self.field("WARC-Type").expect("every record has a type")
    }

    pub fn url(&self) -> &str {
        self.field("WARC-Target-URI").unwrap_or_default()
    }

    /// The head of the HTTP message, including its empty line.
    pub fn head(&self) -> String {
        String::from_utf8_lossy(&self.block[..self.head_bytes()]).into_owned()
    }

    /// The body of the HTTP message.
    pub fn payload(&self) -> &[u8] {
        &self.block[self.head_bytes()..]
    }

    fn head_bytes(&self) -> usize {
        let end = self.block.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        4 + end.expect("an HTTP message has a head")
    }

    /// Whether the record contains an answer of a server.
    pub fn is_answer(&self) -> bool {
        matches!(self.kind(), "response" | "revisit")
    }
}

/// The files of an archive, sorted by name.
pub fn warc_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the archive's folder is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    files.sort();
    files
}

/// All records of an archive that is finished: nothing is being written to it.
pub fn read_archive(folder: &Path) -> Vec<WarcRecord> {
    let mut records = Vec::new();
    for file in warc_files(folder) {
        let name = file.to_string_lossy();
        assert!(name.ends_with(".warc.gz"), "{name} was left");
        let of_file = read_file(&file);
        assert_eq!(of_file[0].kind(), "warcinfo", "{name}");
        records.extend(of_file);
    }
    let ids = records.iter().map(|record| record.field("WARC-Record-ID"));
    assert_eq!(ids.collect::<HashSet<_>>().len(), records.len());
    records
}

fn read_file(file: &Path) -> Vec<WarcRecord> {
    let bytes = std::fs::read(file).expect("a file of the archive can be read");
    let mut rest = bytes.as_slice();
    let mut records = Vec::new();
    while !rest.is_empty() {
        let mut member = GzDecoder::new(rest);
        let mut record = Vec::new();
        member
            .read_to_end(&mut record)
            .unwrap_or_else(|error| panic!("{}: a torn record: {error}", file.display()));
        rest = member.into_inner();
        records.push(parse(file, &record));
    }
    records
}

fn parse(file: &Path, record: &[u8]) -> WarcRecord {
    let end = record.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, rest) = record.split_at(end.expect("a record has a head"));
    let head = std::str::from_utf8(head).expect("the head is text");
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some("WARC/1.1"));
    let fields: Vec<(String, String)> = lines
        .map(|line| {
            let (name, value) = line.split_once(": ").expect("a field has a value");
            (name.to_string(), value.to_string())
        })
        .collect();
    let parsed = WarcRecord {
        file: file.to_owned(),
        fields,
        block: rest[4..rest.len() - 4].to_vec(),
    };
    assert_eq!(&rest[rest.len() - 4..], b"\r\n\r\n");
    let length = parsed
        .field("Content-Length")
        .expect("a block has a length");
    assert_eq!(length, parsed.block.len().to_string());
    parsed
}
