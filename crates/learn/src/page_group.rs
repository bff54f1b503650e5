//! A group of pages of one site, prepared for learning.

use serde_json::Value;

use crate::candidates::Candidate;
use crate::evaluate::{self, Reading, RowReader};
use crate::labels::{Labels, Leaks};
use crate::places::Places;
use crate::types::Page;

/// A group of pages prepared for learning. It may also be a group of rows of pages; each row is then treated as a page.
pub(crate) struct Group<'d> {
    pub(crate) pages: Vec<Places<'d>>,
    pub(crate) labels: Labels,
    pub(crate) leaks: Leaks,
    /// How extraction chains run within rows; `None` for a group of pages.
    pub(crate) rows: Option<RowReader<'d>>,
}

impl Group<'_> {
    /// What the candidates read on these pages.
    pub(crate) fn read(&self, candidates: &[Candidate], numbers: &[usize]) -> Vec<Vec<Reading>> {
        let chains: Vec<&[Value]> = candidates
            .iter()
            .map(|one| one.processors.as_slice())
            .collect();
        match &self.rows {
            Some(rows) => rows.read(&chains, numbers),
            None => {
                let pages: Vec<&Page> = numbers.iter().map(|&at| self.pages[at].page).collect();
                evaluate::read_chains(&chains, &pages)
            }
        }
    }

    pub(crate) fn read_all(&self, candidates: &[Candidate]) -> Vec<Vec<Reading>> {
        let numbers: Vec<usize> = (0..self.pages.len()).collect();
        self.read(candidates, &numbers)
    }
}
