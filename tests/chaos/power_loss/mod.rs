//! Power losses. Real processes crawl while all of their writes and syncs are recorded (`recorder.c`). From these
//! notes, the possible content of the disk after a power loss at any moment is computed ([`disk`]). This content is
//! checked, and a new fleet continues the crawl from it. The notes of the new fleet are used for the next loss.
//! `POWER_CUTS` and `POWER_SEED` in the environment set the number of losses and their seed; `make power` sets both.

mod disk;
mod fleet;
mod judge;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use fastrand::Rng;

use self::disk::Disk;
use self::fleet::Recording;
use self::judge::DiskState;

/// The number of crawls that run in parallel. They wait most of the time.
const AT_ONCE: u64 = 8;

/// The number of consecutive power losses before a new crawl begins.
const IN_A_ROW: u64 = 5;

#[test]
fn whenever_the_power_is_lost_no_reported_data_are_lost_or_doubled() {
    let (cuts, seed) = (
        number_from_env("POWER_CUTS", 40),
        number_from_env("POWER_SEED", 1),
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recorder = build_recorder(folder.path());
    let tally = Tally::new(cuts, seed);
    std::thread::scope(|threads| {
        for chain in 0..AT_ONCE {
            let (recorder, tally) = (&recorder, &tally);
            let count = cuts / AT_ONCE + u64::from(chain < cuts % AT_ONCE);
            threads.spawn(move || {
                cut_power_often(count, seed.wrapping_mul(1_000) + chain, recorder, tally);
            });
        }
    });
    let Judged { count, wrong } = tally.judged.into_inner().expect("no panic while held");
    assert_eq!(count, cuts, "losses that were judged");
    assert!(wrong.is_empty(), "POWER_SEED={seed}:\n{}", wrong.join("\n"));
}

/// The judged losses of all chains. They are printed while the test runs, so an interrupted run shows its results, too.
struct Tally {
    cuts: u64,
    seed: u64,
    started: Instant,
    judged: Mutex<Judged>,
}

#[derive(Default)]
struct Judged {
    count: u64,
    wrong: Vec<String>,
}

impl Tally {
    fn new(cuts: u64, seed: u64) -> Self {
        let (started, judged) = (Instant::now(), Mutex::default());
        Self {
            cuts,
            seed,
            started,
            judged,
        }
    }

    /// Counts a loss. Its violations are printed at once, and the counts after every hundredth loss (of fewer than a
    /// thousand, after every tenth of them).
    fn add(&self, violations: Vec<String>) {
        let mut judged = self.judged.lock().expect("no panic while held");
        for violation in &violations {
            println!("VIOLATION: {violation}");
        }
        judged.count += 1;
        judged.wrong.extend(violations);
        if judged.count.is_multiple_of((self.cuts / 10).clamp(1, 100)) || judged.count == self.cuts
        {
            println!(
                "{} of {} losses judged (seed {}) in {} s: {} violations",
                judged.count,
                self.cuts,
                self.seed,
                self.started.elapsed().as_secs(),
                judged.wrong.len()
            );
        }
    }
}

fn number_from_env(variable: &str, otherwise: u64) -> u64 {
    let value = std::env::var(variable).ok();
    let value = value.filter(|text| !text.is_empty());
    value.map_or(otherwise, |text| text.parse().expect("a number"))
}

fn build_recorder(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/chaos/power_loss/recorder.c");
    let library = folder.join("recorder.so");
    let built = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .output()
        .expect("a C compiler, which building webfill needs as well");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    library
}

/// Runs a crawl and makes `count` power losses. Each comes while the crawl continues after the previous one.
fn cut_power_often(count: u64, seed: u64, recorder: &Path, tally: &Tally) {
    let mut rng = Rng::with_seed(seed);
    let mut recording = Recording::run(Disk::default(), recorder);
    for cut in 0..count {
        if cut % IN_A_ROW == IN_A_ROW - 1 {
            recording = Recording::run(Disk::default(), recorder);
        }
        let at = rng.u64(..=recording.notes.end());
        let disk = recording.notes.lose_power_at(&recording.base, at, &mut rng);
        let found = check_cut(disk, &mut recording, at, recorder);
        let found = found.iter().take(5);
        let found = found.map(|found| format!("cut {cut} of chain {seed}, at {at}: {found}"));
        tally.add(found.collect());
    }
}

/// Checks the disk after a power loss, continues the crawl from it, and checks the result. The recording of the
/// continued crawl replaces `recording`.
fn check_cut(disk: Disk, recording: &mut Recording, at: u64, recorder: &Path) -> Vec<String> {
    // Check a copy of the files, because opening them changes them.
    let copy = tempfile::tempdir().expect("a temporary folder");
    disk.write_to(copy.path());
    let mut left = DiskState::open(copy.path());
    let mut wrong = left.find_violations(recording, at).to_vec();
    let reported = recording.accepted.iter().filter(|(_, when)| *when <= at);
    let reported: Vec<_> = reported.map(|(url, _)| (url.clone(), 0)).collect();
    *recording = Recording::run(disk, recorder);
    recording.accepted.extend(reported);
    wrong.extend(judge::find_end_violations(&left, recording));
    wrong
}
