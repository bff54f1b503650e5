//! Writes a text with the compression and encoding it was read with.

use std::io::{self, BufWriter, Write};

use flate2::write::GzEncoder;

use super::utf16::Utf16Writer;
use crate::format::{Compression, Encoding, TextForm};

pub(crate) struct TextSink<W: Write> {
    out: Compressor<W>,
    utf16: Option<Utf16Writer>,
}

enum Compressor<W: Write> {
    None(BufWriter<W>),
    Gzip(Box<GzEncoder<BufWriter<W>>>),
    Zstd(Box<zstd::Encoder<'static, BufWriter<W>>>),
}

impl<W: Write> TextSink<W> {
    pub(crate) fn new(form: TextForm, out: W) -> io::Result<TextSink<W>> {
        const BUFFER_BYTES: usize = 256 << 10;
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let mut out = match form.compression {
            Compression::None => Compressor::None(out),
            Compression::Gzip => {
                Compressor::Gzip(Box::new(GzEncoder::new(out, Default::default())))
            }
            Compression::Zstd => Compressor::Zstd(Box::new(zstd::Encoder::new(out, 0)?)),
        };
        let (mark, utf16): (&[u8], _) = match form.encoding {
            Encoding::Utf8 => (&[0xef, 0xbb, 0xbf], None),
            Encoding::Utf16Le => (&[0xff, 0xfe], Some(Utf16Writer::new(false))),
            Encoding::Utf16Be => (&[0xfe, 0xff], Some(Utf16Writer::new(true))),
            Encoding::Legacy(_) => (&[], None),
        };
        if form.has_mark {
            out.write_all(mark)?;
        }
        Ok(TextSink { out, utf16 })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.utf16 {
            None => self.out.write_all(bytes),
            Some(utf16) => self.out.write_all(&utf16.encode(bytes)),
        }
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        let buffered = match self.out {
            Compressor::None(out) => out,
            Compressor::Gzip(out) => out.finish()?,
            Compressor::Zstd(out) => out.finish()?,
        };
        buffered.into_inner().map_err(|error| error.into_error())
    }
}

impl<W: Write> Compressor<W> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Compressor::None(out) => out.write_all(bytes),
            Compressor::Gzip(out) => out.write_all(bytes),
            Compressor::Zstd(out) => out.write_all(bytes),
        }
    }
}
