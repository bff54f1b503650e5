//! Repeatable random numbers: the same seed always yields the same numbers.

use fastrand::Rng;

/// A seeded random number generator, with the draws that plans and worlds need.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    rng: Rng,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice {
            rng: Rng::with_seed(seed),
        }
    }

    /// A random number from `low` to `high`, inclusive.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.rng.u64(low..=high)
    }

    /// A random number from `low` to `high`. Each order of magnitude is equally likely.
    pub(crate) fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        let span = (high as f64 / low as f64).ln();
        let share = self.rng.f64();
        ((low as f64 * (span * share).exp()) as u64).clamp(low, high)
    }

    /// True with a probability of one in `throws`; never for 0.
    pub(crate) fn once_in(&mut self, throws: u64) -> bool {
        throws > 0 && self.rng.u64(..throws) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())]
    }
}
