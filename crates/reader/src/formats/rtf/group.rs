//! The groups of an RTF: how their text is treated, and where in the document it belongs.

use super::code::{self, Code};

/// How the text of a group is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// The text belongs to the enclosing part.
    Text,
    /// The text is the names of fonts, with the code of each.
    Fonts,
    /// The text is ignored, as in style sheets. A group within it may have text again, such as the frame of a shape.
    Nothing,
    /// The group is a fallback for other readers, or a repetition. Nothing in it is read, not even groups within it.
    Closed,
    /// The text is dropped, because a group `\ud` behind it has the same text in Unicode.
    Replaced,
    Title,
    Author,
    Created,
    Modified,
}

/// The part of the document that a text belongs to, in reading order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Header,
    Body,
    /// The text of a frame, which follows the paragraph that it is anchored to.
    Frame,
    Footer,
    Note,
}

/// The state that is restored when a group ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) here: Destination,
    /// The destination that [`Destination::Replaced`] has replaced.
    pub(super) replaced: Destination,
    pub(super) part: Part,
    /// The number of fallback characters after each `\u`. They are for readers that do not know `\u`.
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
    /// The character code of the font.
    pub(super) code: Code,
}

impl Destination {
    /// The destination that a control word begins within this part of the document, if any, and the part to which its
    /// text belongs.
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
            // These control words occur within groups that old readers skip.
            "shptxt" | "dptxbxtext" => match within {
                Part::Body => (Destination::Text, Some(Part::Frame)),
                _ => (Destination::Text, None),
            },
            // The result of an object, which is shown in its place.
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
    /// The state outside of all groups.
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
