//! Bodies in the content encodings that browsers support, and a decompression bomb.

use std::io::Write;

use bytes::Bytes;
use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compress, Compression, Crc, FlushCompress};

use super::{Page, document, page};

/// An HTML page in this content encoding, which its header names: `gzip`, `deflate`, `br` or `zstd`.
pub fn encoded_page(title: &str, encoding: &str) -> Page {
    let plain = page(title).field("name", "Ada").body;
    let body = match encoding {
        "gzip" => gzip(&plain),
        "deflate" => deflate(&plain),
        "br" => brotli(&plain),
        "zstd" => zstd(&plain),
        _ => panic!("no encoder for {encoding}"),
    };
    html(body).header("content-encoding", encoding)
}

/// An HTML page whose body is these bytes.
pub fn html(body: impl Into<Bytes>) -> Page {
    document("text/html; charset=utf-8", body)
}

pub fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

/// Compresses in the encoding that HTTP calls `deflate`, which is the zlib format (RFC 9110, 8.4.1.2).
pub fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

pub fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let params = brotli::enc::BrotliEncoderParams::default();
    brotli::BrotliCompress(&mut &plain[..], &mut encoded, &params)
        .expect("memory takes everything");
    encoded
}

pub fn zstd(plain: &[u8]) -> Vec<u8> {
    zstd::encode_all(plain, 3).expect("memory takes everything")
}

/// A gzip body that decodes to `mebibytes` MiB of spaces, and is about a thousand times smaller itself.
///
/// One MiB is compressed up to a byte boundary. The result is repeated, so that large bombs take no time to make.
pub fn gzip_bomb(mebibytes: u32) -> Vec<u8> {
    let block = [b' '; 1 << 20];
    let mut compressor = Compress::new(Compression::best(), false);
    let mut compressed = Vec::with_capacity(1 << 16);
    compressor
        .compress_vec(&block, &mut compressed, FlushCompress::Full)
        .expect("spaces compress");
    let mut block_sum = Crc::new();
    block_sum.update(&block);

    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
    let mut sum = Crc::new();
    for _ in 0..mebibytes {
        bomb.extend_from_slice(&compressed);
        sum.combine(&block_sum);
    }
    // The end of the gzip file: an empty final block, the checksum, and the length modulo 2^32.
    bomb.extend_from_slice(&[0x03, 0x00]);
    bomb.extend_from_slice(&sum.sum().to_le_bytes());
    bomb.extend_from_slice(&sum.amount().to_le_bytes());
    bomb
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_bomb_is_small_and_decodes_to_its_size() {
        let bomb = gzip_bomb(64);
        assert!(bomb.len() < 100_000, "{} bytes", bomb.len());
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bomb[..])
            .read_to_end(&mut plain)
            .expect("valid gzip");
        assert_eq!(plain.len(), 64 << 20);
    }
}
