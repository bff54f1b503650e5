//! Turns exchanges (a request with its answer) into WARC records, and begins a new file when the current one reaches
//! its size limit.

use std::io;
use std::path::PathBuf;

use super::exchange::Exchange;
use super::file::WarcFile;
use super::originals::{Original, Originals};
use super::record::{Record, RecordId, Sha1Digest};
use crate::now::now_ms;

const RESPONSE: &str = "application/http;msgtype=response";
const REQUEST: &str = "application/http;msgtype=request";

/// The WARC profile of a record that refers to an earlier record with the same payload instead of repeating it.
const SAME_PAYLOAD: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// Writes exchanges into WARC files, one file after another.
pub struct Writer {
    folder: PathBuf,
    most_bytes: u64,
    about: String,
    serial: u32,
    file: Option<WarcFile>,
    originals: Originals,
}

impl Writer {
    pub fn new(folder: PathBuf, most_bytes: u64, about: String) -> Writer {
        Writer {
            folder,
            most_bytes,
            about,
            serial: 0,
            file: None,
            originals: Originals::default(),
        }
    }

    /// Appends the records of an exchange. They are on the disk after [`Writer::sync`].
    ///
    /// The answer's record is written first, because the request's record refers to it. So even after a crash, no
    /// record refers to a missing one.
    pub fn write(&mut self, exchange: Exchange) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => self.file.insert(file),
            None => {
                let (folder, about) = (&self.folder, &self.about);
                let begun = WarcFile::begin(folder, &mut self.serial, now_ms(), about)?;
                self.file.insert(begun)
            }
        };
        let id = RecordId::random();
        let digest = Sha1Digest::from_parts(&[&exchange.payload]);
        let earlier = find_original(&self.originals, &exchange, &digest);
        let warcinfo = file.warcinfo();
        file.append(&answer_record(&exchange, id, warcinfo, &digest, earlier))?;
        let request = record_with_common_fields("request", RecordId::random(), &exchange, warcinfo)
            .field("WARC-Concurrent-To", id)
            .block(REQUEST, [&exchange.request_head, &[]]);
        file.append(&request)?;
        let is_known = earlier.is_some();
        self.remember(exchange, id, digest, is_known);
        Ok(())
    }

    fn remember(&mut self, exchange: Exchange, id: RecordId, digest: Sha1Digest, is_known: bool) {
        if !is_comparable(&exchange) {
            return;
        }
        if is_known {
            return self.originals.note_url(exchange.url, digest);
        }
        self.originals.add(Original {
            id,
            url: exchange.url,
            started_ms: exchange.started_ms,
            digest,
        });
    }

    /// Syncs the written records to disk, and completes the file if it has reached its size limit.
    pub fn sync(&mut self) -> io::Result<()> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        file.sync()?;
        if file.bytes()? >= self.most_bytes {
            return file.finish();
        }
        self.file = Some(file);
        Ok(())
    }

    /// Completes the last file.
    pub fn finish(self) -> io::Result<()> {
        self.file.map_or(Ok(()), WarcFile::finish)
    }
}

/// The record that the answer refers to instead of repeating its payload.
fn find_original<'a>(
    originals: &'a Originals,
    exchange: &Exchange,
    digest: &Sha1Digest,
) -> Option<&'a Original> {
    match exchange.status {
        304 => originals.find_by_url(&exchange.url),
        _ if is_comparable(exchange) => originals.find_by_payload(digest),
        _ => None,
    }
}

/// Whether the payload can be compared with archived ones: it is present and complete.
fn is_comparable(exchange: &Exchange) -> bool {
    exchange.truncated.is_none() && !exchange.payload.is_empty()
}

fn answer_record<'a>(
    exchange: &'a Exchange,
    id: RecordId,
    warcinfo: RecordId,
    digest: &Sha1Digest,
    earlier: Option<&Original>,
) -> Record<'a> {
    let head = &exchange.response_head;
    let profile = match exchange.status {
        304 => Some(NOT_MODIFIED),
        _ => earlier.map(|_| SAME_PAYLOAD),
    };
    let Some(profile) = profile else {
        return record_with_common_fields("response", id, exchange, warcinfo)
            .field("WARC-Payload-Digest", digest)
            .optional_field("WARC-Truncated", exchange.truncated.map(|why| why.as_str()))
            .block(RESPONSE, [head, &exchange.payload]);
    };
    let record =
        record_with_common_fields("revisit", id, exchange, warcinfo).field("WARC-Profile", profile);
    match earlier {
        Some(earlier) => add_reference(record, earlier),
        None => record,
    }
    .block(RESPONSE, [head, &[]])
}

fn add_reference<'a>(record: Record<'a>, earlier: &Original) -> Record<'a> {
    record
        .field("WARC-Payload-Digest", earlier.digest)
        .field("WARC-Refers-To", earlier.id)
        .field("WARC-Refers-To-Target-URI", &earlier.url)
        .field(
            "WARC-Refers-To-Date",
            super::record::format_date(earlier.started_ms),
        )
}

fn record_with_common_fields<'a>(
    kind: &str,
    id: RecordId,
    exchange: &Exchange,
    warcinfo: RecordId,
) -> Record<'a> {
    Record::new(kind, id, exchange.started_ms)
        .field("WARC-Target-URI", &exchange.url)
        .field("WARC-Warcinfo-ID", warcinfo)
        .field("WARC-Protocol", exchange.protocol)
        .optional_field("WARC-IP-Address", exchange.peer)
}

#[cfg(test)]
mod tests;
