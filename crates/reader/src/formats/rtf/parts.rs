//! Collects the texts of the parts of a document, such as the body and the footers. They are read in the order of the
//! file and written in reading order.

use std::collections::BTreeSet;

use super::group::Part;
use crate::formats::Trouble;
use crate::text::TextWriter;

pub(super) struct Parts {
    /// The writers, one for each part. Those of headers and footers contain only the current header or footer.
    writers: [TextWriter; 5],
    margins: [Margin; 2],
}

/// All headers, or all footers. Different sections often have the same ones, so each text is written once.
struct Margin {
    part: Part,
    seen: BTreeSet<String>,
    text: TextWriter,
}

impl Parts {
    pub(super) fn new(max_text_bytes: u64) -> Parts {
        Parts {
            writers: [(); 5].map(|()| TextWriter::new(max_text_bytes)),
            margins: [Part::Header, Part::Footer].map(|part| Margin {
                part,
                seen: BTreeSet::new(),
                text: TextWriter::new(max_text_bytes),
            }),
        }
    }

    pub(super) fn writer(&mut self, part: Part) -> &mut TextWriter {
        &mut self.writers[part as usize]
    }

    /// Ends a piece of a part, for example one of several headers.
    pub(super) fn end_piece(&mut self, part: Part) -> Result<(), Trouble> {
        self.writer(part).end_paragraph();
        let Some(margin) = self.margins.iter_mut().find(|margin| margin.part == part) else {
            return Ok(());
        };
        let fresh = TextWriter::new(margin.text.max_bytes());
        let text = std::mem::replace(&mut self.writers[part as usize], fresh).finish();
        if !margin.seen.contains(&text) {
            margin.text.push_written(&text)?;
            margin.text.end_paragraph();
            margin.seen.insert(text);
        }
        Ok(())
    }

    /// Writes the frames that are anchored to the paragraph that has just ended.
    pub(super) fn write_frames(&mut self) -> Result<(), Trouble> {
        let frames = &mut self.writers[Part::Frame as usize];
        let fresh = TextWriter::new(frames.max_bytes());
        let text = std::mem::replace(frames, fresh).finish();
        if !text.is_empty() {
            let body = &mut self.writers[Part::Body as usize];
            body.end_paragraph();
            body.push_written(&text)?;
            body.end_paragraph();
        }
        Ok(())
    }

    /// The whole text, in reading order.
    pub(super) fn finish(self, max_text_bytes: u64) -> Result<String, Trouble> {
        let mut writer = TextWriter::new(max_text_bytes);
        let [_, body, _, _, notes] = self.writers;
        let [headers, footers] = self.margins;
        for part in [headers.text, body, footers.text, notes] {
            writer.push_written(&part.finish())?;
            writer.end_paragraph();
        }
        Ok(writer.finish())
    }
}
