use tempfile::TempDir;

use super::*;
use crate::frontier::tests::empty_database;

/// Keys as a hash would give them; another sequence for each seed.
pub(crate) fn keys(seed: u64, n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |nth| {
        let mut hasher = SipHasher13::new_with_keys(seed, 0);
        hasher.write_u64(nth);
        hasher.finish().max(1)
    })
}

/// The least memory there is: the tail takes 896 keys.
const LEAST: usize = 8 * 1_024 * TAIL_ENTRY_BYTES;

fn opened() -> (TempDir, Connection, Seen) {
    let (dir, db) = empty_database();
    db.execute_batch("BEGIN").unwrap();
    let seen = Seen::open(&db, LEAST).unwrap();
    (dir, db, seen)
}

fn insert_all(seen: &mut Seen, db: &Connection, keys: impl Iterator<Item = u64>) {
    for (nth, key) in keys.enumerate() {
        assert!(!seen.contains(db, key).unwrap());
        seen.insert(key, nth as u64 + 1);
        if nth % 50 == 0 {
            seen.maintain(db).unwrap();
        }
    }
}

#[test]
fn every_key_is_found_with_its_task_in_tail_and_runs() {
    let (_dir, db, mut seen) = opened();
    insert_all(&mut seen, &db, keys(1, 100_000));
    assert!(!seen.runs.is_empty() && !seen.tail.is_empty());
    for (nth, key) in keys(1, 100_000).enumerate() {
        assert!(seen.contains(&db, key).unwrap(), "key {nth}");
        assert_eq!(seen.task_of(&db, key).unwrap(), Some(nth as u64 + 1));
    }
    assert!(keys(2, 100_000).all(|key| !seen.contains(&db, key).unwrap()));
}

#[test]
fn few_runs_remain_and_merged_ones_are_freed() {
    let (_dir, db, mut seen) = opened();
    insert_all(&mut seen, &db, keys(1, 200_000));
    assert!(seen.runs.len() <= 8, "{} runs", seen.runs.len());
    let slices: u64 = seen.runs.iter().map(|run| run.slices).sum();
    let stored: u64 = db
        .query_row("SELECT count(*) FROM seen_slices", [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap() as u64;
    assert!(
        stored <= 3 * slices,
        "{stored} slices stored, {slices} in use"
    );
}

#[test]
fn the_runs_are_the_same_after_a_restart_in_the_middle_of_a_merge() {
    let (_dir, db, mut seen) = opened();
    let mut merging = 0;
    for (nth, key) in keys(1, 30_000).enumerate() {
        seen.insert(key, nth as u64 + 1);
        seen.maintain(&db).unwrap();
        if seen.merge.is_some() && nth % 7 == 0 {
            merging += 1;
            let tail = std::mem::take(&mut seen.tail);
            seen = Seen::open(&db, LEAST).unwrap();
            seen.tail = tail;
            seen.last_task = nth as u64 + 1;
        }
    }
    assert!(merging > 10, "restarted during {merging} merges");
    for (nth, key) in keys(1, 30_000).enumerate() {
        assert_eq!(seen.task_of(&db, key).unwrap(), Some(nth as u64 + 1));
    }
}

#[test]
fn the_latest_task_of_a_key_counts_through_merges() {
    let (_dir, db, mut seen) = opened();
    insert_all(&mut seen, &db, keys(1, 5_000));
    for (nth, key) in keys(1, 5_000).enumerate() {
        seen.insert(key, 5_001 + nth as u64);
        seen.maintain(&db).unwrap();
    }
    for (nth, key) in keys(1, 5_000).enumerate() {
        assert_eq!(seen.task_of(&db, key).unwrap(), Some(5_001 + nth as u64));
    }
}

#[test]
fn keys_differ_by_crawl_and_by_database() {
    let (_dir, db, seen) = opened();
    let (_other_dir, _other_db, other) = opened();
    let key = seen.key(1, "http://a.org/");
    assert_eq!(key, Seen::open(&db, LEAST).unwrap().key(1, "http://a.org/"));
    assert_ne!(key, seen.key(2, "http://a.org/"));
    assert_ne!(key, other.key(1, "http://a.org/"));
}

#[test]
fn after_a_start_the_runs_are_read_little_by_little_while_the_index_is_in_use() {
    let (_dir, db, mut seen) = opened();
    insert_all(&mut seen, &db, keys(1, 100_000));
    let tail = std::mem::take(&mut seen.tail);
    let mut seen = Seen::open_reading(&db, LEAST, 1).unwrap();
    seen.tail = tail;
    seen.last_task = 100_000;
    let older: Vec<u64> = keys(1, 100_000).collect();
    let mut turns = 0;
    for (nth, key) in keys(2, 20_000).enumerate() {
        assert!(!seen.contains(&db, key).unwrap(), "new key {nth}");
        seen.insert(key, 100_001 + nth as u64);
        if nth % 50 == 0 {
            seen.maintain(&db).unwrap();
            turns += u64::from(seen.front.is_filling());
        }
        let older = older[nth * 5];
        assert!(seen.contains(&db, older).unwrap(), "key {}", nth * 5);
    }
    assert!(turns > 5, "it was read in {turns} turns");
    assert!(!seen.front.is_filling());
    for (nth, key) in keys(1, 100_000).enumerate() {
        assert_eq!(seen.task_of(&db, key).unwrap(), Some(nth as u64 + 1));
    }
}

/// Writes keys as a run of an older version: keys of eight bytes, tasks of five.
fn write_older_run(db: &Connection, keys: &[u64], slices: u64) {
    let sql = "INSERT INTO seen_runs (state, slices, keys, last_task) VALUES ('live', ?1, ?2, ?2)";
    db.execute(sql, [slices as i64, keys.len() as i64]).unwrap();
    let run = db.last_insert_rowid();
    let mut entries: Vec<_> = keys.iter().copied().zip(1_u64..).collect();
    entries.sort_unstable();
    for slice in 0..slices {
        let of_slice = |key: &u64| ((u128::from(*key) * u128::from(slices)) >> 64) as u64 == slice;
        let entries: Vec<_> = entries.iter().filter(|(key, _)| of_slice(key)).collect();
        let keys = entries.iter().flat_map(|(key, _)| key.to_be_bytes());
        let tasks = entries
            .iter()
            .flat_map(|(_, task)| task.to_be_bytes()[3..].to_vec());
        let bytes: Vec<u8> = keys.chain(tasks).collect();
        let row = (run << 32) + slice as i64;
        db.execute(
            "INSERT INTO seen_slices VALUES (?1, ?2)",
            rusqlite::params![row, bytes],
        )
        .unwrap();
    }
}

#[test]
fn runs_of_older_versions_are_read_and_merged_with_newer_ones() {
    let (_dir, db) = empty_database();
    let older: Vec<u64> = keys(1, 2_000).collect();
    write_older_run(&db, &older, 8);
    db.execute_batch("BEGIN").unwrap();
    let mut seen = Seen::open(&db, LEAST).unwrap();
    for (nth, key) in keys(2, 10_000).enumerate() {
        assert!(!seen.contains(&db, key).unwrap());
        seen.insert(key, 2_001 + nth as u64);
        seen.maintain(&db).unwrap();
    }
    let all = older.iter().copied().chain(keys(2, 10_000));
    for (key, task) in all.zip(1..) {
        assert_eq!(seen.task_of(&db, key).unwrap(), Some(task));
    }
    let older_left = "SELECT count(*) FROM seen_runs WHERE state = 'live' AND packed = 0";
    let older_left: i64 = db.query_row(older_left, [], |row| row.get(0)).unwrap();
    assert_eq!(older_left, 0, "it was merged into a packed one");
}
