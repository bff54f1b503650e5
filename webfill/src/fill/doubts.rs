//! `TABLE.doubts.csv`: known values that their pages contradict, and values that other sites propose. A person writes
//! `accept` or `reject` into the last column; `--doubts` reads the answers back, and the project keeps them.
//!
//! The review in the dashboard answers the same doubts ([`super::review`]).
//!
//! An accepted value is taken from the project's own notes, not from the file, because a spreadsheet may have changed
//! its cells.

mod answers;
mod file;
mod listed;

use std::collections::{BTreeSet, HashMap};

use webfill_service::Fault;
use webfill_truth::Judgement;

pub use self::answers::{Answers, apply_answers, load_answers, save_answers};
pub use self::file::open_doubts;
pub use self::listed::ListedDoubt;

use self::answers::write_json;
use self::file::COLUMNS;
use self::listed::ShownCells;
use super::deciding::{Cell, State};
use super::evidence::Sources;
use super::judgement::Verdict;
use super::project::Project;
use super::table::Table;
use super::{review, unseen};
use crate::export::CellStyle;
use crate::mapping_command::writing::write_atomically;

/// The cells that people should review: first doubts, beginning with the most certain one, then questions about
/// proposals.
pub fn cells_to_review<'v>(
    table: &Table,
    verdict: &'v Verdict,
    answers: &Answers,
) -> Vec<&'v Cell> {
    let is_open = |cell: &&Cell| {
        let place = (
            table.rows[cell.row as usize].number,
            table.fields[cell.field].column,
        );
        cell.state == State::Contradicted
            && cell.confidence >= Judgement::DOUBTED
            && !answers.has_answered(place)
    };
    let mut doubtful: Vec<&Cell> = verdict.cells.iter().filter(is_open).collect();
    doubtful.sort_by(|a, b| {
        b.confidence
            .total_cmp(&a.confidence)
            .then((a.row, a.field).cmp(&(b.row, b.field)))
    });
    doubtful.extend(unseen::questions(table, verdict, answers));
    doubtful
}

/// Writes the file of doubts, unless a person has written answers into it since it was read.
pub fn write_doubts(
    project: &Project,
    sources: &Sources<'_>,
    doubtful: &[&Cell],
    answers: &Answers,
) -> Result<(), Fault> {
    let file = project.doubts_file();
    let file = file.display();
    let shown: Vec<review::ShownDoubt> = doubtful
        .iter()
        .map(|cell| shown_doubt(sources, cell))
        .collect();
    review::write_list(project, &shown)?;
    if !matches!(answers.count_unread_answers(project), Ok(0)) {
        webfill_service::say!(
            "webfill: {file} was changed during the run, and is not written again: run the same command with --doubts {file}"
        );
        return Ok(());
    }
    let failed = |error: String| Fault::error(format!("cannot write {file}: {error}"));
    let mut listed = answers.listed.clone();
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(COLUMNS)
        .map_err(|error| failed(error.to_string()))?;
    for one in shown {
        // People open the file in a spreadsheet, so no text may act as a formula.
        let safe = |text: &str| CellStyle::Spreadsheet.format_text(text).into_owned();
        let cells = &one.doubt.shown;
        let record = [
            &one.row.to_string(),
            &cells.id,
            &cells.column,
            &cells.known,
            &cells.page,
            &format!("{:.3}", one.confidence),
            &cells.url,
            &safe(one.excerpt.as_deref().unwrap_or_default()),
            &String::new(),
        ];
        out.write_record(record)
            .map_err(|error| failed(error.to_string()))?;
        listed.push(one.doubt);
    }
    let text = out
        .into_inner()
        .map_err(|error| failed(error.to_string()))?;
    // Keep older doubts, because a person may have a copy of an older file. Of equal doubts, the newest is enough.
    let mut newest: HashMap<String, usize> = HashMap::new();
    for (at, doubt) in listed.iter().enumerate() {
        newest.insert(serde_json::to_string(doubt).map_err(Fault::error)?, at);
    }
    let kept: BTreeSet<usize> = newest.into_values().collect();
    let listed: Vec<&ListedDoubt> = kept.into_iter().map(|at| &listed[at]).collect();
    write_json(&project.listed_doubts_file(), &listed)?;
    write_atomically(&project.doubts_file(), &text)
}

/// A doubt as people see it.
fn shown_doubt(sources: &Sources<'_>, cell: &Cell) -> review::ShownDoubt {
    let lines = sources.lines(cell);
    let line = &lines[0];
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let safe = |text: &str| CellStyle::Spreadsheet.format_text(text).into_owned();
    let table = sources.table;
    let (row, field) = (&table.rows[cell.row as usize], &table.fields[cell.field]);
    let page = field.join_values(&cell.values);
    review::ShownDoubt {
        row: row.number,
        id: text("id"),
        column: text("column"),
        known: text("known"),
        confidence: cell.confidence,
        url: line["url"].as_str().map(str::to_owned),
        excerpt: line["excerpt"].as_str().map(str::to_owned),
        doubt: ListedDoubt {
            id: row.id.clone(),
            links: table.links.urls(&row.links),
            column: field.title.clone(),
            known: row.known_values(cell.field),
            page: cell.values.clone(),
            shown: ShownCells {
                id: safe(&text("id")),
                column: safe(&text("column")),
                known: safe(&text("known")),
                page: safe(&page),
                url: safe(&text("url")),
            },
        },
        page,
    }
}
