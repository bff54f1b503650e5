//! `TABLE.doubts.csv`: known values that their pages contradict. A person writes `accept` or `reject` into the last
//! column; `--doubts` reads the answers back, and the project keeps them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use webfill_service::Fault;
use webfill_truth::Judgement;

use super::evidence::Sources;
use super::judging::{Cell, State, Verdict};
use super::project::Project;
use super::table::{Change, Table};
use crate::mapping_command::writing::write_atomically;

const COLUMNS: [&str; 9] = [
    "row",
    "id",
    "column",
    "known",
    "page",
    "confidence",
    "url",
    "excerpt",
    "answer",
];

/// What a person says about a doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub row: u64,
    pub id: String,
    pub column: String,
    pub known: String,
    pub page: String,
    pub is_accepted: bool,
}

/// By row and column.
pub type Answers = BTreeMap<(u64, String), Answer>;

/// The answers of the project, and those of a file that a person has edited.
pub fn answers(project: &Project, edited: Option<&Path>) -> Result<Answers, Fault> {
    let mut answers = Answers::new();
    if let Ok(text) = std::fs::read_to_string(project.answers()) {
        let kept: Vec<Answer> = serde_json::from_str(&text)
            .map_err(|error| Fault::error(format!("{}: {error}", project.answers().display())))?;
        answers.extend(kept.into_iter().map(|answer| (answer.key(), answer)));
    }
    if let Some(file) = edited {
        answers.extend(read(file)?.into_iter().map(|answer| (answer.key(), answer)));
    }
    Ok(answers)
}

/// Keeps answers for later runs.
pub fn keep(project: &Project, answers: &Answers) -> Result<(), Fault> {
    if answers.is_empty() {
        return Ok(());
    }
    let list: Vec<&Answer> = answers.values().collect();
    let text = serde_json::to_string_pretty(&list).map_err(Fault::error)?;
    write_atomically(&project.answers(), text.as_bytes())
}

impl Answer {
    fn key(&self) -> (u64, String) {
        (self.row, self.column.clone())
    }
}

fn read(file: &Path) -> Result<Vec<Answer>, Fault> {
    let shown = file.display();
    let mut reader = csv::Reader::from_path(file)
        .map_err(|error| Fault::usage(format!("--doubts {shown}: {error}")))?;
    let heads = reader
        .headers()
        .map_err(|error| Fault::usage(format!("--doubts {shown}: {error}")))?;
    let places: Result<Vec<usize>, Fault> = COLUMNS
        .iter()
        .map(|name| {
            let place = heads.iter().position(|head| head == *name);
            place.ok_or_else(|| {
                Fault::usage(format!("--doubts {shown}: the column `{name}` is missing"))
            })
        })
        .collect();
    let places = places?;
    let mut answers = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| Fault::usage(format!("--doubts {shown}: {error}")))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |column: usize| record.get(places[column]).unwrap_or_default().to_owned();
        let is_accepted = match webfill_values::trimmed(&cell(8)).to_lowercase().as_str() {
            "" => continue,
            "accept" => true,
            "reject" => false,
            other => {
                return Err(Fault::usage(format!(
                    "--doubts {shown}: line {line}: `{other}` is no answer: write accept or reject"
                )));
            }
        };
        let row = cell(0).parse().map_err(|_| {
            Fault::usage(format!(
                "--doubts {shown}: line {line}: `{}` is no row",
                cell(0)
            ))
        })?;
        answers.push(Answer {
            row,
            id: cell(1),
            column: cell(2),
            known: cell(3),
            page: cell(4),
            is_accepted,
        });
    }
    Ok(answers)
}

/// Takes accepted values for known ones, from which is learned at once. Answers to values that the table no longer has
/// are left out. Returns the values to write.
pub fn apply(table: &mut Table, answers: &mut Answers) -> BTreeMap<(u64, usize), Change> {
    let mut accepted = BTreeMap::new();
    let mut live = Answers::new();
    let fields = &table.fields;
    for row in &mut table.rows {
        for (at, field) in fields.iter().enumerate() {
            let key = (row.number, field.title.clone());
            let Some(answer) = answers.remove(&key) else {
                continue;
            };
            if answer.id != row.id || field.joined(&row.known[at]) != answer.known {
                continue;
            }
            if answer.is_accepted {
                let values = field.parted(&answer.page);
                let old = std::mem::replace(&mut row.known[at], values.clone());
                accepted.insert((row.number, field.column), Change { values, old });
            }
            live.insert(key, answer);
        }
    }
    *answers = live;
    accepted
}

/// The cells that are worth a person's look, the surest first.
pub fn doubtful<'v>(table: &Table, verdict: &'v Verdict, answers: &Answers) -> Vec<&'v Cell> {
    let is_open = |cell: &&Cell| {
        let key = (
            table.rows[cell.row as usize].number,
            table.fields[cell.field].title.clone(),
        );
        cell.state == State::Contradicted
            && cell.confidence >= Judgement::DOUBTED
            && !answers.contains_key(&key)
    };
    let mut doubtful: Vec<&Cell> = verdict.cells.iter().filter(is_open).collect();
    doubtful.sort_by(|a, b| {
        b.confidence
            .total_cmp(&a.confidence)
            .then((a.row, a.field).cmp(&(b.row, b.field)))
    });
    doubtful
}

pub fn write(project: &Project, sources: &Sources<'_>, doubtful: &[&Cell]) -> Result<(), Fault> {
    let failed = |error: String| {
        Fault::error(format!(
            "cannot write {}: {error}",
            project.doubts().display()
        ))
    };
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(COLUMNS)
        .map_err(|error| failed(error.to_string()))?;
    for cell in doubtful {
        let lines = sources.lines(cell);
        let line = &lines[0];
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let page = sources.table.fields[cell.field].joined(&cell.values);
        let cells = [
            line["row"].to_string(),
            text("id"),
            text("column"),
            text("known"),
            page,
            format!("{:.3}", cell.confidence),
            text("url"),
            text("excerpt"),
            String::new(),
        ];
        out.write_record(&cells)
            .map_err(|error| failed(error.to_string()))?;
    }
    let text = out
        .into_inner()
        .map_err(|error| failed(error.to_string()))?;
    write_atomically(&project.doubts(), &text)
}
