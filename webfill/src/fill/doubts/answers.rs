//! Reads and applies the answers that people have given in files of doubts and in reviews.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use webfill_service::Fault;

use super::file::{Line, read_answers, read_lines};
use super::listed::{Answer, ListedDoubt};
use crate::fill::project::Project;
use crate::fill::review::{self, Decision, ReviewAnswer};
use crate::fill::table::{Change, Table};
use crate::mapping_command::writing::write_atomically;

/// The answers as they are stored in the project folder.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptAnswers {
    answers: Vec<Answer>,
    /// How many bytes of the review's file of answers are already included in `answers`.
    reviewed: u64,
}

/// All answers, with the doubts that they belong to.
#[derive(Debug, Default)]
pub struct Answers {
    all: Vec<Answer>,
    reviewed: u64,
    pub(super) listed: Vec<ListedDoubt>,
    /// The answered cells that exist in the table, by row number and column.
    answered: BTreeSet<(u64, usize)>,
    /// Rejected proposals, by the URL of the page and the position of the field.
    pub withdrawn: BTreeSet<(String, usize)>,
    /// Rejected values for gaps, by row number and column.
    pub rejected: HashMap<(u64, usize), Vec<String>>,
    /// The doubts that a review has answered since the file of doubts was last changed. For these, the answers in the
    /// file do not count.
    later: Vec<ListedDoubt>,
    /// When the file of doubts was last changed before this run, in milliseconds since 1970.
    changed: i64,
    /// The number of answers about values that the table does not have at present. They are kept for later runs.
    pub idle: usize,
}

/// Loads the answers of the project, and those of a file that a person has edited.
pub fn load_answers(project: &Project, edited: Option<&Path>) -> Result<Answers, Fault> {
    let kept: KeptAnswers = read_json(&project.answers_file())?;
    let (reviewed, end) = review::answers_after(project, kept.reviewed)?;
    let mut answers = Answers {
        all: kept.answers,
        reviewed: end,
        listed: read_json(&project.listed_doubts_file())?,
        changed: changed_ms(&project.doubts_file()),
        ..Answers::default()
    };
    let changed = edited.map_or(i64::MAX, changed_ms);
    let (before, after): (Vec<_>, Vec<_>) = reviewed.into_iter().partition(|one| one.at <= changed);
    answers.apply_review_answers(before);
    if let Some(file) = edited {
        for Answer { doubt, is_accepted } in read_answers(file, &answers.listed)? {
            answers.set_answer(doubt, Some(is_accepted));
        }
    }
    // If a doubt has two answers, the later one counts.
    answers.later = after.iter().map(|one| one.doubt.clone()).collect();
    answers.apply_review_answers(after);
    match answers.count_unread_answers(project)? {
        0 => Ok(answers),
        unread => {
            let file = project.doubts_file();
            let file = file.display();
            Err(Fault::usage(format!(
                "{file} holds answers that were not read, {unread} of them: add --doubts {file}, or delete the file"
            )))
        }
    }
}

/// When a file was last changed, in milliseconds since 1970. If the time is unknown, it counts as later than any other.
fn changed_ms(file: &Path) -> i64 {
    let changed = std::fs::metadata(file).and_then(|file| file.modified());
    let since = changed
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.map_or(i64::MAX, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Stores the answers for later runs.
pub fn save_answers(project: &Project, answers: &Answers) -> Result<(), Fault> {
    if answers.all.is_empty() && answers.reviewed == 0 {
        return Ok(());
    }
    let kept = KeptAnswers {
        answers: answers.all.clone(),
        reviewed: answers.reviewed,
    };
    write_json(&project.answers_file(), &kept)
}

/// Reads a JSON file. A missing file counts as empty. An unreadable file is an error, because writing it again would
/// destroy its content.
fn read_json<T: DeserializeOwned + Default>(file: &Path) -> Result<T, Fault> {
    let unread = |error: String| Fault::error(format!("cannot read {}: {error}", file.display()));
    match std::fs::read(file) {
        Ok(json) => serde_json::from_slice(&json).map_err(|error| unread(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(unread(error.to_string())),
    }
}

pub(super) fn write_json(file: &Path, content: &impl Serialize) -> Result<(), Fault> {
    let json = serde_json::to_vec_pretty(content).map_err(Fault::error)?;
    write_atomically(file, &json)
}

impl Answers {
    /// Whether a person has answered a doubt about this cell, given by row number and column.
    pub fn has_answered(&self, place: (u64, usize)) -> bool {
        self.answered.contains(&place)
    }

    fn apply_review_answers(&mut self, reviewed: Vec<ReviewAnswer>) {
        for one in reviewed {
            let is_accepted = match one.answer {
                Decision::Accept => Some(true),
                Decision::Reject => Some(false),
                Decision::Undo => None,
            };
            self.set_answer(one.doubt, is_accepted);
        }
    }

    /// Sets or replaces the answer to a doubt; `None` removes it.
    fn set_answer(&mut self, doubt: ListedDoubt, is_accepted: Option<bool>) {
        self.all
            .retain(|former| !former.doubt.is_of_same_value(&doubt));
        if let Some(is_accepted) = is_accepted {
            self.all.push(Answer { doubt, is_accepted });
        }
    }

    /// The number of answers in the file of doubts that were not read. If the file were written again, they would be
    /// lost.
    pub(super) fn count_unread_answers(&self, project: &Project) -> Result<usize, Fault> {
        let file = project.doubts_file();
        if !file.exists() {
            return Ok(0);
        }
        let lines = read_lines(&file).map_err(|fault| {
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

/// Puts accepted values into the table as known ones, so that this run learns from them. Returns the values to write.
pub fn apply_answers(table: &mut Table, answers: &mut Answers) -> BTreeMap<(u64, usize), Change> {
    let mut accepted = BTreeMap::new();
    if answers.all.is_empty() {
        return accepted;
    }
    let links: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| table.links.urls(&row.links))
        .collect();
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
                // A doubt that was a question about a proposal is answered for its whole site. Any other answer is
                // about one cell.
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
