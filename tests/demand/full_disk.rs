//! Tests a dispatcher whose disk fills up. Its file must contain all requests that it has confirmed. With a floor (free
//! space that must remain), the fleet pauses before the disk is full.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::isolation::{mount_small_disk, mount_small_ext4, run_isolated};
use webfill_tests::run::Running;
use webfill_tests::site::page;
use webfill_tests::stored::Stored;

use crate::clients::{Client, try_post};
use crate::fleet::{Fleet, request, request_with, wait_for};

/// The size of the disk, and the size of a file that fills most of it and is later removed to make room.
const DISK_KIB: u32 = 24 << 10;
const BALLAST_BYTES: u64 = 17 << 20;

#[derive(Debug, Clone, Copy)]
enum Way {
    Socket,
    Rest,
}

#[needs(namespaces)]
#[test]
fn what_was_accepted_on_a_full_tmpfs_is_in_the_file() {
    run_isolated(
        "full_disk::what_was_accepted_on_a_full_tmpfs_is_in_the_file",
        || {
            let folder = tempfile::tempdir().expect("a temporary folder");
            mount_small_disk(folder.path(), DISK_KIB, false);
            check_all_accepted_lists(folder.path());
        },
    );
}

#[needs(namespaces, loop_mount)]
#[test]
fn what_was_accepted_on_a_full_ext4_is_in_the_file() {
    run_isolated(
        "full_disk::what_was_accepted_on_a_full_ext4_is_in_the_file",
        || {
            let images = tempfile::tempdir().expect("a temporary folder");
            let folder = tempfile::tempdir().expect("a temporary folder");
            let image = images.path().join("image");
            mount_small_ext4(folder.path(), &image, DISK_KIB);
            check_all_accepted_lists(folder.path());
        },
    );
}

fn check_all_accepted_lists(disk: &Path) {
    for way in [Way::Socket, Way::Rest] {
        for length in [100, 1_000] {
            check_accepted_lists(disk, way, length);
        }
    }
}

/// Feeds lists until the dispatcher ends. Then makes room, and checks that all accepted requests are stored.
fn check_accepted_lists(disk: &Path, way: Way, length: usize) {
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![1; BALLAST_BYTES as usize]).expect("room for it");
    let mut fleet = Fleet::start_dispatcher_in_folder(disk, &[("DISK_FLOOR_MIB", "0")]);
    let mut accepted = 0;
    for number in 0.. {
        let Some(answer) = feed_list(&mut fleet, way, &request_list(number, length)) else {
            break;
        };
        assert_eq!(answer, json!({"accepted": length}), "{way:?}");
        accepted += length;
    }
    assert!(accepted > 0, "the disk was full from the beginning");
    let sentence = fleet.wait_until_dispatcher_ended(17);
    assert!(sentence.contains("no space"), "{sentence}");

    std::fs::remove_file(&ballast).expect("it is there");
    fleet.start_dispatcher();
    let kept = count_tasks(&fleet);
    let what = format!("{way:?}, lists of {length}: {accepted} accepted, {kept} kept");
    // The last list got no answer, but a part of it may be stored, because a slow machine commits long lists in parts.
    let possible = accepted..=accepted + length;
    assert!(possible.contains(&kept), "{what}");
}

/// Feeds a list. Returns `None` if the dispatcher ended before it answered.
fn feed_list(fleet: &mut Fleet, way: Way, list: &Value) -> Option<Value> {
    match way {
        Way::Rest => match try_post(&fleet.host, "/feed", list) {
            Ok((200, answer)) => Some(answer),
            Ok((503, _)) | Err(_) => None,
            Ok(other) => panic!("{other:?}"),
        },
        Way::Socket => Client::connect(&fleet.control_endpoint())
            .ask_unless(list, || fleet.has_dispatcher_ended()),
    }
}

fn request_list(number: usize, length: usize) -> Value {
    let padding = "x".repeat(200);
    let url = |n| format!("http://a{number}.example/{n}/{padding}");
    (0..length).map(|n| request(&url(n), "full")).collect()
}

fn count_tasks(fleet: &Fleet) -> usize {
    let frontier = Stored::open(&fleet.dispatcher_state.join("dispatcher.db"));
    assert_eq!(frontier.integrity(), "ok");
    frontier.query_number("SELECT count(*) FROM tasks") as usize
}

/// The dispatcher must not confirm a request or hand out a task without a commit, because pages would then be requested
/// twice.
#[needs(namespaces)]
#[test]
fn pages_fetched_while_the_disk_fills_up_are_not_fetched_again() {
    run_isolated(
        "full_disk::pages_fetched_while_the_disk_fills_up_are_not_fetched_again",
        || {
            let disk = tempfile::tempdir().expect("a temporary folder");
            // On a busy machine, commits contain less, and the write-ahead log grows to its limit of 32 MiB.
            mount_small_disk(disk.path(), 64 << 10, false);
            let ballast = disk.path().join("ballast");
            std::fs::write(&ballast, vec![1; 62 << 20]).expect("room for it");
            // Only the dispatcher's files are on this disk.
            let mut fleet =
                Fleet::unstarted_fleet(&[("POLITENESS_DELAY", "0.01"), ("DISK_FLOOR_MIB", "0")]);
            fleet.dispatcher_state = disk.path().join("state");
            fleet.start_dispatcher();
            fleet.add_supervisor("one");
            let deeper = |n| {
                let url = format!("http://links{n}.example/");
                request_with(&url, "full", json!({"maxdepth": 1}))
            };
            let seeds: Vec<Value> = (0..SITES).map(deeper).collect();
            (0..SITES).for_each(|number| serve_links(&fleet, number));
            fleet.feed(&seeds);
            let sentence = fleet.wait_until_dispatcher_ended(17);
            assert!(sentence.contains("no space"), "{sentence}");

            std::fs::remove_file(&ballast).expect("it is there");
            fleet.start_dispatcher();
            fleet.wait_until_done("full");
            let visits = fleet.web.visits().pages();
            let counts = visits.counts();
            assert_eq!(counts.len(), SITES * (1 + LINKS));
            let again = counts.values().filter(|times| **times > 1).count();
            assert_eq!(again, 0, "pages that were requested again");
        },
    );
}

const SITES: usize = 60;
const LINKS: usize = 40;

/// Serves a site whose first page links to all others. In the dispatcher's file, the links take 32 KB.
fn serve_links(fleet: &Fleet, number: usize) {
    let padding = "x".repeat(800);
    let link = |n| format!("<a href=\"/{n}/{padding}\">l</a>");
    let links: String = (0..LINKS).map(link).collect();
    let site = fleet.web.site(&format!("links{number}.example"));
    site.serve("/", page("first").html(links));
    site.serve_otherwise(|request| page(&request.path).into());
}

/// The free space that must remain. The file that fills the disk leaves less than this, but enough for the pages of
/// this test.
const FLOOR_MIB: &str = "16";

#[needs(namespaces)]
#[test]
fn below_the_floor_a_fleet_pauses_says_so_and_goes_on_by_itself() {
    run_isolated(
        "full_disk::below_the_floor_a_fleet_pauses_says_so_and_goes_on_by_itself",
        || {
            let disk = tempfile::tempdir().expect("a temporary folder");
            mount_small_disk(disk.path(), 64 << 10, false);
            let floor = [("DISK_FLOOR_MIB", FLOOR_MIB)];
            let mut fleet = Fleet::start_dispatcher_in_folder(disk.path(), &floor);
            fleet.add_supervisor("one");
            let site = fleet.web.site("floor.example");
            site.serve_otherwise(|request| page(&request.path).into());
            let url = |n| format!("http://floor.example/{n}");
            let pages: Vec<Value> = (0..200).map(|n| request(&url(n), "floor")).collect();
            fleet.feed(&pages);
            let ballast = disk.path().join("ballast");
            std::fs::write(&ballast, vec![1; 52 << 20]).expect("room for it");

            let status = || fleet.run_json(&["status"]);
            let paused = wait_for("the dispatcher pauses", || {
                status()["paused"].as_str().map(str::to_owned)
            });
            assert!(paused.contains("disk.floor_mib = 16"), "{paused}");
            let (code, answer) = crate::clients::post(&fleet, "/feed", &pages[0]);
            let refused = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(
                code == 503 && refused.contains("disk.floor_mib"),
                "{answer}"
            );
            wait_for("what was in flight has ended", || {
                (status()["leased"] == 0).then_some(())
            });
            let before = fleet.web.visits().pages().len();
            // During this time, twenty pages per second would be fetched without the pause.
            std::thread::sleep(Duration::from_secs(2));
            assert_eq!(fleet.web.visits().pages().len(), before);
            assert!(before < pages.len(), "it was done before the pause");

            std::fs::remove_file(&ballast).expect("it is there");
            fleet.wait_until_done("floor");
            assert_eq!(fleet.web.visits().pages().len(), pages.len());
            for reported in [fleet.dispatcher(), fleet.supervisor()].map(Running::stderr_so_far) {
                assert!(
                    reported.contains("paused: ") && reported.contains("resumed: "),
                    "{reported}"
                );
            }
        },
    );
}
