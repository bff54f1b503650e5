//! The process that reads one document, as the worker sees it: `webfill read-document`, with the document
//! on its standard input and the report on its standard output. It is killed at the deadline, and when
//! the worker ends.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use webfill_reader::process::report_of_death;
use webfill_reader::{Limits, NotADocument, Report, Status, coarse_kind};
use webfill_startup::child::kill_with_parent;

use super::DocumentsConfig;

/// This very program, even if its file was replaced by a newer version meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The most bytes of a document's text.
const MAX_TEXT_BYTES: u64 = 10 << 20;

/// What a report may have beside the text.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// The last words of a process that crashes.
const MAX_WORDS_BYTES: u64 = 4 << 10;

/// Reads a document.
///
/// # Errors
///
/// No process could be started.
pub(super) async fn read(
    body: &[u8],
    config: &DocumentsConfig,
) -> io::Result<Result<Report, NotADocument>> {
    let deadline = Duration::from_secs_f64(config.deadline);
    let limits = Limits {
        memory_bytes: config.memory_mib << 20,
        // The deadline is what counts; this is for a process that outlives its parent's attention.
        cpu_seconds: deadline.as_secs() + 1,
        input_bytes: body.len() as u64,
        text_bytes: MAX_TEXT_BYTES,
    };
    let mut child = start(limits)?;
    let ended = match timeout(deadline, converse(&mut child, body)).await {
        Ok(ended) => ended?,
        Err(_) => {
            child.kill().await?;
            let reason = "it needs more time than a document may take";
            return Ok(Ok(Report::failed(
                coarse_kind(body),
                Status::TooLarge,
                reason,
            )));
        }
    };
    Ok(ended.report(body))
}

fn start(limits: Limits) -> io::Result<Child> {
    let mut command = std::process::Command::new(OWN_PROGRAM);
    command
        .arg0("webfill")
        .arg("read-document")
        .args(limits.to_arguments())
        .env_clear()
        // The allocator would reserve a gibibyte at once, which the limit on memory could not tell from
        // what is used.
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    kill_with_parent(&mut command);
    Command::from(command).kill_on_drop(true).spawn()
}

/// What is left of a process.
struct Ended {
    status: std::process::ExitStatus,
    output: Vec<u8>,
    words: String,
}

async fn converse(child: &mut Child, body: &[u8]) -> io::Result<Ended> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // Who does not want it has ended, and tells why by that.
            let _ = stdin.write_all(body).await;
        }
    };
    let ((), output, words) = tokio::join!(
        feed,
        beginning(stdout, MAX_HEAD_BYTES + MAX_TEXT_BYTES),
        beginning(stderr, MAX_WORDS_BYTES),
    );
    Ok(Ended {
        status: child.wait().await?,
        output,
        words: String::from_utf8_lossy(&words).into_owned(),
    })
}

/// What comes out of a pipe; what is too much is read and dropped, so that its writer comes to its end.
async fn beginning(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // An error is an end, too.
        let _ = (&mut pipe).take(most).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    }
    bytes
}

impl Ended {
    fn report(self, body: &[u8]) -> Result<Report, NotADocument> {
        let kind = coarse_kind(body);
        if !self.status.success() {
            tracing::debug!(
                event = "reader_died",
                status = %self.status,
                words = self.words,
                "a reader of documents has died"
            );
            return Ok(report_of_death(kind, &self.words, self.status.signal()));
        }
        Report::parse(&self.output, MAX_TEXT_BYTES)
            .unwrap_or_else(|reason| Ok(Report::failed(kind, Status::Broken, reason)))
    }
}
