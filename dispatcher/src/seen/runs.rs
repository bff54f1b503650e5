//! Runs: the part of the seen index on disk, sorted by key.
//!
//! A run divides the key space into equal slices; each slice is one row, about a third of a database
//! page, so a look-up reads one page and needs no directory in memory. Of a key only the distance to
//! the slice's first key is stored, and of both numbers only the bytes that the run's largest may take. A run is written once and never
//! changed. Its states are
//!
//! - *building* until its last slice is written,
//! - *live* while it is part of the index,
//! - *dropped* once it was merged into another run; its slices are freed little by little.
//!
//! After a crash a run that was being built is dropped; its sources are still live.

use rusqlite::{Connection, OptionalExtension, Result, params};

/// The average number of keys in a slice. Ten bytes each, three slices fill a page of 4 KiB.
const KEYS_PER_SLICE: u64 = 120;

/// A key and the task that it became.
pub(super) type Entry = (u64, u64);

/// One sorted run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub(super) id: i64,
    pub(super) slices: u64,
    pub(super) keys: u64,
    /// All tasks up to this one are in this run or in older ones.
    pub(super) last_task: u64,
    /// False of runs that older versions have written.
    packed: bool,
}

/// How many bytes the numbers of an entry take.
#[derive(Debug, Clone, Copy)]
struct Widths {
    key: usize,
    task: usize,
}

impl Run {
    /// Begins a run of at most this many keys.
    pub(super) fn begin(db: &Connection, keys: u64, last_task: u64) -> Result<Run> {
        let slices = keys.div_ceil(KEYS_PER_SLICE).max(1);
        let sql = "INSERT INTO seen_runs (state, slices, keys, last_task, packed)
                   VALUES ('building', ?1, ?2, ?3, 1) RETURNING id";
        let values = params![slices as i64, keys as i64, last_task as i64];
        let id = db.query_row(sql, values, |row| row.get(0))?;
        Ok(Run {
            id,
            slices,
            keys,
            last_task,
            packed: true,
        })
    }

    fn widths(&self) -> Widths {
        if !self.packed {
            return Widths { key: 8, task: 5 };
        }
        let key_bits = u64::BITS - self.slices.ilog2();
        let task_bits = u64::BITS - self.last_task.leading_zeros();
        Widths {
            key: key_bits.div_ceil(8) as usize,
            task: task_bits.div_ceil(8).max(1) as usize,
        }
    }

    /// What the keys of a slice are stored as distances to.
    fn base_of(&self, slice: u64) -> u64 {
        match self.packed {
            true => self.first_key_of(slice),
            false => 0,
        }
    }

    fn slice<'a>(&self, slice: u64, bytes: &'a [u8]) -> Slice<'a> {
        Slice {
            bytes,
            base: self.base_of(slice),
            widths: self.widths(),
        }
    }

    pub(super) fn finish(&self, db: &Connection) -> Result<()> {
        set_state(db, self.id, "live")
    }

    pub(super) fn discard(&self, db: &Connection) -> Result<()> {
        set_state(db, self.id, "dropped")
    }

    pub(super) fn slice_of(&self, key: u64) -> u64 {
        ((key as u128 * self.slices as u128) >> 64) as u64
    }

    /// The first key that belongs to a slice.
    pub(super) fn first_key_of(&self, slice: u64) -> u64 {
        (u128::from(slice) << 64).div_ceil(u128::from(self.slices)) as u64
    }

    /// Writes one slice. The entries must be in ascending order and belong to the slice.
    pub(super) fn write_slice(&self, db: &Connection, slice: u64, entries: &[Entry]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let (base, widths) = (self.base_of(slice), self.widths());
        let mut bytes = Vec::with_capacity(entries.len() * widths.entry());
        for (key, _) in entries {
            bytes.extend_from_slice(&(key - base).to_be_bytes()[8 - widths.key..]);
        }
        for (_, task) in entries {
            bytes.extend_from_slice(&task.to_be_bytes()[8 - widths.task..]);
        }
        let mut insert = db.prepare_cached("INSERT INTO seen_slices VALUES (?1, ?2)")?;
        insert.execute(params![self.row_of(slice), bytes])?;
        Ok(())
    }

    /// Appends a slice's entries, in ascending order.
    pub(super) fn read_slice(
        &self,
        db: &Connection,
        slice: u64,
        entries: &mut Vec<Entry>,
    ) -> Result<()> {
        let mut read = db.prepare_cached("SELECT entries FROM seen_slices WHERE id = ?1")?;
        let mut rows = read.query([self.row_of(slice)])?;
        if let Some(row) = rows.next()? {
            let slice = self.slice(slice, row.get_ref(0)?.as_blob()?);
            entries.extend((0..slice.len()).map(|nth| (slice.key(nth), slice.task(nth))));
        }
        Ok(())
    }

    /// Appends the entries with keys from `from` on and before `end`, in ascending order.
    pub(super) fn read_keys(
        &self,
        db: &Connection,
        from: u64,
        end: Option<u64>,
        entries: &mut Vec<Entry>,
    ) -> Result<()> {
        let last = end.map_or(self.slices - 1, |end| self.slice_of(end - 1));
        for slice in self.slice_of(from)..=last {
            self.read_slice(db, slice, entries)?;
        }
        entries.retain(|(key, _)| *key >= from && end.is_none_or(|end| *key < end));
        Ok(())
    }

    /// The task of a key, if it is in this run.
    pub(super) fn find(&self, db: &Connection, key: u64) -> Result<Option<u64>> {
        let mut read = db.prepare_cached("SELECT entries FROM seen_slices WHERE id = ?1")?;
        let slice = self.slice_of(key);
        let found =
            |row: &rusqlite::Row<'_>| Ok(self.slice(slice, row.get_ref(0)?.as_blob()?).find(key));
        Ok(read
            .query_row([self.row_of(slice)], found)
            .optional()?
            .flatten())
    }

    fn row_of(&self, slice: u64) -> i64 {
        first_row(self.id) + slice as i64
    }
}

/// Rows of one run follow each other; 2^32 slices are more than any run has.
fn first_row(run: i64) -> i64 {
    run << 32
}

fn set_state(db: &Connection, run: i64, state: &str) -> Result<()> {
    let mut update = db.prepare_cached("UPDATE seen_runs SET state = ?2 WHERE id = ?1")?;
    update.execute(params![run, state])?;
    Ok(())
}

/// The live runs, oldest first. Runs that a crash left half built are dropped.
pub(super) fn open(db: &Connection) -> Result<Vec<Run>> {
    db.execute(
        "UPDATE seen_runs SET state = 'dropped' WHERE state = 'building'",
        [],
    )?;
    let sql = "SELECT id, slices, keys, last_task, packed FROM seen_runs
               WHERE state = 'live' ORDER BY id";
    let mut select = db.prepare(sql)?;
    let runs = select.query_map([], |row| {
        Ok(Run {
            id: row.get(0)?,
            slices: row.get::<_, i64>(1)? as u64,
            keys: row.get::<_, i64>(2)? as u64,
            last_task: row.get::<_, i64>(3)? as u64,
            packed: row.get(4)?,
        })
    })?;
    runs.collect()
}

/// Frees at most this many slices of dropped runs; SQLite reuses their pages.
pub(super) fn sweep(db: &Connection, most: u64) -> Result<()> {
    let mut oldest = db.prepare_cached("SELECT id FROM seen_runs WHERE state = 'dropped'")?;
    let Some(run) = oldest
        .query_row([], |row| row.get::<_, i64>(0))
        .optional()?
    else {
        return Ok(());
    };
    let sql = "DELETE FROM seen_slices WHERE id IN
               (SELECT id FROM seen_slices WHERE id >= ?1 AND id < ?2 LIMIT ?3)";
    let freed =
        db.prepare_cached(sql)?
            .execute([first_row(run), first_row(run + 1), most as i64])?;
    if (freed as u64) < most {
        db.prepare_cached("DELETE FROM seen_runs WHERE id = ?1")?
            .execute([run])?;
    }
    Ok(())
}

impl Widths {
    fn entry(self) -> usize {
        self.key + self.task
    }
}

/// A slice as stored: all keys in ascending order, then their tasks in the same order.
struct Slice<'a> {
    bytes: &'a [u8],
    /// What its keys are distances to.
    base: u64,
    widths: Widths,
}

impl Slice<'_> {
    fn len(&self) -> usize {
        self.bytes.len() / self.widths.entry()
    }

    fn key(&self, nth: usize) -> u64 {
        let start = nth * self.widths.key;
        self.base + number(&self.bytes[start..start + self.widths.key])
    }

    fn task(&self, nth: usize) -> u64 {
        let start = self.len() * self.widths.key + nth * self.widths.task;
        number(&self.bytes[start..start + self.widths.task])
    }

    fn find(&self, key: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.len() && self.key(low) == key).then(|| self.task(low))
    }
}

/// A number of at most eight bytes, the highest first.
fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[8 - bytes.len()..].copy_from_slice(bytes);
    u64::from_be_bytes(whole)
}
