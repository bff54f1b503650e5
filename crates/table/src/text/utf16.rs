//! Converts UTF-16 to a superset of ASCII and back, without loss.
//!
//! An unpaired surrogate (half of a character) becomes three bytes, in the form of a UTF-8 character. They are not
//! valid UTF-8, so the row is reported as broken and written unchanged.

use std::io::{self, Read};

/// Reads UTF-16 as UTF-8. An unpaired surrogate (half of a character) becomes three bytes that are not valid UTF-8.
pub struct Utf16Reader<R> {
    input: R,
    is_big_endian: bool,
    /// Bytes of the input that are not a whole character yet.
    undecoded: Vec<u8>,
    decoded: Vec<u8>,
    /// The bytes of `decoded` before this index were already returned.
    start: usize,
}

impl<R: Read> Utf16Reader<R> {
    /// A reader of an input without a byte order mark.
    pub fn new(input: R, is_big_endian: bool) -> Utf16Reader<R> {
        Utf16Reader {
            input,
            is_big_endian,
            undecoded: Vec::new(),
            decoded: Vec::new(),
            start: 0,
        }
    }

    fn decode_block(&mut self) -> io::Result<()> {
        const BLOCK_BYTES: u64 = 64 << 10;
        self.decoded.clear();
        self.start = 0;
        let read = self
            .input
            .by_ref()
            .take(BLOCK_BYTES)
            .read_to_end(&mut self.undecoded)?;
        let is_at_end = (read as u64) < BLOCK_BYTES;
        let (pairs, rest) = self.undecoded.as_chunks::<2>();
        let unit = |pair: &[u8; 2]| match self.is_big_endian {
            true => u16::from_be_bytes(*pair),
            false => u16::from_le_bytes(*pair),
        };
        let mut units: Vec<u16> = pairs.iter().map(unit).collect();
        let mut kept = rest.to_vec();
        let is_high = |unit: &u16| (0xd800..0xdc00).contains(unit);
        if !is_at_end && units.last().is_some_and(is_high) {
            units.pop();
            kept = self.undecoded[units.len() * 2..].to_vec();
        }
        if is_at_end && !rest.is_empty() {
            let reason = "the file ends within a character of UTF-16: it is cut off";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(c) => {
                    let bytes = c.encode_utf8(&mut [0; 4]).len();
                    let mut buffer = [0; 4];
                    c.encode_utf8(&mut buffer);
                    self.decoded.extend_from_slice(&buffer[..bytes]);
                }
                Err(alone) => {
                    push_unpaired_surrogate(alone.unpaired_surrogate(), &mut self.decoded)
                }
            }
        }
        self.undecoded = kept;
        Ok(())
    }
}

fn push_unpaired_surrogate(unit: u16, to: &mut Vec<u8>) {
    let six_bits = |shift: u16| (((unit >> shift) & 0x3f) as u8) | 0x80;
    to.extend_from_slice(&[0xe0 | (unit >> 12) as u8, six_bits(6), six_bits(0)]);
}

impl<R: Read> Read for Utf16Reader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.start == self.decoded.len() {
            self.decode_block()?;
        }
        let rest = &self.decoded[self.start..];
        let bytes = rest.len().min(to.len());
        to[..bytes].copy_from_slice(&rest[..bytes]);
        self.start += bytes;
        Ok(bytes)
    }
}

/// Writes the output of [`Utf16Reader`] as UTF-16 again.
#[derive(Default)]
pub(super) struct Utf16Writer {
    is_big_endian: bool,
    /// The first bytes of an incomplete character.
    undecoded: Vec<u8>,
}

impl Utf16Writer {
    pub(super) fn new(is_big_endian: bool) -> Utf16Writer {
        Utf16Writer {
            is_big_endian,
            undecoded: Vec::new(),
        }
    }

    /// Converts bytes to UTF-16. If they end within a character, the next call must begin with its rest.
    pub(super) fn encode(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.undecoded.extend_from_slice(bytes);
        let mut encoded = Vec::with_capacity(self.undecoded.len() * 2);
        let mut at = 0;
        while let Some((code, length)) = code_point(&self.undecoded[at..]) {
            let mut push = |unit: u16| {
                encoded.extend_from_slice(&match self.is_big_endian {
                    true => unit.to_be_bytes(),
                    false => unit.to_le_bytes(),
                });
            };
            match char::from_u32(code) {
                Some(c) => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| push(*unit)),
                None => push(code as u16),
            }
            at += length;
        }
        self.undecoded.drain(..at);
        encoded
    }
}

/// The code point of the first character or unpaired surrogate, and its length in bytes.
fn code_point(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = u32::from(*bytes.first()?);
    let (length, first) = match first {
        0..0x80 => return Some((first, 1)),
        0xc0..0xe0 => (2, first & 0x1f),
        0xe0..0xf0 => (3, first & 0x0f),
        _ => (4, first & 0x07),
    };
    let rest = bytes.get(1..length)?;
    let joined = rest
        .iter()
        .fold(first, |code, byte| code << 6 | u32::from(byte & 0x3f));
    Some((joined, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_utf16_text_is_written_as_it_was_read() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..200 {
            let is_big_endian = round % 2 == 0;
            let unit = |random: &mut fastrand::Rng| match random.u8(0..4) {
                0 => random.u16(0xd800..0xe000),
                1 => random.u16(0..128),
                _ => random.u16(..),
            };
            let count = if round == 0 {
                100_000
            } else {
                random.usize(0..300)
            };
            let bytes: Vec<u8> = (0..count)
                .flat_map(|_| unit(&mut random).to_le_bytes())
                .collect();
            let mut read = Vec::new();
            Utf16Reader::new(bytes.as_slice(), is_big_endian)
                .read_to_end(&mut read)
                .unwrap();
            let mut writer = Utf16Writer::new(is_big_endian);
            let written: Vec<u8> = read
                .chunks(7)
                .flat_map(|chunk| writer.encode(chunk))
                .collect();
            assert!(written == bytes, "round {round}");
        }
    }

    #[test]
    fn half_a_code_unit_at_the_end_is_an_error() {
        let mut reader = Utf16Reader::new(&b"a\0b"[..], false);
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("cut off"), "{error}");
    }
}
