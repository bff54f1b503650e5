use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::frontier::tests::empty_database;

/// Keys as a hash would yield them, in a different sequence for each seed.
pub(crate) fn keys(seed: u64, n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |nth| {
        let mut hasher = SipHasher13::new_with_keys(seed, 0);
        hasher.write_u64(nth);
        hasher.finish().max(1)
    })
}

/// The minimum memory: the tail holds 896 keys.
const LEAST: usize = 8 * 1_024 * TAIL_ENTRY_BYTES;

/// The folder that contains the database.
fn database_folder(db: &Connection) -> &Path {
    Path::new(db.path().unwrap()).parent().unwrap()
}

fn open_index() -> (TempDir, Connection, SeenUrls) {
    let (dir, db) = empty_database();
    db.execute_batch("BEGIN").unwrap();
    let seen = SeenUrls::open(
        &db,
        database_folder(&db),
        LEAST,
        DroppedParameters::with_defaults(),
    )
    .unwrap();
    (dir, db, seen)
}

fn insert_all(seen: &mut SeenUrls, db: &Connection, keys: impl Iterator<Item = u64>) {
    for (nth, key) in keys.enumerate() {
        assert!(!seen.contains(key).unwrap());
        seen.insert(key, nth as u64 + 1);
        if nth % 50 == 0 {
            seen.maintain(db).unwrap();
        }
    }
}

#[test]
fn every_key_is_found_with_its_task_in_tail_and_runs() {
    let (_dir, db, mut seen) = open_index();
    insert_all(&mut seen, &db, keys(1, 100_000));
    assert!(!seen.runs.is_empty() && !seen.tail.is_empty());
    for (nth, key) in keys(1, 100_000).enumerate() {
        assert!(seen.contains(key).unwrap(), "key {nth}");
        assert_eq!(seen.task_of(key).unwrap(), Some(nth as u64 + 1));
    }
    assert!(keys(2, 100_000).all(|key| !seen.contains(key).unwrap()));
}

#[test]
fn few_runs_remain_and_merged_ones_are_freed() {
    let (_dir, db, mut seen) = open_index();
    insert_all(&mut seen, &db, keys(1, 200_000));
    assert!(seen.runs.len() <= 8, "{} runs", seen.runs.len());
    let files = |db: &Connection| {
        let folder = database_folder(db).join(runs::FOLDER);
        fs::read_dir(folder).unwrap().count()
    };
    seen.advance_merge(&db, u64::MAX).unwrap();
    assert!(
        files(&db) > seen.runs.len(),
        "none is deleted before the commit"
    );
    seen.delete_merged_files();
    assert_eq!(files(&db), seen.runs.len());
}

#[test]
fn the_runs_are_the_same_after_a_restart_in_the_middle_of_a_merge() {
    let (_dir, db, mut seen) = open_index();
    let mut merging = 0;
    for (nth, key) in keys(1, 30_000).enumerate() {
        seen.insert(key, nth as u64 + 1);
        seen.maintain(&db).unwrap();
        if seen.merge.is_some() && nth % 7 == 0 {
            merging += 1;
            let tail = std::mem::take(&mut seen.tail);
            seen = SeenUrls::open(
                &db,
                database_folder(&db),
                LEAST,
                DroppedParameters::with_defaults(),
            )
            .unwrap();
            seen.tail = tail;
            seen.last_task = nth as u64 + 1;
        }
    }
    assert!(merging > 10, "restarted during {merging} merges");
    for (nth, key) in keys(1, 30_000).enumerate() {
        assert_eq!(seen.task_of(key).unwrap(), Some(nth as u64 + 1));
    }
}

#[test]
fn the_latest_task_of_a_key_counts_through_merges() {
    let (_dir, db, mut seen) = open_index();
    insert_all(&mut seen, &db, keys(1, 5_000));
    for (nth, key) in keys(1, 5_000).enumerate() {
        seen.insert(key, 5_001 + nth as u64);
        seen.maintain(&db).unwrap();
    }
    for (nth, key) in keys(1, 5_000).enumerate() {
        assert_eq!(seen.task_of(key).unwrap(), Some(5_001 + nth as u64));
    }
}

#[test]
fn keys_differ_by_crawl_and_by_database() {
    let (_dir, db, seen) = open_index();
    let (_other_dir, _other_db, other) = open_index();
    let key = seen.key(1, "http://a.org/");
    assert_eq!(
        key,
        SeenUrls::open(
            &db,
            database_folder(&db),
            LEAST,
            DroppedParameters::with_defaults()
        )
        .unwrap()
        .key(1, "http://a.org/")
    );
    assert_ne!(key, seen.key(2, "http://a.org/"));
    assert_ne!(key, other.key(1, "http://a.org/"));
}

#[test]
fn after_a_start_the_runs_are_read_little_by_little_while_the_index_is_in_use() {
    let (_dir, db, mut seen) = open_index();
    insert_all(&mut seen, &db, keys(1, 100_000));
    let tail = std::mem::take(&mut seen.tail);
    let mut seen = SeenUrls::open_with_read_speed(
        &db,
        database_folder(&db),
        LEAST,
        DroppedParameters::with_defaults(),
        1,
    )
    .unwrap();
    seen.tail = tail;
    seen.last_task = 100_000;
    let older: Vec<u64> = keys(1, 100_000).collect();
    let mut turns = 0;
    for (nth, key) in keys(2, 20_000).enumerate() {
        assert!(!seen.contains(key).unwrap(), "new key {nth}");
        seen.insert(key, 100_001 + nth as u64);
        if nth % 50 == 0 {
            seen.maintain(&db).unwrap();
            turns += u64::from(seen.front.is_rebuilding());
        }
        let older = older[nth * 5];
        assert!(seen.contains(older).unwrap(), "key {}", nth * 5);
    }
    assert!(turns > 5, "it was read in {turns} turns");
    assert!(!seen.front.is_rebuilding());
    for (nth, key) in keys(1, 100_000).enumerate() {
        assert_eq!(seen.task_of(key).unwrap(), Some(nth as u64 + 1));
    }
}

#[test]
fn files_that_a_crash_has_left_are_deleted_at_the_next_start() {
    let (_dir, db, mut seen) = open_index();
    insert_all(&mut seen, &db, keys(1, 3_000));
    seen.delete_merged_files();
    let folder = database_folder(&db).join(runs::FOLDER);
    fs::write(folder.join("notes.txt"), "of somebody else").unwrap();
    fs::write(folder.join("0123456789abcdef.run"), "half of it").unwrap();
    let runs = SeenUrls::open(
        &db,
        database_folder(&db),
        LEAST,
        DroppedParameters::with_defaults(),
    )
    .unwrap()
    .runs
    .len();
    assert!(runs > 0);
    let left = fs::read_dir(&folder).unwrap().count();
    assert_eq!(left, runs + 1, "the runs, and what is not ours");
}

/// The tasks after the last run are read at the start. That must not make all maintenance due at once.
#[test]
fn a_full_tail_at_the_start_does_not_have_all_runs_read_at_once() {
    let (_dir, db, mut seen) = open_index();
    insert_all(&mut seen, &db, keys(1, 100_000));
    let indexed = seen.runs.last().unwrap().last_task;
    let sql = "INSERT INTO task_rows (id, crawl, site, priority, depth, rank, url)
               VALUES (?1, 1, 1, 1, 1, 0, 'http://a.org/' || ?1)";
    for task in 1..=800 {
        db.execute(sql, [(indexed + task) as i64]).unwrap();
    }
    let mut seen = SeenUrls::open_with_read_speed(
        &db,
        database_folder(&db),
        LEAST,
        DroppedParameters::with_defaults(),
        1,
    )
    .unwrap();
    assert_eq!(seen.tail.len(), 800);
    seen.insert(1, indexed + 801);
    seen.maintain(&db).unwrap();
    assert!(seen.front.is_rebuilding(), "a part is read at a time");
}

#[test]
fn a_run_that_is_lost_ends_the_index_and_those_before_it_are_kept() {
    let (_dir, db, mut seen) = open_index();
    insert_all(&mut seen, &db, keys(1, 5_000));
    seen.advance_merge(&db, u64::MAX).unwrap();
    assert!(seen.runs.len() > 1);
    let last = seen.runs.last().unwrap().path().to_owned();
    fs::File::options()
        .write(true)
        .open(&last)
        .unwrap()
        .set_len(100)
        .unwrap();
    let kept = SeenUrls::open(
        &db,
        database_folder(&db),
        LEAST,
        DroppedParameters::with_defaults(),
    )
    .unwrap();
    assert_eq!(kept.runs.len(), seen.runs.len() - 1);
    assert!(!last.exists());
    for run in &kept.runs {
        assert!(run.path().exists());
    }
}
