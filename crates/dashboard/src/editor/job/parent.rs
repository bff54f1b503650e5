//! The parent of job processes: starts a child for each order, at most two at a time, and explains to people why one
//! ended early.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use webfill_service::child::{kill_with_parent, own_program};

use super::{Answer, Order};

/// How many jobs run at a time. Each may use a gibibyte of memory.
const AT_ONCE: usize = 2;

/// How long a job waits while [`AT_ONCE`] other jobs are running.
const TURN: Duration = Duration::from_secs(30);

/// How long a job may run. This is more than its CPU time, because it shares the processors with other processes.
const DEADLINE: Duration = Duration::from_secs(120);

/// The largest answer of a job (a separate process that reads pages), in bytes. The copy of a page has up to 6 MiB, and
/// is longer as JSON; the values of twenty pages must fit, too.
const MOST_ANSWER: u64 = 48 << 20;

/// How many bytes of a child's error output are kept. They are logged, and show why the child has ended.
const MOST_WORDS: usize = 2 << 10;

/// Why a job has no result, as a text for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The order or the page is at fault.
    #[error("{0}")]
    Refused(String),
    /// The page needs more memory or time than a job may use.
    #[error("{0}: the pages exceed the limits of the mapping editor; try fewer or smaller ones")]
    TooMuch(&'static str),
    #[error("two other jobs of the mapping editor are running; try again in a moment")]
    Busy,
    /// This machine is at fault.
    #[error("the job of the mapping editor failed: {0}")]
    Machine(String),
}

/// Starts a child process for each job.
pub struct Jobs {
    permits: Semaphore,
    program: fn() -> std::process::Command,
    deadline: Duration,
}

impl Default for Jobs {
    fn default() -> Jobs {
        Jobs {
            permits: Semaphore::new(AT_ONCE),
            program: dashboard_job_command,
            deadline: DEADLINE,
        }
    }
}

fn dashboard_job_command() -> std::process::Command {
    let mut command = own_program();
    command
        .arg("dashboard-job")
        .env_clear()
        // Without this setting, the allocator would reserve a gibibyte at the start, which the memory limit counts like
        // used memory.
        .env("MIMALLOC_ARENA_RESERVE", "0");
    command
}

impl Jobs {
    /// Carries out an order in a child process. The bodies are files, in the order of the pages. If the future is
    /// dropped, the child is killed.
    pub async fn run(&self, order: Order, bodies: &[PathBuf]) -> Result<Value, JobError> {
        let _permit = self.acquire_permit().await?;
        let bodies = bodies.to_vec();
        let bodies = tokio::task::spawn_blocking(move || {
            let read = |path: &PathBuf| std::fs::read(path);
            bodies.iter().map(read).collect::<io::Result<Vec<_>>>()
        });
        let bodies = bodies
            .await
            .map_err(|error| machine_error(error.into()))?
            .map_err(machine_error)?;
        self.run_in_child(order, bodies).await
    }

    /// Carries out an order in a child process, with bodies that are in memory.
    pub async fn run_with_bodies(
        &self,
        order: Order,
        bodies: Vec<Vec<u8>>,
    ) -> Result<Value, JobError> {
        let _permit = self.acquire_permit().await?;
        self.run_in_child(order, bodies).await
    }

    async fn acquire_permit(&self) -> Result<SemaphorePermit<'_>, JobError> {
        match timeout(TURN, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(JobError::Busy),
        }
    }

    async fn run_in_child(
        &self,
        mut order: Order,
        bodies: Vec<Vec<u8>>,
    ) -> Result<Value, JobError> {
        for (page, body) in order.pages.iter_mut().zip(&bodies) {
            page.bytes = body.len() as u64;
        }
        let mut child = self.spawn_child().map_err(machine_error)?;
        let ended = timeout(
            self.deadline,
            communicate_with_child(&mut child, &order, bodies),
        )
        .await;
        let Ok(ended) = ended else {
            // This fails only if the child is already ending.
            let _ = child.kill().await;
            return Err(JobError::TooMuch("it took too long"));
        };
        let ended = ended.map_err(machine_error)?;
        // Parsing the answer may take long, because it may contain large pages or many values.
        tokio::task::spawn_blocking(move || ended.into_result())
            .await
            .map_err(|error| machine_error(error.into()))?
    }

    fn spawn_child(&self) -> io::Result<Child> {
        let mut command = (self.program)();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        kill_with_parent(&mut command);
        Command::from(command).kill_on_drop(true).spawn()
    }
}

fn machine_error(error: io::Error) -> JobError {
    JobError::Machine(error.to_string())
}

/// Everything that a child process has written, and how it has ended.
struct ChildOutput {
    status: ExitStatus,
    output: Vec<u8>,
    words: String,
}

async fn communicate_with_child(
    child: &mut Child,
    order: &Order,
    bodies: Vec<Vec<u8>>,
) -> io::Result<ChildOutput> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    let ((), output, words) = tokio::join!(
        feed(stdin, line, bodies),
        read_beginning(stdout, MOST_ANSWER),
        read_beginning(stderr, MOST_WORDS as u64),
    );
    Ok(ChildOutput {
        status: child.wait().await?,
        output,
        words: String::from_utf8_lossy(&words).into_owned(),
    })
}

async fn feed(stdin: Option<ChildStdin>, line: Vec<u8>, bodies: Vec<Vec<u8>>) {
    let Some(mut stdin) = stdin else {
        return;
    };
    for piece in std::iter::once(line).chain(bodies) {
        // The child reads no more input because it has ended. Its exit status shows why.
        if stdin.write_all(&piece).await.is_err() {
            return;
        }
    }
}

/// Reads the first `most` bytes of a pipe. The rest is read and dropped, so that the writer can finish.
async fn read_beginning(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // A read error counts as the end of the output.
        let _ = (&mut pipe).take(most).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    }
    bytes
}

impl ChildOutput {
    fn into_result(self) -> Result<Value, JobError> {
        use std::os::unix::process::ExitStatusExt;

        if self.status.success() {
            if self.output.len() as u64 >= MOST_ANSWER {
                return Err(JobError::TooMuch("the result is too large"));
            }
            return match serde_json::from_slice(&self.output) {
                Ok(Answer::Done(done)) => Ok(done),
                Ok(Answer::Refused(why)) => Err(JobError::Refused(why)),
                Err(error) => Err(JobError::Machine(format!("unreadable answer: {error}"))),
            };
        }
        tracing::debug!(
            event = "dashboard_job_died",
            status = %self.status,
            words = self.words,
            "mapping editor job died"
        );
        match self.status.signal() {
            Some(SIGXCPU) => Err(JobError::TooMuch("it took too long")),
            Some(SIGKILL) => Err(JobError::TooMuch("killed, probably for lack of memory")),
            Some(SIGABRT) if self.words.starts_with("memory allocation of") => {
                Err(JobError::TooMuch("it ran out of memory"))
            }
            Some(_) => Err(JobError::TooMuch("it crashed")),
            // The child has ended by itself with an error message. For example, it could not be confined.
            None => Err(JobError::Machine(match self.words.trim() {
                "" => format!("it ended with {}", self.status),
                // The child could not get memory. It reported this and ended, without a signal.
                words if words.ends_with(OUT_OF_MEMORY) => {
                    return Err(JobError::TooMuch("it ran out of memory"));
                }
                words => words.to_owned(),
            })),
        }
    }
}

/// The end of the standard library's message about a failed allocation.
const OUT_OF_MEMORY: &str = "out of memory";

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::editor::job::Work;

    fn jobs(program: fn() -> std::process::Command) -> Jobs {
        Jobs {
            program,
            deadline: Duration::from_secs(2),
            ..Jobs::default()
        }
    }

    fn shell_command(script: &str) -> std::process::Command {
        let mut command = std::process::Command::new("/bin/sh");
        command.arg("-c").arg(script);
        command
    }

    async fn error_of_job(program: fn() -> std::process::Command) -> String {
        let order = Order {
            work: Work::Copy,
            pages: Vec::new(),
        };
        jobs(program).run(order, &[]).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn the_reason_for_the_end_of_a_job_is_shown() {
        let killed = error_of_job(|| shell_command("kill -9 $$")).await;
        assert!(killed.starts_with("killed"), "{killed}");
        let slow = error_of_job(|| shell_command("kill -24 $$")).await;
        assert!(slow.starts_with("it took too long"), "{slow}");
        let large = error_of_job(|| {
            shell_command("echo memory allocation of 9 bytes failed >&2; kill -6 $$")
        })
        .await;
        assert!(large.starts_with("it ran out of memory"), "{large}");
        let large =
            error_of_job(|| shell_command("echo cannot be done: out of memory >&2; exit 1")).await;
        assert!(large.starts_with("it ran out of memory"), "{large}");
        let confined = error_of_job(|| shell_command("echo cannot be confined >&2; exit 3")).await;
        assert!(
            confined.ends_with("failed: cannot be confined"),
            "{confined}"
        );
        let refused = error_of_job(|| shell_command("echo '{\"refused\":\"no page\"}'")).await;
        assert_eq!(refused, "no page");
        let silent = error_of_job(|| shell_command("true")).await;
        assert!(silent.contains("unreadable answer"), "{silent}");
    }

    #[tokio::test]
    async fn a_job_that_does_not_end_is_killed() {
        let endless = error_of_job(|| shell_command("exec sleep 1000")).await;
        assert!(endless.starts_with("it took too long"), "{endless}");
    }

    #[tokio::test]
    async fn a_job_with_a_too_large_answer_fails() {
        let most = MOST_ANSWER + 10;
        assert!(most < 60 << 20, "the script writes more");
        let answer = error_of_job(|| shell_command("head -c 60000000 /dev/zero")).await;
        assert!(answer.starts_with("the result is too large"), "{answer}");
    }

    #[tokio::test]
    async fn a_child_that_reads_nothing_does_not_end_its_parent() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'x'; 1 << 20]).unwrap();
        let order = Order {
            work: Work::Copy,
            pages: Vec::new(),
        };
        let jobs = jobs(|| shell_command("exec <&-; echo '{\"done\":1}'"));
        let done = jobs.run(order, &[file.path().to_owned()]).await;
        assert_eq!(done, Ok(Value::from(1)));
    }

    #[tokio::test]
    async fn a_third_job_waits_until_another_has_ended() {
        let jobs = std::sync::Arc::new(jobs(|| shell_command("sleep 0.3; echo '{\"done\":1}'")));
        let began = std::time::Instant::now();
        let run = |_| {
            let jobs = std::sync::Arc::clone(&jobs);
            let order = Order {
                work: Work::Copy,
                pages: Vec::new(),
            };
            tokio::spawn(async move { jobs.run(order, &[]).await })
        };
        let running: Vec<_> = (0..3).map(run).collect();
        for one in running {
            assert_eq!(one.await.unwrap(), Ok(Value::from(1)));
        }
        assert!(began.elapsed() >= Duration::from_millis(600));
    }
}
