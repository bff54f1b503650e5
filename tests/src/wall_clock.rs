//! Processes whose wall clock is wrong, by libfaketime. Their monotonic clock and the times of files are
//! the machine's. Tests that need it have the attribute `#[needs(libfaketime)]`.

use std::path::Path;

use crate::run::Run;

/// The library, if this machine has it.
pub fn library() -> Option<&'static str> {
    const PLACES: [&str; 2] = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    ];
    PLACES.into_iter().find(|place| Path::new(place).exists())
}

/// Its wall clock is ahead by so many seconds, or behind if the number is negative.
pub fn ahead_by(run: Run, seconds: i64) -> Run {
    loaded(run).env("FAKETIME", format!("{seconds:+}"))
}

/// Its wall clock is ahead by what a file says, at any time; the machine's own without libfaketime.
pub fn moved_by_file(run: Run, file: &Path) -> Run {
    match library() {
        Some(_) => loaded(run)
            .env("FAKETIME_TIMESTAMP_FILE", file)
            .env("FAKETIME_NO_CACHE", "1"),
        None => run,
    }
}

fn loaded(run: Run) -> Run {
    let library = library().expect("the package libfaketime");
    run.env("LD_PRELOAD", library)
        .env("NO_FAKE_STAT", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}
