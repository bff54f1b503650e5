//! Runs commands: a program gets a notification as JSON on standard input. There is no shell. The program gets only a
//! few variables of this process's environment, such as `PATH`. Its time is limited. When it ends, the other processes
//! of its process group are killed.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use webfill_service::child;

use super::target::{
    DeliveryResources, Target, TargetRefusal, notification_with_key, run_blocking,
};
use crate::delivery::Delivery;
use crate::permissions::Permissions;
use crate::verdict::Verdict;

const NO_COMMAND: &str = "this command is not allowed: add the whole list, the program and its arguments, to `notifications.commands` in the dispatcher's settings";

/// How long a command may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long to wait for the rest of the command's standard error after the command has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The most bytes kept of the command's standard error.
const LAST_BYTES: usize = 4_096;

/// The variables of this process's environment that are passed to the command.
const PASSED: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"];

/// A target that is a program with its arguments.
pub(super) struct Command<'a>(pub(super) &'a [String]);

#[async_trait]
impl Target for Command<'_> {
    fn check(&self, permissions: &Permissions) -> Result<(), TargetRefusal> {
        let mut allowed = permissions.config.commands.iter();
        match !permissions.is_of_fleet() || allowed.any(|allowed| allowed.argv() == self.0) {
            true => Ok(()),
            false => Err(("command", NO_COMMAND.to_owned())),
        }
    }

    async fn deliver(&self, _: &Arc<DeliveryResources>, delivery: &Arc<Delivery>) -> Verdict {
        let (argv, delivery) = (self.0.to_vec(), Arc::clone(delivery));
        run_blocking(move || {
            let call = Call {
                argv: &argv,
                key: &delivery.key,
                watch: &delivery.watch,
                input: notification_with_key(&delivery).to_string().into_bytes(),
            };
            run_command(call, TIMEOUT)
        })
        .await
    }
}

/// A command with its arguments, and the data for its input: the notification, the notification's key and the watch.
struct Call<'a> {
    argv: &'a [String],
    key: &'a str,
    watch: &'a str,
    input: Vec<u8>,
}

/// Runs the command, and blocks the thread until the command ends.
fn run_command(call: Call<'_>, timeout: Duration) -> Verdict {
    let mut child = match spawn(&call) {
        Ok(child) => child,
        Err(error) => return Verdict::Failed(format!("cannot start it: {error}")),
    };
    if let Some(mut stdin) = child.stdin.take() {
        let input = call.input;
        // A command need not read all of its input, so nothing waits for this thread. An error only means that the
        // command stopped reading.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let last_line = read_last_error_line(&mut child);
    let ended = wait_and_kill_group(&mut child, timeout);
    match ended {
        None => Verdict::Failed(format!("it was ended after {} s", timeout.as_secs())),
        Some(status) if status.success() => Verdict::Delivered,
        Some(status) => {
            let last_line = last_line.recv_timeout(LAST_WORDS).unwrap_or_default();
            let last_line = match last_line.is_empty() {
                true => String::new(),
                false => format!(": {last_line}"),
            };
            Verdict::Failed(format!("{status}{last_line}"))
        }
    }
}

fn spawn(call: &Call<'_>) -> std::io::Result<Child> {
    let (program, arguments) = call
        .argv
        .split_first()
        .ok_or_else(|| std::io::Error::other("there is no program"))?;
    let mut command = process::Command::new(program);
    let passed = PASSED.into_iter();
    let passed = passed.filter_map(|name| Some((name, std::env::var_os(name)?)));
    command
        .args(arguments)
        .env_clear()
        .envs(passed)
        .env("WEBFILL_NOTIFICATION_KEY", call.key)
        .env("WEBFILL_WATCH", call.watch)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    child::kill_with_parent(&mut command);
    command.spawn()
}

/// Waits for the end of the command, and kills the rest of its process group. `None` if the command took too long. The
/// ended command is reaped only after that, so that no other process can have the group's number.
fn wait_and_kill_group(child: &mut Child, timeout: Duration) -> Option<process::ExitStatus> {
    let has_ended = child::wait_without_reaping(child, timeout);
    child::kill_group_unreaped(child);
    let status = child.wait().ok();
    status.filter(|_| has_ended)
}

/// Reads the command's standard error on a thread, and sends its last line.
fn read_last_error_line(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, reported) = mpsc::channel();
    if let Some(mut stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let mut some = [0; 4_096];
            // Everything is read, because a command fails or hangs if nobody reads its standard error.
            while let Ok(n @ 1..) = stderr.read(&mut some) {
                text.extend_from_slice(&some[..n]);
                text.drain(..text.len().saturating_sub(LAST_BYTES));
            }
            let text = String::from_utf8_lossy(&text);
            let last = text.lines().rfind(|line| !line.trim().is_empty());
            let last: String = last.unwrap_or_default().chars().take(300).collect();
            let _ = sender.send(last);
        });
    }
    reported
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_script(script: &str, timeout: Duration) -> Verdict {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        let call = Call {
            argv: &argv,
            key: "the-key",
            watch: "people",
            input: vec![b'x'; 1 << 20],
        };
        run_command(call, timeout)
    }

    #[test]
    fn a_notification_is_delivered_if_the_command_succeeds() {
        let all = Duration::from_secs(30);
        assert_eq!(
            run_script("test $(wc -c) = 1048576", all),
            Verdict::Delivered
        );
        assert_eq!(
            run_script("exit 0", all),
            Verdict::Delivered,
            "it may leave the rest unread"
        );
        assert_eq!(
            run_script("test $WEBFILL_NOTIFICATION_KEY = the-key", all),
            Verdict::Delivered
        );
        assert_eq!(
            run_script("test -z \"$CARGO_MANIFEST_DIR\"", all),
            Verdict::Delivered
        );
        let talks = "head -c 1000000 /dev/zero | tr '\\0' '\\n' >&2; echo end >&2; exit 4";
        let Verdict::Failed(why) = run_script(talks, all) else {
            panic!("it says much, and fails")
        };
        assert!(why.contains('4') && why.ends_with("end"), "{why}");
        let failed = run_script("echo no such room >&2; exit 3", all);
        let Verdict::Failed(why) = failed else {
            panic!("{failed:?}")
        };
        assert!(why.contains('3') && why.ends_with("no such room"), "{why}");
    }

    #[test]
    fn the_whole_process_group_ends_with_the_command() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display();
        for (script, delivered) in [
            (format!("sleep 300 & echo $! > {path}; wait"), false),
            (format!("sleep 300 & echo $! > {path}"), true),
        ] {
            let verdict = run_script(&script, Duration::from_secs(1));
            assert_eq!(verdict == Verdict::Delivered, delivered, "{verdict:?}");
            let pid = std::fs::read_to_string(file.path()).unwrap();
            let is_gone = || {
                let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
                stat.map_or(true, |stat| stat.contains(") Z "))
            };
            let begun = std::time::Instant::now();
            while !is_gone() {
                assert!(begun.elapsed() < Duration::from_secs(30), "{pid} lives");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}
