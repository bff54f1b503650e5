//! Extracts the text of each page of a PDF separately.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use pdf_extract::{ConvertToFmt, MediaBox, OutputDev, OutputError, PlainTextOutput, Transform};

use super::Trouble;
use crate::text::TextWriter;

/// Stands for a character that the font does not identify. If it were left out, `1?4` would be read as `14`.
pub(super) const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// The text of the current page.
#[derive(Clone, Default)]
struct PageText(Rc<RefCell<String>>);

impl fmt::Write for PageText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.borrow_mut().push_str(text);
        Ok(())
    }
}

impl ConvertToFmt for PageText {
    type Writer = PageText;

    fn convert(self) -> PageText {
        self
    }
}

pub(super) struct PagesOutput {
    text: PageText,
    page: PlainTextOutput<PageText>,
    writer: TextWriter,
    done: usize,
    trouble: Option<Trouble>,
}

impl PagesOutput {
    pub(super) fn new(max_text_bytes: u64) -> PagesOutput {
        let text = PageText::default();
        PagesOutput {
            page: PlainTextOutput::new(text.clone()),
            text,
            writer: TextWriter::new(max_text_bytes),
            done: 0,
            trouble: None,
        }
    }

    /// Returns the text of all pages that were read completely, and the number of these pages.
    pub(super) fn finish(self) -> Result<(TextWriter, usize), Trouble> {
        match self.trouble {
            Some(trouble) => Err(trouble),
            None => Ok((self.writer, self.done)),
        }
    }
}

impl OutputDev for PagesOutput {
    fn begin_page(
        &mut self,
        number: u32,
        media_box: &MediaBox,
        art_box: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        // Each page gets a new output. An old one would compare the position of the first character with that of the
        // last character on the page before.
        self.page = PlainTextOutput::new(self.text.clone());
        self.page.begin_page(number, media_box, art_box)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.page.end_page()?;
        let text = self.text.0.take();
        if let Err(trouble) = self.writer.push(&text) {
            self.trouble = Some(trouble);
            return Err(OutputError::FormatError(fmt::Error));
        }
        self.writer.end_paragraph();
        self.done += 1;
        Ok(())
    }

    fn output_character(
        &mut self,
        transform: &Transform,
        width: f64,
        spacing: f64,
        font_size: f64,
        text: &str,
    ) -> Result<(), OutputError> {
        let unknown = UNKNOWN.encode_utf8(&mut [0; 4]).to_owned();
        let text = match text {
            "" | "\0" => &unknown,
            text => text,
        };
        self.page
            .output_character(transform, width, spacing, font_size, text)
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.page.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.page.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.page.end_line()
    }
}
