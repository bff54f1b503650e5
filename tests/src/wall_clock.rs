//! Processes with a wrong wall clock, by libfaketime. The monotonic clock and the times of files are those of the
//! machine. Tests that need this have the attribute `#[needs(libfaketime)]`.

use std::path::Path;

use crate::run::Run;

/// The path of libfaketime, if it is installed.
pub fn library_path() -> Option<&'static str> {
    const PLACES: [&str; 2] = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    ];
    PLACES.into_iter().find(|place| Path::new(place).exists())
}

/// Makes the wall clock of a run differ by this many seconds: ahead, or behind if the number is negative.
pub fn with_clock_ahead(run: Run, seconds: i64) -> Run {
    with_faketime(run).env("FAKETIME", format!("{seconds:+}"))
}

/// Makes the wall clock of a run differ by the number of seconds in a file, which may change during the run. Without
/// libfaketime, the clock is not changed.
pub fn with_clock_file(run: Run, file: &Path) -> Run {
    match library_path() {
        Some(_) => with_faketime(run)
            .env("FAKETIME_TIMESTAMP_FILE", file)
            .env("FAKETIME_NO_CACHE", "1"),
        None => run,
    }
}

fn with_faketime(run: Run) -> Run {
    let library = library_path().expect("the package libfaketime");
    run.env("LD_PRELOAD", library)
        .env("NO_FAKE_STAT", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}
