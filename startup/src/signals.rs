//! Signals: the first SIGINT or SIGTERM asks for a drain, the second for a stop at once.

use std::sync::atomic::{AtomicU32, Ordering};

static ASKED: AtomicU32 = AtomicU32::new(0);

/// What the signals so far ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    Nothing,
    Drain,
    Stop,
}

/// Installs the handlers.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        handle(signal, count as *const () as libc::sighandler_t);
    }
}

/// For children that take orders from their parent alone: a Ctrl-C in the terminal reaches the
/// whole foreground group, and only the parent should act on it.
pub fn leave_interrupts_to_the_parent() {
    handle(libc::SIGINT, libc::SIG_IGN);
}

fn handle(signal: i32, handler: libc::sighandler_t) {
    // SAFETY: the handler only adds to an atomic counter, which is async-signal-safe.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(signal, handler);
    }
}

extern "C" fn count(_signal: i32) {
    ASKED.fetch_add(1, Ordering::Relaxed);
}

/// What has been asked for so far.
pub fn asked() -> Asked {
    match ASKED.load(Ordering::Relaxed) {
        0 => Asked::Nothing,
        1 => Asked::Drain,
        _ => Asked::Stop,
    }
}

/// For workers, whose supervisor tells them when to drain: neither a Ctrl-C in the terminal nor a
/// SIGTERM to the whole group is for them.
pub fn leave_to_the_parent() {
    handle(libc::SIGINT, libc::SIG_IGN);
    handle(libc::SIGTERM, libc::SIG_IGN);
}
