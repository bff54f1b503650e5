use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

/// [`HTML`] in `br` (Brotli). The bytes were encoded beforehand, because this crate contains only a decoder.
const HTML_IN_BROTLI: &[u8] = b"\x1b\x35\x00\x20\x8c\xd3\x1d\xf3\xaf\xab\x66\x84\x4a\xef\x17\x1f\
    \x2a\x34\xc9\x13\x43\x07\x0e\x39\x60\xff\x97\x58\x62\x81\x16\x19\xd8\x80\x03\x89\xd3\x64\xf9\
    \x98\x01\xb1\x1d\x8c\xb3\x5f\x90\x98\x36\x07";

const HTML: &[u8] = b"<!DOCTYPE html><title>t</title><h1>The whole page</h1>";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Makes a gzip member whose header has every optional part (RFC 1952, 2.3).
fn gzip_with_header(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::GzBuilder::new()
        .filename("page.html")
        .comment("made by hand")
        .extra(b"extra".to_vec())
        .mtime(1)
        .write(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(text: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), level);
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).unwrap()
}

fn coding_header(value: &str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_ENCODING, value.parse().unwrap())])
}

/// Decodes a body sent in pieces of `piece` bytes; `None` if it cannot be decoded.
fn decode_in_pieces(headers: &HeaderMap, sent: &[u8], piece: usize) -> Option<Vec<u8>> {
    let mut decoder = match Decoder::new(content_codings(headers).ok()?) {
        Some(decoder) => decoder,
        None => return Some(sent.to_vec()),
    };
    let mut body = Vec::new();
    let mut sent = sent.chunks(piece);
    loop {
        while let Some(piece) = decoder.next_piece().ok()? {
            body.extend_from_slice(&piece);
        }
        match sent.next() {
            Some(piece) => decoder.add(Bytes::copy_from_slice(piece)),
            None if decoder.is_at_end() => return Some(body),
            None => decoder.end(),
        }
    }
}

#[test]
fn names_of_codings_are_read_in_all_common_spellings() {
    use Coding::{Brotli, Deflate, Gzip, Zstd};
    for (value, expected) in [
        ("gzip", Some(vec![Gzip])),
        ("GZIP", Some(vec![Gzip])),
        ("Gzip", Some(vec![Gzip])),
        ("x-gzip", Some(vec![Gzip])),
        ("X-GZIP", Some(vec![Gzip])),
        (" gzip ", Some(vec![Gzip])),
        ("gzip,", Some(vec![Gzip])),
        (", ,gzip", Some(vec![Gzip])),
        ("gzip, gzip", Some(vec![Gzip, Gzip])),
        ("gzip,identity", Some(vec![Gzip])),
        ("deflate, GZip", Some(vec![Deflate, Gzip])),
        ("deflate", Some(vec![Deflate])),
        ("x-deflate", Some(vec![Deflate])),
        ("br", Some(vec![Brotli])),
        ("BR", Some(vec![Brotli])),
        ("zstd", Some(vec![Zstd])),
        ("identity", Some(vec![])),
        ("Identity", Some(vec![])),
        ("", Some(vec![])),
        ("none", Some(vec![])),
        ("None", Some(vec![])),
        ("utf-8", Some(vec![])),
        ("UTF8", Some(vec![])),
        ("ISO-8859-1", Some(vec![])),
        ("windows-1251", Some(vec![])),
        ("8bit", Some(vec![])),
        ("binary", Some(vec![])),
        ("compress", None),
        ("x-compress", None),
        ("sdch", None),
        ("dcb", None),
        ("exi", None),
        ("aes128gcm", None),
        ("gzip;q=1", None),
        ("gzip gzip", None),
        ("base64", None),
        ("gzip, what", None),
        ("gzip, gzip, gzip", Some(vec![Gzip, Gzip, Gzip])),
        ("gzip, gzip, gzip, gzip", None),
    ] {
        assert_eq!(
            content_codings(&coding_header(value)).ok(),
            expected,
            "{value:?}"
        );
    }
}

#[test]
fn several_headers_are_one_list() {
    let mut headers = coding_header("deflate");
    headers.append(CONTENT_ENCODING, "gzip".parse().unwrap());
    assert_eq!(
        content_codings(&headers).unwrap(),
        [Coding::Deflate, Coding::Gzip]
    );
    assert_eq!(content_codings(&HeaderMap::new()).unwrap(), []);
}

#[test]
fn bodies_are_decoded_in_whatever_pieces_they_come() {
    let members = [gzip(&HTML[..20]), gzip_with_header(b""), gzip(&HTML[20..])].concat();
    let frames = [zstd(&HTML[..20]), zstd(&HTML[20..])].concat();
    let padded = |coded: Vec<u8>, padding: &[u8]| [coded, padding.to_vec()].concat();
    let empty_block = b"\x00\x00\x00\xff\xff".to_vec();
    for (name, value, sent) in [
        ("gzip", "gzip", gzip(HTML)),
        ("every part of a header", "gzip", gzip_with_header(HTML)),
        ("members", "gzip", members),
        ("zeros behind", "gzip", padded(gzip(HTML), &[0; 512])),
        ("a line end behind", "gzip", padded(gzip(HTML), b"\r\n")),
        ("twice", "gzip, gzip", gzip(&gzip(HTML))),
        (
            "three times",
            "zstd, deflate, gzip",
            gzip(&zlib(&zstd(HTML))),
        ),
        ("zlib", "deflate", zlib(HTML)),
        (
            "no zlib header",
            "deflate",
            raw_deflate(HTML, Compression::default()),
        ),
        ("stored", "deflate", raw_deflate(HTML, Compression::none())),
        (
            "an empty block first",
            "deflate",
            [empty_block, raw_deflate(HTML, Compression::default())].concat(),
        ),
        (
            "zeros behind zlib",
            "deflate",
            padded(zlib(HTML), &[0; 512]),
        ),
        ("zstd", "zstd", zstd(HTML)),
        ("frames", "zstd", frames),
        ("brotli", "br", HTML_IN_BROTLI.to_vec()),
        (
            "bytes behind brotli",
            "br",
            padded(HTML_IN_BROTLI.to_vec(), b"\n"),
        ),
        ("no coding", "identity", HTML.to_vec()),
    ] {
        for piece in [1, 2, 3, 7, 100_000] {
            let body = decode_in_pieces(&coding_header(value), &sent, piece);
            assert_eq!(body.as_deref(), Some(HTML), "{name}, in pieces of {piece}");
        }
    }
}

#[test]
fn an_empty_body_is_empty_in_every_coding() {
    for value in ["gzip", "deflate", "br", "zstd", "gzip, gzip"] {
        assert_eq!(
            decode_in_pieces(&coding_header(value), b"", 1).as_deref(),
            Some(&b""[..])
        );
    }
}

#[test]
fn a_body_that_is_cut_or_broken_is_no_page() {
    for (value, whole) in [
        ("gzip", gzip(HTML)),
        (
            "gzip",
            [gzip(HTML), gzip(HTML)].concat()[..gzip(HTML).len() + 12].to_vec(),
        ),
        ("gzip, gzip", gzip(&gzip(HTML))),
        ("deflate", zlib(HTML)),
        ("deflate", raw_deflate(HTML, Compression::default())),
        ("br", HTML_IN_BROTLI.to_vec()),
        ("zstd", zstd(HTML)),
    ] {
        let headers = coding_header(value);
        for length in 1..whole.len() {
            let is_whole_member = value == "gzip" && length == gzip(HTML).len();
            let cut = decode_in_pieces(&headers, &whole[..length], 5);
            assert!(
                cut.is_none() || is_whole_member,
                "{value}, {length} bytes: {cut:?}"
            );
        }
        let plain = decode_in_pieces(&headers, HTML, 5);
        assert_eq!(plain, None, "{value} is said of plain text");
    }
    let mut wrong_sum = gzip(HTML);
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 1;
    assert_eq!(
        decode_in_pieces(&coding_header("gzip"), &wrong_sum, 5),
        None
    );
}

#[test]
fn a_decompression_bomb_is_decoded_in_small_pieces() {
    let zeros = vec![0; 32 << 20];
    for (value, sent) in [
        ("gzip", gzip(&zeros)),
        ("zstd", zstd(&zeros)),
        ("deflate", zlib(&zeros)),
    ] {
        let mut decoder = Decoder::new(content_codings(&coding_header(value)).unwrap()).unwrap();
        decoder.add(sent.into());
        let piece = decoder.next_piece().unwrap().unwrap();
        assert!(piece.len() <= PIECE_BYTES, "{value}");
    }
}

#[test]
fn windows_beyond_those_of_the_standards_are_refused() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(ZSTD_WINDOW_LOG + 2).unwrap();
    encoder.write_all(&vec![7; 40 << 20]).unwrap();
    let sent = encoder.finish().unwrap();
    assert_eq!(
        decode_in_pieces(&coding_header("zstd"), &sent, 100_000),
        None
    );
}
