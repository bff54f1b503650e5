//! Which dispatcher owns a site. Each site permanently belongs to one of a fixed number of slots, and each slot belongs
//! to one dispatcher.

use crate::dice::Dice;

/// The number of dispatchers.
pub(super) const DISPATCHERS: usize = 4;

const SLOTS: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct SlotMap {
    owners: Vec<usize>,
}

impl SlotMap {
    /// Draws a map where each dispatcher has the same number of slots.
    pub(super) fn draw(dice: &mut Dice) -> SlotMap {
        let mut owners: Vec<usize> = (0..SLOTS).map(|slot| slot % DISPATCHERS).collect();
        for slot in (1..SLOTS).rev() {
            owners.swap(slot, dice.between(0, slot as u64) as usize);
        }
        SlotMap { owners }
    }

    /// The dispatcher that owns the site with this name, or is the home of the crawl with this name.
    pub(super) fn owner(&self, name: &str) -> usize {
        self.owners[slot_of(name)]
    }
}

/// The slot of a name by FNV-1a. Unlike the hash of a hash table, it is the same on every machine and in every run.
fn slot_of(name: &str) -> usize {
    let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    (hash % SLOTS as u64) as usize
}
