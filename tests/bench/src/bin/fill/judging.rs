//! Judges the outputs of `webfill fill` against the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use webfill_bench::sites::Failure;

use crate::catalogue::{FIELDS, Given, Table};

/// Cells, by the place of the row and of the field.
type Cells = BTreeSet<(usize, usize)>;

pub struct Judged {
    /// The values of the filled table.
    filled: Vec<Vec<String>>,
    /// Gaps whose page has a value, and those that are filled rightly and wrongly. A value for a gap whose page has
    /// none is wrong.
    gaps: usize,
    right: usize,
    wrong: usize,
    /// Known values on fetched pages, and those of them that are listed as doubts.
    wrong_known: (usize, usize),
    right_known: (usize, usize),
}

impl Judged {
    pub fn of(table: &Table, folder: &Path) -> Result<Judged, Failure> {
        let filled: Vec<Vec<String>> = records(&folder.join("books.filled.csv"))?;
        if filled.len() != table.rows.len() {
            return Err("the filled table has other rows".into());
        }
        let listed = listed(folder)?;
        let fetched = fetched_rows(folder)?;
        let mut judged = Judged {
            filled: filled.iter().map(|row| row[2..].to_vec()).collect(),
            gaps: 0,
            right: 0,
            wrong: 0,
            wrong_known: (0, 0),
            right_known: (0, 0),
        };
        let mut wrong: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, row) in table.rows.iter().enumerate() {
            for (field, name) in FIELDS.into_iter().enumerate() {
                let value = &judged.filled[at][field];
                let known = match &row.given[field] {
                    Given::Nothing | Given::Gap => {
                        judged.gaps += usize::from(row.given[field] == Given::Gap);
                        match value.is_empty() {
                            true => {}
                            false if *value == row.truth[field] => judged.right += 1,
                            false => {
                                judged.wrong += 1;
                                *wrong.entry(name).or_default() += 1;
                            }
                        }
                        continue;
                    }
                    Given::Right => &mut judged.right_known,
                    Given::Wrong(_) => &mut judged.wrong_known,
                };
                if fetched.contains(&at) {
                    known.0 += 1;
                    known.1 += usize::from(listed.contains(&(at, field)));
                }
            }
        }
        println!(
            "  {} gaps, {} filled rightly, {} wrongly {wrong:?}; {} of {} wrong and {} of {} right known values listed",
            judged.gaps,
            judged.right,
            judged.wrong,
            judged.wrong_known.1,
            judged.wrong_known.0,
            judged.right_known.1,
            judged.right_known.0
        );
        Ok(judged)
    }

    pub fn coverage(&self) -> f64 {
        share(self.right + self.wrong, self.gaps)
    }

    pub fn precision(&self) -> f64 {
        share(self.right, self.right + self.wrong)
    }

    pub fn wrong_listed(&self) -> f64 {
        share(self.wrong_known.1, self.wrong_known.0)
    }

    pub fn right_listed(&self) -> f64 {
        share(self.right_known.1, self.right_known.0)
    }

    pub fn right_rows(&self, table: &Table) -> f64 {
        let rows = table.rows.iter().zip(&self.filled);
        let right = rows.filter(|(row, filled)| row.truth[..] == filled[..]);
        share(right.count(), table.rows.len())
    }
}

fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}

fn records(file: &Path) -> Result<Vec<Vec<String>>, Failure> {
    let mut rows = Vec::new();
    for record in csv::Reader::from_path(file)?.records() {
        rows.push(record?.iter().map(str::to_owned).collect());
    }
    Ok(rows)
}

/// The cells in the file of doubts.
fn listed(folder: &Path) -> Result<Cells, Failure> {
    let mut cells = Cells::new();
    for row in records(&folder.join("books.doubts.csv"))? {
        let field = FIELDS.iter().position(|field| *field == row[2]);
        cells.insert((place(&row[1])?, field.ok_or("a doubt of another column")?));
    }
    Ok(cells)
}

/// The rows whose page was fetched.
fn fetched_rows(folder: &Path) -> Result<BTreeSet<usize>, Failure> {
    let text = std::fs::read_to_string(folder.join("books.evidence.jsonl"))?;
    let mut fetched: BTreeMap<usize, bool> = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        let row = place(line["id"].as_str().unwrap_or_default())?;
        *fetched.entry(row).or_default() |= !line["fetched_at"].is_null();
    }
    let fetched = fetched.into_iter().filter(|(_, is_fetched)| *is_fetched);
    Ok(fetched.map(|(row, _)| row).collect())
}

/// The place of the row with an id.
fn place(id: &str) -> Result<usize, Failure> {
    let number = id.strip_prefix('t').ok_or("an id of another form")?;
    Ok(number.parse()?)
}
