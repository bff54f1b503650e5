//! Reads pages from WARC files: the archived answers, with decoded bodies. Files written by other programs are read as
//! well: compressed or not, with or without transfer codings.
//!
//! A file may be torn at its end, or still be growing. All its complete records are read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::header::{CONTENT_TYPE, LOCATION, TRANSFER_ENCODING};

use crate::fetch::decode;

/// The size limit for the head of a record, and for the head of an HTTP message.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The file name endings of an archive.
const ENDINGS: [&str; 4] = [".warc.gz", ".warc", ".warc.gz.open", ".warc.open"];

/// An answer in an archive.
#[derive(Debug, PartialEq, Eq)]
pub struct ArchivedAnswer {
    /// The requested URL.
    pub url: String,
    /// The hash of the payload, as the file writes it.
    pub payload_digest: Option<String>,
    pub content_type: Option<String>,
    pub body: ArchivedBody,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ArchivedBody {
    /// The decoded body.
    Here(Vec<u8>),
    /// The body is in another record with the same digest.
    Elsewhere,
    /// No body: the answer redirects to this address, as it was sent.
    Redirect(String),
}

/// Lists the archive files in a folder, sorted by name.
pub fn warc_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_warc = |ending: &&str| name.to_string_lossy().ends_with(*ending);
        if ENDINGS.iter().any(is_warc) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file from beginning to end.
pub struct WarcReader {
    records: Box<dyn BufRead>,
    /// The longest body that is read. Longer ones, decoded or not, are skipped.
    max_body_bytes: usize,
}

impl WarcReader {
    pub fn open(path: &Path, max_body_bytes: usize) -> io::Result<WarcReader> {
        let mut file = BufReader::with_capacity(256 << 10, File::open(path)?);
        let is_compressed = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let records: Box<dyn BufRead> = match is_compressed {
            true => Box::new(BufReader::new(MultiGzDecoder::new(file))),
            false => Box::new(file),
        };
        Ok(WarcReader {
            records,
            max_body_bytes,
        })
    }

    /// The next answer that may be a page or leads to one: a complete answer with a status below 300, or a redirect.
    /// `None` at the end.
    ///
    /// # Errors
    ///
    /// The file is torn at this point, or is not a WARC file. Nothing more can be read from it.
    pub fn next_answer(&mut self) -> io::Result<Option<ArchivedAnswer>> {
        loop {
            let Some(head) = read_record_head(&mut self.records)? else {
                return Ok(None);
            };
            let answer = self.read_block(&head)?;
            if let Some(block) = answer
                && let Some(answer) = parse_answer(&head, block, self.max_body_bytes)
            {
                return Ok(Some(answer));
            }
        }
    }

    /// Reads a record's block (the bytes after its head), if the record is an answer and the block is not too long.
    fn read_block(&mut self, head: &[(String, String)]) -> io::Result<Option<Vec<u8>>> {
        let length = find_field(head, "content-length").and_then(|text| text.parse().ok());
        let length: u64 = length.ok_or_else(|| invalid_data("a record without a length"))?;
        let is_answer = matches!(find_field(head, "warc-type"), Some("response" | "revisit"))
            && find_field(head, "warc-truncated").is_none();
        let most = (self.max_body_bytes + MAX_HEAD_BYTES) as u64;
        let mut rest = self.records.by_ref().take(length);
        let block = match is_answer && length <= most {
            true => {
                let mut block = Vec::with_capacity(length as usize);
                rest.read_to_end(&mut block)?;
                Some(block)
            }
            false => {
                io::copy(&mut rest, &mut io::sink())?;
                None
            }
        };
        match rest.limit() {
            0 => Ok(block),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn invalid_data(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// The fields of the next record, with their names in lower case.
fn read_record_head(records: &mut impl BufRead) -> io::Result<Option<Vec<(String, String)>>> {
    let mut head = records.take(MAX_HEAD_BYTES as u64);
    let mut line = Vec::new();
    let mut next_line = |line: &mut Vec<u8>| {
        line.clear();
        let read = head.read_until(b'\n', line)?;
        match line.ends_with(b"\n") || read == 0 {
            true => Ok(read > 0),
            false => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    };
    // Skip the empty lines that end the previous record.
    loop {
        if !next_line(&mut line)? {
            return Ok(None);
        }
        if !line.trim_ascii().is_empty() {
            break;
        }
    }
    if !line.starts_with(b"WARC/") {
        return Err(invalid_data("no WARC record"));
    }
    let mut fields = Vec::new();
    loop {
        if !next_line(&mut line)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        if text.is_empty() {
            return Ok(Some(fields));
        }
        if let Some((name, value)) = text.split_once(':') {
            fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

fn find_field<'f>(fields: &'f [(String, String)], name: &str) -> Option<&'f str> {
    let mut named = fields.iter().filter(|(field, _)| field == name);
    named.next().map(|(_, value)| value.as_str())
}

fn parse_answer(
    head: &[(String, String)],
    mut block: Vec<u8>,
    max_body_bytes: usize,
) -> Option<ArchivedAnswer> {
    let is_http =
        find_field(head, "content-type").is_some_and(|of| of.starts_with("application/http"));
    let end = memchr::memmem::find(&block, b"\r\n\r\n").filter(|_| is_http)?;
    let payload = block.split_off(end + 4);
    let (status, headers) = parse_http_head(&block)?;
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::to_owned);
    let url = find_field(head, "warc-target-uri")?;
    let body = match (status, find_field(head, "warc-type")) {
        (301 | 302 | 303 | 307 | 308, _) => ArchivedBody::Redirect(text(LOCATION)?),
        (status, _) if !(200..300).contains(&status) => return None,
        (_, Some("revisit")) => ArchivedBody::Elsewhere,
        _ => ArchivedBody::Here(decode_body(&headers, payload, max_body_bytes)?),
    };
    Some(ArchivedAnswer {
        // Some programs put the URL into angle brackets.
        url: url.trim_matches(['<', '>']).to_owned(),
        payload_digest: find_field(head, "warc-payload-digest").map(str::to_owned),
        content_type: text(CONTENT_TYPE),
        body,
    })
}

fn parse_http_head(head: &[u8]) -> Option<(u16, HeaderMap)> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let status = lines.next()?.split(|byte| *byte == b' ').nth(1)?;
    let status = std::str::from_utf8(status).ok()?.parse().ok()?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    Some((status, headers))
}

/// Removes the transfer and content codings of a body. Returns `None` if the declared codings do not match the body, or
/// if it is too long.
fn decode_body(headers: &HeaderMap, payload: Vec<u8>, max_bytes: usize) -> Option<Vec<u8>> {
    let is_chunked = headers
        .get(TRANSFER_ENCODING)
        .is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    let sent = match is_chunked {
        // Some programs remove the transfer coding from the body but leave its header.
        true => join_chunks(&payload).unwrap_or(payload),
        false => payload,
    };
    decode(headers, sent, max_bytes)
}

/// Joins the chunks of a body.
fn join_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(rest.len());
    loop {
        let end = memchr::memmem::find(rest, b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::archive::record::{Record, RecordId};

    const MOST: usize = 10_000;

    fn response(url: &str, head: &str, payload: &[u8]) -> Vec<u8> {
        let mut written = Vec::new();
        Record::new("response", RecordId::random(), 0)
            .field("WARC-Target-URI", url)
            .block(
                "application/http;msgtype=response",
                [head.as_bytes(), payload],
            )
            .write_to(&mut written)
            .unwrap();
        written
    }

    fn read_answers(bytes: &[u8]) -> (Vec<ArchivedAnswer>, Option<io::Error>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut reader = WarcReader::open(file.path(), MOST).unwrap();
        let mut answers = Vec::new();
        loop {
            match reader.next_answer() {
                Ok(Some(answer)) => answers.push(answer),
                Ok(None) => return (answers, None),
                Err(error) => return (answers, Some(error)),
            }
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        member.write_all(text).unwrap();
        member.finish().unwrap()
    }

    #[test]
    fn bodies_come_without_their_codings() {
        let head = |more: &str| format!("HTTP/1.1 200 OK\r\n{more}\r\n");
        let chunked = b"5;x=y\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
        let coded = head("content-encoding: gzip\r\n");
        let both = head("Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n");
        let packed = gzip(b"hello world");
        let packed_chunks = [
            format!("{:x}\r\n", packed.len()).as_bytes(),
            &packed,
            b"\r\n0\r\n\r\n",
        ]
        .concat();
        for (head, payload) in [
            (head(""), &b"hello world"[..]),
            (head("transfer-encoding: chunked\r\n"), chunked),
            (head("transfer-encoding: chunked\r\n"), b"hello world"),
            (coded, &packed),
            (both, &packed_chunks),
        ] {
            let (answers, error) = read_answers(&response("http://a.org/", &head, payload));
            assert!(error.is_none(), "{error:?}");
            assert_eq!(
                answers[0].body,
                ArchivedBody::Here(b"hello world".into()),
                "{head}"
            );
        }
    }

    #[test]
    fn a_torn_end_is_reported_and_the_records_before_it_are_read() {
        let head = "HTTP/1.1 200 OK\r\n\r\n";
        let [first, second] =
            ["http://a.org/1", "http://a.org/2"].map(|url| response(url, head, b"x"));
        for torn in [1, 10, second.len() / 2] {
            let bytes = [&first, &second[..torn]].concat();
            let (answers, error) = read_answers(&bytes);
            assert_eq!(answers.len(), 1, "{torn}");
            assert!(error.is_some(), "{torn}");
        }
        // After a loss of power, a file may end in zeros.
        let bytes = [first.as_slice(), &[0; 512]].concat();
        let (answers, _) = read_answers(&bytes);
        assert_eq!(answers.len(), 1);
    }

    #[test]
    fn records_that_are_not_pages_are_skipped() {
        let long = vec![b'x'; MOST + 1];
        let bomb = gzip(&vec![b'x'; 2 * MOST]);
        let coded = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n";
        let bytes = [
            response("http://a.org/moved", "HTTP/1.1 302 Found\r\n\r\n", b"x"),
            response("http://a.org/long", "HTTP/1.1 200 OK\r\n\r\n", &long),
            response("http://a.org/bomb", coded, &bomb),
            response("http://a.org/torn", coded, b"no gzip"),
            response("http://a.org/page", "HTTP/1.1 200 OK\r\n\r\n", b"x"),
        ]
        .concat();
        let (answers, error) = read_answers(&bytes);
        assert!(error.is_none(), "{error:?}");
        let urls: Vec<&str> = answers.iter().map(|answer| answer.url.as_str()).collect();
        assert_eq!(urls, ["http://a.org/page"]);
    }

    #[test]
    fn records_that_are_not_compressed_are_read_as_well() {
        let record = response("http://a.org/", "HTTP/1.1 200 OK\r\n\r\n", b"x");
        let mut plain = Vec::new();
        MultiGzDecoder::new(record.as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        let (answers, error) = read_answers(&[plain.clone(), plain].concat());
        assert!(error.is_none(), "{error:?}");
        assert_eq!(answers.len(), 2);
    }
}
