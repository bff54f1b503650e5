//! `webfill feed`: crawl requests into a running dispatcher.
//!
//! One JSON object or list comes as an argument; JSON lines come from a file or standard input, and
//! are streamed: a list of them is in memory at a time. Lines that cannot be used are told on
//! standard error, by number and reason, and the others are fed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use webfill_startup::{ExitStatus, Fault};

use super::batches::{BadLine, Batches};
use super::connection::{Connection, ConnectionOptions};
use crate::cli::ProgressStyle;
use crate::progress::FeedProgress;
use crate::seeds::lines::Lines;
use crate::stdout::tell;

/// Refused lines that are told one by one; of more, only the number.
const TOLD: u64 = 1_000;

#[derive(Debug, Args)]
pub struct FeedOptions {
    /// A crawl request as JSON; or a file of JSON lines, .gz too; `-` is standard input
    #[arg(value_name = "JSON|FILE|-")]
    pub requests: String,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
    /// What is shown on standard error meanwhile
    #[arg(long, value_enum, default_value = "auto")]
    pub progress: ProgressStyle,
}

/// What became of the requests.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    pub accepted: u64,
    /// Of the accepted ones, what is not crawled, by reason: seen before, out of scope.
    pub skipped: BTreeMap<String, u64>,
    pub refused: u64,
}

/// Runs the command.
pub fn feed(options: FeedOptions) -> Result<ExitStatus, Fault> {
    let argument = options.requests.trim();
    let tally = if argument.starts_with(['{', '[']) {
        let request: Value = serde_json::from_str(argument)
            .map_err(|error| Fault::usage(format!("the request is no JSON: {error}")))?;
        let mut dispatcher = options.connection.connect()?;
        if request.get("action").is_some() {
            tell(dispatcher.act(&request)?)?;
            return Ok(ExitStatus::Done);
        }
        feed_whole(&mut dispatcher, argument, &request)?
    } else {
        let path = PathBuf::from(&options.requests);
        let batches = open(&path)?;
        feed_lines(
            &mut options.connection.connect()?,
            batches,
            options.progress,
        )?
    };
    report(&tally, options.json)?;
    Ok(match tally.refused {
        0 => ExitStatus::Done,
        _ => ExitStatus::Error,
    })
}

fn open(path: &Path) -> Result<Batches, Fault> {
    let lines = Lines::open(path).map_err(|reason| {
        Fault::usage(format!(
            "cannot read crawl requests from {}: {reason}",
            path.display()
        ))
    })?;
    Ok(Batches::of(lines))
}

/// A list is accepted or refused as a whole.
fn feed_whole(dispatcher: &mut Connection, text: &str, request: &Value) -> Result<Tally, Fault> {
    let mut tally = Tally::default();
    match dispatcher.feed(text)? {
        Ok(answer) => tally.add(&answer),
        Err(refusal) => {
            eprintln!("webfill: {}", refusal.sentence());
            tally.refused = request.as_array().map_or(1, |list| list.len() as u64);
        }
    }
    Ok(tally)
}

fn feed_lines(
    dispatcher: &mut Connection,
    mut batches: Batches,
    style: ProgressStyle,
) -> Result<Tally, Fault> {
    let mut tally = Tally::default();
    let mut progress = FeedProgress::start(style);
    while let Some(batch) = batches.next(|bad| refuse(&mut tally, &progress, bad)) {
        let answer = dispatcher.feed(&batch.as_json()).map_err(|fault| Fault {
            message: format!(
                "{}; the lines before line {} are fed",
                fault.message,
                batch.first_line()
            ),
            ..fault
        })?;
        match answer {
            Ok(answer) => {
                tally.add(&answer);
                batches.accepted();
            }
            Err(refusal) => {
                let one = refusal.of_list_entry();
                let index = one.as_ref().map(|(index, _)| *index);
                if let Some(number) = batches.refused(batch, index) {
                    let reason = one.map_or_else(|| refusal.sentence(), |(_, reason)| reason);
                    refuse(&mut tally, &progress, BadLine { number, reason });
                }
            }
        }
        progress.show(&tally);
    }
    progress.finish();
    if tally.refused > TOLD {
        eprintln!("webfill: {} more lines refused", tally.refused - TOLD);
    }
    Ok(tally)
}

fn refuse(tally: &mut Tally, progress: &FeedProgress, line: BadLine) {
    tally.refused += 1;
    if tally.refused <= TOLD {
        progress.tell(&format!("webfill: line {}: {}", line.number, line.reason));
    }
}

fn report(tally: &Tally, as_json: bool) -> Result<(), Fault> {
    if !as_json {
        return tell(tally.sentence());
    }
    let skipped = &tally.skipped;
    tell(json!({"accepted": tally.accepted, "refused": tally.refused, "skipped": skipped}))
}

impl Tally {
    /// Adds an answer of the dispatcher.
    fn add(&mut self, answer: &Value) {
        self.accepted += answer["accepted"].as_u64().unwrap_or_default();
        for (reason, count) in answer["skipped"].as_object().into_iter().flatten() {
            *self.skipped.entry(reason.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
    }

    /// `3 accepted (2 duplicate), 1 refused`.
    pub fn sentence(&self) -> String {
        let mut sentence = format!("{} accepted", self.accepted);
        let skipped = self.skipped.iter();
        let skipped: Vec<String> = skipped
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        if !skipped.is_empty() {
            sentence += &format!(" ({})", skipped.join(", "));
        }
        if self.refused > 0 {
            sentence += &format!(", {} refused", self.refused);
        }
        sentence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_and_not_crawled_is_told_by_reason() {
        let mut tally = Tally::default();
        tally.add(&json!({"accepted": 2}));
        assert_eq!(tally.sentence(), "2 accepted");
        tally.add(&json!({"accepted": 3, "skipped": {"duplicate": 2, "out_of_domain": 1}}));
        tally.refused = 1;
        assert_eq!(
            tally.sentence(),
            "5 accepted (2 duplicate, 1 out_of_domain), 1 refused"
        );
    }
}
