//! JSON lines, and JSON arrays of objects.

mod edit;
mod extent;
mod members;
mod rows;

pub(crate) use rows::JsonRows;

/// How the objects of a text are arranged: one in each line, or all in one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Lines,
    Array,
}

impl Layout {
    /// The layout of a text that begins with these bytes; `None` if it is not JSON.
    pub(crate) fn detect(beginning: &[u8]) -> Option<Layout> {
        let mut rest = beginning.trim_ascii_start();
        match rest.split_off_first()? {
            b'[' => {
                let first = rest.trim_ascii_start().first()?;
                matches!(first, b'{' | b']' | b'[').then_some(Layout::Array)
            }
            b'{' => {
                let first = rest.trim_ascii_start().first()?;
                matches!(first, b'"' | b'}').then_some(Layout::Lines)
            }
            _ => None,
        }
    }
}
