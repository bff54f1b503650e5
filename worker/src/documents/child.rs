//! Runs a process that reads one document: `webfill read-document`. It gets the document on its standard input and
//! writes its report to its standard output. It is killed at the deadline, and when the worker ends.
//!
//! The report covers faults of the document. Faults of the machine are other errors, because a retry may succeed.
//! Examples are a process that cannot be started or confined to a sandbox.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use webfill_reader::process::report_of_death;
use webfill_reader::{Limits, NotADocument, Report, Status, coarse_kind};
use webfill_service::child::kill_with_parent;

use super::{Attempt, DocumentsConfig, NoDocument};

/// The path of this program itself, even if its file has since been replaced by a newer version.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The most bytes of a document's text.
const MAX_TEXT_BYTES: u64 = 10 << 20;

/// The most bytes of a report, besides the text.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// How many of the last bytes of a process's standard error are kept.
const MAX_WORDS_BYTES: usize = 4 << 10;

/// A reading process may take this many times its limit of CPU time until it is killed, because other processes need
/// the processors as well.
const PATIENCE: u32 = 3;

/// Reads a document.
///
/// # Errors
///
/// The bytes are not a document, or the machine could not read it. If a reader is killed at the last try, the document
/// is blamed instead: it counts as too large.
pub(super) async fn read(
    body: &[u8],
    config: &DocumentsConfig,
    this_try: Attempt,
) -> Result<Report, NoDocument> {
    let deadline = Duration::from_secs_f64(config.deadline);
    let limits = Limits {
        memory_bytes: config.memory_mib << 20,
        cpu_seconds: config.deadline.ceil() as u64,
        input_bytes: body.len() as u64,
        text_bytes: MAX_TEXT_BYTES,
    };
    let not_started = |error: io::Error| {
        NoDocument::NotRead(format!("a reader of documents cannot be started: {error}"))
    };
    let mut child = spawn_reader(limits).map_err(not_started)?;
    let Ok(ended) = timeout(deadline * PATIENCE, run_to_end(&mut child, body)).await else {
        // Killing fails only if the process is already ending.
        let _ = child.kill().await;
        return result_of_killed_reader(
            body,
            this_try,
            "it needs more time than a document may take",
        );
    };
    ended
        .map_err(|error| NoDocument::NotRead(format!("a reader of documents is lost: {error}")))?
        .into_report(body, this_try)
}

/// Returns the result if something other than the reader ended it. The document may be the cause, so after the last try
/// it is blamed.
fn result_of_killed_reader(
    body: &[u8],
    this_try: Attempt,
    reason: &str,
) -> Result<Report, NoDocument> {
    match this_try {
        Attempt::Last => Ok(Report::failed(coarse_kind(body), Status::TooLarge, reason)),
        Attempt::Early => Err(NoDocument::NotRead(
            "a reader of documents was ended before it was done".into(),
        )),
    }
}

fn spawn_reader(limits: Limits) -> io::Result<Child> {
    let mut command = std::process::Command::new(OWN_PROGRAM);
    command
        .arg0("webfill")
        .arg("read-document")
        .args(limits.to_arguments())
        .env_clear()
        // The allocator would reserve a gibibyte immediately, and the memory limit could not distinguish that from
        // memory in use.
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    kill_with_parent(&mut command);
    Command::from(command).kill_on_drop(true).spawn()
}

/// A document's reader that has ended, with its output and its error messages (`words`).
struct EndedReader {
    status: std::process::ExitStatus,
    output: Vec<u8>,
    words: String,
}

async fn run_to_end(child: &mut Child, body: &[u8]) -> io::Result<EndedReader> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A write fails if the process has ended; its exit status then says why.
            let _ = stdin.write_all(body).await;
        }
    };
    let ((), output, words) = tokio::join!(
        feed,
        read_beginning(stdout, MAX_HEAD_BYTES + MAX_TEXT_BYTES),
        read_last_bytes(stderr, MAX_WORDS_BYTES),
    );
    Ok(EndedReader {
        status: child.wait().await?,
        output,
        words: String::from_utf8_lossy(&words).into_owned(),
    })
}

/// Reads the first bytes from a pipe. It also reads the rest and drops it, so that the writer can finish.
async fn read_beginning(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // A read error counts as the end.
        let _ = (&mut pipe).take(most).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    }
    bytes
}

/// Reads a pipe to its end and returns the last bytes.
async fn read_last_bytes(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> Vec<u8> {
    let mut last = Vec::new();
    let mut piece = vec![0; most];
    if let Some(mut pipe) = pipe {
        while let Ok(bytes @ 1..) = pipe.read(&mut piece).await {
            last.extend_from_slice(&piece[..bytes]);
            last.drain(..last.len().saturating_sub(most));
        }
    }
    last
}

impl EndedReader {
    fn into_report(self, body: &[u8], this_try: Attempt) -> Result<Report, NoDocument> {
        let kind = coarse_kind(body);
        if self.status.success() {
            let report = Report::parse(self.output, MAX_TEXT_BYTES)
                .unwrap_or_else(|reason| Ok(Report::failed(kind, Status::Broken, reason)));
            return report.map_err(|NotADocument| NoDocument::Unsupported);
        }
        let Some(signal) = self.status.signal() else {
            // An exit without success: the reader could not be confined, or it lacks something else. Its error message
            // says which.
            let words = self.words.trim();
            return Err(NoDocument::NotRead(match words.is_empty() {
                true => format!("a reader of documents ended with {}", self.status),
                false => format!("a reader of documents gave up: {words}"),
            }));
        };
        tracing::debug!(
            event = "reader_died",
            status = %self.status,
            words = self.words,
            "a reader of documents has died"
        );
        if signal == libc::SIGKILL {
            // The process was killed by the kernel for lack of memory, or by an operator.
            return result_of_killed_reader(body, this_try, "its reader was killed repeatedly");
        }
        Ok(report_of_death(kind, &self.words, signal))
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    /// Turns the end of a process into a document's status, or the reason why there is none.
    fn result_of_end(
        wait_status: i32,
        words: &str,
        this_try: Attempt,
    ) -> Result<&'static str, String> {
        let ended = EndedReader {
            status: ExitStatus::from_raw(wait_status),
            output: Vec::new(),
            words: words.into(),
        };
        match ended.into_report(b"%PDF-1.4", this_try) {
            Ok(report) => Ok(report.status.as_str()),
            Err(NoDocument::NotRead(reason)) => Err(reason),
            Err(_) => Err("something else".into()),
        }
    }

    #[test]
    fn faults_of_the_machine_are_not_blamed_on_the_document() {
        for this_try in [Attempt::Early, Attempt::Last] {
            let refused =
                result_of_end(1 << 8, "cannot read a document: not permitted\n", this_try);
            let reason = refused.unwrap_err();
            assert!(reason.ends_with("not permitted"), "{reason}");
            assert!(result_of_end(127 << 8, "", this_try).is_err());
        }
        assert!(result_of_end(libc::SIGKILL, "", Attempt::Early).is_err());
        assert_eq!(
            result_of_end(libc::SIGKILL, "", Attempt::Last),
            Ok("too_large")
        );
    }

    #[test]
    fn faults_of_the_document_are_reported_immediately() {
        let made = |signal, words| result_of_end(signal, words, Attempt::Early);
        assert_eq!(made(libc::SIGXCPU, ""), Ok("too_large"));
        let no_memory = "memory allocation of 99 bytes failed";
        assert_eq!(made(libc::SIGABRT, no_memory), Ok("too_large"));
        let quoted = "a font called: memory allocation of 99 bytes failed";
        assert_eq!(made(libc::SIGABRT, quoted), Ok("broken"));
        assert_eq!(made(libc::SIGSEGV, ""), Ok("broken"));
        assert_eq!(made(0, ""), Ok("broken"), "no report");
    }

    #[tokio::test]
    async fn the_last_words_are_kept_however_many_came_before() {
        let words = [&b"x".repeat(100_000)[..], b"\nthe last words"].concat();
        let kept = read_last_bytes(Some(&words[..]), MAX_WORDS_BYTES).await;
        assert_eq!(kept.len(), MAX_WORDS_BYTES);
        assert!(kept.ends_with(b"\nthe last words"));
    }
}
