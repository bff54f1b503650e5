//! `webfill feed`: feeds crawl requests to a running dispatcher.
//!
//! An argument is one request or a list of requests. A file or standard input has JSON lines, which are streamed, so
//! that memory holds at most one list of them ([`super::batches`]). Refused lines are printed on standard error with
//! their number and the reason, and the others are fed. The dispatcher judges every request; this command only splits
//! the lines.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};

use super::batches::{BadLine, Batches};
use super::connection::{Connection, ConnectionOptions};
use super::feed_input::{check_first_line, is_url};
use super::tally::Tally;
use crate::cli::ProgressStyle;
use crate::progress::FeedProgress;
use crate::seeds::lines::Lines;
use crate::stdout::print;

/// The most refused lines that are printed; further ones are only counted.
const MAX_PRINTED: u64 = 1_000;

#[derive(Debug, Args)]
pub struct FeedOptions {
    /// A crawl request as JSON, or a file of JSON lines, which may be .gz; `-` for standard input
    #[arg(value_name = "JSON|FILE|-")]
    pub requests: String,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Progress display on standard error
    #[arg(long, value_enum, default_value = "auto")]
    pub progress: ProgressStyle,
}

/// Runs `webfill feed`.
pub fn feed(options: FeedOptions) -> Result<ExitStatus, Fault> {
    let argument = options.requests.trim();
    let tally = if argument.starts_with(['{', '[']) {
        let request: Value = serde_json::from_str(argument)
            .map_err(|error| Fault::usage(format!("the request is not valid JSON: {error}")))?;
        let mut dispatcher = options.connection.connect()?;
        if request.get("action").is_some() {
            print(dispatcher.send_action(&request)?)?;
            return Ok(ExitStatus::Done);
        }
        feed_whole(&mut dispatcher, argument, &request)?
    } else {
        let path = PathBuf::from(&options.requests);
        let batches = open_batches(&path)?;
        feed_lines(
            &mut options.connection.connect()?,
            batches,
            options.progress,
        )?
    };
    print_tally(&tally, options.json)?;
    Ok(match tally.refused {
        0 => ExitStatus::Done,
        _ => ExitStatus::Error,
    })
}

fn open_batches(path: &Path) -> Result<Batches, Fault> {
    let shown = path.display();
    if is_url(&path.to_string_lossy()) {
        return Err(Fault::usage(format!(
            "`{shown}` is a URL; a crawl request is JSON: \
             webfill feed '{{\"url\": \"{shown}\", \"appid\": \"APP\", \"crawlid\": \"CRAWL\"}}'"
        )));
    }
    let mut lines = Lines::open(path).map_err(|reason| {
        let advice = match path.is_dir() {
            true => "; name a file of JSON lines",
            false => "",
        };
        Fault::usage(format!(
            "cannot read crawl requests from {shown}: {reason}{advice}"
        ))
    })?;
    check_first_line(path, &mut lines)?;
    Ok(Batches::new(lines))
}

/// Feeds a request or a list, which is accepted or refused as a whole.
fn feed_whole(dispatcher: &mut Connection, text: &str, request: &Value) -> Result<Tally, Fault> {
    let mut tally = Tally::default();
    match dispatcher.feed(text)? {
        Ok(answer) => tally.add(&answer),
        Err(refusal) => {
            webfill_service::say!("webfill: {}", refusal.sentence());
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
    while let Some(batch) = batches.next_batch(|bad| report_refused(&mut tally, &progress, bad)) {
        let answer = dispatcher.feed(&batch.as_json()).map_err(|fault| Fault {
            message: format!(
                "{}; the lines before line {} were fed",
                fault.message,
                batch.first_line()
            ),
            ..fault
        })?;
        match answer {
            Ok(answer) => {
                tally.add(&answer);
                batches.note_accepted();
            }
            Err(refusal) => {
                let one = refusal.refused_entry();
                let index = one.as_ref().map(|(index, _)| *index);
                if let Some(number) = batches.note_refused(batch, index) {
                    let reason = one.map_or_else(|| refusal.sentence(), |(_, reason)| reason);
                    report_refused(&mut tally, &progress, BadLine { number, reason });
                }
            }
        }
        progress.show(&tally);
    }
    progress.finish(&tally);
    if tally.refused > MAX_PRINTED {
        webfill_service::say!(
            "webfill: {} more lines refused",
            tally.refused - MAX_PRINTED
        );
    }
    Ok(tally)
}

fn report_refused(tally: &mut Tally, progress: &FeedProgress, line: BadLine) {
    tally.refused += 1;
    if tally.refused <= MAX_PRINTED {
        progress.print(&format!("webfill: line {}: {}", line.number, line.reason));
    }
}

fn print_tally(tally: &Tally, as_json: bool) -> Result<(), Fault> {
    if !as_json {
        return print(tally.sentence());
    }
    let skipped = &tally.skipped;
    print(json!({"accepted": tally.accepted, "refused": tally.refused, "skipped": skipped}))
}
