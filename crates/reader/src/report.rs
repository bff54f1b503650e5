//! The report about a document, and its format in the pipe to the parent process: a line of JSON, then the text.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// How reading a document ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The document has text.
    Text,
    /// The document was read, but contains no text: it consists of pictures, or of empty sheets.
    NoText,
    /// The document cannot be read without a password.
    Encrypted,
    /// The document is damaged, or the reader cannot cope with it.
    Broken,
    /// The document needs more memory or time than allowed, or has too much text.
    TooLarge,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Text => "text",
            Status::NoText => "no_text",
            Status::Encrypted => "encrypted",
            Status::Broken => "broken",
            Status::TooLarge => "too_large",
        }
    }
}

/// The metadata in a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The time of creation in ISO 8601, as exactly as the document gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// The number of pages, or of sheets in a workbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u32>,
}

/// The length limit of one metadata value, in bytes.
const MAX_METADATUM_BYTES: usize = 1000;

/// The length limit of the line of JSON, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

impl Metadata {
    /// Cleans the metadata: removes control characters and white space around values, and shortens long values.
    #[must_use]
    pub fn clean(self) -> Metadata {
        Metadata {
            title: self.title.and_then(|text| clean(&text)),
            author: self.author.and_then(|text| clean(&text)),
            created: self.created.and_then(|text| clean(&text)),
            modified: self.modified.and_then(|text| clean(&text)),
            pages: self.pages,
        }
    }

    /// The name and value of each entry that is set.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, String)> {
        [
            ("title", self.title.clone()),
            ("author", self.author.clone()),
            ("created", self.created.clone()),
            ("modified", self.modified.clone()),
            ("pages", self.pages.map(|pages| pages.to_string())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

fn clean(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut joined = words.join(" ");
    joined.truncate(joined.floor_char_boundary(MAX_METADATUM_BYTES));
    (!joined.is_empty()).then_some(joined)
}

/// The result of reading a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub kind: Kind,
    pub status: Status,
    /// Why there is no text, or what is missing from it.
    pub reason: Option<String>,
    pub metadata: Metadata,
    pub text: String,
    /// Whether the kernel's landlock kept the reader from all files. Old kernels lack it.
    pub landlock: bool,
}

/// The bytes are not a document of a known kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotADocument;

/// The line of JSON at the beginning of a report. `kind` is missing if the bytes are not a document.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    kind: Option<Kind>,
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    metadata: Metadata,
    text_bytes: usize,
    landlock: bool,
}

impl Report {
    /// Makes the report about a document that yielded no text.
    pub fn failed(kind: Kind, status: Status, reason: impl Into<String>) -> Report {
        Report {
            kind,
            status,
            reason: Some(reason.into()),
            metadata: Metadata::default(),
            text: String::new(),
            landlock: true,
        }
    }

    /// Reads a report written by [`write`]. Everything is checked, because a malicious document may have taken control
    /// of the process that wrote it.
    ///
    /// # Errors
    ///
    /// The fault, as a phrase.
    pub fn parse(
        mut output: Vec<u8>,
        max_text_bytes: u64,
    ) -> Result<Result<Report, NotADocument>, String> {
        let line_end = output
            .iter()
            .take(MAX_HEAD_BYTES)
            .position(|byte| *byte == b'\n')
            .ok_or("the reader ended without a report")?;
        let head: Head = serde_json::from_slice(&output[..line_end])
            .map_err(|_| "the reader's report cannot be read")?;
        // The text is moved within the same buffer, because it may be long.
        output.drain(..=line_end);
        let text = String::from_utf8(output).map_err(|_| "the reader's text is not UTF-8")?;
        let fits = text.len() == head.text_bytes && text.len() as u64 <= max_text_bytes;
        if !fits || (head.status == Status::Text) == text.trim().is_empty() {
            return Err("the reader's report contradicts itself".into());
        }
        let Some(kind) = head.kind else {
            return Ok(Err(NotADocument));
        };
        Ok(Ok(Report {
            kind,
            status: head.status,
            reason: head.reason.and_then(|reason| clean(&reason)),
            metadata: head.metadata.clean(),
            text,
            landlock: head.landlock,
        }))
    }
}

/// Writes a report into the pipe to the parent process.
pub(crate) fn write(
    report: &Result<Report, NotADocument>,
    output: &mut impl Write,
) -> io::Result<()> {
    let head = match report {
        Ok(report) => Head {
            kind: Some(report.kind),
            status: report.status,
            reason: report.reason.as_deref().and_then(clean),
            metadata: report.metadata.clone().clean(),
            text_bytes: report.text.len(),
            landlock: report.landlock,
        },
        Err(NotADocument) => Head {
            kind: None,
            status: Status::NoText,
            reason: None,
            metadata: Metadata::default(),
            text_bytes: 0,
            landlock: true,
        },
    };
    serde_json::to_writer(&mut *output, &head)?;
    output.write_all(b"\n")?;
    if let Ok(report) = report {
        output.write_all(report.text.as_bytes())?;
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Report {
        Report {
            kind: Kind::Pdf,
            status: if text.is_empty() {
                Status::NoText
            } else {
                Status::Text
            },
            reason: None,
            metadata: Metadata {
                title: Some(" A\n\u{1}title ".into()),
                pages: Some(3),
                ..Metadata::default()
            },
            text: text.into(),
            landlock: true,
        }
    }

    fn write_to_vec(report: &Result<Report, NotADocument>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(report, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_written_report_is_read_back_with_clean_metadata() {
        for text in ["two\nlines", ""] {
            let bytes = write_to_vec(&Ok(report(text)));
            let read = Report::parse(bytes, 100).unwrap().unwrap();
            assert_eq!(read.text, text);
            assert_eq!(read.metadata.title.as_deref(), Some("A title"));
        }
        let bytes = write_to_vec(&Err(NotADocument));
        assert_eq!(Report::parse(bytes, 100), Ok(Err(NotADocument)));
    }

    #[test]
    fn a_report_that_cannot_be_right_is_refused() {
        let whole = write_to_vec(&Ok(report("some text")));
        assert!(
            Report::parse(whole.clone(), 4).is_err(),
            "longer than it may be"
        );
        assert!(
            Report::parse(whole[..whole.len() - 1].to_vec(), 100).is_err(),
            "cut"
        );
        assert!(Report::parse(Vec::new(), 100).is_err());
        assert!(Report::parse(b"{}\n".to_vec(), 100).is_err());
        let mut foreign = whole.clone();
        *foreign.last_mut().unwrap() = 0xff;
        assert!(Report::parse(foreign, 100).is_err());
        let mut endless = vec![b'x'; 1 << 20];
        endless.push(b'\n');
        assert!(Report::parse(endless, 100).is_err());
    }
}
