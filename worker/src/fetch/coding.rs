//! Content codings such as `gzip` (RFC 9110, 8.4): finds the codings of an answer, and decodes its body piece by piece.
//!
//! Names are case-insensitive, and common misspellings of servers are accepted. A body may be coded more than once, and
//! each coding may consist of several parts (members of gzip, frames of zstd). A body whose coding does not end
//! properly is an error, and no part of it is used.
//!
//! A decompression bomb does no harm: decoded pieces are small, and the windows of the decoders are limited.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::rc::Rc;

use brotli_decompressor::{BrotliDecoderParameter, Decompressor};
use bytes::{Buf, Bytes};
use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use reqwest::header::{CONTENT_ENCODING, HeaderMap, TRANSFER_ENCODING};
use webfill_wire::Outcome;

use super::header::joined_header;
use crate::fetch_error::FetchError;

/// The supported codings, as named in requests.
pub(super) const ACCEPTED_CODINGS: &str = "zstd,gzip,deflate,br";

/// How many codings of one body are decoded at most. Each takes the memory of a decoder's window.
const MOST_CODINGS: usize = 3;

/// How many bytes are decoded at once, at most.
const PIECE_BYTES: usize = 32 << 10;

/// The largest window of zstd: 8 MiB (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The body has an unknown coding, or too many codings.
#[derive(Debug)]
pub(super) struct UnknownCoding(pub String);

/// The codings of a body, in the order they were applied.
pub(super) fn content_codings(headers: &HeaderMap) -> Result<Vec<Coding>, UnknownCoding> {
    let mut codings = Vec::new();
    let named = joined_header(headers, CONTENT_ENCODING).unwrap_or_default();
    for name in named.split(',') {
        let name = name.trim().to_ascii_lowercase();
        if !is_no_coding(&name) {
            codings.push(from_name(&name).ok_or(UnknownCoding(name))?);
        }
    }
    match codings.len() > MOST_CODINGS {
        true => Err(UnknownCoding(format!("{} codings", codings.len()))),
        false => Ok(codings),
    }
}

/// A transfer coding that the client has not decoded. The client decodes chunks if they are the outermost coding.
pub(super) fn remaining_transfer_coding(headers: &HeaderMap) -> Option<String> {
    let named = joined_header(headers, TRANSFER_ENCODING)?.to_ascii_lowercase();
    let mut names = named
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let is_chunked_last = named
        .trim_end_matches([' ', '\t', ','])
        .ends_with("chunked");
    let is_undone = |name: &str| name == "identity" || name == "chunked" && is_chunked_last;
    (!names.all(is_undone)).then_some(named)
}

fn from_name(name: &str) -> Option<Coding> {
    match name {
        "gzip" | "x-gzip" => Some(Coding::Gzip),
        "deflate" | "x-deflate" => Some(Coding::Deflate),
        "br" => Some(Coding::Brotli),
        "zstd" => Some(Coding::Zstd),
        _ => None,
    }
}

/// Whether a name means that the body is not coded. Some servers send a charset here, or a value of
/// `Content-Transfer-Encoding`, although the body is not coded.
fn is_no_coding(name: &str) -> bool {
    matches!(name, "" | "identity" | "none" | "7bit" | "8bit" | "binary")
        || webfill_urls::encoding_of_label(name.as_bytes()).is_some()
}

/// Decodes a body piece by piece.
pub(super) struct Decoder {
    input: Input,
    decoded: Box<dyn Read>,
    is_at_end: bool,
}

impl Decoder {
    /// Creates a decoder for these codings. `None` if there is nothing to decode.
    pub fn new(codings: Vec<Coding>) -> Option<Decoder> {
        if codings.is_empty() {
            return None;
        }
        let input = Input::default();
        let mut decoded: Box<dyn Read> = Box::new(input.clone());
        for coding in codings.into_iter().rev() {
            decoded = decoder_for(coding, BufReader::with_capacity(PIECE_BYTES, decoded));
        }
        Some(Decoder {
            input,
            decoded,
            is_at_end: false,
        })
    }

    /// Adds newly arrived bytes. All bytes that were added before must have been decoded.
    pub fn add(&mut self, sent: Bytes) {
        let mut pending = self.input.pending.borrow_mut();
        pending.has_begun |= !sent.is_empty();
        pending.bytes = sent;
    }

    /// Declares that no more bytes will be added.
    pub fn end(&mut self) {
        let mut pending = self.input.pending.borrow_mut();
        pending.is_over = true;
        // An empty body is not coded, whatever its headers say.
        self.is_at_end |= !pending.has_begun;
    }

    /// Whether all codings have ended.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Returns the next decoded piece; `None` at the end, or if more bytes must arrive first.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>, FetchError> {
        if self.is_at_end {
            return Ok(None);
        }
        let mut piece = vec![0; PIECE_BYTES];
        match self.decoded.read(&mut piece) {
            Ok(0) => {
                self.is_at_end = true;
                Ok(None)
            }
            Ok(length) => {
                piece.truncate(length);
                Ok(Some(piece.into()))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => {
                let reason = format!("the body is not in the coding that it declares: {error}");
                Err(FetchError::new(Outcome::NetworkError, reason))
            }
        }
    }
}

fn decoder_for(coding: Coding, coded: BufReader<Box<dyn Read>>) -> Box<dyn Read> {
    match coding {
        Coding::Gzip => Box::new(Members::new(coded)),
        Coding::Deflate => Box::new(DeflateDecoder::new(coded)),
        Coding::Brotli => {
            let mut decoder = Decompressor::new(coded, PIECE_BYTES);
            // Large windows are not part of the Brotli format (RFC 7932), and take up to 1 GiB.
            decoder.set_parameter(BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
            Box::new(FusedDecoder::new(decoder))
        }
        Coding::Zstd => match zstd_decoder(coded) {
            Ok(decoder) => Box::new(FusedDecoder::new(decoder)),
            Err(error) => Box::new(FailedDecoder(Some(error))),
        },
    }
}

fn zstd_decoder<R: BufRead>(coded: R) -> io::Result<zstd::stream::read::Decoder<'static, R>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(coded)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(decoder)
}

/// Bytes that have arrived but are not decoded yet.
#[derive(Clone, Default)]
struct Input {
    pending: Rc<RefCell<Pending>>,
}

#[derive(Default)]
struct Pending {
    bytes: Bytes,
    has_begun: bool,
    is_over: bool,
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut pending = self.pending.borrow_mut();
        if pending.bytes.is_empty() && !pending.is_over {
            return Err(ErrorKind::WouldBlock.into());
        }
        let length = into.len().min(pending.bytes.len());
        pending.bytes.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

/// Decodes the members of a gzip body, one after the other (RFC 1952, 2.2). Other bytes after a member are ignored, as
/// browsers do, because servers pad bodies.
struct Members<R> {
    /// The decoder of the current member; `None` only while it is being replaced.
    member: Option<GzDecoder<R>>,
    is_at_end: bool,
}

/// The first byte of a gzip member.
const GZIP: u8 = 0x1f;

impl<R: BufRead> Members<R> {
    fn new(coded: R) -> Members<R> {
        Members {
            member: Some(GzDecoder::new(coded)),
            is_at_end: false,
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !self.is_at_end {
            let Some(member) = &mut self.member else {
                break;
            };
            let length = member.read(into)?;
            if length > 0 {
                return Ok(length);
            }
            if member.get_mut().fill_buf()?.first() == Some(&GZIP) {
                let next = self.member.take().map(GzDecoder::into_inner);
                self.member = next.map(GzDecoder::new);
            } else {
                self.is_at_end = true;
            }
        }
        Ok(0)
    }
}

/// Decodes `deflate`, in the zlib format (RFC 9110, 8.4.1.2) or without its header, as some servers send it.
struct DeflateDecoder<R> {
    coded: R,
    inflater: Option<Decompress>,
    is_at_end: bool,
}

impl<R: BufRead> DeflateDecoder<R> {
    fn new(coded: R) -> DeflateDecoder<R> {
        DeflateDecoder {
            coded,
            inflater: None,
            is_at_end: false,
        }
    }
}

impl<R: BufRead> Read for DeflateDecoder<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !self.is_at_end {
            let coded = self.coded.fill_buf()?;
            let Some(first) = coded.first() else {
                return Err(ErrorKind::UnexpectedEof.into());
            };
            // In a zlib header, these bits are the compression method 8 (RFC 1950, 2.2). No deflate block without a
            // header begins with them.
            let has_zlib_header = first & 0x0f == 8;
            let inflater = self
                .inflater
                .get_or_insert_with(|| Decompress::new(has_zlib_header));
            let (read, written) = (inflater.total_in(), inflater.total_out());
            let status = inflater.decompress(coded, into, FlushDecompress::None)?;
            let read = (inflater.total_in() - read) as usize;
            let written = (inflater.total_out() - written) as usize;
            self.coded.consume(read);
            self.is_at_end = status == Status::StreamEnd;
            if written > 0 {
                return Ok(written);
            }
            if read == 0 && !self.is_at_end {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        Ok(0)
    }
}

/// Wraps a decoder so that it is not called again after its end. Some decoders would return bytes from after the end,
/// or report success after an error.
struct FusedDecoder<D> {
    decoder: D,
    over: Option<StreamOutcome>,
}

#[derive(Clone, Copy)]
enum StreamOutcome {
    AtEnd,
    Broken,
}

impl<D: Read> FusedDecoder<D> {
    fn new(decoder: D) -> FusedDecoder<D> {
        FusedDecoder {
            decoder,
            over: None,
        }
    }
}

impl<D: Read> Read for FusedDecoder<D> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.over {
            Some(StreamOutcome::AtEnd) => return Ok(0),
            Some(StreamOutcome::Broken) => return Err(ErrorKind::InvalidData.into()),
            None => {}
        }
        let read = self.decoder.read(into);
        self.over = match &read {
            Ok(0) => Some(StreamOutcome::AtEnd),
            Err(error) if error.kind() != ErrorKind::WouldBlock => Some(StreamOutcome::Broken),
            _ => None,
        };
        read
    }
}

/// Stands for a decoder that could not be created, and returns the error when it is read.
struct FailedDecoder(Option<io::Error>);

impl Read for FailedDecoder {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.take().unwrap_or(ErrorKind::InvalidData.into()))
    }
}

#[cfg(test)]
mod tests;
