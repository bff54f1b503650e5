//! Judges the outputs of `webfill fill` by the true values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use webfill_bench::sites::Failure;

use crate::catalogue::{Given, Row, Table};

/// Cells, by the positions of their row and field.
type Cells = BTreeSet<(usize, usize)>;

/// The results over one or several tables.
#[derive(Default)]
pub struct FillQuality {
    /// The number of gaps whose page has a value, and how many of them are filled correctly and wrongly. A gap whose
    /// page has no value is filled wrongly by any value.
    gaps: usize,
    right: usize,
    wrong: usize,
    /// The gaps in columns where the same site has a correct known value: how many there are, and how many are filled.
    known_fields: (usize, usize),
    rows: usize,
    right_rows: usize,
    /// The number of rows with gaps, and how many of them have all gaps filled correctly and nothing filled wrongly.
    rows_with_gaps: usize,
    completed: usize,
    /// The known values on fetched pages: how many there are, and how many of them are listed as doubts. First for
    /// wrong known values, then for correct ones.
    wrong_known: (usize, usize),
    right_known: (usize, usize),
}

impl FillQuality {
    pub fn compare_with_truth(table: &Table, folder: &Path) -> Result<FillQuality, Failure> {
        let filled: Vec<Vec<String>> = read_records(&folder.join("books.filled.csv"))?;
        if filled.len() != table.rows.len() {
            return Err("the filled table has other rows".into());
        }
        let listed = read_doubts(table, folder)?;
        let fetched = fetched_rows(folder)?;
        let known_fields = known_fields(table);
        let mut judged = FillQuality::default();
        for (at, (row, filled)) in table.rows.iter().zip(&filled).enumerate() {
            let (gaps, right, wrong) = (judged.gaps, judged.right, judged.wrong);
            let mut is_right = true;
            for (field, (given, truth)) in row.given.iter().zip(&row.truth).enumerate() {
                let value = &filled[2 + field];
                is_right &= truth.matches(value);
                let known = match given {
                    Given::Nothing | Given::Gap => {
                        judged.gaps += usize::from(*given == Given::Gap);
                        if *given == Given::Gap && known_fields.contains(&(row.site(), field)) {
                            judged.known_fields.0 += 1;
                            judged.known_fields.1 += usize::from(!value.is_empty());
                        }
                        match value.is_empty() {
                            true => {}
                            false if truth.matches(value) => judged.right += 1,
                            false => judged.wrong += 1,
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
            judged.rows += 1;
            judged.right_rows += usize::from(is_right);
            let gaps = judged.gaps - gaps;
            let is_completed = judged.right - right == gaps && judged.wrong == wrong;
            judged.rows_with_gaps += usize::from(gaps > 0);
            judged.completed += usize::from(gaps > 0 && is_completed);
        }
        Ok(judged)
    }

    pub fn add(&mut self, other: &FillQuality) {
        self.gaps += other.gaps;
        self.right += other.right;
        self.wrong += other.wrong;
        self.rows += other.rows;
        self.right_rows += other.right_rows;
        self.rows_with_gaps += other.rows_with_gaps;
        self.completed += other.completed;
        for (own, others) in [
            (&mut self.known_fields, other.known_fields),
            (&mut self.wrong_known, other.wrong_known),
            (&mut self.right_known, other.right_known),
        ] {
            own.0 += others.0;
            own.1 += others.1;
        }
    }

    pub fn print(&self) {
        println!(
            "  {} gaps, {} filled rightly, {} wrongly; {} of {} wrong and {} of {} right known values listed",
            self.gaps,
            self.right,
            self.wrong,
            self.wrong_known.1,
            self.wrong_known.0,
            self.right_known.1,
            self.right_known.0
        );
    }

    pub fn coverage(&self) -> f64 {
        share(self.right + self.wrong, self.gaps)
    }

    pub fn coverage_of_known_fields(&self) -> f64 {
        share(self.known_fields.1, self.known_fields.0)
    }

    pub fn precision(&self) -> f64 {
        share(self.right, self.right + self.wrong)
    }

    pub fn wrong_listed_share(&self) -> f64 {
        share(self.wrong_known.1, self.wrong_known.0)
    }

    pub fn right_listed_share(&self) -> f64 {
        share(self.right_known.1, self.right_known.0)
    }

    pub fn right_row_share(&self) -> f64 {
        share(self.right_rows, self.rows)
    }

    pub fn completed_row_share(&self) -> f64 {
        share(self.completed, self.rows_with_gaps)
    }
}

/// The fields of each site that have a correct known value in the table.
fn known_fields(table: &Table) -> BTreeSet<(&str, usize)> {
    let of_row = |row: &Row| {
        let given = row.given.iter().enumerate();
        let right = given.filter(|(_, given)| **given == Given::Right);
        right.map(|(field, _)| field).collect::<Vec<_>>()
    };
    let rows = table.rows.iter();
    rows.flat_map(|row| of_row(row).into_iter().map(|field| (row.site(), field)))
        .collect()
}

fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}

/// Prints all mistakes, each with its evidence: gaps filled wrongly or not at all, and known values that were listed
/// wrongly or not at all.
pub fn print_mistakes(table: &Table, folder: &Path) -> Result<(), Failure> {
    let filled: Vec<Vec<String>> = read_records(&folder.join("books.filled.csv"))?;
    let listed = read_doubts(table, folder)?;
    let evidence = read_evidence(folder)?;
    for (at, row) in table.rows.iter().enumerate() {
        for (field, (given, truth)) in row.given.iter().zip(&row.truth).enumerate() {
            let value = &filled[at][2 + field];
            let is_listed = listed.contains(&(at, field));
            let what = match given {
                Given::Gap | Given::Nothing if truth.matches(value) => continue,
                Given::Gap | Given::Nothing if value.is_empty() => "lost",
                Given::Gap | Given::Nothing => "WRONG",
                Given::Right if is_listed => "FALSE DOUBT",
                Given::Wrong(_) if !is_listed => "NOT LISTED",
                _ => continue,
            };
            let name = &table.fields[field];
            let lines = evidence.get(&(at, name.clone()));
            let lines = lines.map(Vec::as_slice).unwrap_or_default();
            let of = |member: &str| {
                lines
                    .first()
                    .map_or("", |line| line[member].as_str().unwrap_or_default())
            };
            let read = lines.iter().filter_map(|line| line["value"].as_str());
            println!(
                "    {what}: {} {name}: {:?}, read {:?}, {} {} {}",
                row.url.trim_start_matches("http://"),
                truth.text(),
                read.collect::<Vec<_>>(),
                of("state"),
                lines
                    .first()
                    .map_or(&Value::Null, |line| &line["confidence"]),
                of("refusal"),
            );
        }
    }
    Ok(())
}

/// The lines of the evidence file, by row and column.
pub fn read_evidence(folder: &Path) -> Result<BTreeMap<(usize, String), Vec<Value>>, Failure> {
    let text = std::fs::read_to_string(folder.join("books.evidence.jsonl"))?;
    let mut lines: BTreeMap<(usize, String), Vec<Value>> = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        let row = row_index(line["id"].as_str().unwrap_or_default())?;
        let column = line["column"].as_str().unwrap_or_default().to_owned();
        lines.entry((row, column)).or_default().push(line);
    }
    Ok(lines)
}

fn read_records(file: &Path) -> Result<Vec<Vec<String>>, Failure> {
    let mut rows = Vec::new();
    for record in csv::Reader::from_path(file)?.records() {
        rows.push(record?.iter().map(str::to_owned).collect());
    }
    Ok(rows)
}

/// The cells in the file of doubts.
fn read_doubts(table: &Table, folder: &Path) -> Result<Cells, Failure> {
    let mut cells = Cells::new();
    for row in read_records(&folder.join("books.doubts.csv"))? {
        let field = table.fields.iter().position(|field| *field == row[2]);
        cells.insert((
            row_index(&row[1])?,
            field.ok_or("a doubt of another column")?,
        ));
    }
    Ok(cells)
}

/// The positions of rows whose page was fetched.
fn fetched_rows(folder: &Path) -> Result<BTreeSet<usize>, Failure> {
    let evidence = read_evidence(folder)?;
    let is_fetched = |lines: &[Value]| lines.iter().any(|line| !line["fetched_at"].is_null());
    let fetched = evidence.iter().filter(|(_, lines)| is_fetched(lines));
    Ok(fetched.map(|((row, _), _)| *row).collect())
}

/// The position of the row that has this id.
fn row_index(id: &str) -> Result<usize, Failure> {
    let number = id.strip_prefix('t').ok_or("an id of another form")?;
    Ok(number.parse()?)
}
