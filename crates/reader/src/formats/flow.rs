//! Common parts of the office formats: frames and notes within paragraphs, and the file of metadata, an XML part with
//! one element for each entry.

use super::Trouble;
use super::package::Package;
use super::xml::{self, Token};
use crate::report::Metadata;
use crate::text::TextWriter;

/// Writes the running text of a document part (its *story*), with the text of its frames. A frame, such as a text box,
/// is anchored within a paragraph. Its text is written after that paragraph, so that no word is split.
pub(super) struct Frames {
    /// The running text, then the frames around the current position, from the outermost to the innermost.
    levels: Vec<Level>,
}

struct Level {
    writer: TextWriter,
    /// The text of the frames in the current paragraph, which is written when the paragraph ends.
    waiting: TextWriter,
}

impl Level {
    fn new(max_text_bytes: u64) -> Level {
        Level {
            writer: TextWriter::new(max_text_bytes),
            waiting: TextWriter::new(max_text_bytes),
        }
    }

    fn write_waiting(&mut self) -> Result<(), Trouble> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let fresh = TextWriter::new(self.writer.max_bytes());
        let text = std::mem::replace(&mut self.waiting, fresh).finish();
        self.writer.end_paragraph();
        self.writer.push_written(&text)?;
        self.writer.end_paragraph();
        Ok(())
    }
}

impl Frames {
    pub(super) fn new(max_text_bytes: u64) -> Frames {
        Frames {
            levels: vec![Level::new(max_text_bytes)],
        }
    }

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("the story is always there")
    }

    /// The writer of the current frame.
    pub(super) fn writer(&mut self) -> &mut TextWriter {
        &mut self.level().writer
    }

    pub(super) fn begin_frame(&mut self) {
        let max_text_bytes = self.level().writer.max_bytes();
        self.levels.push(Level::new(max_text_bytes));
    }

    pub(super) fn end_frame(&mut self) -> Result<(), Trouble> {
        let text = self.take_frame()?;
        let waiting = &mut self.level().waiting;
        waiting.push_written(&text)?;
        waiting.end_paragraph();
        Ok(())
    }

    /// Ends a frame, and returns its text instead of writing it.
    pub(super) fn take_frame(&mut self) -> Result<String, Trouble> {
        let inner = if self.levels.len() > 1 {
            self.levels.pop()
        } else {
            None
        };
        let Some(mut inner) = inner else {
            return Ok(String::new());
        };
        inner.write_waiting()?;
        Ok(inner.writer.finish())
    }

    /// Ends a paragraph. `has_end` is false if the next paragraph continues it.
    pub(super) fn end_paragraph(&mut self, has_end: bool) -> Result<(), Trouble> {
        let level = self.level();
        if has_end {
            level.writer.end_paragraph();
        }
        level.write_waiting()
    }

    pub(super) fn finish(mut self) -> Result<String, Trouble> {
        while self.levels.len() > 1 {
            self.end_frame()?;
        }
        let mut story = self.levels.remove(0);
        story.write_waiting()?;
        Ok(story.writer.finish())
    }
}

/// Reads the metadata from a part of the package. If the part has faults, the text is still read.
pub(super) fn read_metadata(package: &mut Package<'_>, name: &str, metadata: &mut Metadata) {
    let mut element = String::new();
    let mut value = String::new();
    let Ok(Some(part)) = package.open_part(name) else {
        return;
    };
    let _: Result<(), Trouble> = xml::for_each_token(part, |token| {
        match token {
            Token::Begin(name, attributes) => {
                value.clear();
                name.clone_into(&mut element);
                if let Some(pages) = attributes.get("page-count") {
                    metadata.pages = pages.parse().ok();
                }
            }
            Token::Text(text) if value.len() < 10_000 => value.push_str(text),
            Token::Text(_) => {}
            Token::End(name) => {
                if name == element {
                    set_entry(name, std::mem::take(&mut value), metadata);
                }
                element.clear();
            }
        }
        Ok(())
    });
}

/// Sets an entry of the metadata. Its name comes from Dublin Core or from one of the two office formats.
fn set_entry(element: &str, value: String, metadata: &mut Metadata) {
    if value.trim().is_empty() {
        return;
    }
    match element {
        "title" => metadata.title = Some(value),
        "creator" => {
            metadata.author.get_or_insert(value);
        }
        "initial-creator" => metadata.author = Some(value),
        "created" | "creation-date" => metadata.created = Some(value),
        "modified" | "date" => metadata.modified = Some(value),
        "Pages" => metadata.pages = value.trim().parse().ok(),
        _ => {}
    }
}
