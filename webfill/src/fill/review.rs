//! The review of doubts in the dashboard. Doubts are listed for it in the project folder, `review.json`, and its answers
//! come back in `review.jsonl`, a line for each, durable when a person sees the next doubt.
//!
//! Only the dashboard writes the answers, and only this command writes the list: so both may run at the same time. How
//! far the answers were read is noted beside those that the project keeps.

use std::io::ErrorKind;

use serde::{Deserialize, Serialize};
use serde_json::json;
use webfill_service::Fault;

use super::doubts::ListedDoubt;
use super::project::Project;
use crate::mapping_command::writing::write_atomically;

/// The maximum number of listed doubts; the surest are kept. The dashboard reads all of them for each page.
const MOST_LISTED: usize = 5_000;

/// The maximum size of their list.
const MOST_BYTES: usize = 16 << 20;

/// A doubt, as a person is to see it.
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
    /// Comes back with the answer.
    pub doubt: ListedDoubt,
}

/// A line of the answers.
#[derive(Debug, Deserialize)]
pub struct ReviewAnswer {
    pub doubt: ListedDoubt,
    pub answer: Decision,
    /// When it was given, in milliseconds since 1970.
    #[serde(default)]
    pub at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Accept,
    Reject,
    /// Takes back the former answer.
    Undo,
}

/// Lists open doubts, each under a key that no other one has.
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

/// The answers after this byte of the file, and the position after the last complete line.
pub fn answers_after(project: &Project, read: u64) -> Result<(Vec<ReviewAnswer>, u64), Fault> {
    let file = project.review_answers_file();
    let unread = |error: String| Fault::error(format!("cannot read {}: {error}", file.display()));
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(unread(error.to_string())),
    };
    // A line without its end was never confirmed to anybody.
    let end = text.iter().rposition(|byte| *byte == b'\n');
    let end = end.map_or(0, |at| at + 1);
    // A file that is shorter than before was created anew, and is read from its beginning.
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
