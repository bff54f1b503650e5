//! A [`Cursor`]: a reader's position among the pages, in the order they became visible.

use std::fmt;
use std::str::FromStr;

/// The position of a reader of [`Changes::changes`](crate::Changes::changes). Readers keep it as opaque text between
/// calls. It is valid for one store, as long as that store exists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The store's id; `None` at the beginning.
    pub(crate) store: Option<String>,
    pub(crate) position: Position,
}

/// A position: an entry (pages that were saved together), and how many of its pages are read. Entries count from 1; 0
/// is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Position {
    /// All entries before this one are read, and of this entry as many pages as `pages` says.
    pub(crate) entry: u64,
    /// How many pages of a partly read entry are read; 0 if the entry is read to its end.
    pub(crate) pages: u32,
}

impl Cursor {
    /// The cursor before the first page.
    pub fn start() -> Cursor {
        Cursor::default()
    }

    pub(crate) fn new(store: &str, entry: u64, pages: u32) -> Cursor {
        Cursor {
            store: Some(store.to_owned()),
            position: Position { entry, pages },
        }
    }

    /// Whether a reader at this cursor has read everything before the other cursor. Cursors of different stores never
    /// cover each other.
    pub fn covers(&self, other: &Cursor) -> bool {
        let order = |cursor: &Cursor| {
            let Position { entry, pages } = cursor.position;
            (entry, if pages == 0 { u32::MAX } else { pages })
        };
        match (&self.store, &other.store) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(others)) => own == others && order(self) >= order(other),
        }
    }

    /// The first entry that is not read, or only partly read.
    fn next_entry(&self) -> u64 {
        let Position { entry, pages } = self.position;
        if pages > 0 { entry } else { entry + 1 }
    }
}

/// The entries that a store still has: those after `cut` up to `newest`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetainedRange {
    pub(crate) cut: u64,
    pub(crate) newest: u64,
}

/// Refuses a cursor of another store, beyond the newest entry, or before the oldest one.
pub(crate) fn check_cursor(
    cursor: &Cursor,
    store: &str,
    kept: RetainedRange,
) -> Result<(), String> {
    if cursor.store.as_deref().is_some_and(|other| other != store) {
        return Err(format!(
            "the cursor {cursor} is of another store: begin anew with {START}"
        ));
    }
    if cursor.position.entry > kept.newest {
        return Err(format!(
            "the cursor {cursor} is ahead of the store, which was perhaps put back from a copy: \
             begin anew with {START}"
        ));
    }
    match cursor.store.is_some() && cursor.next_entry() <= kept.cut {
        true => Err(too_late_message(cursor)),
        false => Ok(()),
    }
}

/// The error message for a reader whose next entry was dropped.
pub(crate) fn too_late_message(cursor: &Cursor) -> String {
    format!(
        "pages that were saved after the cursor {cursor} are dropped already, because they are older \
         than the store keeps them: begin anew with {START}, which passes what is kept"
    )
}

/// The text of the cursor at the beginning.
const START: &str = "0";

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { entry, pages } = self.position;
        match (&self.store, pages) {
            (None, _) => f.write_str(START),
            (Some(store), 0) => write!(f, "{store}-{entry}"),
            (Some(store), pages) => write!(f, "{store}-{entry}.{pages}"),
        }
    }
}

/// The error for a text that is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no cursor: give the `cursor` of a line that an export wrote, or {START} for the beginning"
)]
pub struct CursorError {
    text: String,
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Cursor, CursorError> {
        if text == START {
            return Ok(Cursor::start());
        }
        let read = || {
            let (store, position) = text.split_once('-')?;
            let (entry, pages) = match position.split_once('.') {
                None => (position, 0),
                Some((entry, pages)) => (entry, pages.parse().ok().filter(|pages| *pages > 0)?),
            };
            let is_store = !store.is_empty() && store.bytes().all(|byte| byte.is_ascii_hexdigit());
            let entry: i64 = entry.parse().ok()?;
            is_store.then_some(Cursor::new(store, u64::try_from(entry).ok()?, pages))
        };
        read().ok_or_else(|| CursorError { text: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_parsed_from_its_text() {
        let one = Cursor::new("a1b2", 17, 0);
        let two = Cursor::new("a1b2", u64::MAX >> 1, 511);
        for cursor in [Cursor::start(), one, two] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        assert_eq!(Cursor::start().to_string(), "0");
        assert_eq!(Cursor::new("a1b2", 17, 3).to_string(), "a1b2-17.3");
    }

    #[test]
    fn a_reader_before_the_first_kept_entry_is_refused() {
        let kept = RetainedRange { cut: 5, newest: 9 };
        let is_refused = |entry, pages| {
            let cursor = Cursor::new("a1", entry, pages);
            check_cursor(&cursor, "a1", kept).is_err()
        };
        assert!(is_refused(4, 0) && is_refused(5, 1));
        assert!(!is_refused(5, 0) && !is_refused(6, 1) && !is_refused(9, 0));
        assert!(check_cursor(&Cursor::start(), "a1", kept).is_ok());
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "1",
            "-",
            "-1",
            "x-1",
            "a1-",
            "a1--1",
            "a1-1.",
            "a1-1.0",
            "a1-1.2.3",
            "a1-x",
            "a1-99999999999999999999",
        ] {
            let refusal = text.parse::<Cursor>().unwrap_err().to_string();
            assert!(refusal.contains("is no cursor"), "{text}: {refusal}");
        }
    }
}
