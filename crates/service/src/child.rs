//! Starts and ends child processes: webfill in other roles, and programs such as the browser. A child is killed by the
//! kernel when its parent dies (`PR_SET_PDEATHSIG`), so a killed parent leaves none behind.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The path of this program. It is valid even if the file has since been replaced by a newer version, so parent and
/// child have the same version.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The name of each process of webfill in `ps` and `pgrep`.
const NAME: &str = "webfill";

/// How many bytes of an ended child's standard error are read at most.
const MOST_STDERR_BYTES: u64 = 64 << 10;

/// How many characters of a child's last line are kept at most.
const MOST_LINE_CHARS: usize = 2_000;

/// The command that starts this program as a child.
pub fn own_program() -> Command {
    let mut command = Command::new(OWN_PROGRAM);
    command.arg0(NAME);
    command
}

/// Restores the process's name, because the kernel names [`own_program`] after the last part of its path.
pub fn restore_process_name() {
    // If this fails, only the name that people see is wrong.
    let _ = std::fs::write("/proc/self/comm", NAME);
}

/// The last line that an ended child wrote to standard error, without the name of the program. It says why the child
/// ended. Empty if there is none, or if standard error is not a pipe.
pub fn last_stderr_line(child: &mut Child) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = &mut child.stderr {
        // If this fails, only the exit status says why the process ended.
        let _ = stderr.take(MOST_STDERR_BYTES).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    let last = last.unwrap_or_default().trim_start_matches("webfill: ");
    last.chars().take(MOST_LINE_CHARS).collect()
}

/// Starts `webfill ARGS...` as a child that is killed when this process dies.
pub fn spawn(arguments: &[String], stderr: Stdio) -> io::Result<Child> {
    let mut command = own_program();
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    kill_with_parent(&mut command);
    command.spawn()
}

/// Makes the kernel kill the child when the thread that started it ends. So it must be started from a thread that lives
/// as long as the process.
pub fn kill_with_parent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec, only async-signal-safe calls are made.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The parent may have died before `prctl` took effect.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::other("the parent process is gone"));
            }
            Ok(())
        });
    }
}

/// Kills a child that is still running, with its whole process group, and waits for its end.
pub fn kill_group_and_wait(child: &mut Child) {
    if let Ok(None) = child.try_wait()
        && let Ok(group) = libc::pid_t::try_from(child.id())
    {
        // SAFETY: a plain system call. The child was not waited for, so the id still belongs to it.
        #[allow(unsafe_code)]
        unsafe {
            libc::kill(-group, libc::SIGKILL)
        };
    }
    // An error means that the child was already waited for.
    let _ = child.wait();
}

/// Waits at most `limit` for the end of the child. Returns whether it has ended. The child is not reaped, so its
/// process id is not used again.
pub fn wait_without_reaping(child: &Child, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if has_ended(child) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    has_ended(child)
}

fn has_ended(child: &Child) -> bool {
    // SAFETY: a plain system call that fills in the given struct.
    #[allow(unsafe_code)]
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let asked = libc::waitid(libc::P_PID, child.id(), &mut info, options);
        asked != 0 || info.si_pid() != 0
    }
}

/// Kills the process group of a child, even if the child itself has ended. The child must not have been waited for.
pub fn kill_group_unreaped(child: &Child) {
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: a plain system call. The child was not waited for, so the id still belongs to it.
        #[allow(unsafe_code)]
        unsafe {
            libc::kill(-group, libc::SIGKILL)
        };
    }
}

/// Waits for the end of the child for at most `limit`; `None` if it still runs then.
pub fn wait_at_most(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Sends SIGTERM to a child. Every process of webfill drains when it gets it.
pub fn request_drain(child: &Child) {
    if let Ok(pid) = libc::pid_t::try_from(child.id()) {
        // SAFETY: a plain system call. The child was not waited for, so the id still belongs to it.
        #[allow(unsafe_code)]
        unsafe {
            libc::kill(pid, libc::SIGTERM)
        };
    }
}

/// The wait before a child is restarted. It doubles with each early death, from 100 ms to 30 s, and starts over once a
/// child has lived for a minute.
#[derive(Debug)]
pub struct BackOff {
    started: Instant,
    early_deaths: u32,
}

impl BackOff {
    pub fn starting_at(now: Instant) -> BackOff {
        BackOff {
            started: now,
            early_deaths: 0,
        }
    }

    /// Notes that the child has died. Returns when it may be restarted.
    pub fn note_death(&mut self, now: Instant) -> Instant {
        if now.duration_since(self.started) >= Duration::from_secs(60) {
            self.early_deaths = 0;
        }
        let wait = Duration::from_millis(100) * 2u32.pow(self.early_deaths.min(9));
        self.early_deaths += 1;
        now + wait.min(Duration::from_secs(30))
    }

    pub fn note_restart(&mut self, now: Instant) {
        self.started = now;
    }

    /// The number of deaths since the child last lived for a minute. The death after that minute counts as well.
    pub fn early_deaths(&self) -> u32 {
        self.early_deaths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_wait_longer_after_each_early_death() {
        let start = Instant::now();
        let mut back_off = BackOff::starting_at(start);
        let waits: Vec<_> = (0..12)
            .map(|_| back_off.note_death(start) - start)
            .collect();
        assert_eq!(waits[0], Duration::from_millis(100));
        assert_eq!(waits[1], Duration::from_millis(200));
        assert_eq!(waits[11], Duration::from_secs(30));
        let later = start + Duration::from_secs(61);
        assert_eq!(
            back_off.note_death(later) - later,
            Duration::from_millis(100)
        );
    }
}
