//! The changes of a commit as rows, for the journal that a standby applies.
//!
//! A record of changes names, for each row that a transaction has changed, the columns that differ with their final
//! values; a deleted row has none. So applying it depends on no decision of the program that wrote it, and applying it
//! twice does no harm. Two files that were equal before are equal after: a row that is not named is the same in both,
//! and any other gets the same values. Tables and columns are named, so a file with further columns can take changes of
//! a program that does not know them.
//!
//! Rows are noted by a hook, by code, and by temporary triggers, which belong to the connection and not to the file. Data
//! of a file about itself are left out: the runs of its index of seen URLs, when it was created, and how far the journal
//! is applied.

mod applied;
mod applying;
mod changed_rows;
mod encoding;
mod noted_rows;
mod recording;
mod tables;

pub(super) use self::applied::delete_own_rows;
pub use self::applied::{Applied, is_unused, note_applied_position, read_applied_position};
pub use self::applying::{apply_changes, apply_commits};
pub(super) use self::recording::{CodeNotes, Recorder};
pub use self::tables::shared_rows;
