//! `TABLE.doubts.csv`: known values that their pages contradict, and values that other sites propose. A person writes
//! `accept` or `reject` into the last column; `--doubts` reads the answers back, and the project keeps them.
//!
//! The review in the dashboard answers the same doubts ([`super::review`]).
//!
//! The accepted value is that of the page, as the project has noted it: a spreadsheet may have changed the cells.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Cursor, ErrorKind};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use webfill_service::Fault;
use webfill_truth::Judgement;

use super::deciding::{Cell, State};
use super::evidence::Sources;
use super::judgement::Verdict;
use super::project::Project;
use super::review::{self, Decision, ReviewAnswer};
use super::table::{Change, Table};
use super::unseen;
use crate::export::CellStyle;
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

/// Cells of a line as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ShownCells {
    id: String,
    column: String,
    known: String,
    page: String,
    url: String,
}

/// A doubt that was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedDoubt {
    /// The id of the row. Where there is none, the links distinguish rows: numbers of rows change.
    id: Option<String>,
    links: Vec<String>,
    column: String,
    known: Vec<String>,
    page: Vec<String>,
    shown: ShownCells,
}

/// A person's answer to a doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    doubt: ListedDoubt,
    is_accepted: bool,
}

/// The answers that the project keeps.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptAnswers {
    answers: Vec<Answer>,
    /// How many bytes of the file with the answers of reviews were taken into `answers`.
    reviewed: u64,
}

/// All answers, and what they are answers to.
#[derive(Debug, Default)]
pub struct Answers {
    all: Vec<Answer>,
    reviewed: u64,
    listed: Vec<ListedDoubt>,
    /// The answered cells that the table has, by the number of the row and the column.
    answered: BTreeSet<(u64, usize)>,
    /// Proposed values that were rejected: the URL of the page, and the place of the field.
    pub withdrawn: BTreeSet<(String, usize)>,
    /// Values for gaps that were rejected, by the number of the row and the column.
    pub rejected: HashMap<(u64, usize), Vec<String>>,
    /// The doubts that reviews have answered after the file of doubts was last changed. The answers in its lines do not
    /// override these.
    later: Vec<ListedDoubt>,
    /// When the file of doubts was changed last before the run.
    changed: i64,
    /// How many answers are about values that the table does not have now. These answers are kept.
    pub idle: usize,
}

/// The answers of the project, and those of a file that a person has edited.
pub fn load_answers(project: &Project, edited: Option<&Path>) -> Result<Answers, Fault> {
    let kept: KeptAnswers = read_json(&project.answers())?;
    let (reviewed, end) = review::answers_behind(project, kept.reviewed)?;
    let mut answers = Answers {
        all: kept.answers,
        reviewed: end,
        listed: read_json(&project.listed_doubts())?,
        changed: changed_ms(&project.doubts()),
        ..Answers::default()
    };
    let changed = edited.map_or(i64::MAX, changed_ms);
    let (before, after): (Vec<_>, Vec<_>) = reviewed.into_iter().partition(|one| one.at <= changed);
    answers.take_reviewed(before);
    if let Some(file) = edited {
        for Answer { doubt, is_accepted } in read(file, &answers.listed)? {
            answers.set_answer(doubt, Some(is_accepted));
        }
    }
    // Of two answers the later counts.
    answers.later = after.iter().map(|one| one.doubt.clone()).collect();
    answers.take_reviewed(after);
    match answers.unread(project)? {
        0 => Ok(answers),
        unread => {
            let file = project.doubts();
            let file = file.display();
            Err(Fault::usage(format!(
                "{file} holds answers that were not read, {unread} of them: add --doubts {file}, or delete the file"
            )))
        }
    }
}

/// When a file was changed last, in milliseconds since 1970; nothing is later than an unknown time.
fn changed_ms(file: &Path) -> i64 {
    let changed = std::fs::metadata(file).and_then(|file| file.modified());
    let since = changed
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.map_or(i64::MAX, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Keeps answers for later runs.
pub fn save_answers(project: &Project, answers: &Answers) -> Result<(), Fault> {
    if answers.all.is_empty() && answers.reviewed == 0 {
        return Ok(());
    }
    let kept = KeptAnswers {
        answers: answers.all.clone(),
        reviewed: answers.reviewed,
    };
    write_json(&project.answers(), &kept)
}

/// Reads a file; a missing one counts as empty. An unreadable one is an error, because its content would be lost.
fn read_json<T: DeserializeOwned + Default>(file: &Path) -> Result<T, Fault> {
    let unread = |error: String| Fault::error(format!("cannot read {}: {error}", file.display()));
    match std::fs::read(file) {
        Ok(json) => serde_json::from_slice(&json).map_err(|error| unread(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(unread(error.to_string())),
    }
}

fn write_json(file: &Path, content: &impl Serialize) -> Result<(), Fault> {
    let json = serde_json::to_vec_pretty(content).map_err(Fault::error)?;
    write_atomically(file, &json)
}

impl ListedDoubt {
    fn is_of_same_value(&self, other: &ListedDoubt) -> bool {
        (&self.id, &self.links, &self.column, &self.known)
            == (&other.id, &other.links, &other.column, &other.known)
    }
}

impl Answers {
    /// Whether a person has answered about a cell, by the number of its row and its column.
    pub fn has_answered(&self, place: (u64, usize)) -> bool {
        self.answered.contains(&place)
    }

    fn take_reviewed(&mut self, reviewed: Vec<ReviewAnswer>) {
        for one in reviewed {
            let is_accepted = match one.answer {
                Decision::Accept => Some(true),
                Decision::Reject => Some(false),
                Decision::Undo => None,
            };
            self.set_answer(one.doubt, is_accepted);
        }
    }

    /// Replaces the former answer to the same doubt; `None` only removes it.
    fn set_answer(&mut self, doubt: ListedDoubt, is_accepted: Option<bool>) {
        self.all
            .retain(|former| !former.doubt.is_of_same_value(&doubt));
        if let Some(is_accepted) = is_accepted {
            self.all.push(Answer { doubt, is_accepted });
        }
    }

    /// How many answers in the file of doubts were not read. Writing the file again would lose them.
    fn unread(&self, project: &Project) -> Result<usize, Fault> {
        let file = project.doubts();
        if !file.exists() {
            return Ok(0);
        }
        let lines = lines(&file).map_err(|fault| {
            Fault::usage(format!(
                "{}: move it away, doubts are written there",
                fault.message
            ))
        })?;
        let is_same_file = changed_ms(&file) == self.changed;
        let is_read = |line: &Line| {
            let Some((doubt, _)) = line.find(&self.listed) else {
                return false;
            };
            let mut later = self.later.iter();
            if is_same_file && later.any(|later| later.is_of_same_value(doubt)) {
                return true;
            }
            let mut of_line = self.all.iter().filter(|answer| answer.doubt == *doubt);
            of_line.any(|answer| Ok(answer.is_accepted) == line.is_accepted())
        };
        let answered = lines.iter().filter(|line| !line.answer.is_empty());
        Ok(answered.filter(|line| !is_read(line)).count())
    }
}

/// A line of a file of doubts.
struct Line {
    number: u64,
    shown: ShownCells,
    answer: String,
}

impl Line {
    /// The doubt that the line is about, and whether its values are as they were written.
    fn find<'l>(&self, listed: &'l [ListedDoubt]) -> Option<(&'l ListedDoubt, bool)> {
        let is_its = |doubt: &&ListedDoubt| {
            let shown = &doubt.shown;
            (&shown.id, &shown.column, &shown.url)
                == (&self.shown.id, &self.shown.column, &self.shown.url)
        };
        let its: Vec<&ListedDoubt> = listed.iter().filter(is_its).collect();
        match (
            its.iter().find(|doubt| doubt.shown == self.shown),
            its.as_slice(),
        ) {
            (Some(doubt), _) => Some((*doubt, true)),
            (None, [doubt]) => Some((*doubt, false)),
            _ => None,
        }
    }

    fn is_accepted(&self) -> Result<bool, String> {
        match self.answer.as_str() {
            "accept" => Ok(true),
            "reject" => Ok(false),
            other => Err(format!("`{other}` is no answer: write accept or reject")),
        }
    }
}

/// Opens a file of doubts, which a spreadsheet may have saved in its own encoding and with its own delimiter.
pub fn open(file: &Path) -> std::io::Result<csv::Reader<Cursor<String>>> {
    let text = webfill_table::text_of(&std::fs::read(file)?);
    let head = text.lines().next().unwrap_or_default();
    let delimiter = [b';', b'\t']
        .into_iter()
        .find(|sign| head.contains(char::from(*sign)));
    Ok(csv::ReaderBuilder::new()
        .delimiter(delimiter.unwrap_or(b','))
        .from_reader(Cursor::new(text)))
}

fn lines(file: &Path) -> Result<Vec<Line>, Fault> {
    let unread = |error: String| Fault::usage(format!("cannot read {}: {error}", file.display()));
    let mut reader = open(file).map_err(|error| unread(error.to_string()))?;
    let heads = reader
        .headers()
        .map_err(|error| unread(error.to_string()))?;
    let place = |name: &&str| {
        let place = heads.iter().position(|head| head == *name);
        place.ok_or_else(|| unread(format!("the column `{name}` is missing")))
    };
    let places: Vec<usize> = COLUMNS.iter().map(place).collect::<Result<_, Fault>>()?;
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| unread(error.to_string()))?;
        let cell = |column: usize| record.get(places[column]).unwrap_or_default().to_owned();
        lines.push(Line {
            number: record.position().map_or(0, csv::Position::line),
            shown: ShownCells {
                id: cell(1),
                column: cell(2),
                known: cell(3),
                page: cell(4),
                url: cell(6),
            },
            answer: webfill_values::trimmed(&cell(8)).to_lowercase(),
        });
    }
    Ok(lines)
}

fn read(file: &Path, listed: &[ListedDoubt]) -> Result<Vec<Answer>, Fault> {
    let shown = file.display();
    let mut answers = Vec::new();
    for line in lines(file)?.iter().filter(|line| !line.answer.is_empty()) {
        let refused =
            |why: String| Fault::usage(format!("--doubts {shown}: line {}: {why}", line.number));
        let is_accepted = line.is_accepted().map_err(refused)?;
        let found = line.find(listed).ok_or_else(|| {
            refused(String::from(
                "no such doubt was listed for this table: its id, column or url was changed",
            ))
        })?;
        let (doubt, is_as_written) = found;
        if !is_as_written {
            webfill_service::say!(
                "webfill: {shown}: line {}: its values were changed: the answer is taken for `{}` of the table and `{}` \
                 of the page",
                line.number,
                doubt.shown.known,
                doubt.shown.page
            );
        }
        answers.push(Answer {
            doubt: doubt.clone(),
            is_accepted,
        });
    }
    Ok(answers)
}

/// Enters accepted values into the table as known ones, so that this run learns from them. Returns the values to write.
pub fn apply(table: &mut Table, answers: &mut Answers) -> BTreeMap<(u64, usize), Change> {
    let mut accepted = BTreeMap::new();
    if answers.all.is_empty() {
        return accepted;
    }
    let links: Vec<Vec<String>> = table.rows.iter().map(|row| table.links_of(row)).collect();
    let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
    let mut by_links: HashMap<&[String], Vec<usize>> = HashMap::new();
    for (at, row) in table.rows.iter().enumerate() {
        match &row.id {
            Some(id) => by_id.entry(id.clone()).or_default().push(at),
            None => by_links.entry(&links[at]).or_default().push(at),
        }
    }
    let none = Vec::new();
    for Answer { doubt, is_accepted } in &answers.all {
        let rows = match &doubt.id {
            Some(id) => by_id.get(id),
            None => by_links.get(doubt.links.as_slice()),
        };
        let rows = rows.unwrap_or(&none);
        let field = table
            .fields
            .iter()
            .position(|field| field.title == doubt.column);
        let mut is_idle = true;
        for (&at, field) in rows.iter().filter_map(|at| Some((at, field?))) {
            let row = &mut table.rows[at];
            let is_its = rows.len() == 1 || links[at] == doubt.links;
            if !is_its || row.known_values(field) != doubt.known {
                continue;
            }
            is_idle = false;
            let place = (row.number, table.fields[field].column);
            answers.answered.insert(place);
            if !is_accepted && doubt.known.is_empty() {
                answers.rejected.insert(place, doubt.page.clone());
                // A question is asked for its whole site. Any other value is that of one cell.
                if answers.listed.contains(doubt) {
                    answers.withdrawn.insert((doubt.shown.url.clone(), field));
                }
            }
            if *is_accepted {
                let values = doubt.page.clone();
                let old = row.replace(field, values.clone());
                let is_accepted = true;
                let change = Change {
                    values,
                    old,
                    is_accepted,
                };
                accepted.insert(place, change);
            }
        }
        answers.idle += usize::from(is_idle);
    }
    accepted
}

/// The cells to review, the surest first; then questions.
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
            && !answers.answered.contains(&place)
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

/// Writes the file, unless a person has answered it meanwhile.
pub fn write_doubts(
    project: &Project,
    sources: &Sources<'_>,
    doubtful: &[&Cell],
    answers: &Answers,
) -> Result<(), Fault> {
    let file = project.doubts();
    let file = file.display();
    let shown: Vec<review::ShownDoubt> = doubtful
        .iter()
        .map(|cell| shown_doubt(sources, cell))
        .collect();
    review::write_list(project, &shown)?;
    if !matches!(answers.unread(project), Ok(0)) {
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
        // People open it in a spreadsheet.
        let safe = |text: &str| CellStyle::Spreadsheet.text(text).into_owned();
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
    // Older ones stay: a person may have a copy of an older file. The newest of equal ones is enough.
    let mut newest: HashMap<String, usize> = HashMap::new();
    for (at, doubt) in listed.iter().enumerate() {
        newest.insert(serde_json::to_string(doubt).map_err(Fault::error)?, at);
    }
    let kept: BTreeSet<usize> = newest.into_values().collect();
    let listed: Vec<&ListedDoubt> = kept.into_iter().map(|at| &listed[at]).collect();
    write_json(&project.listed_doubts(), &listed)?;
    write_atomically(&project.doubts(), &text)
}

/// A doubt as people see it.
fn shown_doubt(sources: &Sources<'_>, cell: &Cell) -> review::ShownDoubt {
    let lines = sources.lines(cell);
    let line = &lines[0];
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let safe = |text: &str| CellStyle::Spreadsheet.text(text).into_owned();
    let table = sources.table;
    let (row, field) = (&table.rows[cell.row as usize], &table.fields[cell.field]);
    let page = field.joined(&cell.values);
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
            links: table.links_of(row),
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
