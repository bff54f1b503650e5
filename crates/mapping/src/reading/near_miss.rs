//! How far a failing path or selector matches, and which small change would make it find something. Only changes that
//! were tried on the page are suggested.

use std::cell::Cell;
use std::time::{Duration, Instant};

use webfill_document::{NodeRef, XValue};

use super::written::{Piece, WrittenPath, text_of};

/// How many other expressions are tried for one that finds nothing, and for how long.
const MOST_TRIED: u32 = 200;
const MOST_TIME: Duration = Duration::from_secs(1);
/// How many faults in one expression are fixed at most.
const MOST_FAULTS: usize = 3;

/// Evaluates an expression as the step does, and returns what it finds.
pub(super) type Probe<'s, 'p> = &'s dyn Fn(&str) -> Vec<XValue<'p>>;

/// Proposes changes that usually repair a failing expression, the likeliest first.
pub(super) type Cures = fn(&Break<'_, '_>) -> Vec<Vec<Piece>>;

/// Where a path or selector fails on a page. The pieces before the index `at` together find something, but no longer
/// with the piece at `at`.
pub(super) struct Break<'b, 'p> {
    pub(super) pieces: &'b [Piece],
    pub(super) at: usize,
    /// The nodes that the pieces before `at` select. If there are none, the nodes where the search begins.
    pub(super) found: &'b [NodeRef<'p>],
}

impl Break<'_, '_> {
    pub(super) fn failing_piece(&self) -> &Piece {
        &self.pieces[self.at]
    }

    /// The pieces, with `others` in place of the failing piece.
    pub(super) fn with_replacement(&self, others: &[Piece]) -> Vec<Piece> {
        self.with_replacement_at(self.at, others)
    }

    pub(super) fn with_replacement_at(&self, at: usize, others: &[Piece]) -> Vec<Piece> {
        [&self.pieces[..at], others, &self.pieces[at + 1..]].concat()
    }
}

pub(super) struct Search<'s, 'p> {
    probe: Probe<'s, 'p>,
    places: &'s [NodeRef<'p>],
    cures: Cures,
    left: Cell<u32>,
    /// Whether the limit was reached before everything was tried. It is then unknown where the expression fails.
    is_exhausted: Cell<bool>,
    until: Instant,
}

impl<'s, 'p> Search<'s, 'p> {
    pub(super) fn new(probe: Probe<'s, 'p>, places: &'s [NodeRef<'p>], cures: Cures) -> Self {
        Search {
            probe,
            places,
            cures,
            left: Cell::new(MOST_TRIED),
            is_exhausted: Cell::new(false),
            until: Instant::now() + MOST_TIME,
        }
    }

    /// A hint such as `matches up to //table; did you mean //table/tbody/tr?`. `None` if the expression finds
    /// something, or if searching takes too long.
    pub(super) fn hint(&self, written: &WrittenPath) -> Option<String> {
        let (at, _) = self.find_break(&written.pieces)?;
        if self.is_exhausted.get() {
            return None;
        }
        let reached = match at {
            0 => format!("not even {} matches", text_of(&written.pieces[..1])),
            _ => format!("matches up to {}", text_of(&written.pieces[..at])),
        };
        Some(match self.find_cure(&written.pieces, MOST_FAULTS) {
            Some(cured) => format!("{reached}; did you mean {}?", written.with_pieces(&cured)),
            None => reached,
        })
    }

    /// The index of the first piece where nothing is found any more, and the nodes that the earlier pieces select.
    /// `None` if all pieces together find something.
    fn find_break(&self, pieces: &[Piece]) -> Option<(usize, Vec<NodeRef<'p>>)> {
        let mut found = self.places.to_vec();
        for at in 0..pieces.len() {
            let values = self.evaluate_pieces(&pieces[..=at]);
            if values.is_empty() {
                return Some((at, found));
            }
            found = values.iter().filter_map(XValue::node).collect();
        }
        None
    }

    fn evaluate_pieces(&self, pieces: &[Piece]) -> Vec<XValue<'p>> {
        match self.left.get().checked_sub(1) {
            Some(left) if Instant::now() < self.until => {
                self.left.set(left);
                (self.probe)(&text_of(pieces))
            }
            _ => {
                self.is_exhausted.set(true);
                Vec::new()
            }
        }
    }

    /// Finds changed pieces that match something: with a single change if possible, and with at most `faults` changes.
    fn find_cure(&self, pieces: &[Piece], faults: usize) -> Option<Vec<Piece>> {
        let (at, found) = self.find_break(pieces)?;
        let cures = (self.cures)(&Break {
            pieces,
            at,
            found: &found,
        });
        let whole = cures
            .iter()
            .find(|cured| !self.evaluate_pieces(cured).is_empty());
        if whole.is_some() || faults == 1 {
            return whole.cloned();
        }
        // The expression has another fault after this one. So the search continues with changes that make more pieces
        // match.
        let ends_nearer = |cured: &&Vec<Piece>| {
            let reached = self.find_break(cured);
            reached.is_some_and(|(next, _)| cured.len() - next < pieces.len() - at)
        };
        let nearer: Vec<&Vec<Piece>> = cures.iter().filter(ends_nearer).collect();
        nearer
            .into_iter()
            .find_map(|cured| self.find_cure(cured, faults - 1))
    }
}
