//! Upload of a table that a visitor drops on the page: it is saved in the folder of tables, and `webfill fill` starts
//! on it. This exists only in a dashboard for this machine whose program offers it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use hyper::body::{Bytes, Incoming};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use webfill_service::http::body::{ArrivingBody, BodyFault};

use super::tables::run_blocking;
use crate::answer::{self, Problem, Shown};
use crate::filler::{FillRun, Filler};
use crate::messages::Message;
use crate::secrets::new_secret;
use crate::visit::Visit;

/// The largest table that can be uploaded, in bytes. Larger ones must be filled by the command `webfill fill`.
const MOST_BYTES: u64 = 512 << 20;

/// The longest file name, in bytes.
const LONGEST_NAME: usize = 100;

/// The extensions of tables that can be uploaded, also followed by `.gz` or `.zst`.
const ENDINGS: [&str; 8] = [
    ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx",
];

/// How many pieces of the file may wait to be written.
const PIECES: usize = 8;

/// The service that runs `webfill fill`, and the folder for uploaded tables. `None` if this visitor may not upload
/// tables.
pub(crate) fn upload_target(visit: &Visit) -> Option<(&dyn Filler, PathBuf)> {
    let filler = visit.dashboard.setup.filler.as_deref()?;
    let home = visit.dashboard.tables.upload_folder()?;
    let may = visit.can_change() && !visit.visitor.rights.is_limited_to_apps();
    may.then_some((filler, home))
}

/// The runs on uploaded tables that are running or have failed, for the list of tables.
pub(crate) fn started_runs(visit: &Visit) -> Vec<Value> {
    let Some((filler, _)) = upload_target(visit) else {
        return Vec::new();
    };
    let dropped = visit.dashboard.dropped_tables();
    let runs = dropped.iter().filter_map(|table| {
        let name = table.file_name()?.to_string_lossy().into_owned();
        match filler.run_state(table)? {
            FillRun::Ended => None,
            FillRun::Running => Some(json!({"name": name, "is_running": true})),
            FillRun::Failed(_) if is_completed_since(visit, table) => None,
            FillRun::Failed(error) => Some(json!({"name": name, "error": error})),
        }
    });
    runs.collect()
}

/// Whether another run has completed the table after the failed one.
fn is_completed_since(visit: &Visit, table: &Path) -> bool {
    let folder = project_folder_for(table);
    let projects = visit.dashboard.tables.all().into_iter();
    let mut its = projects.filter(|one| one.folder().canonicalize().is_ok_and(|own| own == folder));
    let overview = its.next().and_then(|project| project.read_overview().ok()?);
    overview.is_some_and(|overview| overview["stage"] == "complete")
}

pub(crate) async fn upload(visit: &Visit, body: Incoming) -> Shown {
    visit.require_whole_fleet()?;
    if !visit.can_change() {
        return Err(Problem::forbidden("your token may only read"));
    }
    let (filler, home) = upload_target(visit).ok_or_else(|| {
        Problem::not_found(
            "this dashboard starts no runs: use `webfill fill` on the machine of the table",
        )
    })?;
    let name = visit.query_value("name").unwrap_or_default();
    let name = check_file_name(name)?;
    let table = home.join(name);
    let contact = visit.query_value("contact").map(str::to_owned);
    let taken = format!(
        "{} already has a table or a folder of this name",
        home.display()
    );
    let replaces = may_retry(visit, filler, &table);
    if !replaces && is_taken(&table) {
        return Err(Problem::with_status(409, taken));
    }
    let is_running = |table: &PathBuf| matches!(filler.run_state(table), Some(FillRun::Running));
    if visit.dashboard.dropped_tables().iter().any(is_running) {
        return Err(Problem::with_status(
            409,
            "another table is being filled, and one is at a time: try again when that is done",
        ));
    }
    let Ok(_permit) = visit.dashboard.uploads.try_acquire() else {
        return Err(Problem::with_status(
            409,
            "another table is arriving, and one is at a time: try again in a moment",
        ));
    };
    let about = json!({"table": name, "contact": contact});
    save(body, &table, replaces).await?;
    // The audit log is written first, so that it contains every run that starts.
    if let Err(problem) = visit.write_audit_entry("table_fill", about).await {
        let _ = fs::remove_file(&table);
        return Err(problem);
    }
    if let Err(error) = filler.start(&table, contact.as_deref()) {
        let _ = fs::remove_file(&table);
        return Err(Problem::with_status(409, error));
    }
    visit.dashboard.note_dropped_table(table);
    let message = Message {
        is_fault: false,
        text: format!(
            "{name} is saved in {}, and its run has started",
            home.display()
        ),
    };
    let message = visit.dashboard.messages.store(message);
    let to = format!("/dashboard/tables?message={message}");
    Ok(answer::json(200, &json!({"to": to})))
}

/// Checks the name of an uploaded file. It must not be a path or hidden, and must have the extension of a table.
fn check_file_name(name: &str) -> Result<&str, Problem> {
    let lower = name.to_ascii_lowercase();
    let plain = ["gz", "zst"].iter().fold(lower.as_str(), |name, packed| {
        name.strip_suffix(&format!(".{packed}")).unwrap_or(name)
    });
    let is_table = ENDINGS.iter().any(|ending| {
        plain
            .strip_suffix(ending)
            .is_some_and(|stem| !stem.is_empty())
    });
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_. ()".contains(letter);
    let is_output = [".filled.", ".evidence.", ".doubts."]
        .iter()
        .any(|part| lower.contains(part));
    if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with(['.', '-', ' ']) {
        return Err(Problem::bad_request(
            "name: expected a name such as books.csv",
        ));
    }
    if !name.chars().all(is_plain) || name.contains("..") {
        return Err(Problem::bad_request(
            "name: only letters, digits, spaces, parentheses and -_. may be in it",
        ));
    }
    match is_table && !is_output {
        true => Ok(name),
        false => Err(Problem::bad_request(format!(
            "name: a table ends in {}, also with .gz or .zst",
            ENDINGS.join(", ")
        ))),
    }
}

/// Whether a table may be uploaded again: it was uploaded to this dashboard, and its run failed before it did any work.
fn may_retry(visit: &Visit, filler: &dyn Filler, table: &Path) -> bool {
    let was_dropped = visit
        .dashboard
        .dropped_tables()
        .iter()
        .any(|one| one == table);
    let has_failed = matches!(filler.run_state(table), Some(FillRun::Failed(_)));
    was_dropped && has_failed && !path_exists(&project_folder_for(table))
}

/// Whether a file or folder exists that the table or its project folder would replace. Links count as well.
fn is_taken(table: &Path) -> bool {
    path_exists(table) || path_exists(&project_folder_for(table))
}

fn project_folder_for(table: &Path) -> PathBuf {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    let plain = [".gz", ".zst"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    let plain = plain.unwrap_or(&name);
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    table.with_file_name(format!("{stem}.webfill"))
}

fn path_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Saves an uploaded body as a file. It is written under a temporary name first, so that the folder never has an
/// incomplete table.
async fn save(body: Incoming, table: &Path, replaces: bool) -> Result<(), Problem> {
    let (pieces, written) = mpsc::channel(PIECES);
    let own = table.to_owned();
    let saving = tokio::spawn(run_blocking(move || write(&own, replaces, written)));
    let arrived = forward_body(body, &pieces).await;
    let ending = match &arrived {
        Ok(()) => Piece::End,
        Err(_) => Piece::BrokenOff,
    };
    let _ = pieces.send(ending).await;
    drop(pieces);
    let saved = saving.await.map_err(Problem::internal_error)?;
    arrived?;
    saved
}

enum Piece {
    Some(Bytes),
    End,
    BrokenOff,
}

async fn forward_body(body: Incoming, pieces: &mpsc::Sender<Piece>) -> Result<(), Problem> {
    let mut body = ArrivingBody::new(body);
    let mut length = 0;
    loop {
        let piece = body.next_piece().await;
        let piece =
            piece.map_err(|fault: BodyFault| Problem::with_status(fault.status(), fault))?;
        let Some(piece) = piece else {
            return Ok(());
        };
        length += piece.len() as u64;
        if length > MOST_BYTES {
            return Err(Problem::with_status(
                413,
                format!("more than {} MiB: use `webfill fill`", MOST_BYTES >> 20),
            ));
        }
        // The thread that writes the file has failed. Its own error explains why.
        if pieces.send(Piece::Some(piece)).await.is_err() {
            return Ok(());
        }
    }
}

fn write(table: &Path, replaces: bool, mut pieces: mpsc::Receiver<Piece>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", table.display());
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    let number = new_secret().map_err(failed)?;
    let part = table.with_file_name(format!(".{name}.{}.part", &number[..16]));
    // If this fails, the temporary file belongs to somebody else and must not be removed.
    let mut file = File::create_new(&part).map_err(failed)?;
    let mut write_all = || -> Result<bool, std::io::Error> {
        loop {
            match pieces.blocking_recv() {
                Some(Piece::Some(piece)) => file.write_all(&piece)?,
                Some(Piece::End) => break,
                Some(Piece::BrokenOff) | None => return Ok(false),
            }
        }
        file.sync_all()?;
        match replaces {
            true => fs::rename(&part, table)?,
            // Unlike a rename, a hard link fails if another file has been created under this name meanwhile.
            false => fs::hard_link(&part, table)?,
        }
        Ok(true)
    };
    let written = write_all();
    // If this fails, the temporary file only takes up space.
    let _ = fs::remove_file(&part);
    written.map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_table_has_the_name_that_the_command_gives_it() {
        for (table, folder) in [
            ("a/books.csv", "a/books.webfill"),
            ("a/books.v2.jsonl.gz", "a/books.v2.webfill"),
        ] {
            assert_eq!(project_folder_for(Path::new(table)), Path::new(folder));
        }
    }

    #[test]
    fn only_plain_file_names_of_tables_are_accepted() {
        for name in [
            "books.csv",
            "Bücher 2026 (2).jsonl.gz",
            "a.b.parquet",
            "x.XLSX",
        ] {
            assert_eq!(check_file_name(name), Ok(name));
        }
        for name in [
            "",
            "books",
            ".csv",
            ".books.csv",
            "../books.csv",
            "/etc/books.csv",
            "a/b.csv",
            "a\\b.csv",
            "a..csv",
            "-rf.csv",
            "a\0.csv",
            "a\n.csv",
            "books.exe",
            "books.csv.exe",
            "books.filled.csv",
            "books.doubts.csv",
        ] {
            assert_eq!(
                check_file_name(name).map_err(|problem| problem.status),
                Err(400),
                "{name:?}"
            );
        }
        assert!(check_file_name(&format!("{}.csv", "a".repeat(100))).is_err());
    }
}
