//! A disk that is full at any moment of a run: the command ends with its code, and the same command resumes.

use std::fs;

use webfill_test_needs::needs;
use webfill_tests::isolation::{mount_small_disk, run_isolated};
use webfill_tests::run::{Finished, Run};
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    assert_same_outputs, example_oddities, fill_command, fill_on_one_machine, serve_books,
    table_with_gaps,
};

/// Sizes of the disk, from one that has room only for the table to one that has room for most pages and outputs.
const SIZES_KIB: [u32; 8] = [12, 16, 24, 64, 128, 256, 512, 1_024];
const ENOUGH_KIB: u32 = 64 << 10;

#[needs(namespaces)]
#[test]
fn a_full_disk_ends_a_run_and_loses_nothing() {
    run_isolated(
        "full_disk::a_full_disk_ends_a_run_and_loses_nothing",
        || {
            let alone = fill_on_one_machine();
            let work = Workplace::new();
            mount_small_disk(&work.path("."), ENOUGH_KIB, false);
            for size in SIZES_KIB {
                check_disk(&work, &alone, size);
            }
        },
    );
}

/// Runs the command on a disk of this size until it is full, and again when there is room.
fn check_disk(work: &Workplace, alone: &Workplace, size_kib: u32) {
    for entry in fs::read_dir(work.path(".")).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
    let (oddities, wrong) = example_oddities();
    let web = Web::start();
    serve_books(&web, &oddities);
    work.write("books.csv", table_with_gaps(&wrong));
    mount_small_disk(&work.path("."), size_kib, true);
    let full = run_fill(work, &web);
    let (said, code) = (full.stderr, full.status.code());
    assert_eq!(code, Some(17), "{size_kib} KiB: {said}");
    let is_clear = ["disk is full", "no space left"]
        .iter()
        .any(|words| said.contains(words));
    assert!(is_clear, "{size_kib} KiB: {said}");

    mount_small_disk(&work.path("."), ENOUGH_KIB, true);
    run_fill(work, &web).expect_code(0);
    assert_same_outputs(alone, work);
    assert!(work.path("books.html").exists());
    let remains = fs::read_dir(work.path(".")).unwrap();
    let remains = remains.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().contains(".part")
    });
    assert_eq!(remains.count(), 0, "{size_kib} KiB");
}

fn run_fill(work: &Workplace, web: &Web) -> Finished {
    let command: Run = fill_command(work, web).args(["--report", "books.html"]);
    command.env("WEBFILL_DISK_FLOOR_MIB", "0").finish()
}
