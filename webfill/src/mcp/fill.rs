//! The tools for tables: they start runs of `webfill fill`, and show their progress and results.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};

use super::answer::Answer;
use super::arguments::{CheckArgument, FillArguments, ResultsArguments, TableArguments};
use super::caller::Caller;
use super::cells;
use super::fills::{End, Fill, FillState, Fills, StopOnDrop};
use super::folder::Folder;
use super::input::Signals;
use crate::fill::Project;

const WHOLE: &str = "the files beside the table have the whole";

const STOPPED: &str = "stopped; `fill` resumes it";

/// The state of a table that another process is completing.
const ELSEWHERE: &str = "running, not started by this server: `fill_stop` does not stop it";

/// How often to check for the end of a run that another process has started.
const POLL_EVERY: Duration = Duration::from_millis(500);

pub struct Tables {
    folder: Folder,
    /// The flags that the user has set for all runs.
    fixed: Vec<String>,
    fills: Fills,
}

impl Tables {
    pub fn new(
        folder: &Path,
        config: Option<&Path>,
        contact: Option<&str>,
    ) -> Result<Tables, Fault> {
        let config = config.map(|config| format!("--config={}", config.display()));
        let contact = contact.map(|contact| format!("--contact={contact}"));
        Ok(Tables {
            folder: Folder::open(folder)?,
            fixed: config.into_iter().chain(contact).collect(),
            fills: Fills::default(),
        })
    }

    pub async fn fill(
        &self,
        given: Result<FillArguments, Fault>,
        caller: &mut Caller,
    ) -> Result<Answer, Fault> {
        let given = given?;
        let table = self.table_path(&given.table).await?;
        let mut arguments = self.fixed.clone();
        arguments.extend(self.command_arguments(&given).await?);
        arguments.extend([String::from("--"), path_text(&table)?]);
        let fill = self
            .fills
            .start(&table, &given.table, &arguments, given.dry_run)?;
        // If the call is cancelled, the run is stopped, too.
        let mut stopping = StopOnDrop(Some(Arc::clone(&fill)));
        wait_for_run(&fill, given.wait_seconds, caller).await;
        stopping.0 = None;
        self.progress_answer(&table, Some(&*fill)).await
    }

    /// Finds a table in the allowed folder by its name.
    async fn table_path(&self, name: &str) -> Result<PathBuf, Fault> {
        let (folder, name) = (self.folder.clone(), name.to_owned());
        run_blocking(move || folder.table_path(&name)).await?
    }

    async fn command_arguments(&self, given: &FillArguments) -> Result<Vec<String>, Fault> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            arguments.extend(value.map(|value| format!("--{name}={value}")));
        };
        add("id", given.id.clone());
        add("url", join_columns("url", &given.url)?);
        add("fields", join_columns("fields", &given.fields)?);
        add("keep", join_columns("keep", &given.keep)?);
        add("sample", given.sample.map(|sample| sample.to_string()));
        add("precision", given.precision.map(|share| share.to_string()));
        let check = given.check.map(|check| match check {
            CheckArgument::None => "none",
            CheckArgument::Sample => "sample",
            CheckArgument::All => "all",
        });
        add("check", check.map(str::to_owned));
        if let Some(doubts) = given.doubts.clone() {
            let folder = self.folder.clone();
            let doubts = run_blocking(move || folder.file_path(&doubts)).await??;
            add("doubts", Some(path_text(&doubts)?));
        }
        if given.dry_run {
            arguments.push("--dry-run".into());
        }
        Ok(arguments)
    }

    pub async fn fill_state(
        &self,
        given: Result<TableArguments, Fault>,
        caller: &mut Caller,
    ) -> Result<Answer, Fault> {
        let given = given?;
        let table = self.table_path(&given.table).await?;
        // An ended run of this server does not count if another process has started a newer one.
        let fill = match self.fills.get(&table) {
            Some(fill) if fill.is_running() || !is_running(&table).await? => Some(fill),
            _ => None,
        };
        match &fill {
            Some(fill) => wait_for_run(fill, given.wait_seconds, caller).await,
            None => wait_for_other_process(&table, given.wait_seconds, caller).await?,
        }
        self.progress_answer(&table, fill.as_deref()).await
    }

    pub async fn fill_stop(
        &self,
        given: Result<TableArguments, Fault>,
        caller: &mut Caller,
    ) -> Result<Answer, Fault> {
        let given = given?;
        let table = self.table_path(&given.table).await?;
        let fill = self.fills.get(&table).filter(|fill| fill.is_running());
        let Some(fill) = fill else {
            let name = given.table;
            return Err(Fault::usage(match is_running(&table).await? {
                true => format!("{name} is {ELSEWHERE}"),
                false => format!("{name} is not being completed"),
            }));
        };
        fill.stop();
        wait_for_run(&fill, given.wait_seconds, caller).await;
        self.progress_answer(&table, Some(&*fill)).await
    }

    pub async fn fill_results(
        &self,
        given: Result<ResultsArguments, Fault>,
    ) -> Result<Answer, Fault> {
        let given = given?;
        let table = self.table_path(&given.table).await?;
        run_blocking(move || cells::read_results(&Project::new(&table), &given)).await?
    }

    pub async fn end_runs(&self, signals: &mut Signals) {
        self.fills.end_all(signals).await;
    }

    /// The progress of a table; an error if its run has failed.
    async fn progress_answer(&self, table: &Path, fill: Option<&Fill>) -> Result<Answer, Fault> {
        let is_elsewhere = fill.is_none() && is_running(table).await?;
        let FillState { progress, end } = fill
            .map(|fill| fill.state.borrow().clone())
            .unwrap_or_default();
        let name = self.folder.relative_name(table);
        let overview = Project::new(table).overview_file();
        let summary = run_blocking(move || read_summary(&overview)).await?;
        let state = match (&end, fill) {
            _ if is_elsewhere => ELSEWHERE,
            // If a signal arrives before the run has read its table, the run ends without an exit code.
            (Some(End { code: None, .. }), Some(fill)) if fill.was_asked_to_stop() => STOPPED,
            (Some(end), fill) => match describe_end(&name, end)? {
                "complete" if fill.is_some_and(|fill| fill.is_dry) => "planned",
                state => state,
            },
            (None, Some(_)) => "running",
            (None, None) if summary.is_null() => {
                return Err(Fault::usage(format!(
                    "nothing is known of {name}: `fill` completes it"
                )));
            }
            (None, None) => "not running",
        };
        let shown = json!({
            "table": name,
            "state": state,
            "progress": progress,
            "printed": end.map(|end| end.printed),
            "summary": summary,
        });
        Ok(Answer::new(shown, WHOLE))
    }
}

/// Runs a function that reads files in a blocking thread, so that other calls are answered meanwhile.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(Fault::error)
}

/// Whether any process is completing the table.
async fn is_running(table: &Path) -> Result<bool, Fault> {
    let project = Project::new(table);
    run_blocking(move || project.is_running()).await
}

/// Waits for the end of a run that another process has started.
async fn wait_for_other_process(
    table: &Path,
    seconds: u64,
    caller: &mut Caller,
) -> Result<(), Fault> {
    let deadline = Caller::deadline(seconds);
    while is_running(table).await? {
        caller.report_progress(ELSEWHERE.to_owned()).await;
        let poll = tokio::time::sleep(POLL_EVERY);
        if caller.wait(deadline, poll).await.is_none() {
            break;
        }
    }
    Ok(())
}

/// Describes how a run has ended. If it has failed, this is an error with the reason.
fn describe_end(name: &str, end: &End) -> Result<&'static str, Fault> {
    let is = |status: ExitStatus| end.code == Some(i32::from(status.code()));
    if is(ExitStatus::Done) {
        return Ok("complete");
    }
    if is(ExitStatus::Limit) {
        return Ok("cut short: a limit was reached, or this machine is offline; `fill` resumes it");
    }
    if is(ExitStatus::Interrupted) {
        return Ok(STOPPED);
    }
    let why = match (end.said.as_str(), end.code) {
        ("", Some(code)) => format!("`webfill fill` has ended with {code}"),
        ("", None) => "`webfill fill` was killed".into(),
        (said, _) => said.to_owned(),
    };
    Err(Fault::error(format!("{name}: {why}")))
}

/// The summary that the run has written; null if there is none.
fn read_summary(overview: &Path) -> Value {
    let written = std::fs::read(overview).ok();
    let read = written.and_then(|text| serde_json::from_slice(&text).ok());
    read.unwrap_or_default()
}

async fn wait_for_run(fill: &Fill, seconds: u64, caller: &mut Caller) {
    let deadline = Caller::deadline(seconds);
    let mut state = fill.state.clone();
    loop {
        let now = state.borrow_and_update().clone();
        if now.end.is_some() {
            return;
        }
        caller.report_progress(describe_progress(&now)).await;
        let changed = caller.wait(deadline, state.changed()).await;
        if !matches!(changed, Some(Ok(()))) {
            return;
        }
    }
}

/// Describes the state of a run, such as `fetch: 12 of 80 URLs done, 1 failed; 40 of 115 gaps filled`.
fn describe_progress(state: &FillState) -> String {
    let count = |kind: &str, key: &str| state.progress.get(kind)?[key].as_u64();
    let step = state
        .progress
        .get("fill")
        .and_then(|fill| fill["step"].as_str());
    let mut sentence = step.unwrap_or("start").to_owned();
    if let (Some(done), Some(total)) = (count("crawl", "done"), count("crawl", "total")) {
        let failed = count("crawl", "errors").unwrap_or_default();
        sentence += &format!(": {done} of {total} URLs done, {failed} failed");
    }
    if let (Some(filled), Some(gaps)) = (count("fill", "filled"), count("fill", "gaps")) {
        sentence += &format!("; {filled} of {gaps} gaps filled");
    }
    sentence
}

/// Joins the names of columns into the value of a flag. A name that contains a comma is refused.
fn join_columns(argument: &str, names: &[String]) -> Result<Option<String>, Fault> {
    if let Some(name) = names.iter().find(|name| name.contains(',')) {
        return Err(Fault::usage(format!(
            "{argument}: the column `{name}` has a comma in its name, which cannot be given"
        )));
    }
    Ok((!names.is_empty()).then(|| names.join(",")))
}

fn path_text(path: &Path) -> Result<String, Fault> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Fault::usage(format!("the name {} is no UTF-8", path.display())))
}
