//! How the keys and tasks of a run are stored in its slices.

use super::runs::Entry;

/// How the keys of a run are divided into slices, and how wide its numbers are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) slices: u64,
    pub(super) widths: EntryWidths,
}

/// The width of an entry's numbers, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryWidths {
    pub(super) key: usize,
    pub(super) task: usize,
}

impl EntryWidths {
    pub(super) fn entry_bytes(self) -> usize {
        self.key + self.task
    }
}

impl Layout {
    pub(super) fn new(slices: u64, last_task: u64) -> Layout {
        let key_bits = u64::BITS - slices.ilog2();
        let task_bits = u64::BITS - last_task.leading_zeros();
        Layout {
            slices,
            widths: EntryWidths {
                key: key_bits.div_ceil(8) as usize,
                task: task_bits.div_ceil(8).max(1) as usize,
            },
        }
    }

    pub(super) fn slice_of(&self, key: u64) -> u64 {
        ((key as u128 * self.slices as u128) >> 64) as u64
    }

    /// The first key that belongs to a slice.
    pub(super) fn first_key_of(&self, slice: u64) -> u64 {
        (u128::from(slice) << 64).div_ceil(u128::from(self.slices)) as u64
    }

    /// The stored form of a slice.
    pub(super) fn encode(&self, slice: u64, entries: &[Entry]) -> Vec<u8> {
        let base = self.first_key_of(slice);
        let mut bytes = Vec::with_capacity(entries.len() * self.widths.entry_bytes());
        for (key, _) in entries {
            bytes.extend_from_slice(&(key - base).to_be_bytes()[8 - self.widths.key..]);
        }
        for (_, task) in entries {
            bytes.extend_from_slice(&task.to_be_bytes()[8 - self.widths.task..]);
        }
        bytes
    }

    /// A slice with this many entries, from its stored form. The tasks at the end may be missing.
    pub(super) fn decode<'a>(&self, slice: u64, count: usize, bytes: &'a [u8]) -> Slice<'a> {
        Slice {
            bytes,
            count,
            base: self.first_key_of(slice),
            widths: self.widths,
        }
    }
}

/// A slice in its stored form: all keys in ascending order, then their tasks in the same order.
pub(super) struct Slice<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) count: usize,
    /// The slice's keys are stored as distances from this key.
    pub(super) base: u64,
    pub(super) widths: EntryWidths,
}

impl Slice<'_> {
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.count).map(|nth| (self.key(nth), self.task(nth)))
    }

    pub(super) fn find(&self, key: u64) -> Option<u64> {
        self.position(key).map(|nth| self.task(nth))
    }

    pub(super) fn position(&self, key: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.count && self.key(low) == key).then_some(low)
    }

    fn key(&self, nth: usize) -> u64 {
        self.base + read_number(self.bytes, nth * self.widths.key, self.widths.key)
    }

    fn task(&self, nth: usize) -> u64 {
        let start = self.count * self.widths.key + nth * self.widths.task;
        read_number(self.bytes, start, self.widths.task)
    }
}

/// Reads a number of one to eight bytes at `start`, the highest byte first.
fn read_number(bytes: &[u8], start: usize, width: usize) -> u64 {
    // Reads eight bytes if there are as many, because smaller reads took most of a look-up's time.
    let eight = bytes.get(start..start + 8);
    match eight.and_then(|eight| eight.try_into().ok()) {
        Some(eight) => u64::from_be_bytes(eight) >> (64 - 8 * width),
        None => {
            let mut whole = [0; 8];
            whole[8 - width..].copy_from_slice(&bytes[start..start + width]);
            u64::from_be_bytes(whole)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_widths_are_read_wherever_they_stand() {
        for width in 1..=8 {
            let largest = u64::MAX >> (64 - 8 * width);
            for whole in [0, 1, largest / 3, largest] {
                let stored = &whole.to_be_bytes()[8 - width..];
                for (before, after) in [(0, 0), (3, 0), (0, 9), (5, 7)] {
                    let bytes = [&vec![255; before], stored, &vec![255; after]].concat();
                    assert_eq!(read_number(&bytes, before, width), whole, "{width} bytes");
                }
            }
        }
    }
}
