//! The groups of an RTF: how their text is treated, and which part of the document it belongs to.

use super::code::{self, Code};

/// How the text of a group is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// The text belongs to the part of the document around it.
    Text,
    /// The text consists of the names of fonts. Control words give the character code of each font.
    Fonts,
    /// The text is ignored, as in style sheets. A group within it may contain visible text again, such as the frame of
    /// a shape.
    Nothing,
    /// The group is a fallback for other readers, or a repetition. Nothing in it is read, not even groups within it.
    Closed,
    /// The text is dropped, because a following group `\ud` has the same text in Unicode.
    Replaced,
    Title,
    Author,
    Created,
    Modified,
}

/// The parts of a document, in reading order. Each text belongs to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Header,
    Body,
    /// The text of a frame, which is written after the paragraph that the frame is anchored to.
    Frame,
    Footer,
    Note,
}

/// The state of a group. When a group ends, the state of the group around it is restored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) here: Destination,
    /// The destination that was in force before [`Destination::Replaced`].
    pub(super) replaced: Destination,
    pub(super) part: Part,
    /// The number of fallback characters after each `\u`. Readers that know `\u` skip them.
    pub(super) replaced_by: u8,
    /// Whether the text is hidden.
    pub(super) is_hidden: bool,
    /// Whether the text was deleted, or moved to another place.
    pub(super) is_deleted: bool,
    /// Whether the paragraph is in a table.
    pub(super) is_row: bool,
    /// Whether the text is the number or bullet of an item.
    pub(super) is_label: bool,
    /// Whether the text is within the brackets of a formula.
    pub(super) is_bracketed: bool,
    /// The character code of the current font.
    pub(super) code: Code,
}

impl Destination {
    /// Returns the destination that a control word begins, and the part that its text belongs to. `within` is the
    /// current part. `None` if the word begins no destination.
    pub(super) fn from_control_word(
        word: &str,
        within: Part,
    ) -> Option<(Destination, Option<Part>)> {
        Some(match word {
            "title" => (Destination::Title, None),
            "author" => (Destination::Author, None),
            "creatim" => (Destination::Created, None),
            "revtim" => (Destination::Modified, None),
            "fonttbl" => (Destination::Fonts, None),
            "header" | "headerl" | "headerr" | "headerf" => (Destination::Text, Some(Part::Header)),
            "footer" | "footerl" | "footerr" | "footerf" => (Destination::Text, Some(Part::Footer)),
            "footnote" => (Destination::Text, Some(Part::Note)),
            // Old readers skip the groups that contain these control words.
            "shptxt" | "dptxbxtext" => match within {
                Part::Body => (Destination::Text, Some(Part::Frame)),
                _ => (Destination::Text, None),
            },
            // The text that is shown for an embedded object.
            "result" => (Destination::Text, None),
            "colortbl" | "stylesheet" | "object" | "info" | "listtable" | "themedata"
            | "datastore" | "xmlnstbl" | "rsidtbl" | "generator" | "xe" | "tc" => {
                (Destination::Nothing, None)
            }
            "pict" | "fldinst" | "shprslt" | "nonshppict" | "nonesttables" => {
                (Destination::Closed, None)
            }
            _ => return None,
        })
    }
}

impl Group {
    /// The state before the first group of the file.
    pub(super) fn outermost_group() -> Group {
        Group {
            here: Destination::Text,
            replaced: Destination::Nothing,
            part: Part::Body,
            replaced_by: 1,
            is_hidden: false,
            is_deleted: false,
            is_row: false,
            is_label: false,
            is_bracketed: false,
            code: code::ANSI,
        }
    }

    pub(super) fn is_invisible(&self) -> bool {
        self.is_hidden || self.is_deleted
    }

    pub(super) fn is_in_fonts(&self) -> bool {
        self.here == Destination::Fonts
    }
}
