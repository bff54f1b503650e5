//! Handles signals: the first SIGINT or SIGTERM requests a drain, the second an immediate stop; SIGHUP requests a
//! reload of settings. The handlers only set flags; the main loops check [`received_request`] and
//! [`take_reload_request`].

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a sleeping thread checks for signals.
const TICK: Duration = Duration::from_millis(20);

static ASKED: AtomicU32 = AtomicU32::new(0);
static RELOAD: AtomicBool = AtomicBool::new(false);

/// What the signals received so far request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignalRequest {
    Nothing,
    Drain,
    Stop,
}

/// Installs the handlers of SIGINT and SIGTERM.
pub fn install_handlers() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        set_handler(signal, count_signal as *const () as libc::sighandler_t);
    }
}

/// Treats SIGHUP as a request to reload, for processes that run without a terminal.
pub fn reload_on_hangup() {
    set_handler(libc::SIGHUP, note_hangup as *const () as libc::sighandler_t);
}

/// Whether a reload was requested since the last call.
pub fn take_reload_request() -> bool {
    RELOAD.swap(false, Ordering::Relaxed)
}

/// Ignores SIGINT, for a child process that its parent ends with SIGTERM. A Ctrl-C in the terminal reaches the child,
/// too, but only the parent must react to it.
pub fn ignore_interrupts() {
    set_handler(libc::SIGINT, libc::SIG_IGN);
}

fn set_handler(signal: i32, handler: libc::sighandler_t) {
    // SAFETY: the handlers only write to an atomic, which is async-signal-safe.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(signal, handler);
    }
}

extern "C" fn note_hangup(_signal: i32) {
    RELOAD.store(true, Ordering::Relaxed);
}

extern "C" fn count_signal(_signal: i32) {
    ASKED.fetch_add(1, Ordering::Relaxed);
}

/// What the signals received so far request.
pub fn received_request() -> SignalRequest {
    match ASKED.load(Ordering::Relaxed) {
        0 => SignalRequest::Nothing,
        1 => SignalRequest::Drain,
        _ => SignalRequest::Stop,
    }
}

/// Blocks this thread for a time. If a signal arrives before its end, returns false immediately.
pub fn sleep_unless_interrupted(duration: Duration) -> bool {
    let until = Instant::now() + duration;
    while received_request() == SignalRequest::Nothing {
        if Instant::now() >= until {
            return true;
        }
        thread::sleep(TICK);
    }
    false
}

/// Ignores SIGINT and SIGTERM, for workers. A message of their supervisor makes them drain, so a signal to the whole
/// process group must not end them.
pub fn ignore_interrupts_and_terminations() {
    set_handler(libc::SIGINT, libc::SIG_IGN);
    set_handler(libc::SIGTERM, libc::SIG_IGN);
}
