//! Opens a text table and gives its bytes: decompressed, without a byte order mark, in an encoding that is a superset
//! of ASCII.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::Buffer;
use super::encoding::{guess_legacy, is_utf_8};
use super::utf16::Utf16Reader;
use crate::error::TableError;
use crate::format::{Compression, Encoding, TextForm};

/// How many bytes are examined to detect the format of a text.
pub(crate) const SAMPLE_BYTES: usize = 1 << 20;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An open text, with its first bytes read.
pub(crate) struct TextSource {
    pub(crate) form: TextForm,
    pub(crate) buffer: Buffer,
}

impl TextSource {
    pub(crate) fn open(path: &Path) -> Result<TextSource, TableError> {
        let file = File::open(path).map_err(|error| TableError::read_error(path, error))?;
        TextSource::from_reader(Box::new(file)).map_err(|error| TableError::read_error(path, error))
    }

    fn from_reader(input: Box<dyn Read + Send>) -> io::Result<TextSource> {
        let (beginning, input) = peek_beginning(input, ZSTD.len())?;
        let (compression, input) = decompress(&beginning, input)?;
        let (beginning, mut input) = peek_beginning(input, SAMPLE_BYTES)?;
        let (encoding, mark) = detect_encoding(&beginning)?;
        io::copy(&mut input.by_ref().take(mark as u64), &mut io::sink())?;
        let input: Box<dyn Read + Send> = match encoding {
            Encoding::Utf16Le => Box::new(Utf16Reader::new(input, false)),
            Encoding::Utf16Be => Box::new(Utf16Reader::new(input, true)),
            Encoding::Utf8 | Encoding::Legacy(_) => input,
        };
        let mut buffer = Buffer::new(input);
        buffer.fill_to(SAMPLE_BYTES)?;
        Ok(TextSource {
            form: TextForm {
                compression,
                encoding,
                has_mark: mark > 0,
            },
            buffer,
        })
    }
}

fn decompress(
    beginning: &[u8],
    input: Box<dyn Read + Send>,
) -> io::Result<(Compression, Box<dyn Read + Send>)> {
    const BUFFER_BYTES: usize = 64 << 10;
    if beginning.starts_with(&GZIP) {
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        return Ok((Compression::Gzip, Box::new(MultiGzDecoder::new(input))));
    }
    if beginning.starts_with(&ZSTD) {
        let decoder = zstd::Decoder::new(input)?;
        return Ok((Compression::Zstd, Box::new(decoder)));
    }
    Ok((Compression::None, input))
}

/// Detects the encoding of a text, and the length of its byte order mark.
fn detect_encoding(beginning: &[u8]) -> io::Result<(Encoding, usize)> {
    match beginning {
        [0xef, 0xbb, 0xbf, ..] => return Ok((Encoding::Utf8, 3)),
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
            return Err(io::Error::other("it is UTF-32: save it as UTF-8"));
        }
        [0xff, 0xfe, ..] => return Ok((Encoding::Utf16Le, 2)),
        [0xfe, 0xff, ..] => return Ok((Encoding::Utf16Be, 2)),
        _ => {}
    }
    let zeros = |parity: usize| {
        let bytes = beginning.iter().skip(parity).step_by(2);
        bytes.filter(|byte| **byte == 0).count()
    };
    // UTF-16 without a byte order mark is recognised by ASCII characters, where every other byte is zero.
    let (even, odd, pairs) = (zeros(0), zeros(1), beginning.len() / 2);
    if odd > pairs / 3 && even < odd / 20 + 2 {
        return Ok((Encoding::Utf16Le, 0));
    }
    if even > pairs / 3 && odd < even / 20 + 2 {
        return Ok((Encoding::Utf16Be, 0));
    }
    let is_control = |byte: &&u8| matches!(byte, 1..=8 | 0x0e..=0x1a | 0x1c..=0x1f);
    let controls = beginning.iter().filter(is_control).count();
    if even + odd > beginning.len() / 100 + 16 || controls > beginning.len() / 50 + 16 {
        return Err(io::Error::other(
            "it is not text: save the table as CSV or XLSX",
        ));
    }
    match is_utf_8(beginning) {
        true => Ok((Encoding::Utf8, 0)),
        false => Ok((Encoding::Legacy(guess_legacy(beginning)), 0)),
    }
}

/// Reads the first bytes. Returns them, and a reader of the whole input that gives them again.
fn peek_beginning(
    mut input: Box<dyn Read + Send>,
    bytes: usize,
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut beginning = Vec::new();
    input
        .by_ref()
        .take(bytes as u64)
        .read_to_end(&mut beginning)?;
    let whole = Cursor::new(beginning.clone()).chain(input);
    Ok((beginning, Box::new(whole)))
}
