//! WARC/1.1 records: a head of named fields and a block. Each is a gzip member of its own, so that readers can begin
//! at any record, and a truncated file is readable up to its last complete record.

use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use data_encoding::BASE32;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha1::{Digest, Sha1};
use uuid::Uuid;

/// A record's globally unique name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordId(Uuid);

impl RecordId {
    pub fn random() -> RecordId {
        RecordId(Uuid::new_v4())
    }
}

impl Display for RecordId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "<{}>", self.0.urn())
    }
}

/// SHA-1 in base 32, the form that other tools compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha1Digest([u8; 20]);

impl Sha1Digest {
    pub fn from_parts(parts: &[&[u8]]) -> Sha1Digest {
        let mut digest = Sha1::new();
        for part in parts {
            digest.update(part);
        }
        Sha1Digest(digest.finalize().into())
    }
}

impl Display for Sha1Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha1:{}", BASE32.encode(&self.0))
    }
}

/// A time in WARC's format: UTC, to the millisecond.
pub fn format_date(wall_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(wall_ms).unwrap_or_default();
    format!("{moment:.3}")
}

/// A record to be written. Its block is given in parts, to avoid copying the payload.
#[derive(Debug)]
pub struct Record<'a> {
    head: String,
    block: [&'a [u8]; 2],
}

impl<'a> Record<'a> {
    pub fn new(kind: &str, id: RecordId, wall_ms: i64) -> Record<'a> {
        let head = format!("WARC/1.1\r\nWARC-Type: {kind}\r\n");
        let record = Record {
            head,
            block: [&[], &[]],
        };
        record
            .field("WARC-Record-ID", id)
            .field("WARC-Date", format_date(wall_ms))
    }

    /// Adds a named field. The value has no line ends: URLs are canonical, and all other values are made here.
    pub fn field(mut self, name: &str, value: impl Display) -> Record<'a> {
        // Writing to a string cannot fail.
        let _ = write!(self.head, "{name}: {value}\r\n");
        self
    }

    pub fn optional_field(self, name: &str, value: Option<impl Display>) -> Record<'a> {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Sets the record's block, with type, length and digest.
    pub fn block(mut self, content_type: &str, block: [&'a [u8]; 2]) -> Record<'a> {
        self.block = block;
        let length = block[0].len() + block[1].len();
        self.field("Content-Type", content_type)
            .field("WARC-Block-Digest", Sha1Digest::from_parts(&block))
            .field("Content-Length", length)
    }

    /// Writes the record as one gzip member.
    pub fn write_to(&self, out: impl Write) -> io::Result<()> {
        let mut member = GzEncoder::new(out, Compression::default());
        member.write_all(self.head.as_bytes())?;
        member.write_all(b"\r\n")?;
        for part in self.block {
            member.write_all(part)?;
        }
        member.write_all(b"\r\n\r\n")?;
        member.finish()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn a_record_is_one_member_with_its_head_and_its_block() {
        let id = RecordId::random();
        let mut written = Vec::new();
        Record::new("response", id, 1_795_412_440_007)
            .field("WARC-Target-URI", "http://a.org/")
            .optional_field("WARC-Truncated", Some("length"))
            .optional_field("WARC-IP-Address", None::<&str>)
            .block(
                "application/http;msgtype=response",
                [b"head\r\n\r\n", b"body"],
            )
            .write_to(&mut written)
            .unwrap();
        let mut text = String::new();
        let mut member = GzDecoder::new(written.as_slice());
        member.read_to_string(&mut text).unwrap();
        assert!(member.into_inner().is_empty(), "one member is all there is");
        let expected = format!(
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: {id}\r\n\
             WARC-Date: 2026-11-23T05:40:40.007Z\r\nWARC-Target-URI: http://a.org/\r\n\
             WARC-Truncated: length\r\nContent-Type: application/http;msgtype=response\r\n\
             WARC-Block-Digest: {}\r\nContent-Length: 12\r\n\r\nhead\r\n\r\nbody\r\n\r\n",
            Sha1Digest::from_parts(&[b"head\r\n\r\nbody"])
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn digests_and_ids_have_the_usual_form() {
        // RFC 3174's first example, in base 32.
        let digest = Sha1Digest::from_parts(&[b"a", b"bc"]).to_string();
        assert_eq!(digest, "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5");
        let id = RecordId::random().to_string();
        assert!(id.starts_with("<urn:uuid:") && id.ends_with('>') && id.len() == 47);
    }

    #[test]
    fn dates_have_milliseconds_always() {
        assert_eq!(format_date(0), "1970-01-01T00:00:00.000Z");
    }
}
