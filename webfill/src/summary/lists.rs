//! The part of the summary about lists: how many were read completely, and how many of their rows are gone.

use std::fmt::Write;

use serde_json::{Value, json};
use webfill_store::{CheckedRows, Doubt, ListPass, ListState};

use super::printing::escape_and_shorten;

/// The most doubtful lists that the summary names. A list is doubtful if it has lost too many rows at once.
const MOST_DOUBTED: usize = 5;

/// The number of lists, by how far they were read, and the number of their rows that are gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListCounts {
    complete: u64,
    open: u64,
    broken_off: u64,
    /// The number of rows that are gone, and the number of those that the last reading found missing.
    gone: u64,
    newly_gone: u64,
    doubted: u64,
    first_doubted: Vec<(String, Doubt)>,
}

impl ListCounts {
    pub fn add(&mut self, list: &ListPass, rows: &[CheckedRows]) {
        match list.state {
            ListState::Complete => self.complete += 1,
            ListState::Open => self.open += 1,
            ListState::BrokenOff => self.broken_off += 1,
        }
        self.gone += rows.iter().map(|judged| judged.rows.gone).sum::<u64>();
        let newly_gone = rows.iter().map(|judged| judged.rows.newly_gone);
        self.newly_gone += newly_gone.sum::<u64>();
        if let Some(doubt) = rows.iter().find_map(|judged| judged.doubt) {
            self.doubted += 1;
            if self.first_doubted.len() < MOST_DOUBTED {
                self.first_doubted.push((list.first.clone(), doubt));
            }
        }
    }

    /// Whether any list has lost so many rows that the loss is doubtful.
    pub fn has_doubts(&self) -> bool {
        self.doubted > 0
    }

    pub fn json(&self) -> Value {
        json!({
            "complete": self.complete,
            "open": self.open,
            "broken_off": self.broken_off,
            "rows_gone": self.gone,
            "rows_newly_gone": self.newly_gone,
            "doubted": self.doubted,
        })
    }

    /// The text of this part, without a final line break.
    pub fn text(&self) -> String {
        let ListCounts {
            complete,
            open,
            broken_off,
            ..
        } = self;
        let mut text = format!("{complete} complete, {open} open, {broken_off} broken off");
        if self.gone > 0 {
            let rows = if self.gone == 1 { "row" } else { "rows" };
            let _ = write!(
                text,
                "; {} {rows} gone, {} of them since the last reading",
                self.gone, self.newly_gone
            );
        }
        for (list, doubt) in &self.first_doubted {
            let _ = write!(
                text,
                "\n            no row of {} is marked as gone: {}",
                escape_and_shorten(list),
                doubt.text()
            );
        }
        let more = self.doubted.saturating_sub(self.first_doubted.len() as u64);
        if more > 0 {
            let _ = write!(text, "\n            and none of {more} other lists");
        }
        text
    }
}
