//! Tests every stored input of the fuzz targets by running it again. There must be no panic, no hang, and no growth of
//! memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use webfill_fuzz::{TARGETS, Target, target};

/// The longest time for one input. An extraction ends after two seconds by itself, but a busy machine is slower.
const LONGEST: Duration = Duration::from_secs(10);

/// The most bytes that memory may grow by when all inputs are read again.
const MOST_GROWTH_BYTES: usize = 8 << 20;

fn corpus_folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name)
}

/// The inputs of a target, with the paths of their files.
fn read_inputs(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(corpus_folder(target)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    paths.into_iter().map(read).collect()
}

fn replay(target: &Target, inputs: &[(PathBuf, Vec<u8>)]) {
    for (path, input) in inputs {
        // The path is printed before the run, so that the output names the input that causes a panic.
        println!("{}", path.display());
        let start = Instant::now();
        (target.run)(input);
        let took = start.elapsed();
        assert!(took < LONGEST, "{} took {took:?}", path.display());
    }
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes << 10
}

fn check_replays(name: &str) {
    let target = target(name).unwrap();
    let inputs = read_inputs(target);
    assert!(!inputs.is_empty(), "{name} has a corpus");
    replay(target, &inputs);
    // Two replays bring caches and the allocator to their full size. After that, memory must not grow.
    replay(target, &inputs);
    let before = resident_bytes();
    replay(target, &inputs);
    replay(target, &inputs);
    let growth = resident_bytes().saturating_sub(before);
    assert!(growth <= MOST_GROWTH_BYTES, "{name} grew by {growth} bytes");
}

#[test]
fn frames_are_read_without_harm() {
    check_replays("wire");
}

#[test]
fn control_requests_are_read_without_harm() {
    check_replays("control");
}

#[test]
fn robots_files_are_read_without_harm() {
    check_replays("robots");
}

#[test]
fn urls_are_read_without_harm() {
    check_replays("urls");
}

#[test]
fn mappings_are_read_without_harm() {
    check_replays("mappings");
}

#[test]
fn pages_are_read_without_harm() {
    check_replays("pages");
}

#[test]
fn headers_are_read_without_harm() {
    check_replays("headers");
}

#[test]
fn every_target_has_inputs_and_a_test() {
    let this_file = include_str!("corpus.rs");
    for target in &TARGETS {
        assert!(corpus_folder(target).is_dir(), "corpus/{}", target.name);
        assert!(this_file.contains(&format!("(\"{}\");", target.name)));
    }
}
