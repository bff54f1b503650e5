//! The review of doubts in the dashboard. Open doubts are listed in `review.json` in the project folder. The dashboard
//! appends each answer as a line to `review.jsonl`. It is durable before a person sees the next doubt.
//!
//! Only the dashboard writes the answers, and only this command writes the list, so both may run at the same time. The
//! project's own file of answers notes how many bytes of `review.jsonl` were read.

use std::io::ErrorKind;

use serde::{Deserialize, Serialize};
use serde_json::json;
use webfill_service::Fault;

use super::doubts::ListedDoubt;
use super::project::Project;
use crate::mapping_command::writing::write_atomically;

/// The most doubts in the list. The most certain ones are kept, because the dashboard reads the whole list for each
/// page.
const MOST_LISTED: usize = 5_000;

/// The largest size of the list, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// A doubt as a person sees it.
#[derive(Debug, Serialize)]
pub struct ShownDoubt {
    pub row: u64,
    pub id: String,
    pub column: String,
    pub known: String,
    pub page: String,
    pub confidence: f64,
    pub url: Option<String>,
    pub excerpt: Option<String>,
    /// The doubt for the command. The dashboard stores it with the answer.
    pub doubt: ListedDoubt,
}

/// An answer, as a line of the file.
#[derive(Debug, Deserialize)]
pub struct ReviewAnswer {
    pub doubt: ListedDoubt,
    pub answer: Decision,
    /// The time of the answer, in milliseconds since 1970.
    #[serde(default)]
    pub at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Accept,
    Reject,
    /// Withdraws the former answer.
    Undo,
}

/// Writes the list of open doubts, each with a unique key.
pub fn write_list(project: &Project, shown: &[ShownDoubt]) -> Result<(), Fault> {
    let mut keys = std::collections::BTreeSet::new();
    let mut listed = Vec::new();
    let mut bytes = 0;
    for one in shown.iter().take(MOST_LISTED) {
        let mut line = serde_json::to_value(one).map_err(Fault::error)?;
        let mut sum = fnv1a(line["doubt"].to_string().as_bytes());
        while !keys.insert(sum) {
            sum = sum.wrapping_add(1);
        }
        line["key"] = format!("{sum:016x}").into();
        bytes += line.to_string().len();
        if bytes > MOST_BYTES {
            break;
        }
        listed.push(line);
    }
    let list = json!({"total": shown.len(), "doubts": listed});
    write_atomically(&project.review_file(), list.to_string().as_bytes())
}

/// Reads the answers after this byte of the file. Also returns the position after the last complete line.
pub fn answers_after(project: &Project, read: u64) -> Result<(Vec<ReviewAnswer>, u64), Fault> {
    let file = project.review_answers_file();
    let unread = |error: String| Fault::error(format!("cannot read {}: {error}", file.display()));
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(unread(error.to_string())),
    };
    // A line without a line end was never confirmed, so it is not read.
    let end = text.iter().rposition(|byte| *byte == b'\n');
    let end = end.map_or(0, |at| at + 1);
    // If the file is shorter than before, it was created anew, so it is read from its beginning.
    let begin = usize::try_from(read).unwrap_or(usize::MAX);
    let begin = if begin > end { 0 } else { begin };
    let lines = text[begin..end].split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let answers = lines.map(serde_json::from_slice);
    let answers = answers.collect::<Result<Vec<ReviewAnswer>, _>>();
    Ok((
        answers.map_err(|error| unread(error.to_string()))?,
        end as u64,
    ))
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
