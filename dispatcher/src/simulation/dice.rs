//! Chance that can be repeated: the same seed throws the same numbers.

/// SplitMix64, by Sebastiano Vigna: small, fast, and good enough to look for faults with.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    state: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// The same, but each order of magnitude as likely as any other.
    pub(super) fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let span = (high as f64 / low as f64).ln();
        let share = self.next() as f64 / u64::MAX as f64;
        ((low as f64 * (span * share).exp()) as u64).clamp(low, high)
    }

    /// True once in so many throws; never for 0.
    pub(super) fn once_in(&mut self, throws: u64) -> bool {
        throws > 0 && self.next().is_multiple_of(throws)
    }

    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.next() as usize % choices.len()]
    }
}
